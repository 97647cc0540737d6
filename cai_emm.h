/* cai_emm.h - external memory management: a library's memory by hooks of its application - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_EMM_IMPLEMENTATION)
#define CAI_EMM_IMPLEMENTATION
#endif

/* A second include of cai_stream.h adds what is missing, and refuses late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 2
#error "cai_emm.h: this is version 0.2, which needs cai_stream.h 0.2"
#endif
#if defined(CAI_EMM_H_INCLUDED) && CAI_EMM_H_INCLUDED != 200
#error "cai_emm.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_EMM_H_INCLUDED
#define CAI_EMM_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_EMM_IMPLEMENTATION for this header alone). All other configuration is
    that of cai.h and cai_stream.h.

        #define CAI_IMPLEMENTATION
        #include "cai_emm.h"

    Everywhere else include it without the define.

WHAT IT IS
    Several libraries in one program need device memory. Each library allocates through a table of hooks,
    cai_emm_hooks, which the application fills. The table is Numba's EMM plugin interface in C. It contains
    the pair of functions that NVIDIA's libraries use (DeviceMemHandler). This header has the table, its
    check, tables over CUDA's own functions and malloc, and memory and owned arrays through a table.
    ext/cai_manager.h has the rest of what Numba does. There are no copies here, and no memory pools but
    CUDA's. docs/memory.md is the guide.

EXAMPLE (a library that takes its memory from the application)
        int32_t launch(const cai_array *x, cai_array *y, struct CUstream_st *s); // returns cudaGetLastError()

        cai_status sum(cai_array *y, cai_event_pool *pool, const cai_emm_hooks *hooks, const cai_array *x,
                       struct CUstream_st *s, cai_error *err);
        cai_status sum(cai_array *y, cai_event_pool *pool, const cai_emm_hooks *hooks, const cai_array *x,
                       struct CUstream_st *s, cai_error *err)
        {
            cai_status status;
            CAI_TRY(cai_emm_array(y, pool, hooks, CAI_FLOAT32, 0, NULL, CAI_STREAM(s), err));
            status = cai_cuda_status(launch(x, y, s), "sum", err);
            if (status) cai_array_release(y);
            return status;
        }

THE FUNCTIONS MOST USERS NEED
    cai_emm_hooks_check  checks a table of your own, or of a plugin
    cai_emm_hooks_cuda   makes a table over cudaMalloc
    cai_emm_pool_create  makes a memory pool of CUDA that is safe where threads share streams
    cai_emm_hooks_async  makes a table over cudaMallocAsync, by such a pool
    cai_emm_alloc        allocates memory by a table, in the order of a stream
    cai_emm_free         frees it, in the order of a stream
    cai_emm_array        makes an owned cai_array by a table; cai_array_release frees it

CUDA'S MEMORY POOLS AND THREADS THAT SHARE A STREAM
    CUDA's default pool may give one block to two owners if two threads use one stream at the same time: one
    waits for an event there, while the other records one (seen on an H100, driver 580, CUDA 13.0). The cause
    is its setting cudaMemPoolReuseFollowEventDependencies. A pool of cai_emm_pool_create has it off. cai does
    not change the default pool, which belongs to the process. It is right if each stream is used by one
    thread.

ERRORS
    As in cai_stream.h. On failure no output is written. If a hook fails, the error is CAI_ERR_CUDA, or
    CAI_ERR_OUT_OF_MEMORY for a hook that allocates and returns 2. cai_error.native is the hook's error
    number. The message names hook and table: "device_free of my_pool: CUDA error 700 (illegal address)".

THREADS
    The functions keep no state. Any number of threads may call them.

RULES
    R110-R122 in comments: docs/rules.md.
*/

#include <stddef.h>

#if defined(CAI_NAMESPACE)
#define cai_emm_alloc CAI_PRIV_RENAMED(cai_emm_alloc)
#define cai_emm_array CAI_PRIV_RENAMED(cai_emm_array)
#define cai_emm_free CAI_PRIV_RENAMED(cai_emm_free)
#define cai_emm_hooks_async CAI_PRIV_RENAMED(cai_emm_hooks_async)
#define cai_emm_hooks_check CAI_PRIV_RENAMED(cai_emm_hooks_check)
#define cai_emm_hooks_cuda CAI_PRIV_RENAMED(cai_emm_hooks_cuda)
#define cai_emm_hooks_malloc CAI_PRIV_RENAMED(cai_emm_hooks_malloc)
#define cai_emm_ipc_handle CAI_PRIV_RENAMED(cai_emm_ipc_handle)
#define cai_emm_pool_create CAI_PRIV_RENAMED(cai_emm_pool_create)
#define cai_emm_pool_destroy CAI_PRIV_RENAMED(cai_emm_pool_destroy)
#endif

CAI_PRIV_C_BEGIN

/* -------------------------------------------------------------------- >>hooks */
/* The struct below is used across shared objects. cai.h explains the guard. */
#ifndef CAI_EMM_ABI_V0
#define CAI_EMM_ABI_V0

typedef int (*cai_emm_free_hook)(void *ctx, void *ptr, size_t size, struct CUstream_st *stream);

/** A table of hooks that allocate and free. A hook gets `ctx`, and returns 0 or CUDA's error number. Only
 *  device_alloc and device_free are required. Any other hook may be NULL, which means not available. Sizes are
 *  in bytes and never 0. Flags are CUDA's. A hook that frees does so after the work in `stream`: in the order
 *  of the stream, or after a wait for the stream. `stream` NULL is the legacy stream. cudaFree does not
 *  replace the wait (docs/memory.md). The caller of unpin has waited before. */
