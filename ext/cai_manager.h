/* cai_manager.h - a manager of memory over the hooks of cai_emm.h - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_MANAGER_IMPLEMENTATION)
#define CAI_MANAGER_IMPLEMENTATION
#endif

/* A second include of cai_emm.h adds what is missing, and refuses late configuration. */
#if !defined(CAI_EMM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                           \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_emm.h"
#endif

#if CAI_EMM_H_INCLUDED / 100 != 2
#error "cai_manager.h: this is version 0.2, which needs cai_emm.h 0.2"
#endif
#if defined(CAI_MANAGER_H_INCLUDED) && CAI_MANAGER_H_INCLUDED != 200
#error "cai_manager.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_MANAGER_H_INCLUDED
#define CAI_MANAGER_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_MANAGER_IMPLEMENTATION for this header alone). All other configuration is
    that of cai_emm.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_manager.h"

    Everywhere else include it without the define.

WHAT IT IS
    A manager, cai_manager, stands between a library and a table of hooks (cai_emm.h). Numba has the same on
    top of its EMM plugins. A manager gives out handles, counts references to memory, orders each free on a
    stream, and retries when memory runs out. It detects a second free, and works after a reset and at the end
    of the process.

EXAMPLE (a library that takes its memory from the application)
        int32_t launch(const cai_array *x, cai_array *y, struct CUstream_st *s); // returns cudaGetLastError()

        cai_status sum(cai_array *y, cai_manager *m, const cai_array *x, struct CUstream_st *s, cai_error *err);
        cai_status sum(cai_array *y, cai_manager *m, const cai_array *x, struct CUstream_st *s, cai_error *err)
        {
            cai_status status;
            CAI_TRY(cai_manager_array(y, m, CAI_FLOAT32, 0, NULL, CAI_STREAM(s), err));
            status = cai_cuda_status(launch(x, y, s), "sum", err);
            if (status) cai_array_release(y);
            return status;
        }

THE FUNCTIONS MOST USERS NEED
    cai_manager_init       makes a manager over hooks, one for each context
    cai_manager_alloc      allocates device memory in the order of a stream
    cai_manager_free       gives memory back in the order of a stream
    cai_manager_array      makes an owned cai_array, which its release frees
    cai_manager_list       lists what was not given back
    cai_manager_destroy    ends the manager

HANDLES
    A cai_memory_handle names a memory object by index and generation. 0 names no object, and zeroed memory is
    0. The references of a handle are counted, and begin at 1. Arrays have references of their own, which a
    free of the handle cannot take. Memory is freed with its last reference. A freed handle is CAI_ERR_STALE
    as long as the manager exists, and the memory is not read for this. A handle of another manager is stale,
    too, because managers begin with different generations. That is likely, but not certain.

STREAMS
    Memory may be used at once on the stream of its allocation. Before you use it on another stream, make that
    stream wait, as an exchange does. Give each reference back on a stream that comes after all your work on
    the memory. The last reference frees the memory after the work of all. The manager keeps events and no
    streams. 1 and 2 are default streams of the manager's context. No memory is allocated or freed on a stream
    that captures (CAI_ERR_CAPTURE).

DEFERRED FREES
    If a free waits on the host, the manager defers it. All of CUDA's frees wait, except cudaFreeAsync.
    docs/memory.md says when deferred frees are carried out. Each free comes after an event that was recorded
    at the call. The hook then gets stream 1, or 2 while a blocking stream captures. On a platform without
    streams 1 and 2 the hook gets NULL, and the host waits. A release during a capture is deferred, too. As
    the array's stream may be gone later, cai_manager_flush, cai_manager_destroy and an allocation with
    CAI_MANAGER_DRAIN then wait for its context. No non-blocking stream may capture there at that time,
    because CUDA would end its capture.

HOOKS
    The manager calls hooks without a lock and with its context current, on several threads at once. A hook
    must not call the manager.

OWNERSHIP
    The caller owns a manager, and keeps it at one address from init to destroy. The table of hooks is copied.
    Its ctx must be valid until destroy.

ERRORS
    As in cai_emm.h. If the CUDA table lacks a function that a call needs, the error is CAI_ERR_UNAVAILABLE.
    While the process ends, CUDA returns error 4. This is success if something is freed or ends (R105). A free
    after a reset is success, too, and calls no hook. Before you destroy a context, destroy its manager.

THREADS
    Any number of threads may use one manager, except while one makes, resets or destroys it.

RULES
    R110-R122 in comments: docs/rules.md.
*/

#include <stddef.h>

#if defined(CAI_NAMESPACE)
#define cai_manager_alloc CAI_PRIV_RENAMED(cai_manager_alloc)
#define cai_manager_array CAI_PRIV_RENAMED(cai_manager_array)
#define cai_manager_counts CAI_PRIV_RENAMED(cai_manager_counts)
#define cai_manager_defer_begin CAI_PRIV_RENAMED(cai_manager_defer_begin)
#define cai_manager_defer_end CAI_PRIV_RENAMED(cai_manager_defer_end)
#define cai_manager_describe CAI_PRIV_RENAMED(cai_manager_describe)
#define cai_manager_destroy CAI_PRIV_RENAMED(cai_manager_destroy)
#define cai_manager_device_memory CAI_PRIV_RENAMED(cai_manager_device_memory)
#define cai_manager_flush CAI_PRIV_RENAMED(cai_manager_flush)
#define cai_manager_free CAI_PRIV_RENAMED(cai_manager_free)
#define cai_manager_init CAI_PRIV_RENAMED(cai_manager_init)
#define cai_manager_ipc_handle CAI_PRIV_RENAMED(cai_manager_ipc_handle)
#define cai_manager_list CAI_PRIV_RENAMED(cai_manager_list)
#define cai_manager_managed_alloc CAI_PRIV_RENAMED(cai_manager_managed_alloc)
#define cai_manager_own CAI_PRIV_RENAMED(cai_manager_own)
#define cai_manager_pin CAI_PRIV_RENAMED(cai_manager_pin)
#define cai_manager_pinned_alloc CAI_PRIV_RENAMED(cai_manager_pinned_alloc)
#define cai_manager_pointer CAI_PRIV_RENAMED(cai_manager_pointer)
#define cai_manager_reset CAI_PRIV_RENAMED(cai_manager_reset)
#define cai_manager_retain CAI_PRIV_RENAMED(cai_manager_retain)
#endif

CAI_PRIV_C_BEGIN

/* ------------------------------------------------------------------ >>manager */
/** The handle of a memory object: its index and generation. 0 is no object. */
typedef uint64_t cai_memory_handle;

/** Options of a manager. 0 in a field means the default. */
typedef struct cai_manager_options {
    void *(*alloc_fn)(void *user_data, size_t size);          /* for the manager's own lists; NULL: malloc */
    void (*free_fn)(void *user_data, void *ptr, size_t size); /* NULL: free; both or neither */
    void *user_data;
    uint64_t deferred_bytes; /* more deferred bytes than this are freed; 0: than a fifth of the device's
                               memory, or no limit if its size is not known */
    int32_t deferred_count;  /* more deferred frees than this are carried out; 0: 10 */
    int32_t flags;           /* 0 or CAI_MANAGER_DRAIN */
} cai_manager_options;

enum {
    CAI_MANAGER_DRAIN = 1 << 0 /* out of memory: the host waits for arrays in the pool's keep-alive list and
                                  for deferred frees, as cai_manager_flush does */
};

/** The counters of a manager. */
typedef struct cai_manager_count {
    uint64_t live, deferred;             /* referenced objects that are not lost; deferred frees */
    uint64_t live_bytes, deferred_bytes; /* that hooks allocated for them: more than the size if an alignment is
                                            above 256 */
    uint64_t allocated, freed;         /* objects made; objects freed, also those whose hook failed */
    uint64_t retries;                  /* allocations that were tried again */
    uint64_t lost;                     /* objects whose last reference was given back after a reset */
    uint64_t failed;                   /* frees whose hook failed */
    int32_t first_failure;             /* the error number of the first of these */
    int32_t reserved;
} cai_manager_count;

/** The description of an object, which cai_manager_describe and cai_manager_list write. */
typedef struct cai_memory_object {
    cai_memory_handle memory; /* 0: only arrays have references */
    uint64_t number;          /* counts the objects of the manager, from 1 */
    uint64_t address, size;
    int64_t references; /* by the handle, and of arrays */
    int32_t kind;       /* CAI_MEMORY_... */
    int32_t lost;       /* 1: a reset freed the memory */
} cai_memory_object;

struct cai_manager_slot;

enum { CAI_MANAGER_CHUNKS = 26, CAI_MANAGER_CONTEXTS = 31 };

/** A manager. You may read its fields. Do not change, move or copy it. */
typedef struct cai_manager {
    cai_event_pool *pool;
    const cai_cuda *cuda;
    uint64_t context;
    int32_t device; /* 0 also without CUDA, and if the table does not tell */
    int32_t guard;  /* held for a few instructions */
    int32_t ready; /* the table is initialized */
    int32_t defer_depth;
    int32_t told; /* the hook defer got 1 */
    uint32_t slot_count;
    int32_t chunk_count;
    uint32_t epoch;       /* counts resets */
    uint32_t generation;  /* the first of each handle, so that handles of other managers are stale here */
    int32_t taken, done;  /* deferred frees that threads began to carry out, and those that are done */
    uint32_t adopted;     /* bits of the pairs that are those of cuda_hooks */
    uint32_t waits;       /* bits of the pairs whose frees are deferred */
    uint64_t limit;       /* of deferred bytes */
    cai_manager_options options;
    cai_manager_count count;
    cai_emm_hooks hooks, cuda_hooks; /* cuda_hooks: CUDA's own, if CAI_EMM_CUDA_HOST or _IPC ask for them */
    struct cai_manager_slot *idle;
    struct cai_manager_slot *deferred_first, *deferred_last;
    struct cai_manager_slot *chunks[CAI_MANAGER_CHUNKS];
    uint64_t contexts[CAI_MANAGER_CONTEXTS]; /* with work on deferred frees; the first: the manager's */
} cai_manager;

/** Makes a manager for the context that is current. Make one manager for each context (R111). `pool` orders
 *  streams, and must outlive the manager. It may be NULL only with hooks of CAI_MEMORY_HOST. `hooks` is
 *  copied, and stays the manager's table. `options` may be NULL for the defaults. Only the hook `open` is
 *  called, which makes a ctx for this manager. The first allocation or cai_manager_device_memory, also after
 *  a reset, calls the hook initialize. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE (no context
 *  is current), CAI_ERR_CUDA (also that of `open`). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_init(cai_manager *manager, cai_event_pool *pool,
                                                   const cai_emm_hooks *hooks,
                                                   const cai_manager_options *options, cai_error *err);

/** Carries out the deferred frees, as cai_manager_flush does, and frees the manager's lists. While an object
 *  is referenced or a scope is open, nothing is done (CAI_ERR_PENDING). If a deferred free cannot be carried
 *  out, the manager also stays: a capture forbids it (CAI_ERR_CAPTURE), or the host cannot wait
 *  (CAI_ERR_PENDING). cai_manager_reset carries these frees out, too. The hook `close` is called last.
 *  Errors: these, CAI_ERR_ARGUMENT. CAI_ERR_CUDA: the context cannot be made current for a deferred free, and
 *  nothing was done. Or hooks failed (the first error), and the manager is gone. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_destroy(cai_manager *manager, cai_error *err);

/** Frees all memory of the manager, the deferred frees first, and waits for nothing. No work may be pending
 *  on the memory. Referenced objects become lost. A later free of a lost object succeeds and calls no hook
 *  (R114). The hook reset frees the memory. If reset is NULL, or for CAI_EMM_CUDA_HOST memory, each object
 *  has a free of its own, on stream 1. If a capture forbids stream 1, it is 2. If the context cannot be made
 *  current, only the hook reset is called. Call cudaDeviceReset after this. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_PENDING (in a scope, nothing done), CAI_ERR_CUDA (the first, all of it was done). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_reset(cai_manager *manager, cai_error *err);

/** Gives the free and total memory of the device in bytes, from the hook memory_info. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (the hook is NULL, R115), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_device_memory(cai_manager *manager, size_t *free_bytes,
                                                            size_t *total_bytes, cai_error *err);

/** Copies the counters of the manager. */
CAI_API void cai_manager_counts(cai_manager *manager, cai_manager_count *out);