struct cai_emm_hooks_v0 {
    uint32_t struct_size; /* sizeof of the maker's struct; hooks behind its end are NULL */
    uint32_t version;     /* CAI_EMM_VERSION */
    uint32_t flags;       /* CAI_EMM_... */
    int32_t kind;         /* of device_alloc's memory: CAI_MEMORY_DEVICE, or 0, _POOL or _HOST */
    /* From ctx to name the struct is a DeviceMemHandler of cuTensorNet, cuStateVec and cuDSS. Memory is
     * aligned to 256 bytes, and may be used at once in the order of `stream`. Nothing need be queued there. */
    void *ctx;
    int (*device_alloc)(void *ctx, void **ptr, size_t size, struct CUstream_st *stream);
    cai_emm_free_hook device_free;
    char name[64]; /* for messages; ends in a zero byte */
    /* state */
    int (*initialize)(void *ctx, int device); /* before the first use; may be called again (R112) */
    int (*reset)(void *ctx);                  /* frees all that was given out; may be called first (R113) */
    int (*memory_info)(void *ctx, size_t *free_bytes, size_t *total_bytes);
    int (*defer)(void *ctx, int on);          /* 1: a scope begins, do nothing that takes time; 0: it ends.
                                                 Count scopes, as threads may cross. May come first (R117) */
    /* other processes: the handle (64 bytes) and the first address of the allocation around ptr (R116) */
    int (*ipc_handle)(void *ctx, void *ptr, void *handle, void **base);
    /* host memory, pinned or mapped */
    int (*host_alloc)(void *ctx, void **ptr, size_t size, unsigned int flags);
    cai_emm_free_hook host_free;
    /* pinning of memory that exists */
    int (*pin)(void *ctx, void *ptr, size_t size, unsigned int flags);
    cai_emm_free_hook unpin;
    /* managed memory */
    int (*managed_alloc)(void *ctx, void **ptr, size_t size, unsigned int flags);
    cai_emm_free_hook managed_free;
    /* a context of its own for each manager: `own` takes the place of ctx in its hooks, and close ends it.
     * The hooks must work with ctx, too, for libraries without a manager. `context` is the CUDA context
     * (R111). It is current in open and in close. If it was destroyed before close, another one is: free only
     * host memory */
    int (*open)(void *ctx, int device, uint64_t context, void **own);
    int (*close)(void *own);
};

#endif /* CAI_EMM_ABI_V0 */

typedef struct cai_emm_hooks_v0 cai_emm_hooks;

enum { CAI_EMM_VERSION = 1 };

enum {
    CAI_EMM_FREES_WAIT = 1 << 0, /* device_free, host_free, managed_free wait on the host: a manager defers */
    CAI_EMM_CUDA_HOST = 1 << 1,  /* a manager uses CUDA's own functions for the last six hooks, if NULL */
    CAI_EMM_CUDA_IPC = 1 << 2    /* the same for ipc_handle; the memory is of cudaMalloc */
};

enum { CAI_HOST_PORTABLE = 1, CAI_HOST_MAPPED = 2, CAI_HOST_WRITE_COMBINED = 4 }; /* cudaHostAlloc */
enum { CAI_MANAGED_GLOBAL = 1, CAI_MANAGED_HOST = 2 };                            /* cudaMallocManaged */

/** Checks a table, and calls no hook. The message names the field, as in "hooks: host_free is NULL, but
 *  host_alloc is not". Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (struct_size ends before `name` does, or the
 *  version is another one). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_check(const cai_emm_hooks *hooks, cai_error *err);

/** Makes a table over cudaMalloc, cudaFree and the rest of CUDA's own functions. `cuda` must outlive the
 *  table. Each free but unpin first waits on the host for its stream. A manager defers the frees. If the
 *  stream captures (900) or the wait fails, the free returns the error, and the memory stays. If the error
 *  ends all work of the context, the free returns it, and the memory is freed. Errors: CAI_ERR_ARGUMENT
 *  (NULL), CAI_ERR_ABI (another version, or no slots), CAI_ERR_UNAVAILABLE (no memory_alloc, memory_free or
 *  stream_synchronize). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_cuda(cai_emm_hooks *out, const cai_cuda *cuda,
                                                     cai_error *err);

/** A memory pool of CUDA that cai_emm_pool_create made. Its fields may be read. */
typedef struct cai_emm_pool {
    const cai_cuda *cuda;
    uint64_t pool; /* a cudaMemPool_t */
} cai_emm_pool;

/** Makes a memory pool on a device. The pool gives a free block to another stream when the free has run, or
 *  makes the allocation wait for the free, but not because of events (see above). It keeps its memory until it
 *  is destroyed. Other devices have no access (cudaMemPoolSetAccess gives it). `cuda` must outlive the pool.
 *  Errors: CAI_ERR_ARGUMENT (NULL), CAI_ERR_ABI, CAI_ERR_UNAVAILABLE (a table without pools), CAI_ERR_CUDA
 *  (801: the device has no pools). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_pool_create(cai_emm_pool *out, const cai_cuda *cuda, int32_t device,
                                                      cai_error *err);

/** Destroys a pool. Memory that was not freed stays until it is freed. Do not use a table over the pool any
 *  more. Errors: CAI_ERR_ARGUMENT (NULL, or not made), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_pool_destroy(cai_emm_pool *pool, cai_error *err);

/** Makes a table over cudaMallocAsync and cudaFreeAsync. `pool` is one of cai_emm_pool_create, and must
 *  outlive the table. Memory comes from the pool's device. NULL is the current pool of the device of each
 *  stream, only for streams that one thread uses. That pool keeps memory up to
 *  cudaMemPoolAttrReleaseThreshold, which is 0 at first. `cuda` must outlive the table. While a blocking
 *  stream captures, an allocation and a free on the legacy stream return 906, and nothing is done. Errors:
 *  CAI_ERR_ARGUMENT (NULL, or a pool that is not made), CAI_ERR_ABI, CAI_ERR_UNAVAILABLE (no
 *  memory_alloc_async or memory_free_async). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_async(cai_emm_hooks *out, const cai_cuda *cuda,
                                                      cai_emm_pool *pool, cai_error *err);

/** Makes a table over malloc and free, for machines without CUDA. It needs no event pool. */
CAI_API void cai_emm_hooks_malloc(cai_emm_hooks *out);

/** The hook ipc_handle of CUDA's own table, for the hook of a plugin that cuts its memory out of cudaMalloc's.
 *  `ptr` may be anywhere in an allocation. `handle` gets 64 bytes, `base` the first address of the allocation
 *  (R116). The context of the memory is current. Returns 0 or CUDA's error number: 1 for NULL, 801 if the
 *  table lacks ipc_export or pointer_range. On failure nothing is stored. Threads: any. */
CAI_API int cai_emm_ipc_handle(const cai_cuda *cuda, void *ptr, void *handle, void **base);

/* ------------------------------------------------------------------- >>memory */
/** Allocates memory with device_alloc in the current context. It may be used at once on `stream`, and is
 *  aligned to 256 bytes. Before you use it on another stream, also on stream 1 and a blocking one, order that
 *  stream after this one, as an exchange does. `size` is in bytes. 0 gives NULL and calls no hook. `hooks`
 *  must be a table that cai_emm_hooks_check accepts, and is neither checked again nor copied. The table and
 *  its ctx must stay valid until the memory is freed. `stream` must not capture, because the memory of some
 *  hooks would belong to the graph. This is not checked. Threads: any, if the hook allows it. Errors:
 *  CAI_ERR_ARGUMENT (NULL), CAI_ERR_STREAM (0 or -1), CAI_ERR_OUT_OF_MEMORY, CAI_ERR_MEMORY (the hook returned
 *  NULL, or broke its promise), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_alloc(void **out, const cai_emm_hooks *hooks, size_t size,
                                                uint64_t stream, cai_error *err);

/** Frees memory of cai_emm_alloc with device_free in the current context, after the work that is in `stream`
 *  now. If there is work on other streams, order `stream` after them first (cai_stream_order). `size` is that
 *  of the allocation. NULL does nothing. Errors: CAI_ERR_ARGUMENT (hooks is NULL), CAI_ERR_STREAM,
 *  CAI_ERR_CUDA (the hook's; docs/memory.md explains when the memory is still there). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_free(const cai_emm_hooks *hooks, void *ptr, size_t size,
                                               uint64_t stream, cai_error *err);

/* ------------------------------------------------------------------- >>arrays */
/** Makes a new, owned array in C order, in memory of a table. `pool` may be NULL only with hooks of
 *  CAI_MEMORY_HOST. `hooks` and `pool` must outlive the memory. `code` is a dtype of fixed size. `shape` has
 *  ndim extents, in elements: an element of CAI_INT4_X2 is two values, along the last axis. The array's work
 *  is on `stream`. An array without elements has no memory.
 *  cai_array_release frees the memory after the work in the stream or event that the array names then, and
 *  uses no other stream. If you store another stream in the array, that stream must come after all work on the
 *  array. An array without a stream is freed on the legacy stream. If the array is CAI_SYNC_UNKNOWN, or the
 *  device cannot make the order, the host waits for the context. Memory that cannot be freed while a stream
 *  captures waits in `pool` (cai_keepalive_poll, cai_keepalive_drain). If the context was reset, no hook is
 *  called. Before you destroy a context, release its arrays. The current context is restored. Threads: any.
 *  Errors: those of cai_array_init, of cai_emm_alloc, CAI_ERR_UNAVAILABLE (no context is current),
 *  CAI_ERR_CAPTURE (`stream` captures), CAI_ERR_OUT_OF_MEMORY (also of the host). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_array(cai_array *out, cai_event_pool *pool,
                                                const cai_emm_hooks *hooks, int32_t code, int32_t ndim,
                                                const int64_t *shape, uint64_t stream, cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_EMM_H_INCLUDED */

/* =================================================================== >>shared */
/* The shared part of the implementations of this header and of cai_manager.h. Not for users. */
#if (defined(CAI_EMM_IMPLEMENTATION) || defined(CAI_PRIV_WANT_EMM)) && !defined(CAI_PRIV_EMM)
#define CAI_PRIV_EMM

#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

/* Copies a checked table of any size. The hooks behind its end are NULL. */
static inline void cai_priv_emm_whole_hooks(cai_emm_hooks *to, const cai_emm_hooks *from)
{
    const size_t behind_head = from->struct_size - offsetof(cai_emm_hooks, initialize);
    const size_t end = from->struct_size - behind_head % sizeof from->initialize;
    memset(to, 0, sizeof *to);
    memcpy(to, from, end < sizeof *to ? end : sizeof *to);
    if (!to->kind) to->kind = CAI_MEMORY_DEVICE;
}

static inline const char *cai_priv_emm_name(const cai_emm_hooks *hooks)
{
    return hooks->name[0] ? hooks->name : "an unnamed table";
}

/* Returns the status of a hook that failed: "device_free of my_pool: CUDA error 700 (illegal address)". */
CAI_PRIV_COLD cai_status cai_priv_emm_hook_status(const cai_emm_hooks *hooks, const char *hook,
                                                  int32_t error, cai_error *err)
{
    cai_error what;
    (void)cai_priv_error(&what, CAI_ERR_CUDA, "%s of %s", hook, cai_priv_emm_name(hooks));
    return cai_cuda_status(error, what.message, err);
}

/* Finds the current context, which memory belongs to. */
static inline cai_status cai_priv_emm_context(const cai_cuda *cuda, uint64_t *context, cai_error *err)
{
    const int32_t error = cuda->context_current(cuda->self, context);
    if (error) return cai_cuda_status(error, "context_current", err);
    if (*context) return CAI_OK;
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_UNAVAILABLE, 111),
                          "no context is current: call cudaSetDevice first");
}

/* Returns whether the array's stream may be used. A stream 2 of another thread may be gone. */
static inline int cai_priv_emm_names(const cai_cuda *cuda, const cai_array *array)
{
    uint64_t now = 0;
    if (array->sync != CAI_SYNC_STREAM && array->sync != CAI_SYNC_EVENT) return 0;
    if (!cai_priv_is_stream(cuda, array->stream)) return 0;
    if (array->stream != CAI_STREAM_PER_THREAD) return 1;
    return !cuda->host_thread(cuda->self, &now) && now == array->thread;
}

/* Lets the host wait for an event (0: for the context), in the relaxed mode. */
static inline int32_t cai_priv_emm_wait(const cai_cuda *cuda, uint64_t event)
{
    int32_t mode, error;
    error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    error = event ? cuda->event_synchronize(cuda->self, event) : cuda->context_synchronize(cuda->self);
    return cai_priv_mode_restore(cuda, mode, error);
}

/* Uses the stream and the event of the array, and returns the stream to free in. On 0, free in the legacy
 * stream, which comes after stream 2 of all threads. *unordered: work may be pending in unknown streams. *wait:
 * the host may wait for the context. */