/** Lists all referenced objects, as a report of leaks. Writes the first `capacity` of them to
 *  `out`, and returns their number. cai_memory_object.number is the order in which they were made. */
CAI_API int64_t cai_manager_list(cai_manager *manager, cai_memory_object *out, int64_t capacity);

/* ------------------------------------------------------------------- >>memory */
/** Allocates device memory, which may be used at once on `stream`. `size` is in bytes. 0 gives the handle 0
 *  and calls no hook. `alignment` is in bytes and a power of two. 0 means 256, which the hook promises. For
 *  more than 256, more bytes are allocated. If the hook returns out of memory, the manager frees what it can,
 *  and calls the hook again (R118; docs/memory.md has the steps). Errors: CAI_ERR_ARGUMENT, CAI_ERR_STREAM,
 *  CAI_ERR_CAPTURE, CAI_ERR_OUT_OF_MEMORY (also of the host), CAI_ERR_MEMORY (the hook returned NULL, or broke
 *  its promise), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_alloc(cai_memory_handle *out, cai_manager *manager, size_t size,
                                                    size_t alignment, uint64_t stream, cai_error *err);

/** Allocates host memory, pinned or mapped. `flags` are CAI_HOST_..., and the hook gets them unchanged.
 *  cai_locate finds the device's address of the memory. Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (the
 *  hook is NULL), CAI_ERR_OUT_OF_MEMORY, CAI_ERR_MEMORY, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_pinned_alloc(cai_memory_handle *out, cai_manager *manager,
                                                           size_t size, uint32_t flags, cai_error *err);

/** Pins host memory that has another owner. The last free unpins the memory at once, never later, after the
 *  host has waited for the stream of each free (R119). If the host cannot wait, nothing is unpinned and the
 *  reference is kept. `flags` are CAI_HOST_PORTABLE and CAI_HOST_MAPPED. Errors: as
 *  cai_manager_pinned_alloc. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_pin(cai_memory_handle *out, cai_manager *manager, void *ptr,
                                                  size_t size, uint32_t flags, cai_error *err);

/** Allocates managed memory. flags: CAI_MANAGED_..., 0 is _GLOBAL. Errors: as cai_manager_pinned_alloc. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_managed_alloc(cai_memory_handle *out, cai_manager *manager,
                                                            size_t size, uint32_t flags, cai_error *err);

/** Gives a reference back. The last reference frees the memory after the work that is now in `stream`, and
 *  after the work of the other references in their streams. For any other reference, the manager records an
 *  event in `stream`, or the host waits. The handle 0 does nothing. Errors that keep the reference:
 *  CAI_ERR_ARGUMENT, CAI_ERR_STREAM, CAI_ERR_CAPTURE, CAI_ERR_STALE (there was none), CAI_ERR_CUDA (the
 *  context cannot be made current, or the host cannot wait before it unpins). After an error that ends all
 *  work of the stream's context (700, say) the host waits for `stream`, and the hook gets stream 1. If a hook
 *  fails, the error is CAI_ERR_CUDA with the name of the hook, and the reference and the memory are gone.
 *  That may be the hook of another object, which was deferred. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_free(cai_manager *manager, cai_memory_handle memory,
                                                   uint64_t stream, cai_error *err);

/** Adds a reference to the object, with the same handle. To keep a part of the memory, add a reference and
 *  keep an address inside. Errors: CAI_ERR_ARGUMENT (0), CAI_ERR_STALE. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_retain(cai_manager *manager, cai_memory_handle memory,
                                                     cai_error *err);

/** Returns the address. Returns NULL for the handle 0, a stale one, and memory that a reset freed. */
CAI_API void *cai_manager_pointer(cai_manager *manager, cai_memory_handle memory);

/** Describes an object. Errors: CAI_ERR_ARGUMENT (0), CAI_ERR_STALE. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_describe(cai_manager *manager, cai_memory_handle memory,
                                                       cai_memory_object *out, cai_error *err);

/** The place of an object for another process. */
typedef struct cai_memory_ipc {
    unsigned char handle[64]; /* of CUDA's allocation; the same for all objects in it */
    uint64_t offset, size;    /* in bytes, of the object in the allocation */
    int32_t device;
    int32_t reserved;
} cai_memory_ipc;

/** Gives the handle with which another process opens the memory (R116). Errors: CAI_ERR_ARGUMENT (0),
 *  CAI_ERR_STALE (also after a reset), CAI_ERR_MEMORY (not CAI_MEMORY_DEVICE, or the hook returned a base
 *  that is NULL or behind the memory), CAI_ERR_UNAVAILABLE (the hook is NULL), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_ipc_handle(cai_manager *manager, cai_memory_handle memory,
                                                         cai_memory_ipc *out, cai_error *err);

/* ------------------------------------------------------------------- >>arrays */
/** Makes a new, owned array in device memory, as cai_emm_array does. Errors: those of cai_array_init,
 *  CAI_ERR_STREAM, CAI_ERR_CAPTURE, CAI_ERR_OUT_OF_MEMORY, CAI_ERR_MEMORY, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_manager_array(cai_array *out, cai_manager *manager, int32_t code,
                                                    int32_t ndim, const int64_t *shape, uint64_t stream,
                                                    cai_error *err);

/** Gives a borrowed array that lies inside an object its own reference to the object. The caller's reference
 *  stays. Stores device and memory in the array. The release gives the reference back in the order of the
 *  stream or event that the array names then, as that of cai_emm_array does. The free is deferred while
 *  something captures, or if the host cannot wait (docs/memory.md has a table). If a hook fails in the
 *  release, cai_manager_count.failed counts it. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_STALE (also
 *  after a reset), CAI_ERR_MEMORY (not inside). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_own(cai_array *array, cai_manager *manager,
                                                  cai_memory_handle memory, cai_error *err);

/* -------------------------------------------------------------------- >>frees */
/** Carries out the deferred frees in their order, and waits for contexts where a release met a capture
 *  (DEFERRED FREES). One that fails is not tried again, and does not stop the others. A free stays if a
 *  capture forbids it or the host cannot wait. In a scope nothing is done. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_CUDA (the first). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_flush(cai_manager *manager, cai_error *err);

/** Begins a scope of the manager, not of the thread. Scopes nest. In a scope, only an allocation that runs
 *  out of memory frees (R117). The hook defer gets 1 when the first scope begins, and 0 when the last ends.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA (no scope began). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_defer_begin(cai_manager *manager, cai_error *err);

/** Ends a scope. If a limit was passed, the last end carries out the deferred frees. Errors: CAI_ERR_ARGUMENT
 *  (no scope is open), CAI_ERR_CUDA (the first, and the scope is over). */
CAI_API CAI_MUST_CHECK cai_status cai_manager_defer_end(cai_manager *manager, cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_MANAGER_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>failing  >>slots  >>contexts  >>hooks  >>deferring  >>allocating  >>freeing  >>arrays  >>manager */

#if defined(CAI_MANAGER_IMPLEMENTATION) && !defined(CAI_MANAGER_IMPLEMENTED)
#define CAI_MANAGER_IMPLEMENTED

#include <stdlib.h>
#include <string.h>
#include <time.h>
#define CAI_PRIV_WANT_EMM
#define CAI_PRIV_WANT_ERRORS
#define CAI_PRIV_WANT_GUARD
#include "cai.h"
#include "cai_stream.h"
#include "cai_emm.h"

CAI_PRIV_C_BEGIN

#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define CAI_PRIV_MEM_HOT __attribute__((always_inline)) static inline /* part of every alloc and free */
#else
#define CAI_PRIV_MEM_HOT static inline
#endif

/* The pairs of hooks that allocate and free, and the hook for other processes. */
enum { CAI_PRIV_DEVICE_PAIR, CAI_PRIV_HOST_PAIR, CAI_PRIV_PIN_PAIR, CAI_PRIV_MANAGED_PAIR, CAI_PRIV_IPC };

/* A memory object. Slots stay where they are until the manager is destroyed. */
struct cai_manager_slot {
    cai_manager *manager;
    struct cai_manager_slot *next; /* among idle or deferred ones */
    cai_memory_handle handle; /* the next one, if there are no references by it */
    int64_t references;       /* by the handle; 0: the handle is stale */
    int64_t users;            /* these, arrays, and references that are being given back */
    void *ptr; /* as the hook gave it */
    size_t bytes;
    uint64_t number, address, size;
    cai_pool_event last; /* ours, after the work of the references that were given back; event 0: none */
    uint32_t contexts;   /* bits of those whose work must end before the free, in streams that may be gone */
    uint32_t epoch;
    int32_t pair, kind;
};

/* ------------------------------------------------------------------ >>failing */
/* One public call. */
typedef struct cai_priv_mem_call {
    cai_manager *manager;
    cai_error *err;
    uint32_t contexts;     /* the free is deferred until the work of these has ended (bits) */
    unsigned char entered; /* the manager's context was pushed */
    unsigned char ending;  /* it frees: error 4, the end of the process, is success (R105) */
    unsigned char gone;    /* a call returned error 4, or the context is destroyed */
    unsigned char array;   /* the reference is an array's, whose release returns no error */
    unsigned char idle;    /* no work is pending for the reference */
    unsigned char later;   /* the free is deferred */
} cai_priv_mem_call;

CAI_PRIV_COLD cai_status cai_priv_mem_misuse(cai_error *err, const char *function, const char *what)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: %s", function, what);
}

static inline cai_status cai_priv_mem_made(const cai_manager *manager, const char *function, cai_error *err)
{
    if (manager && manager->options.alloc_fn) return CAI_OK;
    return cai_priv_mem_misuse(err, function, "manager is NULL or not made");
}

static inline cai_priv_mem_call cai_priv_mem_begin(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    memset(&call, 0, sizeof call);
    call.manager = manager;
    call.err = err;
    return call;
}

/* Begins a public call. */
static inline cai_status cai_priv_mem_open(cai_priv_mem_call *call, cai_manager *manager,
                                           const char *function, cai_error *err)
{
    *call = cai_priv_mem_begin(manager, err);
    return cai_priv_mem_made(manager, function, err);
}

/* Returns whether the error is the end of the process, and is success, because the call frees something. */
static int cai_priv_mem_ends(cai_priv_mem_call *call, int32_t error)
{
    if (error == 4) call->gone = 1;
    return error == 4 && call->ending;
}

static cai_status cai_priv_mem_did(cai_priv_mem_call *call, int32_t error, const char *operation)
{
    return cai_priv_mem_ends(call, error) ? CAI_OK : cai_cuda_status(error, operation, call->err);
}

static cai_status cai_priv_mem_hook_did(cai_priv_mem_call *call, int32_t error, const char *hook)
{
    if (!error || cai_priv_mem_ends(call, error)) return CAI_OK;
    return cai_priv_emm_hook_status(&call->manager->hooks, hook, error, call->err);
}

/* Returns the same call without an error to fill. */
static inline cai_priv_mem_call cai_priv_mem_quiet(const cai_priv_mem_call *call)
{
    cai_priv_mem_call quiet = *call;
    quiet.err = NULL;
    return quiet;
}

/* Keeps the first error of several. */
static void cai_priv_mem_keep_first(cai_priv_mem_call *call, cai_status *first, cai_status status)
{
    if (!status || *first) return;
    *first = status;
    call->err = NULL;
}

CAI_PRIV_COLD cai_status cai_priv_mem_stale(cai_error *err, cai_memory_handle memory)
{
    if (!memory) return cai_priv_error(err, CAI_ERR_ARGUMENT, "memory is 0, which is no object");
    return cai_priv_error(
        err, CAI_ERR_STALE, "memory 0x%llx: generation %lu of object %lu does not exist",
        (unsigned long long)memory, (unsigned long)(memory >> 32), (unsigned long)(memory & 0xffffffffu));
}