static inline uint64_t cai_priv_emm_look(const cai_cuda *cuda, const cai_array *array, int *unordered,
                                         int *wait)
{
    const int by_event = array->sync == CAI_SYNC_EVENT;
    uint64_t stream = cai_priv_emm_names(cuda, array) ? array->stream : 0;
    int32_t error = 0;
    *unordered = 0;
    *wait = 1;
    if (by_event && !stream && !(cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS)) stream = CAI_STREAM_LEGACY;
    if (stream) {
        *unordered = stream != CAI_STREAM_LEGACY;
        error = cai_priv_captures(cuda, stream);
        if (!error && by_event) error = cuda->stream_wait_event(cuda->self, stream, array->event);
        if (!error) return stream;
        *wait = error < 900 || error > 908; /* a wait would end the capture */
    } else if (array->sync == CAI_SYNC_UNKNOWN || array->sync == CAI_SYNC_STREAM)
        *unordered = array->sync == CAI_SYNC_UNKNOWN || array->stream != CAI_STREAM_PER_THREAD;
    if (by_event) error = cai_priv_emm_wait(cuda, array->event);
    if (by_event && error && !cai_priv_is_dead(error)) *unordered = 1;
    return 0;
}

#endif /* CAI_PRIV_WANT_EMM */

/* ============================================================ >>implementation
 *   >>checks  >>built-in  >>allocating  >>releasing */

#if defined(CAI_EMM_IMPLEMENTATION) && !defined(CAI_EMM_IMPLEMENTED)
#define CAI_EMM_IMPLEMENTED

#include <stdlib.h>
#define CAI_PRIV_WANT_GUARD
#include "cai_stream.h"

CAI_PRIV_C_BEGIN

typedef char cai_priv_assert_emm_hooks[sizeof(struct cai_emm_hooks_v0) == (sizeof(void *) == 8 ? 208 : 144)
                                           ? 1 : -1];

/* ------------------------------------------------------------------- >>checks */
/* A pair of hooks is whole or missing. */
static cai_status cai_priv_emm_check_pair(cai_error *err, const char *one, int has_one, const char *other,
                                          int has_other)
{
    if (has_one == has_other) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks: %s is NULL, but %s is not",
                          has_one ? other : one, has_one ? one : other);
}

static cai_status cai_priv_emm_check_head(const cai_emm_hooks *hooks, cai_error *err)
{
    const size_t least = offsetof(cai_emm_hooks, initialize);
    if (!hooks) return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks is NULL");
    if (hooks->struct_size < least)
        return cai_priv_error(err, CAI_ERR_ABI, "hooks: struct_size = %lu must be at least %lu",
                              (unsigned long)hooks->struct_size, (unsigned long)least);
    if (hooks->version != CAI_EMM_VERSION)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_ABI, 110),
                              "hooks: version = %lu, but version %d is required",
                              (unsigned long)hooks->version, CAI_EMM_VERSION);
    if (hooks->flags & ~(uint32_t)(CAI_EMM_FREES_WAIT | CAI_EMM_CUDA_HOST | CAI_EMM_CUDA_IPC))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks: flags = 0x%lx has unknown bits",
                              (unsigned long)hooks->flags);
    if (hooks->kind && hooks->kind != CAI_MEMORY_DEVICE && hooks->kind != CAI_MEMORY_POOL &&
        hooks->kind != CAI_MEMORY_HOST)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "hooks: kind = %d is not CAI_MEMORY_DEVICE (%d), _POOL (%d) or _HOST (%d)",
                              (int)hooks->kind, CAI_MEMORY_DEVICE, CAI_MEMORY_POOL, CAI_MEMORY_HOST);
    if (!memchr(hooks->name, 0, sizeof hooks->name))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks: name has no zero byte in its %d bytes",
                              (int)sizeof hooks->name);
    return CAI_OK;
}

CAI_API cai_status cai_emm_hooks_check(const cai_emm_hooks *hooks, cai_error *err)
{
    cai_emm_hooks whole;
    CAI_TRY(cai_priv_emm_check_head(hooks, err));
    cai_priv_emm_whole_hooks(&whole, hooks);
    if (!whole.device_alloc || !whole.device_free)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks: %s is NULL",
                              whole.device_alloc ? "device_free" : "device_alloc");
    CAI_TRY(cai_priv_emm_check_pair(err, "host_alloc", !!whole.host_alloc, "host_free", !!whole.host_free));
    CAI_TRY(cai_priv_emm_check_pair(err, "pin", !!whole.pin, "unpin", !!whole.unpin));
    CAI_TRY(cai_priv_emm_check_pair(err, "open", !!whole.open, "close", !!whole.close));
    return cai_priv_emm_check_pair(err, "managed_alloc", !!whole.managed_alloc, "managed_free",
                                   !!whole.managed_free);
}

/* ----------------------------------------------------------------- >>built-in */
/* The pair of hooks of a kind of memory. */
enum { CAI_PRIV_BY_DEVICE, CAI_PRIV_BY_HOST, CAI_PRIV_BY_PIN, CAI_PRIV_BY_MANAGED };

static int32_t cai_priv_emm_cuda_drop(const cai_cuda *cuda, int32_t pair, uint64_t pointer)
{
    if (pair == CAI_PRIV_BY_HOST) return cuda->host_free(cuda->self, pointer);
    if (pair == CAI_PRIV_BY_PIN) return cuda->host_unregister(cuda->self, pointer);
    return cuda->memory_free(cuda->self, pointer);
}

/* `ctx` is the CUDA table. While something captures globally these functions are forbidden, so they run under
 * the relaxed mode. If the mode cannot be restored, the allocation is undone. */
static int cai_priv_emm_cuda_take(void *ctx, int32_t pair, void **ptr, size_t size, unsigned int flags)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    uint64_t pointer = pair == CAI_PRIV_BY_PIN ? (uint64_t)(uintptr_t)*ptr : 0;
    int32_t mode, restored, error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    if (pair == CAI_PRIV_BY_DEVICE) error = cuda->memory_alloc(cuda->self, &pointer, size);
    else if (pair == CAI_PRIV_BY_HOST) error = cuda->host_alloc(cuda->self, &pointer, size, flags);
    else if (pair == CAI_PRIV_BY_PIN) error = cuda->host_register(cuda->self, pointer, size, flags);
    else error = cuda->managed_alloc(cuda->self, &pointer, size, flags);
    restored = cai_priv_mode_restore(cuda, mode, error);
    if (restored && !error) (void)cai_priv_emm_cuda_drop(cuda, pair, pointer);
    *ptr = restored ? NULL : (void *)(uintptr_t)pointer;
    return restored;
}

/* Lets the host wait for the work in `stream` (NULL: the legacy stream). cuMemFree only "may perform implicit
 * synchronization", and cuMemFreeHost promises nothing. A wait would end a capture of the stream. */
static int32_t cai_priv_emm_cuda_passed(const cai_cuda *cuda, struct CUstream_st *stream)
{
    const uint64_t number = cai_stream_from_cuda(stream, CAI_STREAM_LEGACY);
    int32_t error;
    if (number <= CAI_STREAM_PER_THREAD && cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS)
        return cuda->context_synchronize ? cuda->context_synchronize(cuda->self) : 400;
    error = cai_priv_captures(cuda, number);
    return error ? error : cuda->stream_synchronize(cuda->self, number);
}

/* Frees nothing if the wait fails, unless the context is dead. For unpin the caller has waited. */
static int cai_priv_emm_cuda_give(void *ctx, int32_t pair, void *ptr, struct CUstream_st *stream)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    int32_t mode, waited = 0, error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    if (pair != CAI_PRIV_BY_PIN) waited = cai_priv_emm_cuda_passed(cuda, stream);
    if (!waited || cai_priv_is_dead(waited))
        error = cai_priv_emm_cuda_drop(cuda, pair, (uint64_t)(uintptr_t)ptr);
    return cai_priv_mode_restore(cuda, mode, waited ? waited : error);
}

static int cai_priv_emm_cuda_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)stream;
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_DEVICE, ptr, size, 0);
}

static int cai_priv_emm_cuda_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_DEVICE, ptr, stream);
}

static int cai_priv_emm_cuda_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_HOST, ptr, size, flags);
}

static int cai_priv_emm_cuda_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_HOST, ptr, stream);
}

static int cai_priv_emm_cuda_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_PIN, &ptr, size, flags);
}

static int cai_priv_emm_cuda_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_PIN, ptr, stream);
}

static int cai_priv_emm_cuda_managed(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_MANAGED, ptr, size, flags);
}

/* On the legacy stream both calls end the capture of a blocking stream. So a query comes first. */
static int32_t cai_priv_emm_legacy_captures(const cai_cuda *cuda, struct CUstream_st *stream)
{
    if (cai_stream_from_cuda(stream, CAI_STREAM_LEGACY) != CAI_STREAM_LEGACY) return 0;
    return cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS ? 0 : cai_priv_captures(cuda, CAI_STREAM_LEGACY);
}

/* pool: 0 is the current one of the device. Beside the global capture of another thread both calls fail and
 * end it, unless the mode is relaxed. */
static int32_t cai_priv_emm_async_take(const cai_cuda *cuda, uint64_t pool, void **ptr, size_t size,
                                       struct CUstream_st *stream)
{
    const uint64_t number = (uint64_t)(uintptr_t)stream;
    uint64_t pointer = 0;
    int32_t mode, restored, error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    error = cai_priv_emm_legacy_captures(cuda, stream);
    if (!error && pool) error = cuda->memory_alloc_from_pool(cuda->self, &pointer, size, pool, number);
    else if (!error) error = cuda->memory_alloc_async(cuda->self, &pointer, size, number);
    restored = cai_priv_mode_restore(cuda, mode, error);
    if (restored && !error) (void)cuda->memory_free_async(cuda->self, pointer, number);
    *ptr = restored ? NULL : (void *)(uintptr_t)pointer;
    return restored;
}

static int32_t cai_priv_emm_async_give(const cai_cuda *cuda, void *ptr, struct CUstream_st *stream)
{
    int32_t mode, error;
    const int32_t kept = cai_priv_mode_relax(cuda, &mode);
    error = cai_priv_emm_legacy_captures(cuda, stream);
    if (!error || cai_priv_is_dead(error))
        error = cuda->memory_free_async(cuda->self, (uint64_t)(uintptr_t)ptr, (uint64_t)(uintptr_t)stream);
    return kept ? error : cai_priv_mode_restore(cuda, mode, error);
}

static int cai_priv_emm_async_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    return cai_priv_emm_async_take((const cai_cuda *)ctx, 0, ptr, size, stream);
}

static int cai_priv_emm_async_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    return cai_priv_emm_async_give((const cai_cuda *)ctx, ptr, stream);
}

static int cai_priv_emm_pool_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const cai_emm_pool *own = (const cai_emm_pool *)ctx;
    return cai_priv_emm_async_take(own->cuda, own->pool, ptr, size, stream);
}

static int cai_priv_emm_pool_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    return cai_priv_emm_async_give(((const cai_emm_pool *)ctx)->cuda, ptr, stream);
}

static int cai_priv_emm_cuda_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    uint64_t available = 0, total = 0;
    const int32_t error = cuda->memory_info(cuda->self, &available, &total);
    *free_bytes = (size_t)available;
    *total_bytes = (size_t)total;
    return error;
}

static int cai_priv_emm_pool_info(void *ctx, size_t *free_bytes, size_t *total_bytes)
{
    const cai_emm_pool *own = (const cai_emm_pool *)ctx;
    return cai_priv_emm_cuda_info((void *)(uintptr_t)own->cuda, free_bytes, total_bytes);
}

CAI_API int cai_emm_ipc_handle(const cai_cuda *cuda, void *ptr, void *handle, void **base)
{
    uint64_t first = 0, size = 0;
    int32_t error;
    if (!cuda || !handle || !base) return 1;
    if (cuda->struct_size < offsetof(cai_cuda, ipc_open) || !cuda->ipc_export || !cuda->pointer_range)
        return 801;
    error = cuda->pointer_range(cuda->self, (uint64_t)(uintptr_t)ptr, &first, &size);
    if (!error) error = cuda->ipc_export(cuda->self, first, handle); /* which takes a base */
    if (!error) *base = (void *)(uintptr_t)first;
    return error;
}