static inline cai_status cai_priv_mem_check_stream(const cai_manager *manager, uint64_t stream,
                                                   cai_error *err)
{
    if (cai_priv_is_stream(manager->cuda, stream)) return CAI_OK;
    return cai_priv_error(err, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
}

/* -------------------------------------------------------------------- >>slots */
enum { CAI_PRIV_MEM_FIRST_CHUNK = 64 }; /* slots; chunk n has 64 << n */

static inline struct cai_manager_slot *cai_priv_mem_at(const cai_manager *manager, uint32_t index)
{
    uint32_t size = CAI_PRIV_MEM_FIRST_CHUNK;
    int32_t chunk = 0;
    for (; index >= size; size *= 2) {
        index -= size;
        ++chunk;
    }
    return &manager->chunks[chunk][index];
}

static inline int cai_priv_mem_lost(const struct cai_manager_slot *slot)
{
    return slot->epoch != slot->manager->epoch;
}

/* Takes the guard and finds the slot of a live handle. NULL: there is none, and the guard is free. */
CAI_PRIV_MEM_HOT struct cai_manager_slot *cai_priv_mem_seize(cai_manager *manager, cai_memory_handle memory)
{
    const uint32_t index = (uint32_t)memory - 1;
    struct cai_manager_slot *slot;
    cai_priv_guard_take(&manager->guard);
    if (index < manager->slot_count) {
        slot = cai_priv_mem_at(manager, index);
        if (slot->handle == memory && slot->references) return slot;
    }
    cai_priv_guard_give(&manager->guard);
    return NULL;
}

/* Adds chunk n of 64 << n slots, unless another thread made room. Chunks before have (64 << n) - 64 slots. */
CAI_PRIV_COLD cai_status cai_priv_mem_grow(cai_manager *manager, int32_t chunk, cai_error *err)
{
    const size_t size = sizeof(struct cai_manager_slot) * CAI_PRIV_MEM_FIRST_CHUNK << chunk;
    const uint32_t count = (uint32_t)CAI_PRIV_MEM_FIRST_CHUNK << chunk;
    const uint64_t first = (uint64_t)manager->generation << 32 | (count - CAI_PRIV_MEM_FIRST_CHUNK + 1);
    struct cai_manager_slot *slots = NULL;
    uint32_t i;
    if (chunk < CAI_MANAGER_CHUNKS)
        slots = (struct cai_manager_slot *)manager->options.alloc_fn(manager->options.user_data, size);
    if (!slots)
        return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "alloc_fn returned NULL for %lu bytes of lists",
                              (unsigned long)size);
    memset(slots, 0, size);
    for (i = 0; i < count; ++i) {
        slots[i].manager = manager;
        slots[i].handle = first + i;
        slots[i].next = i + 1 < count ? &slots[i + 1] : NULL;
    }
    cai_priv_guard_take(&manager->guard);
    if (manager->chunk_count == chunk && !manager->idle) {
        manager->idle = slots;
        manager->slot_count += count;
        manager->chunks[manager->chunk_count++] = slots;
        slots = NULL;
    }
    cai_priv_guard_give(&manager->guard);
    if (slots) manager->options.free_fn(manager->options.user_data, slots, size);
    return CAI_OK;
}

/* Takes the guard and a slot without references. On failure the guard is free. */
static cai_status cai_priv_mem_take(cai_manager *manager, struct cai_manager_slot **out, cai_error *err)
{
    cai_priv_guard_take(&manager->guard);
    while (!manager->idle) {
        const int32_t chunk = manager->chunk_count;
        cai_priv_guard_give(&manager->guard);
        CAI_TRY(cai_priv_mem_grow(manager, chunk, err));
        cai_priv_guard_take(&manager->guard);
    }
    *out = manager->idle;
    return CAI_OK;
}

/* Takes the guard if there is a slot without references. Returns 0 and leaves the guard free if not. */
CAI_PRIV_MEM_HOT int cai_priv_mem_take_idle(cai_manager *manager)
{
    cai_priv_guard_take(&manager->guard);
    if (manager->idle) return 1;
    cai_priv_guard_give(&manager->guard);
    return 0;
}

/* Gives a slot back, under the guard. A slot whose generations are used up stays out. */
static inline void cai_priv_mem_put(cai_manager *manager, struct cai_manager_slot *slot)
{
    if (slot->handle >> 32 == UINT32_MAX) return;
    slot->next = manager->idle;
    manager->idle = slot;
}

/* ----------------------------------------------------------------- >>contexts */
/* Makes a context current that may be destroyed. CUDA pushes such a context without an error, and the next
 * call crashes. A query of its id is safe, and returns 709 (CUDA 12.0). */
static int32_t cai_priv_mem_reenter(const cai_cuda *cuda, uint64_t context)
{
    uint64_t id = 0;
    const int32_t error = cuda->context_id ? cuda->context_id(cuda->self, context, &id) : 0;
    return error ? error : cai_priv_context_enter(cuda, context);
}

/* Makes the manager's context current (R111). cai_priv_mem_leave undoes that. The context may be destroyed. Its
 * memory is gone then, and a free has nothing to do. */
CAI_PRIV_COLD cai_status cai_priv_mem_push(cai_priv_mem_call *call)
{
    const cai_cuda *cuda = call->manager->cuda;
    int32_t error;
    error = cai_priv_mem_reenter(cuda, call->manager->context);
    if (!error) call->entered = 1;
    if (error == 201 || error == 709) {
        call->gone = 1;
        if (call->ending) return CAI_OK;
    }
    return cai_priv_mem_did(call, error, "context_push");
}

static cai_status cai_priv_mem_enter(cai_priv_mem_call *call)
{
    const cai_cuda *cuda = call->manager->cuda;
    uint64_t current = 0;
    int32_t error;
    if (!cuda) return CAI_OK;
    error = cuda->context_current(cuda->self, &current);
    if (error) return cai_priv_mem_did(call, error, "context_current");
    return current == call->manager->context ? CAI_OK : cai_priv_mem_push(call);
}

/* Undoes cai_priv_mem_enter. Returns `status`, or its own error if `status` is CAI_OK. */
static cai_status cai_priv_mem_leave(cai_priv_mem_call *call, cai_status status)
{
    int32_t error;
    if (!call->entered) return status;
    call->entered = 0;
    error = cai_priv_context_leave(call->manager->cuda, call->manager->context);
    return status ? status : cai_priv_mem_did(call, error, "context_pop");
}

/* Lets the host wait with `wait` for `object`, a stream or an event (0: for the context). An error that ends
 * all work there is success, because no work is pending then. */
static cai_status cai_priv_mem_wait(cai_priv_mem_call *call, uint64_t object,
                                    int32_t (*wait)(void *self, uint64_t object), const char *what)
{
    const cai_cuda *cuda = call->manager->cuda;
    int32_t mode, error, restored;
    error = cai_priv_mode_relax(cuda, &mode);
    if (error) return cai_priv_mem_did(call, error, "capture_mode");
    error = object ? wait(cuda->self, object) : cuda->context_synchronize(cuda->self);
    restored = cai_priv_mode_restore(cuda, mode, 0);
    if (error != 4 && cai_priv_is_dead(error)) error = 0;
    if (error) return cai_priv_mem_did(call, error, what);
    return cai_priv_mem_did(call, restored, "capture_mode");
}

static cai_status cai_priv_mem_wait_stream(cai_priv_mem_call *call, uint64_t stream)
{
    return cai_priv_mem_wait(call, stream, call->manager->cuda->stream_synchronize, "stream_synchronize");
}

CAI_PRIV_COLD cai_status cai_priv_mem_captures(cai_priv_mem_call *call, uint64_t stream, int32_t error,
                                               const cai_cuda_capture *capture)
{
    const int lost = !error && capture->status == CAI_CAPTURE_INVALIDATED;
    cai_status status;
    if (!error)
        return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103), "%sstream 0x%llx %s",
                              lost ? "the capture of " : "", (unsigned long long)stream,
                              lost ? "was invalidated" : "is capturing");
    if (call->ending && error != 4 && cai_priv_is_dead(error)) { /* nothing goes on there, or in this context */
        call->idle = 1;
        return cai_priv_mem_wait_stream(call, stream);
    }
    status = cai_priv_mem_did(call, error, "stream_capture");
    if (error < 900 || error > 908) return status;
    if (call->err) call->err->code = CAI_ERR_CAPTURE;
    return CAI_ERR_CAPTURE;
}

static cai_status cai_priv_mem_no_capture(cai_priv_mem_call *call, uint64_t stream)
{
    const cai_cuda *cuda = call->manager->cuda;
    cai_cuda_capture capture;
    int32_t error;
    if (!cuda) return CAI_OK;
    error = cuda->stream_capture(cuda->self, stream, &capture);
    if (!error && capture.status == CAI_CAPTURE_NONE) return CAI_OK;
    return cai_priv_mem_captures(call, stream, error, &capture);
}

/* The results of the queries of the short way of an allocation or a free. */
typedef struct cai_priv_mem_asked {
    uint64_t current;
    cai_cuda_capture capture;
    int32_t error, capture_error;
} cai_priv_mem_asked;

/* Returns whether the context is current and the stream does not capture, else cai_priv_mem_prepare works. */
CAI_PRIV_MEM_HOT int cai_priv_mem_is_plain(const cai_manager *manager, uint64_t stream,
                                           cai_priv_mem_asked *asked)
{
    const cai_cuda *cuda = manager->cuda;
    if (!cuda) return 1;
    asked->error = cuda->context_current(cuda->self, &asked->current);
    if (asked->error || asked->current != manager->context) return 0;
    asked->capture_error = cuda->stream_capture(cuda->self, stream, &asked->capture);
    return !asked->capture_error && asked->capture.status == CAI_CAPTURE_NONE;
}

/* Makes the manager's context current. Fails if the stream captures. asked: NULL, or the answers so far. */
CAI_PRIV_COLD cai_status cai_priv_mem_prepare(cai_priv_mem_call *call, uint64_t stream,
                                              const cai_priv_mem_asked *asked)
{
    cai_status status;
    if (asked && !asked->error && asked->current == call->manager->context)
        return cai_priv_mem_captures(call, stream, asked->capture_error, &asked->capture);
    if (!asked) status = cai_priv_mem_enter(call);
    else status = asked->error ? cai_priv_mem_did(call, asked->error, "context_current")
                               : cai_priv_mem_push(call);
    return status || call->gone || !stream ? status : cai_priv_mem_no_capture(call, stream);
}

/* Returns whether the stream captures. If the query fails, returns 0, because the next call fails, too. */
static int cai_priv_mem_busy(const cai_priv_mem_call *call, uint64_t stream)
{
    cai_priv_mem_call asking = *call;
    cai_error own;
    asking.err = &own;
    asking.ending = 0;
    if (cai_priv_mem_no_capture(&asking, stream) != CAI_ERR_CAPTURE) return 0;
    if (call->err) *call->err = own;
    return 1;
}

/* Lets the host wait for the current context, unless a blocking stream captures there. */
static cai_status cai_priv_mem_wait_here(cai_priv_mem_call *call)
{
    const cai_cuda *cuda = call->manager->cuda;
    if (!(cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS) && cai_priv_mem_busy(call, CAI_STREAM_LEGACY))
        return CAI_ERR_CAPTURE;
    return cai_priv_mem_wait(call, 0, NULL, "context_synchronize");
}

/* Does the same for any context. Nothing is pending in a destroyed context, or after an error that ends all. */
static cai_status cai_priv_mem_wait_context(cai_priv_mem_call *call, uint64_t context)
{
    const cai_cuda *cuda = call->manager->cuda;
    cai_status status;
    int32_t error;
    if (context == call->manager->context) return cai_priv_mem_wait_here(call);
    error = cai_priv_mem_reenter(cuda, context);
    if (error == 201 || cai_priv_is_dead(error)) return CAI_OK;
    if (error) return cai_priv_mem_did(call, error, "context_push");
    status = cai_priv_mem_wait_here(call);
    (void)cai_priv_context_leave(cuda, context);
    return status;
}