static int cai_priv_emm_cuda_ipc(void *ctx, void *ptr, void *handle, void **base)
{
    return cai_emm_ipc_handle((const cai_cuda *)ctx, ptr, handle, base);
}

/* Returns whether the hooks do nothing if they return an error about a capture. */
static int cai_priv_emm_is_of_cuda(const cai_emm_hooks *hooks)
{
    return hooks->device_free == cai_priv_emm_cuda_free || hooks->device_free == cai_priv_emm_async_free ||
           hooks->device_free == cai_priv_emm_pool_free;
}

static void cai_priv_emm_start_table(cai_emm_hooks *out, const char *name, uint32_t flags, int32_t kind)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->version = CAI_EMM_VERSION;
    out->flags = flags;
    out->kind = kind;
    memcpy(out->name, name, strlen(name));
}

static cai_status cai_priv_emm_check_cuda(const void *out, const cai_cuda *cuda, const char *name,
                                          cai_error *err)
{
    if (!out || !cuda)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: %s is NULL", name, out ? "cuda" : "out");
    if (cai_priv_knows_cuda(cuda)) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ABI, "%s: the CUDA table has %lu bytes and version %lu", name,
                          (unsigned long)cuda->struct_size, (unsigned long)cuda->version);
}

/* The hooks get the caller's table, and read no slot behind its end: they call those that were checked here,
 * and those before them. */
CAI_API cai_status cai_emm_hooks_cuda(cai_emm_hooks *out, const cai_cuda *cuda, cai_error *err)
{
    cai_cuda whole;
    const cai_cuda *slots;
    CAI_TRY(cai_priv_emm_check_cuda(out, cuda, "cuda", err));
    slots = cai_priv_whole_cuda(cuda, &whole);
    if (!slots->memory_alloc || !slots->memory_free || !slots->stream_synchronize)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no memory_alloc, memory_free and stream_synchronize");
    cai_priv_emm_start_table(out, "cuda", CAI_EMM_FREES_WAIT, CAI_MEMORY_DEVICE);
    out->ctx = (void *)(uintptr_t)cuda; /* the hooks take it as const */
    out->device_alloc = cai_priv_emm_cuda_alloc;
    out->device_free = cai_priv_emm_cuda_free;
    if (slots->memory_info) out->memory_info = cai_priv_emm_cuda_info;
    if (slots->ipc_export && slots->pointer_range) out->ipc_handle = cai_priv_emm_cuda_ipc;
    if (slots->host_alloc && slots->host_free) {
        out->host_alloc = cai_priv_emm_cuda_host_alloc;
        out->host_free = cai_priv_emm_cuda_host_free;
    }
    if (slots->host_register && slots->host_unregister) {
        out->pin = cai_priv_emm_cuda_pin;
        out->unpin = cai_priv_emm_cuda_unpin;
    }
    if (slots->managed_alloc) {
        out->managed_alloc = cai_priv_emm_cuda_managed;
        out->managed_free = cai_priv_emm_cuda_free;
    }
    return CAI_OK;
}

CAI_API cai_status cai_emm_pool_create(cai_emm_pool *out, const cai_cuda *cuda, int32_t device,
                                       cai_error *err)
{
    enum { OPPORTUNISTIC = 2, INTERNAL_DEPENDENCIES = 4 }; /* not 1, follow events */
    cai_cuda whole;
    const cai_cuda *slots;
    uint64_t pool = 0;
    int32_t error;
    CAI_TRY(cai_priv_emm_check_cuda(out, cuda, "cai_emm_pool_create", err));
    slots = cai_priv_whole_cuda(cuda, &whole);
    if (!slots->pool_create || !slots->pool_destroy || !slots->memory_alloc_from_pool)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no pool_create, pool_destroy and memory_alloc_from_pool");
    error = slots->pool_create(cuda->self, device, OPPORTUNISTIC | INTERNAL_DEPENDENCIES, &pool);
    if (error) return cai_cuda_status(error, "pool_create", err);
    out->cuda = cuda;
    out->pool = pool;
    return CAI_OK;
}

static cai_status cai_priv_emm_no_pool(const char *function, cai_error *err)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: pool is NULL or not made", function);
}

CAI_API cai_status cai_emm_pool_destroy(cai_emm_pool *pool, cai_error *err)
{
    int32_t error;
    if (!pool || !pool->pool) return cai_priv_emm_no_pool("cai_emm_pool_destroy", err);
    error = pool->cuda->pool_destroy(pool->cuda->self, pool->pool);
    pool->pool = 0;
    return cai_cuda_status(error, "pool_destroy", err);
}

CAI_API cai_status cai_emm_hooks_async(cai_emm_hooks *out, const cai_cuda *cuda, cai_emm_pool *pool,
                                       cai_error *err)
{
    cai_cuda whole;
    const cai_cuda *slots;
    CAI_TRY(cai_priv_emm_check_cuda(out, cuda, "cuda_async", err));
    if (pool && (!pool->pool || pool->cuda != cuda)) return cai_priv_emm_no_pool("cuda_async", err);
    slots = cai_priv_whole_cuda(cuda, &whole);
    if (!slots->memory_alloc_async || !slots->memory_free_async)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no memory_alloc_async and memory_free_async");
    cai_priv_emm_start_table(out, "cuda_async", CAI_EMM_CUDA_HOST, CAI_MEMORY_POOL);
    out->ctx = pool ? (void *)pool : (void *)(uintptr_t)cuda;
    out->device_alloc = pool ? cai_priv_emm_pool_alloc : cai_priv_emm_async_alloc;
    out->device_free = pool ? cai_priv_emm_pool_free : cai_priv_emm_async_free;
    if (slots->memory_info) out->memory_info = pool ? cai_priv_emm_pool_info : cai_priv_emm_cuda_info;
    return CAI_OK;
}

/* block % 256 == 0, and ((void **)block)[-1] is the pointer of malloc. */
static int cai_priv_emm_plain_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const size_t extra = 256 + sizeof(void *);
    char *raw = size > SIZE_MAX - extra ? NULL : (char *)malloc(size + extra);
    char *block;
    (void)ctx;
    (void)stream;
    if (!raw) return 2;
    block = raw + extra - ((uintptr_t)raw + extra) % 256;
    memcpy(block - sizeof raw, &raw, sizeof raw);
    *ptr = block;
    return 0;
}

static int cai_priv_emm_plain_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    char *raw;
    (void)ctx;
    (void)size;
    (void)stream;
    memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
    free(raw);
    return 0;
}

CAI_API void cai_emm_hooks_malloc(cai_emm_hooks *out)
{
    if (!out) return;
    cai_priv_emm_start_table(out, "host", 0, CAI_MEMORY_HOST);
    out->device_alloc = cai_priv_emm_plain_alloc;
    out->device_free = cai_priv_emm_plain_free;
}

/* --------------------------------------------------------------- >>allocating */
/* Returns whether `hooks` is a table and the stream is not 0 or -1. cai_priv_emm_bad_call makes the errors. */
static inline int cai_priv_emm_good_call(const cai_emm_hooks *hooks, uint64_t stream)
{
    return hooks && stream - 1 < UINT64_MAX - 1;
}

/* The parameters are in the order of the callers' parameters, so that a good call moves none. A caller without
 * `out` passes a text. */
CAI_PRIV_COLD cai_status cai_priv_emm_bad_call(const cai_emm_hooks *hooks, const char *function,
                                               const void *out, uint64_t stream, cai_error *err)
{
    if (!out || !hooks)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: %s is NULL", function, out ? "hooks" : "out");
    return cai_priv_error(err, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
}

/* A call of device_alloc. It is in memory, so that values that only errors need take no register. */
typedef struct cai_priv_emm_call {
    const cai_emm_hooks *hooks;
    size_t size;
    uint64_t stream;
    void *ptr; /* returned by the hook */
    cai_error *err;
} cai_priv_emm_call;

/* Returns the status of device_alloc, which failed or broke its promise. Frees memory that is not aligned. */
CAI_PRIV_COLD cai_status cai_priv_emm_no_memory(const cai_priv_emm_call *call, int32_t error)
{
    const cai_emm_hooks *hooks = call->hooks;
    cai_status status;
    if (error && error != 2) return cai_priv_emm_hook_status(hooks, "device_alloc", error, call->err);
    if (!error && call->ptr) {
        (void)hooks->device_free(hooks->ctx, call->ptr, call->size, cai_stream_to_cuda(call->stream));
        return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 121),
                              "device_alloc of %s returned %p, which is not aligned to 256 bytes",
                              cai_priv_emm_name(hooks), call->ptr);
    }
    status = cai_priv_error(call->err, error ? CAI_ERR_OUT_OF_MEMORY : CAI_ERR_MEMORY,
                            "device_alloc of %s %s for %lu bytes", cai_priv_emm_name(hooks),
                            error ? "is out of memory" : "succeeded and returned NULL",
                            (unsigned long)call->size);
    if (call->err) call->err->native = error;
    return status;
}

CAI_API cai_status cai_emm_alloc(void **out, const cai_emm_hooks *hooks, size_t size, uint64_t stream,
                                 cai_error *err)
{
    cai_priv_emm_call call = {hooks, size, stream, NULL, err};
    int32_t error;
    if (!out || !cai_priv_emm_good_call(hooks, stream))
        return cai_priv_emm_bad_call(hooks, "cai_emm_alloc", out, stream, err);
    if (size) {
        error = hooks->device_alloc(hooks->ctx, &call.ptr, size, cai_stream_to_cuda(stream));
        if (error || !call.ptr || (uintptr_t)call.ptr % 256) return cai_priv_emm_no_memory(&call, error);
    }
    *out = call.ptr;
    return CAI_OK;
}

CAI_API cai_status cai_emm_free(const cai_emm_hooks *hooks, void *ptr, size_t size, uint64_t stream,
                                cai_error *err)
{
    int32_t error;
    if (!cai_priv_emm_good_call(hooks, stream))
        return cai_priv_emm_bad_call(hooks, "cai_emm_free", "", stream, err);
    if (!ptr) return CAI_OK;
    error = hooks->device_free(hooks->ctx, ptr, size, cai_stream_to_cuda(stream));
    return error ? cai_priv_emm_hook_status(hooks, "device_free", error, err) : CAI_OK;
}

/* ---------------------------------------------------------------- >>releasing */
/* The owner of an array. If the memory cannot be freed when the array is released, it waits in the event pool
 * (cai_priv_park). */
typedef struct cai_priv_emm_owner {
    cai_priv_parked parked; /* first */
    const cai_emm_hooks *hooks;
    cai_event_pool *pool;
    const cai_cuda *cuda; /* the pool's; NULL: host memory */
    void *ptr;
    size_t size;
    uint64_t context, context_id;
    int unordered; /* work may be pending in streams that nobody can name */
} cai_priv_emm_owner;

/* Returns whether the error means that the context does not exist any more, nor its memory. */
static int cai_priv_emm_is_gone(int32_t error)
{
    return error == 4 || error == 201 || error == 709;
}

/* Returns whether the memory still exists in its context. A reset does not change the context's handle. */
static int cai_priv_emm_lives(const cai_priv_emm_owner *owner)
{
    uint64_t now = 0;
    int32_t error;
    if (!owner->cuda->context_id) return 1;
    error = owner->cuda->context_id(owner->cuda->self, owner->context, &now);
    return error ? !cai_priv_emm_is_gone(error) : now == owner->context_id;
}

/* Frees in the order of a stream. Returns 0 if a capture forbids it and a table over CUDA frees nothing. */
static int cai_priv_emm_free_in(const cai_priv_emm_owner *owner, uint64_t stream)
{
    const cai_emm_hooks *hooks = owner->hooks;
    const int32_t error = hooks->device_free(hooks->ctx, owner->ptr, owner->size, cai_stream_to_cuda(stream));
    return error < 900 || error > 908 || !cai_priv_emm_is_of_cuda(hooks);
}

/* Runs in the context of the memory. Frees in the stream of the array (NULL: it is parked). If it has none,
 * frees in the legacy stream, unless a blocking stream captures. Returns whether the memory is freed. */