/* Does the same for several contexts (bits). */
static cai_status cai_priv_mem_wait_contexts(cai_priv_mem_call *call, uint32_t contexts)
{
    uint32_t i;
    if (contexts >> CAI_MANAGER_CONTEXTS)
        return cai_priv_error(call->err, CAI_ERR_PENDING, "memory was used in more than %d contexts",
                              (int)CAI_MANAGER_CONTEXTS);
    for (i = 0; contexts >> i; ++i) {
        if (contexts >> i & 1) CAI_TRY(cai_priv_mem_wait_context(call, call->manager->contexts[i]));
    }
    return CAI_OK;
}

/* Returns the bit of a stream's context. The last bit means that there are more contexts than places. */
static uint32_t cai_priv_mem_context_of(cai_manager *manager, uint64_t stream)
{
    const cai_cuda *cuda = manager->cuda;
    uint64_t context = 0;
    uint32_t i = 0;
    if (cai_priv_is_handle(stream) && cai_priv_is_stream(cuda, stream))
        (void)cuda->stream_context(cuda->self, stream, &context);
    if (!context) return 1;
    cai_priv_guard_take(&manager->guard);
    while (i < CAI_MANAGER_CONTEXTS && manager->contexts[i] != context) {
        if (i && !manager->contexts[i]) manager->contexts[i] = context;
        else ++i;
    }
    cai_priv_guard_give(&manager->guard);
    return (uint32_t)1 << i;
}

/* -------------------------------------------------------------------- >>hooks */
/* Returns the table that has a pair of hooks. */
static inline const cai_emm_hooks *cai_priv_mem_table(const cai_manager *manager, int32_t pair)
{
    const int adopted = pair != CAI_PRIV_DEVICE_PAIR && manager->adopted >> pair & 1;
    return adopted ? &manager->cuda_hooks : &manager->hooks;
}

/* Returns the hook that frees memory of a pair, or NULL. */
static inline cai_emm_free_hook cai_priv_mem_free_hook(const cai_emm_hooks *hooks, int32_t pair)
{
    if (pair == CAI_PRIV_DEVICE_PAIR) return hooks->device_free;
    if (pair == CAI_PRIV_HOST_PAIR) return hooks->host_free;
    return pair == CAI_PRIV_PIN_PAIR ? hooks->unpin : hooks->managed_free;
}

static const char *cai_priv_mem_hook_name(int32_t pair, int frees)
{
    static const char *const names[][2] = {{"device_alloc", "device_free"},
                                           {"host_alloc", "host_free"},
                                           {"pin", "unpin"},
                                           {"managed_alloc", "managed_free"}};
    return names[pair][frees];
}

/* Prepares the first use after init or reset. Without memory_info there is no limit of bytes (R115). */
CAI_PRIV_COLD cai_status cai_priv_mem_first_use(cai_priv_mem_call *call)
{
    cai_manager *manager = call->manager;
    const cai_emm_hooks *hooks = &manager->hooks;
    size_t unused = 0, total = 0;
    uint64_t limit = manager->options.deferred_bytes;
    const int error = hooks->initialize ? hooks->initialize(hooks->ctx, manager->device) : 0;
    if (error) return cai_priv_mem_hook_did(call, error, "initialize");
    if (!limit && hooks->memory_info && !hooks->memory_info(hooks->ctx, &unused, &total)) limit = total / 5;
    cai_priv_guard_take(&manager->guard);
    manager->limit = limit ? limit : UINT64_MAX;
    cai_priv_guard_give(&manager->guard);
    cai_priv_guarded_put(&manager->ready, 1);
    return CAI_OK;
}

static void cai_priv_mem_count_failure(cai_manager *manager, int32_t error)
{
    cai_priv_guard_take(&manager->guard);
    if (!manager->count.failed++) manager->count.first_failure = error;
    cai_priv_guard_give(&manager->guard);
}

CAI_PRIV_COLD cai_status cai_priv_mem_free_failed(cai_manager *manager, int32_t pair, int32_t error,
                                                  cai_error *err)
{
    if (error == 4) return CAI_OK; /* R105 */
    cai_priv_mem_count_failure(manager, error);
    return cai_priv_emm_hook_status(&manager->hooks, cai_priv_mem_hook_name(pair, 1), error, err);
}

/* Frees memory with its hook, once. After a failure a second try could free other memory. */
static cai_status cai_priv_mem_free_now(cai_priv_mem_call *call, int32_t pair, void *ptr,
                                        size_t size, uint64_t stream)
{
    const cai_emm_hooks *hooks = cai_priv_mem_table(call->manager, pair);
    const cai_emm_free_hook hook = cai_priv_mem_free_hook(hooks, pair);
    int error;
    if (call->gone) return CAI_OK;
    error = hook(hooks->ctx, ptr, size, cai_stream_to_cuda(stream));
    return error ? cai_priv_mem_free_failed(call->manager, pair, error, call->err) : CAI_OK;
}

/* --------------------------------------------------------------- >>deferring */
/* Returns whether there is an event of ours. It is gone if its context was destroyed. */
static int cai_priv_mem_has_event(const cai_manager *manager, const cai_pool_event *at)
{
    return at->event && cai_priv_context_lives(manager->cuda, at->context, at->context_id);
}

static void cai_priv_mem_drop_event(const cai_manager *manager, const cai_pool_event *at)
{
    if (!cai_priv_mem_has_event(manager, at)) return;
    (void)manager->cuda->event_destroy(manager->cuda->self, at->event);
}

/* Gives an object's slot back, then frees the memory, and destroys the event. Called with the guard, and frees
 * the guard. */
static cai_status cai_priv_mem_end(cai_priv_mem_call *call, struct cai_manager_slot *slot, uint64_t stream)
{
    cai_manager *manager = call->manager;
    const int32_t pair = slot->pair;
    void *const ptr = slot->ptr;
    const size_t bytes = slot->bytes;
    const cai_pool_event last = slot->last;
    cai_status status;
    slot->last.event = slot->contexts = 0;
    manager->count.freed++;
    cai_priv_mem_put(manager, slot);
    cai_priv_guard_give(&manager->guard);
    status = cai_priv_mem_free_now(call, pair, ptr, bytes, stream);
    if (!call->gone) cai_priv_mem_drop_event(manager, &last);
    return status;
}

/* Returns whether a limit is passed. Called with the guard. */
static int cai_priv_mem_over(const cai_manager *manager)
{
    return manager->count.deferred > (uint64_t)manager->options.deferred_count ||
           manager->count.deferred_bytes > manager->limit;
}

/* Appends an object to the list of deferred frees. Called with the guard. */
static void cai_priv_mem_queue(struct cai_manager_slot *slot)
{
    cai_manager *manager = slot->manager;
    slot->next = NULL;
    if (manager->deferred_first) manager->deferred_last->next = slot;
    else manager->deferred_first = slot;
    manager->deferred_last = slot;
}

/* The frees that are carried out: those without a wait for a context, all that are possible, or all (no work is
 * left). */
enum { CAI_PRIV_BY_LIMIT, CAI_PRIV_ASKED, CAI_PRIV_IDLE };

/* Records a new event in a stream, which may be one of another context. out->context: 0 is the manager's. */
static int32_t cai_priv_mem_record(const cai_manager *manager, uint64_t stream, cai_pool_event *out)
{
    const cai_cuda *cuda = manager->cuda;
    uint64_t context = manager->context, event = 0;
    int32_t error = 0, other;
    out->context = out->event = 0;
    if (cai_priv_is_handle(stream)) error = cuda->stream_context(cuda->self, stream, &context);
    if (error) return error;
    other = context != manager->context;
    if (other && cuda->context_id) error = cuda->context_id(cuda->self, context, &out->context_id);
    if (other && !error) error = cai_priv_context_enter(cuda, context);
    if (error) return error;
    error = cuda->event_create(cuda->self, &event);
    if (!error) error = cuda->event_record(cuda->self, event, stream);
    if (event && error && (error == 4 || !cai_priv_is_dead(error)))
        (void)cuda->event_destroy(cuda->self, event);
    if (other) (void)cai_priv_context_leave(cuda, context);
    if (other) out->context = context;
    if (!error) out->event = event;
    return error;
}

/* Records the work in `stream`, which the caller may destroy afterwards. `stream` waits for the event *last, if
 * any, and a new event replaces it. If CUDA cannot do this, the host waits. If the host cannot wait, *contexts
 * gets the bit of the stream's context. Returns whether *last is the old event. */
static int cai_priv_mem_join(const cai_priv_mem_call *call, uint64_t stream, cai_pool_event *last,
                             uint32_t *contexts)
{
    cai_manager *manager = call->manager;
    const cai_cuda *cuda = manager->cuda;
    const int apart = cai_priv_mem_has_event(manager, last) &&
                      cuda->stream_wait_event(cuda->self, stream, last->event);
    cai_priv_mem_call quiet = cai_priv_mem_quiet(call);
    cai_pool_event made = {0, 0, 0};
    if (apart || cai_priv_mem_record(manager, stream, &made)) {
        if (cai_priv_mem_wait_stream(&quiet, stream)) *contexts |= cai_priv_mem_context_of(manager, stream);
        if (apart && cai_priv_mem_wait(&quiet, last->event, cuda->event_synchronize, "event_synchronize"))
            return 1;
    }
    cai_priv_mem_drop_event(manager, last);
    *last = made;
    return 0;
}

/* Returns a stream that does not capture, for memory that may be freed in any stream. Returns 0 if the platform
 * has no such stream, and the host waits instead. */
static uint64_t cai_priv_mem_idle_stream(const cai_priv_mem_call *call)
{
    const cai_priv_mem_call quiet = cai_priv_mem_quiet(call);
    const cai_cuda *cuda = call->manager->cuda;
    if (cuda && cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS) return 0;
    if (call->gone || !cai_priv_mem_busy(&quiet, CAI_STREAM_LEGACY)) return CAI_STREAM_LEGACY;
    return CAI_STREAM_PER_THREAD;
}

/* Makes `stream` wait for our event. The host waits for pinned memory (R119), or if a stream cannot wait. */
static cai_status cai_priv_mem_follow(cai_priv_mem_call *call, const struct cai_manager_slot *slot,
                                      uint64_t stream)
{
    const cai_cuda *cuda = call->manager->cuda;
    const int host = !stream || slot->pair == CAI_PRIV_PIN_PAIR;
    if (call->gone || !cai_priv_mem_has_event(call->manager, &slot->last)) return CAI_OK;
    if (!host && !cuda->stream_wait_event(cuda->self, stream, slot->last.event)) return CAI_OK;
    return cai_priv_mem_wait(call, slot->last.event, cuda->event_synchronize, "event_synchronize");
}

/* Makes `stream`, in which an object is freed, or the host wait for all other work on the object. Fails if the
 * free must stay deferred. */
static cai_status cai_priv_mem_catch_up(cai_priv_mem_call *call, const struct cai_manager_slot *slot,
                                        uint64_t stream)
{
    if (stream == CAI_STREAM_PER_THREAD && cai_priv_mem_busy(call, stream)) return CAI_ERR_CAPTURE;
    CAI_TRY(cai_priv_mem_wait_contexts(call, slot->contexts));
    return cai_priv_mem_follow(call, slot, stream);
}

/* Carries a deferred free out. Fails if the free must stay. *freed is the status of its hook. */
static cai_status cai_priv_mem_carry_one(cai_priv_mem_call *call, struct cai_manager_slot *slot, int32_t how,
                                         cai_error *why, cai_status *freed)
{
    cai_manager *manager = call->manager;
    cai_priv_mem_call asking = *call;
    uint64_t stream;
    asking.err = why;
    if (slot->contexts && how == CAI_PRIV_BY_LIMIT) return CAI_ERR_PENDING;
    stream = cai_priv_mem_idle_stream(call);
    if (manager->cuda && !call->gone && how != CAI_PRIV_IDLE)
        CAI_TRY(cai_priv_mem_catch_up(&asking, slot, stream));
    cai_priv_guard_take(&manager->guard);
    manager->count.deferred--;
    manager->count.deferred_bytes -= slot->bytes;
    *freed = cai_priv_mem_end(call, slot, stream);
    return CAI_OK;
}

/* Carries out the deferred frees one by one, so that threads share them. Frees that stay go to the end
 * of the list. Returns the first error. `why` is NULL, or gets the reason of the first free that stays. */
static cai_status cai_priv_mem_carry_out(cai_priv_mem_call *call, int32_t how, cai_error *why)
{
    cai_manager *manager = call->manager;
    cai_status first = CAI_OK;
    uint64_t left;
    cai_priv_guard_take(&manager->guard);
    for (left = manager->count.deferred; left && manager->deferred_first; --left) {
        struct cai_manager_slot *slot = manager->deferred_first;
        cai_status freed = CAI_OK, stays;
        manager->deferred_first = slot->next;
        cai_priv_guarded_put(&manager->taken, (int32_t)((uint32_t)manager->taken + 1));
        cai_priv_guard_give(&manager->guard);
        stays = cai_priv_mem_carry_one(call, slot, how, why, &freed);
        if (stays) why = NULL;
        cai_priv_mem_keep_first(call, &first, freed);
        cai_priv_guard_take(&manager->guard);
        if (stays) cai_priv_mem_queue(slot);
        cai_priv_guarded_put(&manager->done, (int32_t)((uint32_t)manager->done + 1));
    }
    cai_priv_guard_give(&manager->guard);
    return first;
}

static cai_status cai_priv_mem_flush(cai_priv_mem_call *call, int32_t how)
{
    cai_status status;
    call->ending = 1;
    CAI_TRY(cai_priv_mem_enter(call));
    status = cai_priv_mem_carry_out(call, how, NULL);
    return cai_priv_mem_leave(call, status);
}

CAI_API cai_status cai_manager_flush(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    int nothing;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_flush", err));
    cai_priv_guard_take(&manager->guard);
    nothing = manager->defer_depth || !manager->deferred_first;
    cai_priv_guard_give(&manager->guard);
    return nothing ? CAI_OK : cai_priv_mem_flush(&call, CAI_PRIV_ASKED);
}

/* Calls the hook defer, if there is one, when a scope begins or ends. */
static cai_status cai_priv_mem_tell(cai_priv_mem_call *call, int on)
{
    const cai_emm_hooks *hooks = &call->manager->hooks;
    cai_status status;
    if (!hooks->defer) return CAI_OK;
    status = cai_priv_mem_enter(call);
    if (!status && !call->gone) status = cai_priv_mem_hook_did(call, hooks->defer(hooks->ctx, on), "defer");
    return cai_priv_mem_leave(call, status);
}

CAI_API cai_status cai_manager_defer_begin(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    cai_status status;
    int32_t depth;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_defer_begin", err));
    cai_priv_guard_take(&manager->guard);
    depth = manager->defer_depth++;
    if (!depth) manager->told = 1;
    cai_priv_guard_give(&manager->guard);
    status = depth ? CAI_OK : cai_priv_mem_tell(&call, 1);
    if (!status) return CAI_OK;
    cai_priv_guard_take(&manager->guard);
    manager->defer_depth--;
    manager->told = 0;
    cai_priv_guard_give(&manager->guard);
    return status;
}

CAI_API cai_status cai_manager_defer_end(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    cai_status first = CAI_OK;
    int32_t depth;
    int over, told;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_defer_end", err));
    call.ending = 1;
    cai_priv_guard_take(&manager->guard);
    depth = manager->defer_depth;
    if (depth) manager->defer_depth--;
    over = cai_priv_mem_over(manager);
    told = manager->told;
    if (depth == 1) manager->told = 0;
    cai_priv_guard_give(&manager->guard);
    if (!depth) return cai_priv_mem_misuse(err, "cai_manager_defer_end", "no scope is open");
    if (depth > 1) return CAI_OK;
    if (told) cai_priv_mem_keep_first(&call, &first, cai_priv_mem_tell(&call, 0));
    if (over) cai_priv_mem_keep_first(&call, &first, cai_priv_mem_flush(&call, CAI_PRIV_BY_LIMIT));
    return first;
}

/* --------------------------------------------------------------- >>allocating */
/* What a caller asks for. */
typedef struct cai_priv_mem_wish {
    size_t size, bytes; /* bytes: for the hook */
    size_t mask;        /* the alignment less 1 */
    uint64_t stream;    /* 0: none */
    uint32_t flags;
    int32_t pair, kind;
    int32_t of_array; /* the first reference is an array's */
} cai_priv_mem_wish;

/* Calls the hook. *ptr becomes the memory, or is the memory to pin. */
static int cai_priv_mem_call_alloc(const cai_manager *manager, cai_priv_mem_wish wish, void **ptr)
{
    const cai_emm_hooks *hooks = cai_priv_mem_table(manager, wish.pair);
    if (wish.pair == CAI_PRIV_PIN_PAIR) return hooks->pin(hooks->ctx, *ptr, wish.bytes, wish.flags);
    *ptr = NULL;
    if (wish.pair == CAI_PRIV_DEVICE_PAIR)
        return hooks->device_alloc(hooks->ctx, ptr, wish.bytes, cai_stream_to_cuda(wish.stream));
    if (wish.pair == CAI_PRIV_HOST_PAIR) return hooks->host_alloc(hooks->ctx, ptr, wish.bytes, wish.flags);
    return hooks->managed_alloc(hooks->ctx, ptr, wish.bytes, wish.flags);
}

/* Waits until the deferred frees that threads have begun are done, because they make room. Holds no lock. */
static void cai_priv_mem_wait_for_frees(const cai_manager *manager)
{
    const int32_t taken = cai_priv_guarded_look(&manager->taken);
    uint32_t looks = 0;
    while ((uint32_t)taken - (uint32_t)cai_priv_guarded_look(&manager->done) - 1 < UINT32_MAX / 2)
        cai_priv_back_off(looks++);
}

/* Calls the hook again after each step that may make room, also in a scope (R118). Failures are counted. */
CAI_PRIV_COLD int cai_priv_mem_ask_again(const cai_priv_mem_call *call, cai_priv_mem_wish wish, void **ptr)
{
    cai_manager *manager = call->manager;
    const int32_t steps = !manager->pool ? 1 : manager->options.flags & CAI_MANAGER_DRAIN ? 3 : 2;
    cai_priv_mem_call quiet = cai_priv_mem_quiet(call);
    int32_t step;
    int error = 2;
    quiet.ending = 1;
    cai_priv_guard_take(&manager->guard);
    manager->count.retries++;
    cai_priv_guard_give(&manager->guard);
    for (step = 0; step < steps && error == 2; ++step) {
        if (step == 1) (void)!cai_keepalive_poll(manager->pool, NULL, NULL);
        if (step == 2) (void)!cai_keepalive_drain(manager->pool, NULL);
        (void)cai_priv_mem_carry_out(&quiet, step == 2 ? CAI_PRIV_ASKED : CAI_PRIV_BY_LIMIT, NULL);
        cai_priv_mem_wait_for_frees(manager);
        error = cai_priv_mem_call_alloc(manager, wish, ptr);
    }
    return error;
}

/* Handles the error of a hook. After out of memory the hook is called again (R118). */
CAI_PRIV_COLD cai_status cai_priv_mem_again(cai_priv_mem_call *call, cai_priv_mem_wish wish, void **ptr,
                                            int error)
{
    const char *hook = cai_priv_mem_hook_name(wish.pair, 0);
    cai_manager_count count;
    if (error == 2) error = cai_priv_mem_ask_again(call, wish, ptr);
    if (error != 2) return cai_priv_mem_hook_did(call, error, hook);
    cai_manager_counts(call->manager, &count);
    (void)cai_priv_error(call->err, CAI_ERR_OUT_OF_MEMORY,
                         "%s of %s: out of memory for %lu bytes; %llu bytes in %llu objects are live, "
                         "%llu bytes in deferred frees", hook, cai_priv_emm_name(&call->manager->hooks),
                         (unsigned long)wish.size, (unsigned long long)count.live_bytes,
                         (unsigned long long)count.live, (unsigned long long)count.deferred_bytes);
    if (call->err) call->err->native = 2;
    return CAI_ERR_OUT_OF_MEMORY;
}

/* Frees what is not given to the caller. Memory without a stream is freed on the legacy one. */
CAI_PRIV_COLD void cai_priv_mem_undo(const cai_priv_mem_call *call, cai_priv_mem_wish wish, void *ptr)
{
    cai_priv_mem_call again = cai_priv_mem_quiet(call);
    cai_error own;
    again.err = &own;
    again.gone = again.entered = 0;
    if (cai_priv_mem_enter(&again)) {
        cai_priv_mem_count_failure(call->manager, own.native);
        return;
    }
    (void)cai_priv_mem_free_now(&again, wish.pair, ptr, wish.bytes,
                                wish.stream ? wish.stream : (uint64_t)CAI_STREAM_LEGACY);
    (void)cai_priv_mem_leave(&again, CAI_OK);
}

/* The error for memory that breaks the promise of a hook. */
CAI_PRIV_COLD cai_status cai_priv_mem_broken(cai_priv_mem_call *call, cai_priv_mem_wish wish, void *ptr)
{
    const char *hook = cai_priv_mem_hook_name(wish.pair, 0);
    const char *table = cai_priv_emm_name(&call->manager->hooks);
    if (!ptr)
        return cai_priv_error(call->err, CAI_ERR_MEMORY, "%s of %s succeeded and returned NULL for %lu bytes",
                              hook, table, (unsigned long)wish.bytes);
    cai_priv_mem_undo(call, wish, ptr);
    return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 121),
                          "%s of %s returned %p, which is not aligned to %lu bytes", hook, table, ptr,
                          (unsigned long)(wish.mask & 255) + 1);
}

/* Makes memory an object with one reference, in the first idle slot, under the guard. */
CAI_PRIV_MEM_HOT struct cai_manager_slot *cai_priv_mem_fill(cai_manager *manager, cai_priv_mem_wish wish,
                                                            void *ptr)
{
    struct cai_manager_slot *slot = manager->idle;
    manager->idle = slot->next;
    slot->references = !wish.of_array;
    slot->users = 1;
    slot->ptr = ptr;
    slot->bytes = wish.bytes;
    slot->number = ++manager->count.allocated;
    slot->address = ((uint64_t)(uintptr_t)ptr + wish.mask) & ~(uint64_t)wish.mask;
    slot->size = wish.size;
    slot->epoch = manager->epoch;
    slot->pair = wish.pair;
    slot->kind = wish.kind;
    manager->count.live++;
    manager->count.live_bytes += wish.bytes;
    return slot;
}

/* Returns whether the memory breaks the hook's promise of 256 bytes. */
static inline int cai_priv_mem_is_crooked(cai_priv_mem_wish wish, const void *ptr)
{
    return !ptr || ((uintptr_t)ptr & wish.mask & 255);
}

/* Finishes an allocation whose hook returned `error`. The manager's context is current. */
CAI_PRIV_COLD cai_status cai_priv_mem_finish(cai_priv_mem_call *call, cai_priv_mem_wish wish, void *ptr,
                                             int error, struct cai_manager_slot **out,
                                             cai_memory_handle *made)
{
    cai_manager *manager = call->manager;
    cai_status status = error ? cai_priv_mem_again(call, wish, &ptr, error) : CAI_OK;
    if (!status && cai_priv_mem_is_crooked(wish, ptr)) status = cai_priv_mem_broken(call, wish, ptr);
    if (status) {
        (void)cai_priv_mem_leave(call, status);
        return status;
    }
    status = cai_priv_mem_leave(call, CAI_OK);
    if (!status) status = cai_priv_mem_take(manager, out, call->err);
    if (status) {
        cai_priv_mem_undo(call, wish, ptr);
        return status;
    }
    *out = cai_priv_mem_fill(manager, wish, ptr);
    *made = (*out)->handle;
    cai_priv_guard_give(&manager->guard);
    return CAI_OK;
}