static int cai_priv_emm_settle(cai_priv_emm_owner *owner, const cai_array *array, int wait)
{
    const cai_cuda *cuda = owner->cuda;
    const int plain = cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS; /* NULL is the stream of such a platform */
    const uint64_t named = array ? cai_priv_emm_look(cuda, array, &owner->unordered, &wait) : 0;
    int32_t error = 0;
    if (named) return cai_priv_emm_free_in(owner, named);
    if (!plain) error = cai_priv_captures(cuda, CAI_STREAM_LEGACY);
    if (!error && (owner->unordered || plain)) error = wait ? cai_priv_emm_wait(cuda, 0) : 600;
    if (error && !cai_priv_is_dead(error)) return 0;
    return cai_priv_emm_free_in(owner, plain ? 0 : CAI_STREAM_LEGACY);
}

/* Frees the memory and the owner. Returns 0 if this is not possible now. */
static int cai_priv_emm_let_go(cai_priv_emm_owner *owner, const cai_array *array, int wait)
{
    const cai_cuda *cuda = owner->cuda;
    uint64_t current = owner->context;
    int32_t error = 0;
    int done = 1;
    if (!cuda) {
        (void)cai_priv_emm_free_in(owner, CAI_STREAM_LEGACY);
    } else if (cai_priv_emm_lives(owner)) {
        error = cuda->context_current(cuda->self, &current);
        if (!error && current != owner->context) error = cai_priv_context_enter(cuda, owner->context);
        done = cai_priv_emm_is_gone(error) ||
               ((!error || cai_priv_is_dead(error)) && cai_priv_emm_settle(owner, array, wait));
        if (!error && current != owner->context) (void)cai_priv_context_leave(cuda, owner->context);
    }
    if (done) free(owner);
    return done;
}

static int cai_priv_emm_again(cai_priv_parked *node, int wait)
{
    return cai_priv_emm_let_go((cai_priv_emm_owner *)(void *)node, NULL, wait);
}

static void cai_priv_emm_release(cai_array *array)
{
    cai_priv_emm_owner *owner = (cai_priv_emm_owner *)array->owner;
    array->release = NULL;
    owner->unordered = 1; /* until it is known */
    if (!cai_priv_emm_let_go(owner, array, 1)) cai_priv_park(owner->pool, &owner->parked);
}

/* Fills the owner, and what the array has of the stream, which must not capture. */
static cai_status cai_priv_emm_own(cai_priv_emm_owner *owner, cai_array *array, cai_error *err)
{
    const cai_cuda *cuda = owner->cuda;
    int32_t error = 0;
    if (!cai_priv_is_stream(cuda, array->stream))
        return cai_priv_emm_bad_call(owner->hooks, "cai_emm_array", "", array->stream, err);
    CAI_TRY(cai_priv_emm_context(cuda, &owner->context, err));
    if (cuda->context_id) error = cuda->context_id(cuda->self, owner->context, &owner->context_id);
    if (error) return cai_cuda_status(error, "context_id", err);
    error = cuda->context_device(cuda->self, &array->device);
    if (error) return cai_cuda_status(error, "context_device", err);
    if (array->stream == CAI_STREAM_PER_THREAD)
        error = cuda->host_thread(cuda->self, &array->thread);
    if (error) return cai_cuda_status(error, "host_thread", err);
    error = cai_priv_captures(cuda, array->stream);
    if (error != 900 && error != 906) return cai_cuda_status(error, "stream_capture", err);
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103),
                          error == 900 ? "stream 0x%llx is capturing"
                                       : "stream 0x%llx is not allowed while a blocking stream is capturing",
                          (unsigned long long)array->stream);
}

/* Gives memory and an owner to the array. */
static cai_status cai_priv_emm_fill(cai_array *array, const cai_priv_emm_owner *filled, uint64_t stream,
                                    cai_error *err)
{
    cai_priv_emm_owner *owner = (cai_priv_emm_owner *)malloc(sizeof *owner);
    cai_status status;
    if (!owner)
        return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "malloc returned NULL for an owner of %lu bytes",
                              (unsigned long)sizeof *owner);
    *owner = *filled;
    status = cai_emm_alloc(&owner->ptr, owner->hooks, owner->size, stream, err);
    if (status) {
        free(owner);
        return status;
    }
    array->data = (uint64_t)(uintptr_t)owner->ptr;
    cai_array_own(array, cai_priv_emm_release, owner);
    if (owner->cuda) array->flags |= CAI_ORDERED_FREE;
    return CAI_OK;
}

CAI_API cai_status cai_emm_array(cai_array *out, cai_event_pool *pool, const cai_emm_hooks *hooks,
                                 int32_t code, int32_t ndim, const int64_t *shape, uint64_t stream,
                                 cai_error *err)
{
    cai_priv_emm_owner owner;
    cai_array made;
    if (!out || !cai_priv_emm_good_call(hooks, stream))
        return cai_priv_emm_bad_call(hooks, "cai_emm_array", out, stream, err);
    memset(&owner, 0, sizeof owner);
    owner.parked.again = cai_priv_emm_again;
    owner.hooks = hooks;
    owner.pool = pool;
    if (hooks->kind != CAI_MEMORY_HOST && pool) owner.cuda = pool->cuda;
    if (hooks->kind != CAI_MEMORY_HOST && !owner.cuda)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_emm_array: pool is NULL or not made, and hooks is "
                              "not of CAI_MEMORY_HOST");
    CAI_TRY(cai_array_init(&made, code, ndim, shape, NULL, (void *)(uintptr_t)256, err)); /* aligned so */
    if ((uint64_t)made.nbytes > SIZE_MAX)
        return cai_priv_error(err, CAI_ERR_SHAPE, "%lld bytes exceed the address space",
                              (long long)made.nbytes);
    owner.size = (size_t)made.nbytes;
    made.sync = owner.cuda && made.size ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    made.stream = owner.cuda ? stream : 0;
    if (owner.cuda) made.backend = cai_priv_backend(owner.cuda);
    made.memory = owner.cuda ? CAI_MEMORY_DEVICE : CAI_MEMORY_HOST;
    if (owner.cuda) CAI_TRY(cai_priv_emm_own(&owner, &made, err));
    if (made.size) CAI_TRY(cai_priv_emm_fill(&made, &owner, stream, err));
    else made.stream = made.thread = 0;
    *out = made;
    return CAI_OK;
}

CAI_PRIV_C_END

#endif /* CAI_EMM_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