/* `ptr` is memory to pin. `asked` is NULL, or the results so far. */
CAI_PRIV_COLD cai_status cai_priv_mem_new(cai_priv_mem_call *call, cai_priv_mem_wish wish, void *ptr,
                                          const cai_priv_mem_asked *asked, struct cai_manager_slot **out,
                                          cai_memory_handle *made)
{
    cai_status status = cai_priv_mem_prepare(call, wish.stream, asked);
    int error;
    if (!status && !cai_priv_guarded_look(&call->manager->ready)) status = cai_priv_mem_first_use(call);
    if (status) return cai_priv_mem_leave(call, status);
    error = cai_priv_mem_call_alloc(call->manager, wish, &ptr);
    return cai_priv_mem_finish(call, wish, ptr, error, out, made);
}

/* Device memory. */
CAI_PRIV_MEM_HOT cai_priv_mem_wish cai_priv_mem_wish_for(const cai_manager *manager, size_t size,
                                                         size_t alignment, uint64_t stream)
{
    cai_priv_mem_wish wish;
    wish.size = size;
    wish.mask = (alignment ? alignment : 256) - 1;
    wish.bytes = size + (wish.mask & ~(size_t)255);
    wish.stream = stream;
    wish.flags = 0;
    wish.pair = CAI_PRIV_DEVICE_PAIR;
    wish.kind = manager->hooks.kind;
    wish.of_array = 0;
    return wish;
}

CAI_PRIV_COLD cai_status cai_priv_mem_bad_size(size_t size, size_t alignment, cai_error *err)
{
    if (alignment & (alignment - 1))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "alignment = %lu is not a power of two",
                              (unsigned long)alignment);
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "size = %lu with alignment = %lu exceeds %lu bytes",
                          (unsigned long)size, (unsigned long)alignment, (unsigned long)SIZE_MAX);
}

CAI_API cai_status cai_manager_alloc(cai_memory_handle *out, cai_manager *manager, size_t size,
                                     size_t alignment, uint64_t stream, cai_error *err)
{
    cai_priv_mem_call call;
    cai_priv_mem_asked asked;
    cai_priv_mem_wish wish;
    struct cai_manager_slot *slot;
    void *ptr = NULL;
    int error, ready;
    if (!out) return cai_priv_mem_misuse(err, "cai_manager_alloc", "out is NULL");
    CAI_TRY(cai_priv_mem_made(manager, "cai_manager_alloc", err));
    wish = cai_priv_mem_wish_for(manager, size, alignment, stream);
    if (alignment & (alignment - 1) || wish.bytes < size)
        return cai_priv_mem_bad_size(size, alignment, err);
    CAI_TRY(cai_priv_mem_check_stream(manager, stream, err));
    if (!size) {
        *out = 0;
        return CAI_OK;
    }
    ready = cai_priv_guarded_look(&manager->ready);
    if (ready && cai_priv_mem_is_plain(manager, stream, &asked)) {
        error = manager->hooks.device_alloc(manager->hooks.ctx, &ptr, wish.bytes, cai_stream_to_cuda(stream));
        if (!error && !cai_priv_mem_is_crooked(wish, ptr) && cai_priv_mem_take_idle(manager)) {
            *out = cai_priv_mem_fill(manager, wish, ptr)->handle;
            cai_priv_guard_give(&manager->guard);
            return CAI_OK;
        }
        call = cai_priv_mem_begin(manager, err);
        return cai_priv_mem_finish(&call, wish, ptr, error, &slot, out);
    }
    call = cai_priv_mem_begin(manager, err);
    return cai_priv_mem_new(&call, wish, NULL, ready ? &asked : NULL, &slot, out);
}

/* Host and managed memory. ptr: to pin. */
static cai_status cai_priv_mem_host(cai_memory_handle *out, cai_manager *manager, cai_priv_mem_wish wish,
                                    void *ptr, uint32_t allowed, const char *function, cai_error *err)
{
    cai_priv_mem_call call;
    struct cai_manager_slot *slot;
    if (!out) return cai_priv_mem_misuse(err, function, "out is NULL");
    CAI_TRY(cai_priv_mem_open(&call, manager, function, err));
    if (wish.flags & ~allowed)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: flags = 0x%lx has unknown bits", function,
                              (unsigned long)wish.flags);
    if (wish.size && wish.pair == CAI_PRIV_PIN_PAIR && !ptr)
        return cai_priv_mem_misuse(err, function, "ptr is NULL");
    if (wish.size && !cai_priv_mem_free_hook(cai_priv_mem_table(manager, wish.pair), wish.pair))
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no hook %s",
                              cai_priv_emm_name(&manager->hooks), cai_priv_mem_hook_name(wish.pair, 0));
    if (wish.size) return cai_priv_mem_new(&call, wish, ptr, NULL, &slot, out);
    *out = 0;
    return CAI_OK;
}

CAI_API cai_status cai_manager_pinned_alloc(cai_memory_handle *out, cai_manager *manager, size_t size,
                                            uint32_t flags, cai_error *err)
{
    const int32_t kind = flags & CAI_HOST_MAPPED ? CAI_MEMORY_MAPPED : CAI_MEMORY_PINNED;
    const cai_priv_mem_wish wish = {size, size, 0, 0, flags, CAI_PRIV_HOST_PAIR, kind, 0};
    return cai_priv_mem_host(out, manager, wish, NULL,
                             CAI_HOST_PORTABLE | CAI_HOST_MAPPED | CAI_HOST_WRITE_COMBINED,
                             "cai_manager_pinned_alloc", err);
}

CAI_API cai_status cai_manager_pin(cai_memory_handle *out, cai_manager *manager, void *ptr, size_t size,
                                   uint32_t flags, cai_error *err)
{
    const cai_priv_mem_wish wish = {size, size, 0, 0, flags, CAI_PRIV_PIN_PAIR, CAI_MEMORY_REGISTERED, 0};
    return cai_priv_mem_host(out, manager, wish, ptr, CAI_HOST_PORTABLE | CAI_HOST_MAPPED, "cai_manager_pin",
                             err);
}

CAI_API cai_status cai_manager_managed_alloc(cai_memory_handle *out, cai_manager *manager, size_t size,
                                             uint32_t flags, cai_error *err)
{
    const uint32_t whole = flags ? flags : (uint32_t)CAI_MANAGED_GLOBAL;
    const cai_priv_mem_wish wish = {size, size, 0, 0, whole, CAI_PRIV_MANAGED_PAIR, CAI_MEMORY_MANAGED, 0};
    return cai_priv_mem_host(out, manager, wish, NULL, CAI_MANAGED_GLOBAL | CAI_MANAGED_HOST,
                             "cai_manager_managed_alloc", err);
}

/* ------------------------------------------------------------------ >>freeing */
CAI_PRIV_COLD cai_status cai_priv_mem_gone(cai_error *err, cai_memory_handle memory)
{
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_STALE, 114), "a reset freed memory 0x%llx",
                          (unsigned long long)memory);
}

/* Keeps a reference whose free failed. */
CAI_PRIV_COLD void cai_priv_mem_keep(struct cai_manager_slot *slot)
{
    cai_priv_guard_take(&slot->manager->guard);
    if (!slot->references++) slot->handle -= (uint64_t)1 << 32;
    cai_priv_guard_give(&slot->manager->guard);
}

/* Drops a reference to memory that a reset freed. Called with the guard, and frees the guard. */
CAI_PRIV_COLD cai_status cai_priv_mem_forget(struct cai_manager_slot *slot)
{
    cai_manager *manager = slot->manager;
    if (!--slot->users) {
        manager->count.lost++;
        cai_priv_mem_put(manager, slot);
    }
    cai_priv_guard_give(&manager->guard);
    return CAI_OK;
}

/* Returns the stream of a free that needs no order. While a blocking stream captures, the free is deferred. */
static uint64_t cai_priv_mem_anywhere(cai_priv_mem_call *call)
{
    const uint64_t stream = cai_priv_mem_idle_stream(call);
    call->idle = 1;
    call->later = stream == CAI_STREAM_PER_THREAD;
    return stream;
}

/* If the object has other references, gives this one back and returns 1. The object keeps an event, so that its
 * free comes after the work in `stream`. Called with the guard, and frees the guard. */
static int cai_priv_mem_leave_event(cai_priv_mem_call *call, struct cai_manager_slot *slot, uint64_t stream)
{
    cai_manager *manager = call->manager;
    int ask = manager->cuda && !call->idle && !call->gone && !call->contexts, apart = 0, last;
    uint32_t contexts = call->contexts;
    cai_pool_event mine = {0, 0, 0};
    while ((ask && slot->users > 1) || (mine.event && slot->last.event)) { /* again: another thread left one */
        const int lost = apart;
        cai_pool_event other = slot->last;
        slot->last.event = 0;
        cai_priv_guard_give(&manager->guard);
        apart = cai_priv_mem_join(call, stream, &other, &contexts);
        cai_priv_mem_drop_event(manager, &mine);
        if (lost) contexts |= (uint32_t)1 << CAI_MANAGER_CONTEXTS; /* nobody knows of which context it was */
        mine = other;
        ask = 0;
        cai_priv_guard_take(&manager->guard);
    }
    if (mine.event) slot->last = mine;
    slot->contexts |= contexts;
    last = slot->users == 1;
    if (!last) slot->users--;
    cai_priv_guard_give(&manager->guard);
    return !last;
}

/* Lets the host wait before memory is unpinned (R119). If this fails, an array's free is deferred. */
static cai_status cai_priv_mem_wait_to_unpin(cai_priv_mem_call *call, struct cai_manager_slot *slot,
                                             uint64_t stream)
{
    cai_status status = call->idle ? CAI_OK : cai_priv_mem_wait_stream(call, stream);
    if (!status) status = cai_priv_mem_follow(call, slot, stream);
    if (!status) call->idle = 1;
    else if (!call->array) cai_priv_mem_keep(slot);
    else call->contexts = cai_priv_mem_context_of(call->manager, stream);
    return call->array ? CAI_OK : status;
}

/* Puts the object into the list of deferred frees. */
static cai_status cai_priv_mem_defer(cai_priv_mem_call *call, struct cai_manager_slot *slot, uint64_t stream)
{
    cai_manager *manager = call->manager;
    int over;
    if (manager->cuda && !call->idle && !call->contexts)
        (void)cai_priv_mem_join(call, stream, &slot->last, &slot->contexts);
    cai_priv_guard_take(&manager->guard);
    cai_priv_mem_queue(slot);
    manager->count.deferred++;
    manager->count.deferred_bytes += slot->bytes;
    over = !manager->defer_depth && !call->contexts && cai_priv_mem_over(manager);
    cai_priv_guard_give(&manager->guard);
    return over ? cai_priv_mem_carry_out(call, CAI_PRIV_BY_LIMIT, NULL) : CAI_OK;
}

/* Gives back a reference that no handle has any more, after the work in `stream`. */
static cai_status cai_priv_mem_give_back(cai_priv_mem_call *call, struct cai_manager_slot *slot,
                                         uint64_t stream)
{
    cai_manager *manager = call->manager;
    const int pinned = slot->pair == CAI_PRIV_PIN_PAIR;
    cai_priv_mem_call quiet = cai_priv_mem_quiet(call);
    int defers;
    cai_priv_guard_take(&manager->guard);
    defers = manager->waits >> slot->pair & 1 || (manager->defer_depth && !pinned);
    if (cai_priv_mem_leave_event(call, slot, stream)) return CAI_OK;
    /* it was the last reference, and nobody else knows the object now */
    if (pinned && manager->cuda && !call->gone && !slot->contexts && !call->later)
        CAI_TRY(cai_priv_mem_wait_to_unpin(call, slot, stream));
    slot->contexts |= call->contexts;
    defers = !call->gone && (defers || call->later || slot->contexts);
    if (!defers && !pinned) defers = cai_priv_mem_follow(&quiet, slot, stream) != CAI_OK;
    cai_priv_guard_take(&manager->guard);
    slot->users = 0;
    manager->count.live--;
    manager->count.live_bytes -= slot->bytes;
    if (!defers) return cai_priv_mem_end(call, slot, stream);
    cai_priv_guard_give(&manager->guard);
    return cai_priv_mem_defer(call, slot, stream);
}

/* Frees without the short way. `asked` is NULL, or the results so far. */
CAI_PRIV_COLD cai_status cai_priv_mem_free_slowly(struct cai_manager_slot *slot, uint64_t stream,
                                                  const cai_priv_mem_asked *asked, cai_error *err)
{
    cai_priv_mem_call call = cai_priv_mem_begin(slot->manager, err);
    cai_status status;
    call.ending = 1;
    status = cai_priv_mem_prepare(&call, stream, asked);
    if (status) cai_priv_mem_keep(slot);
    else status = cai_priv_mem_give_back(&call, slot, call.idle ? cai_priv_mem_anywhere(&call) : stream);
    return cai_priv_mem_leave(&call, status);
}

CAI_API cai_status cai_manager_free(cai_manager *manager, cai_memory_handle memory, uint64_t stream,
                                    cai_error *err)
{
    const cai_emm_hooks *hooks;
    struct cai_manager_slot *slot;
    cai_priv_mem_asked asked;
    void *ptr;
    size_t bytes;
    int error, plain;
    CAI_TRY(cai_priv_mem_made(manager, "cai_manager_free", err));
    if (!memory) return CAI_OK;
    CAI_TRY(cai_priv_mem_check_stream(manager, stream, err));
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return cai_priv_mem_stale(err, memory);
    if (!--slot->references) slot->handle += (uint64_t)1 << 32;
    if (slot->epoch != manager->epoch) return cai_priv_mem_forget(slot);
    plain = slot->users == 1 && !slot->last.event && !slot->contexts && slot->pair == CAI_PRIV_DEVICE_PAIR &&
            !manager->defer_depth && !(manager->waits & 1u << CAI_PRIV_DEVICE_PAIR);
    cai_priv_guard_give(&manager->guard);
    if (!plain) return cai_priv_mem_free_slowly(slot, stream, NULL, err);
    if (!cai_priv_mem_is_plain(manager, stream, &asked))
        return cai_priv_mem_free_slowly(slot, stream, &asked, err);
    cai_priv_guard_take(&manager->guard); /* it was the only reference: nobody else knows the object now */
    ptr = slot->ptr;
    bytes = slot->bytes;
    slot->users = 0;
    manager->count.live--;
    manager->count.live_bytes -= bytes;
    manager->count.freed++;
    cai_priv_mem_put(manager, slot);
    cai_priv_guard_give(&manager->guard);
    hooks = &manager->hooks;
    error = hooks->device_free(hooks->ctx, ptr, bytes, cai_stream_to_cuda(stream));
    return error ? cai_priv_mem_free_failed(manager, CAI_PRIV_DEVICE_PAIR, error, err) : CAI_OK;
}

CAI_API cai_status cai_manager_retain(cai_manager *manager, cai_memory_handle memory, cai_error *err)
{
    struct cai_manager_slot *slot;
    CAI_TRY(cai_priv_mem_made(manager, "cai_manager_retain", err));
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return cai_priv_mem_stale(err, memory);
    slot->references++;
    slot->users++;
    cai_priv_guard_give(&manager->guard);
    return CAI_OK;
}

static void cai_priv_mem_describe(const struct cai_manager_slot *slot, cai_memory_object *out)
{
    out->memory = slot->references ? slot->handle : 0;
    out->number = slot->number;
    out->address = slot->address;
    out->size = slot->size;
    out->references = slot->users;
    out->kind = slot->kind;
    out->lost = cai_priv_mem_lost(slot);
}

CAI_API cai_status cai_manager_describe(cai_manager *manager, cai_memory_handle memory,
                                        cai_memory_object *out, cai_error *err)
{
    struct cai_manager_slot *slot;
    CAI_TRY(cai_priv_mem_made(manager, "cai_manager_describe", err));
    if (!out) return cai_priv_mem_misuse(err, "cai_manager_describe", "out is NULL");
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return cai_priv_mem_stale(err, memory);
    cai_priv_mem_describe(slot, out);
    cai_priv_guard_give(&manager->guard);
    return CAI_OK;
}

CAI_API void *cai_manager_pointer(cai_manager *manager, cai_memory_handle memory)
{
    struct cai_manager_slot *slot;
    uint64_t address;
    if (cai_priv_mem_made(manager, "cai_manager_pointer", NULL)) return NULL;
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return NULL;
    address = cai_priv_mem_lost(slot) ? 0 : slot->address;
    cai_priv_guard_give(&manager->guard);
    return (void *)(uintptr_t)address;
}

CAI_API cai_status cai_manager_ipc_handle(cai_manager *manager, cai_memory_handle memory, cai_memory_ipc *out,
                                          cai_error *err)
{
    cai_priv_mem_call call;
    struct cai_manager_slot *slot, was;
    const cai_emm_hooks *hooks;
    cai_memory_ipc made;
    void *base = NULL;
    cai_status status;
    if (!out) return cai_priv_mem_misuse(err, "cai_manager_ipc_handle", "out is NULL");
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_ipc_handle", err));
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return cai_priv_mem_stale(err, memory);
    was = *slot;
    cai_priv_guard_give(&manager->guard);
    if (cai_priv_mem_lost(&was)) return cai_priv_mem_gone(err, memory);
    if (was.kind != CAI_MEMORY_DEVICE)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "%s has no handle for other processes",
                              was.kind == CAI_MEMORY_POOL ? "memory of a pool" : "memory of no device");
    hooks = cai_priv_mem_table(manager, CAI_PRIV_IPC);
    if (!hooks->ipc_handle)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no hook ipc_handle",
                              cai_priv_emm_name(&manager->hooks));
    memset(&made, 0, sizeof made);
    made.size = was.size;
    made.device = manager->device;
    status = cai_priv_mem_enter(&call);
    if (!status)
        status = cai_priv_mem_hook_did(&call, hooks->ipc_handle(hooks->ctx, was.ptr, made.handle, &base),
                                       "ipc_handle");
    CAI_TRY(cai_priv_mem_leave(&call, status));
    if (!base || (uintptr_t)base > (uintptr_t)was.ptr)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "ipc_handle of %s returned %p as the base of %p",
                              cai_priv_emm_name(&manager->hooks), base, was.ptr);
    made.offset = was.address - (uint64_t)(uintptr_t)base;
    *out = made;
    return CAI_OK;
}

/* ------------------------------------------------------------------- >>arrays */
/* Returns the stream of a free if the array's stream cannot be used. The legacy stream comes after stream 2 of
 * all threads. For other streams the host waits. While something captures, the free is deferred until the work
 * of the context of the array's stream has ended, because the stream may be gone by then. */
CAI_PRIV_COLD uint64_t cai_priv_mem_no_order(cai_priv_mem_call *call, const cai_array *array, int unordered,
                                             int wait)
{
    cai_manager *manager = call->manager;
    const int named = array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT;
    const uint32_t contexts = cai_priv_mem_context_of(manager, named ? array->stream : 0);
    if (manager->cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS) unordered = 1;
    if (wait && unordered) wait = !cai_priv_mem_wait_contexts(call, contexts);
    else if (wait) wait = !cai_priv_mem_busy(call, CAI_STREAM_LEGACY);
    if (!wait) call->contexts = contexts;
    return wait && unordered ? cai_priv_mem_anywhere(call) : (uint64_t)CAI_STREAM_LEGACY;
}

/* Orders the free of an array's memory. Returns its stream. */
static uint64_t cai_priv_mem_order_array(cai_priv_mem_call *call, const cai_array *array)
{
    uint64_t stream;
    int unordered = 1, wait = 0;
    if (!call->manager->cuda) return CAI_STREAM_LEGACY;
    if (!cai_priv_mem_enter(call)) {
        if (call->gone) return CAI_STREAM_LEGACY;
        if (array->sync == CAI_SYNC_NONE) return cai_priv_mem_anywhere(call);
        stream = cai_priv_emm_look(call->manager->cuda, array, &unordered, &wait);
        if (stream) return stream;
    }
    return cai_priv_mem_no_order(call, array, unordered, wait);
}

static void cai_priv_mem_release_array(cai_array *array)
{
    struct cai_manager_slot *slot = (struct cai_manager_slot *)array->owner;
    cai_priv_mem_call call;
    uint64_t stream;
    array->release = NULL;
    if (cai_priv_mem_open(&call, slot->manager, "release", NULL)) return;
    call.ending = call.array = 1;
    if (cai_priv_mem_lost(slot)) {
        cai_priv_guard_take(&slot->manager->guard);
        (void)!cai_priv_mem_forget(slot);
        return;
    }
    stream = cai_priv_mem_order_array(&call, array);
    (void)!cai_priv_mem_leave(&call, cai_priv_mem_give_back(&call, slot, stream));
}

static void cai_priv_mem_dress(cai_array *array, struct cai_manager_slot *slot)
{
    int32_t memory = slot->kind;
    if (memory == CAI_MEMORY_POOL) memory = CAI_MEMORY_DEVICE;
    if (memory == CAI_MEMORY_MAPPED || memory == CAI_MEMORY_REGISTERED) memory = CAI_MEMORY_PINNED;
    array->memory = memory;
    array->device = memory == CAI_MEMORY_HOST ? CAI_DEVICE_UNKNOWN : slot->manager->device;
    if (slot->manager->cuda) array->backend = cai_priv_backend(slot->manager->cuda);
    if (memory != CAI_MEMORY_HOST) array->flags |= CAI_ORDERED_FREE; /* free() is in the order of no stream */
    cai_array_own(array, cai_priv_mem_release_array, slot);
}

CAI_API cai_status cai_manager_array(cai_array *out, cai_manager *manager, int32_t code, int32_t ndim,
                                     const int64_t *shape, uint64_t stream, cai_error *err)
{
    cai_priv_mem_call call;
    struct cai_manager_slot *slot = NULL;
    cai_priv_mem_wish wish;
    cai_memory_handle none;
    cai_array made;
    if (!out) return cai_priv_mem_misuse(err, "cai_manager_array", "out is NULL");
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_array", err));
    CAI_TRY(cai_priv_mem_check_stream(manager, stream, err));
    CAI_TRY(cai_array_init(&made, code, ndim, shape, NULL, (void *)(uintptr_t)256, err)); /* aligned so */
    made.sync = CAI_SYNC_NONE;
    if ((uint64_t)made.nbytes > SIZE_MAX)
        return cai_priv_error(err, CAI_ERR_SHAPE, "%lld bytes exceed the address space",
                              (long long)made.nbytes);
    if (stream == CAI_STREAM_PER_THREAD && manager->cuda && made.size)
        CAI_TRY(cai_priv_mem_did(&call, manager->cuda->host_thread(manager->cuda->self, &made.thread),
                                 "host_thread"));
    wish = cai_priv_mem_wish_for(manager, (size_t)made.nbytes, 0, stream);
    wish.of_array = 1;
    if (made.size) {
        CAI_TRY(cai_priv_mem_new(&call, wish, NULL, NULL, &slot, &none));
        made.data = slot->address;
        cai_priv_mem_dress(&made, slot);
    }
    if (made.size && manager->pool) {
        made.sync = CAI_SYNC_STREAM;
        made.stream = stream;
    }
    *out = made;
    return CAI_OK;
}

CAI_API cai_status cai_manager_own(cai_array *array, cai_manager *manager, cai_memory_handle memory,
                                   cai_error *err)
{
    struct cai_manager_slot *slot;
    uint64_t first, size, whole;
    int lost, inside;
    CAI_TRY(cai_priv_mem_made(manager, "cai_manager_own", err));
    CAI_TRY(cai_array_check(array, err));
    if (array->release) return cai_priv_mem_misuse(err, "cai_manager_own", "the array has an owner");
    slot = cai_priv_mem_seize(manager, memory);
    if (!slot) return cai_priv_mem_stale(err, memory);
    lost = cai_priv_mem_lost(slot);
    first = array->data + (uint64_t)array->lo - slot->address;
    size = (uint64_t)(array->hi - array->lo);
    whole = slot->size;
    inside = !array->size || (first <= whole && size <= whole - first);
    if (!lost && inside) slot->users++;
    cai_priv_guard_give(&manager->guard);
    if (lost) return cai_priv_mem_gone(err, memory);
    if (!inside)
        return cai_priv_error(err, CAI_ERR_MEMORY, "%llu bytes at offset %lld are not in the object of %llu",
                              (unsigned long long)size, (long long)first, (unsigned long long)whole);
    cai_priv_mem_dress(array, slot);
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>manager */
static void *cai_priv_mem_malloc(void *user_data, size_t size)
{
    (void)user_data;
    return malloc(size);
}

static void cai_priv_mem_mfree(void *user_data, void *ptr, size_t size)
{
    (void)user_data;
    (void)size;
    free(ptr);
}

/* Copies the table. Takes CUDA's own functions in place of missing hooks. Their frees wait on the host. */
static cai_status cai_priv_mem_set_table(cai_manager *manager, const cai_emm_hooks *table, cai_error *err)
{
    cai_emm_hooks *hooks = &manager->hooks;
    uint32_t host, ipc;
    CAI_TRY(cai_emm_hooks_check(table, err));
    cai_priv_emm_whole_hooks(hooks, table);
    host = hooks->flags & CAI_EMM_CUDA_HOST;
    ipc = hooks->flags & CAI_EMM_CUDA_IPC;
    if (!manager->cuda && (hooks->kind != CAI_MEMORY_HOST || host || ipc))
        return cai_priv_mem_misuse(err, "cai_manager_init",
                                   "pool is NULL or not made, and hooks is not of CAI_MEMORY_HOST");
    if ((host || ipc) && !cai_emm_hooks_cuda(&manager->cuda_hooks, manager->cuda, NULL)) {
        if (host && !hooks->host_alloc) manager->adopted |= 1u << CAI_PRIV_HOST_PAIR;
        if (host && !hooks->pin) manager->adopted |= 1u << CAI_PRIV_PIN_PAIR;
        if (host && !hooks->managed_alloc) manager->adopted |= 1u << CAI_PRIV_MANAGED_PAIR;
        if (ipc && !hooks->ipc_handle) manager->adopted |= 1u << CAI_PRIV_IPC;
    }
    manager->waits = hooks->flags & CAI_EMM_FREES_WAIT ? UINT32_MAX : manager->adopted;
    manager->waits &= ~(1u << CAI_PRIV_PIN_PAIR); /* R119: the host waits before */
    manager->limit = UINT64_MAX;
    return CAI_OK;
}

/* Calls the hook close, also if the CUDA context is gone. */
static cai_status cai_priv_mem_close_hooks(cai_priv_mem_call *call)
{
    const cai_emm_hooks *hooks = &call->manager->hooks;
    cai_priv_mem_call quiet = cai_priv_mem_quiet(call);
    cai_status status;
    if (!hooks->close) return CAI_OK;
    (void)!cai_priv_mem_enter(&quiet);
    call->ending = 1;
    status = cai_priv_mem_hook_did(call, hooks->close(hooks->ctx), "close");
    call->entered = quiet.entered;
    return cai_priv_mem_leave(call, status);
}

/* Returns the first generation of a manager. It makes handles of an earlier manager at this address stale. */
static uint32_t cai_priv_mem_first_generation(const cai_manager *manager)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t now = (uint64_t)clock(), hash;
#if defined(_WIN32) && !defined(CAI_NO_THREADS)
    LARGE_INTEGER ticks; /* clock() counts milliseconds there */
    if (QueryPerformanceCounter(&ticks)) now = (uint64_t)ticks.QuadPart;
#endif
    hash = ((uint64_t)(uintptr_t)manager ^ (uint64_t)time(NULL) << 32) * odd;
    return (uint32_t)(((hash ^ hash >> 29 ^ now) * odd) >> 33);
}

CAI_API cai_status cai_manager_init(cai_manager *manager, cai_event_pool *pool, const cai_emm_hooks *hooks,
                                    const cai_manager_options *options, cai_error *err)
{
    cai_manager made;
    void *own;
    int32_t error = 0;
    if (!manager) return cai_priv_mem_misuse(err, "cai_manager_init", "manager is NULL");
    memset(&made, 0, sizeof made);
    made.cuda = pool ? pool->cuda : NULL;
    made.pool = made.cuda ? pool : NULL; /* a pool that is not made is none */
    if (options && (!options->alloc_fn != !options->free_fn || options->deferred_count < 0 ||
                    options->flags & ~CAI_MANAGER_DRAIN))
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cai_manager_init: options: one of alloc_fn and free_fn is NULL, or "
                              "deferred_count = %d is negative, or flags = 0x%x has unknown bits",
                              (int)options->deferred_count, (unsigned)options->flags);
    CAI_TRY(cai_priv_mem_set_table(&made, hooks, err));
    if (made.cuda) {
        CAI_TRY(cai_priv_emm_context(made.cuda, &made.context, err));
        error = made.cuda->context_device(made.cuda->self, &made.device);
        if (error) return cai_cuda_status(error, "context_device", err);
    }
    made.contexts[0] = made.context;
    if (options) made.options = *options;
    if (!made.options.deferred_count) made.options.deferred_count = 10;
    if (!made.options.alloc_fn) {
        made.options.alloc_fn = cai_priv_mem_malloc;
        made.options.free_fn = cai_priv_mem_mfree;
    }
    made.generation = cai_priv_mem_first_generation(manager);
    own = made.hooks.ctx;
    if (made.hooks.open) error = made.hooks.open(own, made.device, made.context, &own);
    if (error) return cai_priv_emm_hook_status(&made.hooks, "open", error, err);
    made.hooks.ctx = own; /* the plugin's, for this manager */
    *manager = made;
    return CAI_OK;
}

CAI_API cai_status cai_manager_device_memory(cai_manager *manager, size_t *free_bytes, size_t *total_bytes,
                                             cai_error *err)
{
    cai_priv_mem_call call;
    const cai_emm_hooks *hooks;
    size_t available = 0, total = 0;
    cai_status status;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_device_memory", err));
    if (!free_bytes || !total_bytes)
        return cai_priv_mem_misuse(err, "cai_manager_device_memory", "free_bytes or total_bytes is NULL");
    hooks = &manager->hooks;
    if (!hooks->memory_info)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_UNAVAILABLE, 115), "%s has no hook memory_info",
                              cai_priv_emm_name(hooks));
    CAI_TRY(cai_priv_mem_enter(&call));
    status = cai_priv_guarded_look(&manager->ready) ? CAI_OK : cai_priv_mem_first_use(&call);
    if (!status)
        status =
            cai_priv_mem_hook_did(&call, hooks->memory_info(hooks->ctx, &available, &total), "memory_info");
    CAI_TRY(cai_priv_mem_leave(&call, status));
    *free_bytes = available;
    *total_bytes = total;
    return CAI_OK;
}

CAI_API void cai_manager_counts(cai_manager *manager, cai_manager_count *out)
{
    if (!out) return;
    memset(out, 0, sizeof *out);
    if (cai_priv_mem_made(manager, "cai_manager_counts", NULL)) return;
    cai_priv_guard_take(&manager->guard);
    *out = manager->count;
    cai_priv_guard_give(&manager->guard);
}

CAI_API int64_t cai_manager_list(cai_manager *manager, cai_memory_object *out, int64_t capacity)
{
    int64_t count = 0;
    uint32_t index, end = 1;
    if (cai_priv_mem_made(manager, "cai_manager_list", NULL)) return 0;
    for (index = 0; index < end; ++index) {
        const struct cai_manager_slot *slot;
        cai_priv_guard_take(&manager->guard);
        end = manager->slot_count;
        slot = index < end ? cai_priv_mem_at(manager, index) : NULL;
        if (slot && slot->users) {
            if (out && count < capacity) cai_priv_mem_describe(slot, &out[count]);
            ++count;
        }
        cai_priv_guard_give(&manager->guard);
    }
    return count;
}

CAI_API cai_status cai_manager_reset(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    const cai_emm_hooks *hooks;
    cai_status first;
    uint32_t i;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_reset", err));
    hooks = &manager->hooks;
    if (manager->defer_depth)
        return cai_priv_error(err, CAI_ERR_PENDING, "cai_manager_reset: %d scopes of defer are open",
                              (int)manager->defer_depth);
    call.ending = 1;
    call.err = NULL;
    if (cai_priv_mem_enter(&call)) call.gone = 1; /* the context's memory is gone, too */
    call.err = err;
    first = cai_priv_mem_carry_out(&call, CAI_PRIV_IDLE, NULL);
    for (i = 0; i < manager->slot_count; ++i) { /* what the hook reset does not free */
        struct cai_manager_slot *slot = cai_priv_mem_at(manager, i);
        const int32_t pair = slot->pair;
        if (!call.gone) cai_priv_mem_drop_event(manager, &slot->last);
        slot->last.event = slot->contexts = 0;
        if (!slot->users || cai_priv_mem_lost(slot) || call.gone) continue;
        if (hooks->reset && !(manager->adopted >> pair & 1)) continue;
        manager->count.freed++;
        cai_priv_mem_keep_first(&call, &first,
                                cai_priv_mem_free_now(&call, pair, slot->ptr, slot->bytes,
                                                      cai_priv_mem_idle_stream(&call)));
    }
    if (hooks->reset)
        cai_priv_mem_keep_first(&call, &first,
                                cai_priv_mem_hook_did(&call, hooks->reset(hooks->ctx), "reset"));
    manager->ready = 0;
    manager->epoch++;
    manager->count.live = manager->count.live_bytes = 0;
    return cai_priv_mem_leave(&call, first);
}

CAI_API cai_status cai_manager_destroy(cai_manager *manager, cai_error *err)
{
    cai_priv_mem_call call;
    cai_error why;
    cai_status status = CAI_OK;
    int64_t live;
    int32_t i;
    CAI_TRY(cai_priv_mem_open(&call, manager, "cai_manager_destroy", err));
    live = cai_manager_list(manager, NULL, 0);
    if (live || manager->defer_depth)
        return cai_priv_error(err, CAI_ERR_PENDING,
                              "cai_manager_destroy: %lld objects are referenced, %d scopes are open",
                              (long long)live, (int)manager->defer_depth);
    if (manager->deferred_first) {
        call.ending = 1;
        CAI_TRY(cai_priv_mem_enter(&call));
        why.code = CAI_OK;
        status = cai_priv_mem_carry_out(&call, CAI_PRIV_ASKED, &why);
        if (manager->deferred_first) { /* one of them cannot be carried out now */
            if (why.code == CAI_ERR_CUDA) why.code = CAI_ERR_PENDING; /* the host cannot wait */
            if (err) *err = why;
            call.err = NULL;
            return cai_priv_mem_leave(&call, why.code);
        }
        status = cai_priv_mem_leave(&call, status);
    }
    for (i = 0; i < manager->chunk_count; ++i)
        manager->options.free_fn(manager->options.user_data, manager->chunks[i],
                                 sizeof(struct cai_manager_slot) * CAI_PRIV_MEM_FIRST_CHUNK << i);
    if (status) call.err = NULL;
    cai_priv_mem_keep_first(&call, &status, cai_priv_mem_close_hooks(&call));
    memset(manager, 0, sizeof *manager);
    return status;
}

CAI_PRIV_C_END

#endif /* CAI_MANAGER_IMPLEMENTATION */

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
