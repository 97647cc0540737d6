/* cai_emm.h - external memory management: a library's device memory comes from its host's hooks - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_EMM_IMPLEMENTATION)
#define CAI_EMM_IMPLEMENTATION
#endif

/* Included again, the headers below add what is wanted of them and refuse late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 1
#error "cai_emm.h: this is version 0.1, which needs cai_stream.h 0.1"
#endif
#if defined(CAI_EMM_H_INCLUDED) && CAI_EMM_H_INCLUDED != 100
#error "cai_emm.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_EMM_H_INCLUDED
#define CAI_EMM_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file:

        #define CAI_IMPLEMENTATION
        #include "cai_emm.h"

    Everywhere else include it without the define.

WHAT IT IS
    A program has one pool of device memory and five libraries that want some. Each library allocates through
    a small table of hooks, cai_emm_hooks, that the program fills in: Numba's EMM plugin interface in C,
    around the pair of functions that NVIDIA's libraries take (DeviceMemHandler). A manager, cai_emm, stands
    between the library and the hooks, and does what every library gets wrong once: who still uses the memory,
    on which stream it may go, what happens out of memory, after a reset, on a second free, at the end of the
    process.

THE FUNCTIONS MOST USERS NEED
    cai_emm_init       once per context: a manager over hooks
    cai_emm_alloc      device memory in the order of a stream
    cai_emm_free       gives it back in the order of a stream
    cai_emm_array      an owned cai_array, freed by its release
    cai_emm_live       what was not given back
    cai_emm_destroy    once

EXAMPLE (a library that takes its memory from the host program)
        // your kernels; returns cudaGetLastError()
        int32_t launch(const cai_array *x, void *scratch, cai_array *y, struct CUstream_st *s);

        cai_status sum(cai_array *y, cai_emm *m, const cai_array *x, struct CUstream_st *s, cai_error *err);
        cai_status sum(cai_array *y, cai_emm *m, const cai_array *x, struct CUstream_st *s, cai_error *err)
        {
            cai_memory scratch;
            cai_status status, freed;
            CAI_TRY(cai_emm_array(y, m, CAI_FLOAT32, 0, NULL, CAI_STREAM(s), err));
            status = cai_emm_alloc(&scratch, m, 4096, 0, CAI_STREAM(s), err);
            if (!status)
                status = cai_cuda_status(launch(x, cai_emm_pointer(m, scratch), y, s), "sum", err);
            freed = cai_emm_free(m, scratch, CAI_STREAM(s), status ? NULL : err);
            if (!status) status = freed;
            if (status) cai_array_release(y);
            return status;
        }

CONFIGURATION (define before the first include; besides that of cai.h and cai_stream.h)
    CAI_EMM_IMPLEMENTATION  compile the implementation of this header here

HANDLES
    A cai_memory names a memory object by index and generation; 0 is none, and what zero bytes give. An object
    has a reference count, 1 at first; it is freed with its last reference. As long as the manager lives, a
    handle that was freed is known as such: CAI_ERR_STALE, without a look at the memory.

STREAMS
    Stream numbers are those of cai_stream.h; 1 and 2 are default streams of the manager's context. Memory may
    be used on its stream, the one it was allocated on, at once, on another one after that (an exchange orders
    them). Freed on another stream, that one first waits for the memory's; a reference that is not the last
    makes the memory's stream wait instead. A stream outlives the memory on it (cai_emm_set_stream) and the
    frees and releases on it (cai_emm_flush). Nothing is allocated or freed on a stream that captures:
    CAI_ERR_CAPTURE.

COLLECTED FREES
    Where freeing waits for the device (cudaFree), frees are collected, and carried out together when there
    are more than 10, or more bytes than a fifth of the device's memory, or memory runs out, or by
    cai_emm_flush. Between cai_emm_defer_begin and _end, which nest, all frees are collected, whatever hooks
    they go to, and only running out of memory carries them out.

HOOKS
    Return 0 or CUDA's error number: 2 is out of memory. They are called without a lock, with the manager's
    context current, by as many threads as call the manager. They must not call the manager.

OWNERSHIP
    A manager is the caller's, at one address from init to destroy. Tables are copied; their ctx outlives the
    memory that they gave.

ERRORS
    As in cai_stream.h. A hook that fails is CAI_ERR_CUDA, with its number in cai_error.native, and its name
    and table in the message: "device_free of my_pool: CUDA error 700 (illegal address)"; out of memory is
    CAI_ERR_OUT_OF_MEMORY. Error 4, CUDA's answer while the process ends, is success wherever something is
    freed or ends (R105).

THREADS
    Any number of threads may use one manager, except while it is made, reset or destroyed.

RULES
    R110-R122 in comments: docs/rules.md.

NOT HERE
    Pools: CUDA has one (cai_emm_hooks_async), and examples/pool_plugin.h is a start. Copies.

CHANGES
    0.1.0  first version
*/

#include <stddef.h>

#if defined(CAI_NAMESPACE)
#define cai_emm_alloc CAI_PRIV_RENAMED(cai_emm_alloc)
#define cai_emm_array CAI_PRIV_RENAMED(cai_emm_array)
#define cai_emm_change CAI_PRIV_RENAMED(cai_emm_change)
#define cai_emm_counts CAI_PRIV_RENAMED(cai_emm_counts)
#define cai_emm_defer_begin CAI_PRIV_RENAMED(cai_emm_defer_begin)
#define cai_emm_defer_end CAI_PRIV_RENAMED(cai_emm_defer_end)
#define cai_emm_destroy CAI_PRIV_RENAMED(cai_emm_destroy)
#define cai_emm_flush CAI_PRIV_RENAMED(cai_emm_flush)
#define cai_emm_free CAI_PRIV_RENAMED(cai_emm_free)
#define cai_emm_hooks_async CAI_PRIV_RENAMED(cai_emm_hooks_async)
#define cai_emm_hooks_check CAI_PRIV_RENAMED(cai_emm_hooks_check)
#define cai_emm_hooks_cuda CAI_PRIV_RENAMED(cai_emm_hooks_cuda)
#define cai_emm_hooks_host CAI_PRIV_RENAMED(cai_emm_hooks_host)
#define cai_emm_host_alloc CAI_PRIV_RENAMED(cai_emm_host_alloc)
#define cai_emm_info CAI_PRIV_RENAMED(cai_emm_info)
#define cai_emm_init CAI_PRIV_RENAMED(cai_emm_init)
#define cai_emm_initialize CAI_PRIV_RENAMED(cai_emm_initialize)
#define cai_emm_ipc_handle CAI_PRIV_RENAMED(cai_emm_ipc_handle)
#define cai_emm_live CAI_PRIV_RENAMED(cai_emm_live)
#define cai_emm_managed_alloc CAI_PRIV_RENAMED(cai_emm_managed_alloc)
#define cai_emm_memory_info CAI_PRIV_RENAMED(cai_emm_memory_info)
#define cai_emm_on_free CAI_PRIV_RENAMED(cai_emm_on_free)
#define cai_emm_own CAI_PRIV_RENAMED(cai_emm_own)
#define cai_emm_pin CAI_PRIV_RENAMED(cai_emm_pin)
#define cai_emm_pointer CAI_PRIV_RENAMED(cai_emm_pointer)
#define cai_emm_reset CAI_PRIV_RENAMED(cai_emm_reset)
#define cai_emm_retain CAI_PRIV_RENAMED(cai_emm_retain)
#define cai_emm_set_stream CAI_PRIV_RENAMED(cai_emm_set_stream)
#define cai_emm_view CAI_PRIV_RENAMED(cai_emm_view)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>hooks */
/* The struct below crosses shared objects; see cai.h on the guard. */
#ifndef CAI_EMM_ABI_V0
#define CAI_EMM_ABI_V0

typedef int (*cai_emm_free_hook)(void *ctx, void *ptr, size_t size, struct CUstream_st *stream);

/** Where memory comes from. Every hook returns 0 or CUDA's error number and gets ctx. Only the device pair is
 *  needed; NULL: not available. Sizes in bytes, never 0; flags as CUDA has them. */
struct cai_emm_hooks_v0 {
    uint32_t struct_size; /* sizeof of the maker's struct; hooks that lie behind it are NULL */
    uint32_t version;     /* CAI_EMM_VERSION */
    uint32_t flags;       /* CAI_EMM_... */
    int32_t kind;         /* of what device_alloc gives: CAI_KIND_DEVICE, CAI_KIND_POOL or CAI_KIND_HOST */
    /* From here to name the struct is a DeviceMemHandler of cuTensorNet, cuStateVec and cuDSS. Memory is
     * aligned to 256 bytes, may be used at once in the order of `stream`, and is freed in that order. */
    void *ctx;
    int (*device_alloc)(void *ctx, void **ptr, size_t size, struct CUstream_st *stream);
    cai_emm_free_hook device_free;
    char name[64]; /* for messages; ends in a zero byte */
    /* state */
    int (*initialize)(void *ctx, int device); /* R112: before the first allocation; may come again */
    int (*reset)(void *ctx);                  /* R113: drops all that was given out; may come first */
    int (*memory_info)(void *ctx, size_t *free_bytes, size_t *total_bytes);
    int (*defer)(void *ctx, int on);          /* R117: 1: a scope begins, nothing that takes time from now on;
                                                 0: one ends. Count them: threads may cross. May come first */
    /* other processes: R116: the handle (64 bytes) and the first address of the allocation around ptr */
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
};

#endif /* CAI_EMM_ABI_V0 */

typedef struct cai_emm_hooks_v0 cai_emm_hooks;

enum { CAI_EMM_VERSION = 1 };

enum {
    CAI_EMM_COLLECT = 1 << 0,  /* device_free, host_free, managed_free wait for the device: collect frees */
    CAI_EMM_CUDA_HOST = 1 << 1 /* the last six hooks, where NULL, are CUDA's own functions */
};

/** What a memory object is. */
enum {
    CAI_KIND_DEVICE = 0,
    CAI_KIND_POOL = 1,    /* device memory of a pool: cannot go to other processes by a handle */
    CAI_KIND_HOST = 2,    /* plain host memory, as device_alloc of cai_emm_hooks_host gives it */
    CAI_KIND_PINNED = 3,  /* by host_alloc */
    CAI_KIND_MAPPED = 4,  /* by host_alloc with CAI_HOST_MAPPED */
    CAI_KIND_MANAGED = 5,
    CAI_KIND_REGISTERED = 6 /* by pin: the memory is somebody else's */
};

enum { CAI_HOST_PORTABLE = 1, CAI_HOST_MAPPED = 2, CAI_HOST_WRITE_COMBINED = 4 }; /* cudaHostAlloc */
enum { CAI_MANAGED_GLOBAL = 1, CAI_MANAGED_HOST = 2 };                            /* cudaMallocManaged */

/** Checks a table without calling a hook. The message names the field: "hooks: host_free is NULL, but
 *  host_alloc is not". Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (struct_size ends before name does, or another
 *  version). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_check(const cai_emm_hooks *hooks, cai_error *err);

/** Hooks over cudaMalloc, cudaFree and the rest of CUDA's own. cuda: outlives them. Frees are collected.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_cuda(cai_emm_hooks *out, const cai_cuda *cuda,
                                                     cai_error *err);

/** Hooks over cudaMallocAsync and cudaFreeAsync: the current pool of the device. How much memory that keeps
 *  is its cudaMemPoolAttrReleaseThreshold (0 at first: none). Errors: as cai_emm_hooks_cuda. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_hooks_async(cai_emm_hooks *out, const cai_cuda *cuda,
                                                      cai_error *err);

/** Hooks over malloc and free, for machines without CUDA: the manager needs no stream pool. */
CAI_API void cai_emm_hooks_host(cai_emm_hooks *out);

/* ------------------------------------------------------------------ >>manager */
/** A memory object: index and generation. 0: none. */
typedef uint64_t cai_memory;

/** Options of a manager; zero means the default. */
typedef struct cai_emm_options {
    void *(*alloc_fn)(void *user_data, size_t size); /* for the manager's own lists; NULL: malloc */
    void (*free_fn)(void *user_data, void *ptr, size_t size); /* NULL: free; both or neither */
    void *user_data;
    uint64_t pending_bytes; /* collected frees of more bytes are carried out; 0: of more than a fifth of the
                               device's memory, without limit where that is not known */
    int32_t pending_count;  /* so are more frees than this; 0: 10 */
    int32_t reserved;       /* 0 */
} cai_emm_options;

/** What went through a manager. Objects are counted without views. */
typedef struct cai_emm_count {
    uint64_t live, live_bytes;       /* objects with a reference, of which the reset knew nothing */
    uint64_t pending, pending_bytes; /* collected frees */
    uint64_t allocated, freed;       /* objects made; hooks that freed one, also those that failed */
    uint64_t retries;                /* allocations that were tried again */
    uint64_t lost;                   /* frees after a reset, for which there was nothing to do */
    uint64_t failed;                 /* hooks that failed to free */
    int32_t first_failure;           /* the number of the first of those */
    int32_t reserved;
} cai_emm_count;

/** A memory object, as cai_emm_info and cai_emm_live tell it. */
typedef struct cai_memory_info {
    cai_memory memory; /* 0 in place of a view that belongs to an array */
    uint64_t number;   /* the how-manieth object or view of the manager, from 1 */
    uint64_t address, size;
    uint64_t stream;   /* the memory's; 0: none */
    int32_t kind;      /* CAI_KIND_... */
    int32_t references;
    int32_t view;      /* 1: a view */
    int32_t lost;      /* 1: gone with a reset */
} cai_memory_info;

struct cai_emm_slot;
struct cai_emm_source;

enum { CAI_EMM_CHUNKS = 26 };

/** A manager. Not to be moved or copied; look, don't touch. */
typedef struct cai_emm {
    cai_stream_pool *pool;
    const cai_cuda *cuda;
    uint64_t context;
    int32_t device;
    int32_t guard;         /* held for a few instructions */
    int32_t defer_depth;
    uint32_t slot_count;
    uint32_t epoch;        /* counts resets */
    uint32_t generation;   /* the first of each handle, so that handles of other managers are stale here */
    uint64_t numbers;      /* given to objects and views */
    cai_emm_options options;
    cai_emm_count count;
    struct cai_emm_source *source; /* the table for new memory */
    struct cai_emm_source *ready;  /* that, once it is initialized */
    struct cai_emm_source *sources;
    struct cai_emm_slot *idle;
    struct cai_emm_slot *pending_first, *pending_last;
    struct cai_emm_slot *chunks[CAI_EMM_CHUNKS];
} cai_emm;

/** Makes a manager for the context that is current, R111: one each. pool: for the order between streams; NULL
 *  only with hooks of CAI_KIND_HOST. hooks: copied. options: NULL for the default. No hook is called.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE (no context is current), CAI_ERR_CUDA,
 *  CAI_ERR_OUT_OF_MEMORY. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_init(cai_emm *emm, cai_stream_pool *pool,
                                               const cai_emm_hooks *hooks, const cai_emm_options *options,
                                               cai_error *err);

/** Carries out what is collected and frees the manager's lists. Nothing is done while an object is referenced,
 *  a scope of defer open, or a release not to be waited for (CAI_ERR_PENDING), or while a collected free is on
 *  a stream that captures (CAI_ERR_CAPTURE) or on stream 2 of another thread (CAI_ERR_THREAD); cai_emm_reset
 *  frees those, too. Errors: these, CAI_ERR_ARGUMENT, CAI_ERR_CUDA (the context cannot be made current:
 *  nothing was done; or the first of the hooks that failed: the manager is gone all the same). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_destroy(cai_emm *emm, cai_error *err);

/** Other hooks for what is allocated from now on (K22). Memory that lives is freed by the hooks that gave it.
 *  Every different table takes some host memory until the manager is destroyed.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_OUT_OF_MEMORY, CAI_ERR_CUDA (defer of the new hooks). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_change(cai_emm *emm, const cai_emm_hooks *hooks, cai_error *err);

/** Calls the hook initialize now, not with the first allocation, if it was not called since the manager was
 *  made or reset. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_initialize(cai_emm *emm, cai_error *err);

/** R114: all memory of the manager goes, collected frees first; what is referenced becomes lost, and freeing
 *  it later is success without a hook. Memory goes by the hook reset; where that is NULL, or the memory is
 *  CUDA_HOST memory, by one free each. If the context cannot be made current any more, only the hook reset is
 *  called; cudaDeviceReset comes after this. No work may be pending on the memory. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_PENDING (in a scope of defer; nothing done), CAI_ERR_CUDA (the first; all of it was done). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_reset(cai_emm *emm, cai_error *err);

/** Free and total memory of the device in bytes, by the hook. Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE
 *  (R115: the hook is NULL), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_memory_info(cai_emm *emm, size_t *free_bytes, size_t *total_bytes,
                                                      cai_error *err);

/** What went through the manager so far. */
CAI_API void cai_emm_counts(cai_emm *emm, cai_emm_count *out);

/** Leak report: what is referenced, views included; cai_memory_info.number tells the age. Returns how many
 *  there are and writes the first `capacity` of them. */
CAI_API int64_t cai_emm_live(cai_emm *emm, cai_memory_info *out, int64_t capacity);

/* ------------------------------------------------------------------- >>memory */
/** Device memory. size: bytes; 0 gives the handle 0, calls nothing. alignment: bytes, a power of two; 0: 256,
 *  which the hook promises; more than that is allocated for more. stream: where it may be used at once.
 *  Where the hook says out of memory, collected frees are carried out (in a scope of defer, too), arrays that
 *  wait in the pool's keep-alive list are waited for and released, and the hook is tried once more (R118).
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_STREAM, CAI_ERR_CAPTURE, CAI_ERR_OUT_OF_MEMORY (also of the host),
 *  CAI_ERR_MEMORY (the hook gave NULL, or broke its promise), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_alloc(cai_memory *out, cai_emm *emm, size_t size, size_t alignment,
                                                uint64_t stream, cai_error *err);

/** Host memory, pinned or mapped. flags: CAI_HOST_..., given to the hook as they are. The device's address of
 *  it is told by cai_locate. Errors: as cai_emm_alloc, and CAI_ERR_UNAVAILABLE. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_host_alloc(cai_memory *out, cai_emm *emm, size_t size,
                                                     uint32_t flags, cai_error *err);

/** Pins host memory that exists, and stays somebody else's. Freeing it unpins at once, never later (R119),
 *  after the host has waited for the stream named there. flags: CAI_HOST_PORTABLE, CAI_HOST_MAPPED. Errors:
 *  as cai_emm_host_alloc. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_pin(cai_memory *out, cai_emm *emm, void *ptr, size_t size,
                                              uint32_t flags, cai_error *err);

/** Managed memory. flags: CAI_MANAGED_...; 0: CAI_MANAGED_GLOBAL. Errors: as cai_emm_host_alloc. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_managed_alloc(cai_memory *out, cai_emm *emm, size_t size,
                                                        uint32_t flags, cai_error *err);

/** Gives a reference back; with the last one the memory is freed, after the work that is in `stream` now and
 *  in the memory's own stream. 0 is fine. The reference is kept if this fails with CAI_ERR_ARGUMENT,
 *  CAI_ERR_STREAM, CAI_ERR_CAPTURE, CAI_ERR_THREAD (the memory's stream is 2, of another thread),
 *  CAI_ERR_STALE (there was none), or because CUDA could not order the streams. It is gone, and so is the
 *  memory, if a hook fails: CAI_ERR_CUDA, with the hook's name, which may have freed something else that was
 *  collected. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_free(cai_emm *emm, cai_memory memory, uint64_t stream,
                                               cai_error *err);

/** One more reference to the object, by the same handle. Errors: CAI_ERR_ARGUMENT (0), CAI_ERR_STALE,
 *  CAI_ERR_CAPACITY (2^31 - 1 of them). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_retain(cai_emm *emm, cai_memory memory, cai_error *err);

/** A part of an object, with a handle and a count of its own, that keeps the object. offset, size: bytes,
 *  inside it; size 0 gives the handle 0. Errors: CAI_ERR_ARGUMENT, CAI_ERR_STALE (also after a reset),
 *  CAI_ERR_OUT_OF_MEMORY. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_view(cai_memory *out, cai_emm *emm, cai_memory memory,
                                               size_t offset, size_t size, cai_error *err);

/** Has `callback` called once: of a view when its last reference goes, of an object when its views are gone,
 *  too, before the memory goes, while the device may still work on it; after a reset as well. One each; NULL
 *  takes it back. It may allocate and free. Errors: CAI_ERR_ARGUMENT, CAI_ERR_STALE. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_on_free(cai_emm *emm, cai_memory memory,
                                                  void (*callback)(void *user_data), void *user_data,
                                                  cai_error *err);

/** Makes `stream` the memory's own: it waits for the one before, which may then be destroyed. Errors: as
 *  cai_emm_free. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_set_stream(cai_emm *emm, cai_memory memory, uint64_t stream,
                                                     cai_error *err);

/** The address; NULL for the handle 0, a stale one, and memory that a reset took. */
CAI_API void *cai_emm_pointer(cai_emm *emm, cai_memory memory);

/** What is known of an object. Errors: CAI_ERR_ARGUMENT (0), CAI_ERR_STALE. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_info(cai_emm *emm, cai_memory memory, cai_memory_info *out,
                                               cai_error *err);

/** Where an object lies for another process. */
typedef struct cai_emm_ipc {
    unsigned char handle[64]; /* of the allocation that CUDA knows; the same for all that lies in it */
    uint64_t offset, size;    /* bytes: the object in it */
    int32_t device;
    int32_t reserved;
} cai_emm_ipc;

/** R116: the handle by which another process opens the memory. Errors: CAI_ERR_ARGUMENT (0), CAI_ERR_STALE
 *  (also after a reset), CAI_ERR_MEMORY (not CAI_KIND_DEVICE), CAI_ERR_UNAVAILABLE (the hook is NULL),
 *  CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_ipc_handle(cai_emm_ipc *out, cai_emm *emm, cai_memory memory,
                                                     cai_error *err);

/* ------------------------------------------------------------------- >>arrays */
/** A new array in device memory, in C order, owned: cai_array_release frees it. code: a dtype of fixed size.
 *  shape: ndim extents. Its sync is `stream`. An array without elements has no memory. Errors: as
 *  cai_array_init and cai_emm_alloc. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_array(cai_array *out, cai_emm *emm, int32_t code, int32_t ndim,
                                                const int64_t *shape, uint64_t stream, cai_error *err);

/** Gives a borrowed array that lies inside an object a reference of its own to it; yours stays. Stores device
 *  and memory. Its release gives the reference back in the order of the stream that the array names then, or
 *  else the memory's; where that cannot be, on the wrong thread or with CAI_SYNC_UNKNOWN, the host waits for
 *  the context first, in which nothing may be capturing then. While one of the streams captures, the free is
 *  collected. If a hook fails there, cai_emm_count.failed tells. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI,
 *  CAI_ERR_STALE (also after a reset), CAI_ERR_MEMORY (not inside), CAI_ERR_OUT_OF_MEMORY. */
CAI_API CAI_MUST_CHECK cai_status cai_emm_own(cai_array *array, cai_emm *emm, cai_memory memory,
                                              cai_error *err);

/* -------------------------------------------------------------------- >>frees */
/** Carries out the collected frees, in the order in which they came; one that fails does not keep back the
 *  others, and is not tried again. Those on streams that capture, or on stream 2 of another thread, stay.
 *  What another thread is just carrying out is that thread's. For the free of an array whose work was not
 *  known the host waits for the context, in which nothing may be capturing. In a scope of defer nothing is
 *  done. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA (the first). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_flush(cai_emm *emm, cai_error *err);

/** Begins a scope, of the manager, not of the thread, in which nothing is freed (R117). The hook defer gets 1
 *  when the first scope begins, 0 when the last ends. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA (none began). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_defer_begin(cai_emm *emm, cai_error *err);

/** Ends one. The last one carries out what was collected if a limit was passed, else nothing. Errors:
 *  CAI_ERR_ARGUMENT (none is open), CAI_ERR_CUDA (the first; the scope is over). */
CAI_API CAI_MUST_CHECK cai_status cai_emm_defer_end(cai_emm *emm, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_EMM_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>guard  >>failing  >>tables  >>slots  >>contexts  >>hooks  >>collecting  >>allocating  >>freeing
 *   >>arrays  >>built-in  >>manager */

#if defined(CAI_EMM_IMPLEMENTATION) && !defined(CAI_EMM_IMPLEMENTED)
#define CAI_EMM_IMPLEMENTED

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(_MSC_VER) && !defined(__clang__) && !defined(CAI_NO_THREADS)
#include <intrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

#if defined(__MINGW_PRINTF_FORMAT)
#define CAI_PRIV_EMM_PRINTF __attribute__((format(__MINGW_PRINTF_FORMAT, 3, 4)))
#elif defined(__GNUC__) || defined(__clang__)
#define CAI_PRIV_EMM_PRINTF __attribute__((format(printf, 3, 4)))
#else
#define CAI_PRIV_EMM_PRINTF
#endif
#if defined(__GNUC__) || defined(__clang__)
#define CAI_PRIV_EMM_COLD __attribute__((cold, noinline)) static
#else
#define CAI_PRIV_EMM_COLD static
#endif
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define CAI_PRIV_EMM_HOT __attribute__((always_inline)) static inline /* on the way of every alloc and free */
#else
#define CAI_PRIV_EMM_HOT static inline
#endif

typedef char cai_priv_assert_emm_hooks[sizeof(struct cai_emm_hooks_v0) == (sizeof(void *) == 8 ? 192 : 136)
                                           ? 1 : -1];

/* Which pair of hooks a kind of memory goes by. */
enum { CAI_PRIV_BY_DEVICE, CAI_PRIV_BY_HOST, CAI_PRIV_BY_PIN, CAI_PRIV_BY_MANAGED, CAI_PRIV_PAIRS };

/* A table. It stays as long as the manager, as memory that it gave may. */
struct cai_emm_source {
    cai_emm_hooks given;
    cai_emm_hooks hooks; /* with CUDA's own functions where CAI_EMM_CUDA_HOST asks for them */
    cai_emm_free_hook free_hooks[CAI_PRIV_PAIRS]; /* NULL: there is no such pair */
    void *ctx[CAI_PRIV_PAIRS];
    int32_t collects[CAI_PRIV_PAIRS];
    int32_t from_cuda[CAI_PRIV_PAIRS];
    int32_t ready;               /* initialized */
    int32_t deferred;            /* its hook defer got 1 */
    int64_t held;                /* memory of it, live or collected */
    uint64_t limit;              /* of bytes that wait to be freed */
    struct cai_emm_source *next;
};

/* A memory object, or a view of one. Slots stay where they are until the manager is destroyed. */
struct cai_emm_slot {
    cai_emm *emm;
    struct cai_emm_slot *root;     /* the object; of an object, itself */
    struct cai_emm_slot *next;     /* among idle or collected ones */
    struct cai_emm_source *source; /* of objects, until they are lost */
    uint64_t number, address, size;
    uint64_t stream, thread;       /* of objects: the memory's; whose stream 2 that is */
    uint64_t after, after_thread;  /* of objects: what their free must be ordered after, too, or 0 */
    void *block;                   /* of objects: as the hook gave it */
    size_t block_size;
    void (*call)(void *user_data);
    void *user_data;
    uint32_t index, generation, epoch;
    uint32_t orders;               /* of objects: counts what changed the order of streams */
    int32_t references;            /* by the handle; 0: the handle is stale */
    int32_t keeps;                 /* of objects: the handle, if it is referenced, and the views */
    int32_t kind, pair;
    int32_t hidden;                /* of an array: nobody knows the handle */
};

/* -------------------------------------------------------------------- >>guard */
/* Held for a few instructions, never across a CUDA call, a hook or a callback. */
#if defined(CAI_NO_THREADS)
static inline void cai_priv_emm_lock(cai_emm *emm) { (void)emm; }
static inline void cai_priv_emm_unlock(cai_emm *emm) { (void)emm; }
static inline struct cai_emm_source *cai_priv_emm_load(struct cai_emm_source *const *at) { return *at; }
static inline void cai_priv_emm_store(struct cai_emm_source **at, struct cai_emm_source *to) { *at = to; }
#elif defined(__GNUC__) || defined(__clang__)
static inline void cai_priv_emm_lock(cai_emm *emm)
{
    while (__atomic_exchange_n(&emm->guard, 1, __ATOMIC_ACQUIRE)) {}
}

static inline void cai_priv_emm_unlock(cai_emm *emm)
{
    __atomic_store_n(&emm->guard, 0, __ATOMIC_RELEASE);
}

static inline struct cai_emm_source *cai_priv_emm_load(struct cai_emm_source *const *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline void cai_priv_emm_store(struct cai_emm_source **at, struct cai_emm_source *to)
{
    __atomic_store_n(at, to, __ATOMIC_RELEASE);
}
#elif defined(_MSC_VER)
static inline void cai_priv_emm_lock(cai_emm *emm)
{
    while (_InterlockedExchange((volatile long *)&emm->guard, 1)) {}
}

static inline void cai_priv_emm_unlock(cai_emm *emm)
{
    (void)_InterlockedExchange((volatile long *)&emm->guard, 0);
}

static inline struct cai_emm_source *cai_priv_emm_load(struct cai_emm_source *const *at)
{
    return *(struct cai_emm_source *const volatile *)at;
}

static inline void cai_priv_emm_store(struct cai_emm_source **at, struct cai_emm_source *to)
{
    (void)_InterlockedExchangePointer((void *volatile *)at, to);
}
#else
#error "cai_emm.h: no atomics known for this compiler; define CAI_NO_THREADS if every manager has one thread"
#endif

/* ------------------------------------------------------------------ >>failing */
#define CAI_PRIV_ALL UINT64_MAX

/* One public call. */
typedef struct cai_priv_emm_call {
    cai_emm *emm;
    cai_error *err;
    uint64_t thread; /* this one, where stream 2 takes part */
    cai_memory made; /* the new handle */
    int32_t entered; /* the manager's context was pushed */
    int32_t ending;  /* it frees: "the process is ending" is no error (R105) */
    int32_t gone;    /* that was answered */
    int32_t dropped; /* the reference is given back */
    int32_t settled; /* no order of streams is asked for */
    uint64_t after;  /* the free is collected, and comes after this stream; CAI_PRIV_ALL: after everything */
} cai_priv_emm_call;

CAI_PRIV_EMM_PRINTF CAI_PRIV_EMM_COLD cai_status cai_priv_emm_say(cai_error *err, cai_status status,
                                                                  const char *format, ...)
{
    va_list values;
    if (!err) return status;
    va_start(values, format);
    (void)vsnprintf(err->message, sizeof err->message, format, values);
    va_end(values);
    err->code = status;
    err->native = 0;
    err->entry = status == CAI_ERR_STREAM ? CAI_ENTRY_STREAM : CAI_ENTRY_NONE;
    err->index = -1;
    return status;
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_misuse(cai_error *err, const char *function, const char *what)
{
    return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "%s: %s", function, what);
}

/* Begins a public call. */
static inline cai_status cai_priv_emm_open(cai_priv_emm_call *call, cai_emm *emm, const char *function,
                                           cai_error *err)
{
    memset(call, 0, sizeof *call);
    call->emm = emm;
    call->err = err;
    if (emm && emm->options.alloc_fn) return CAI_OK;
    return cai_priv_emm_misuse(err, function, "emm is NULL or not made");
}

/* Returns the status of a CUDA error. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_failed(cai_priv_emm_call *call, int32_t error,
                                                 const char *operation)
{
    if (error == 4) call->gone = 1;
    if (error == 4 && call->ending) return CAI_OK;
    return cai_cuda_status(error, operation, call->err);
}

static inline cai_status cai_priv_emm_did(cai_priv_emm_call *call, int32_t error, const char *operation)
{
    return error ? cai_priv_emm_failed(call, error, operation) : CAI_OK;
}

static const char *cai_priv_emm_name(const struct cai_emm_source *source)
{
    return source->hooks.name[0] ? source->hooks.name : "an unnamed table";
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_hook_failed(cai_priv_emm_call *call,
                                                      const struct cai_emm_source *source, int32_t error,
                                                      const char *hook)
{
    char what[sizeof source->hooks.name + 24];
    (void)snprintf(what, sizeof what, "%s of %s", hook, cai_priv_emm_name(source));
    return cai_priv_emm_failed(call, error, what);
}

/* The status of a hook. */
static inline cai_status cai_priv_emm_hook_did(cai_priv_emm_call *call, const struct cai_emm_source *source,
                                               int32_t error, const char *hook)
{
    return error ? cai_priv_emm_hook_failed(call, source, error, hook) : CAI_OK;
}

/* The same call, for what must not say anything. */
static inline cai_priv_emm_call cai_priv_emm_quiet(const cai_priv_emm_call *call)
{
    cai_priv_emm_call quiet = *call;
    quiet.err = NULL;
    return quiet;
}

static inline void cai_priv_emm_ignore(cai_status status)
{
    (void)status;
}

/* Keeps the first error of several. */
static void cai_priv_emm_keep_first(cai_priv_emm_call *call, cai_status *first, cai_status status)
{
    if (!status || *first) return;
    *first = status;
    call->err = NULL;
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_stale(cai_error *err, cai_memory memory)
{
    return cai_priv_emm_say(err, CAI_ERR_STALE,
                            "memory 0x%llx: generation %lu of object %lu is not there any more",
                            (unsigned long long)memory, (unsigned long)(memory >> 32),
                            (unsigned long)(memory & 0xffffffffu));
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_bad_stream(uint64_t stream, cai_error *err)
{
    if (!stream)
        return cai_priv_emm_say(err, CAI_ERR_STREAM, "stream 0 is ambiguous: make the number of a "
                                                     "cudaStream_t by CAI_STREAM(stream)");
    if (stream == UINT64_MAX) return cai_priv_emm_say(err, CAI_ERR_STREAM, "stream -1 is no stream");
    return cai_priv_emm_say(err, CAI_ERR_STREAM, "stream %d is no stream of this platform: pass a handle",
                            (int)stream);
}

static inline cai_status cai_priv_emm_check_stream(const cai_emm *emm, uint64_t stream, cai_error *err)
{
    if (stream > CAI_STREAM_PER_THREAD && stream != UINT64_MAX) return CAI_OK;
    if (stream - 1 < CAI_STREAM_PER_THREAD && !(emm->cuda && emm->cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS))
        return CAI_OK;
    return cai_priv_emm_bad_stream(stream, err);
}

/* ------------------------------------------------------------------- >>tables */
/* Half a pair is worse than none. */
static cai_status cai_priv_emm_check_pair(cai_error *err, const char *one, int has_one, const char *other,
                                          int has_other)
{
    if (has_one == has_other) return CAI_OK;
    return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks: %s is NULL, but %s is not",
                            has_one ? other : one, has_one ? one : other);
}

static cai_status cai_priv_emm_check_head(const cai_emm_hooks *hooks, cai_error *err)
{
    const size_t least = offsetof(cai_emm_hooks, initialize);
    if (!hooks) return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks is NULL");
    if (hooks->struct_size < least)
        return cai_priv_emm_say(err, CAI_ERR_ABI, "hooks: struct_size = %lu is below %lu, the device pair's",
                                (unsigned long)hooks->struct_size, (unsigned long)least);
    if (hooks->version != CAI_EMM_VERSION)
        return cai_priv_emm_say(err, CAI_ERR_ABI, "hooks: version = %lu, but version %d is required",
                                (unsigned long)hooks->version, CAI_EMM_VERSION);
    if (hooks->flags & ~(uint32_t)(CAI_EMM_COLLECT | CAI_EMM_CUDA_HOST))
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks: flags = 0x%lx has unknown bits",
                                (unsigned long)hooks->flags);
    if (hooks->kind < CAI_KIND_DEVICE || hooks->kind > CAI_KIND_HOST)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks: kind = %d is not %d, %d or %d",
                                (int)hooks->kind, CAI_KIND_DEVICE, CAI_KIND_POOL, CAI_KIND_HOST);
    if (!memchr(hooks->name, 0, sizeof hooks->name))
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks: name has no zero byte in its %d bytes",
                                (int)sizeof hooks->name);
    return CAI_OK;
}

/* A table of any size becomes one of this header's. */
static cai_status cai_priv_emm_copy_hooks(cai_emm_hooks *to, const cai_emm_hooks *from, cai_error *err)
{
    size_t size;
    CAI_TRY(cai_priv_emm_check_head(from, err));
    size = from->struct_size - (from->struct_size - offsetof(cai_emm_hooks, initialize)) % sizeof(void *);
    memset(to, 0, sizeof *to);
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    if (!to->device_alloc || !to->device_free)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "hooks: %s is NULL",
                                to->device_alloc ? "device_free" : "device_alloc");
    CAI_TRY(cai_priv_emm_check_pair(err, "host_alloc", !!to->host_alloc, "host_free", !!to->host_free));
    CAI_TRY(cai_priv_emm_check_pair(err, "pin", !!to->pin, "unpin", !!to->unpin));
    return cai_priv_emm_check_pair(err, "managed_alloc", !!to->managed_alloc, "managed_free",
                                   !!to->managed_free);
}

CAI_API cai_status cai_emm_hooks_check(const cai_emm_hooks *hooks, cai_error *err)
{
    cai_emm_hooks copy;
    return cai_priv_emm_copy_hooks(&copy, hooks, err);
}

/* -------------------------------------------------------------------- >>slots */
enum { CAI_PRIV_EMM_FIRST_CHUNK = 64 }; /* slots; each chunk has twice those of the one before */

static inline struct cai_emm_slot *cai_priv_emm_at(const cai_emm *emm, uint32_t index)
{
    uint32_t size = CAI_PRIV_EMM_FIRST_CHUNK;
    int32_t chunk = 0;
    for (; index >= size; size *= 2) {
        index -= size;
        ++chunk;
    }
    return &emm->chunks[chunk][index];
}

static inline cai_memory cai_priv_emm_handle(const struct cai_emm_slot *slot)
{
    return (uint64_t)slot->generation << 32 | (slot->index + 1);
}

static inline int cai_priv_emm_lost(const struct cai_emm_slot *slot)
{
    return slot->epoch != slot->emm->epoch;
}

/* Takes the guard and finds the slot of a live handle. On failure the guard is free. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_seize(const cai_priv_emm_call *call, cai_memory memory,
                                               struct cai_emm_slot **out)
{
    cai_emm *emm = call->emm;
    const uint32_t index = (uint32_t)memory - 1;
    cai_priv_emm_lock(emm);
    if (index < emm->slot_count) {
        struct cai_emm_slot *slot = *out = cai_priv_emm_at(emm, index);
        if (slot->generation == (uint32_t)(memory >> 32) && slot->references && !slot->hidden) return CAI_OK;
    }
    cai_priv_emm_unlock(emm);
    if (memory) (void)cai_priv_emm_stale(call->err, memory);
    else (void)cai_priv_emm_say(call->err, CAI_ERR_ARGUMENT, "memory is 0, which is no object");
    return memory ? CAI_ERR_STALE : CAI_ERR_ARGUMENT;
}

/* The next slot that was never used; NULL: they are all used. Under the guard. */
static struct cai_emm_slot *cai_priv_emm_new_slot(cai_emm *emm, int32_t *chunk)
{
    uint32_t end = 0;
    struct cai_emm_slot *slot;
    for (*chunk = 0; *chunk < CAI_EMM_CHUNKS && emm->chunks[*chunk]; ++*chunk)
        end += (uint32_t)CAI_PRIV_EMM_FIRST_CHUNK << *chunk;
    if (emm->slot_count == end) return NULL;
    slot = cai_priv_emm_at(emm, emm->slot_count);
    memset(slot, 0, sizeof *slot);
    slot->emm = emm;
    slot->generation = emm->generation;
    slot->index = emm->slot_count++;
    return slot;
}

/* Adds a chunk, unless another thread was faster. */
static cai_status cai_priv_emm_grow(cai_emm *emm, int32_t chunk, cai_error *err)
{
    const size_t size = sizeof(struct cai_emm_slot) * CAI_PRIV_EMM_FIRST_CHUNK << chunk;
    struct cai_emm_slot *slots = NULL;
    if (chunk < CAI_EMM_CHUNKS)
        slots = (struct cai_emm_slot *)emm->options.alloc_fn(emm->options.user_data, size);
    if (!slots)
        return cai_priv_emm_say(err, CAI_ERR_OUT_OF_MEMORY, "no %lu bytes of host memory for lists",
                                (unsigned long)size);
    cai_priv_emm_lock(emm);
    if (!emm->chunks[chunk]) {
        emm->chunks[chunk] = slots;
        slots = NULL;
    }
    cai_priv_emm_unlock(emm);
    if (slots) emm->options.free_fn(emm->options.user_data, slots, size);
    return CAI_OK;
}

/* With the guard; it stays taken on success. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_take_new(cai_priv_emm_call *call, struct cai_emm_slot **out)
{
    cai_emm *emm = call->emm;
    int32_t chunk;
    while ((*out = emm->idle) == NULL && (*out = cai_priv_emm_new_slot(emm, &chunk)) == NULL) {
        cai_priv_emm_unlock(emm);
        CAI_TRY(cai_priv_emm_grow(emm, chunk, call->err));
        cai_priv_emm_lock(emm);
    }
    if (*out == emm->idle) emm->idle = (*out)->next;
    return CAI_OK;
}

/* Takes the guard and a slot without references. On failure the guard is free. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_take(cai_priv_emm_call *call, struct cai_emm_slot **out)
{
    cai_emm *emm = call->emm;
    cai_priv_emm_lock(emm);
    *out = emm->idle;
    if (!*out) return cai_priv_emm_take_new(call, out);
    emm->idle = (*out)->next;
    return CAI_OK;
}

/* Gives a slot back. Under the guard. One whose generations are used up stays out. */
static inline void cai_priv_emm_put(struct cai_emm_slot *slot)
{
    slot->references = slot->keeps = 0;
    slot->source = NULL;
    if (slot->generation == UINT32_MAX) return;
    slot->next = slot->emm->idle;
    slot->emm->idle = slot;
}

/* ----------------------------------------------------------------- >>contexts */
/* R111: makes the manager's context current; cai_priv_emm_leave undoes that. A push or a pop that failed may
 * have been done all the same, as CUDA also reports earlier errors: then it is undone, or not done again. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_push(cai_priv_emm_call *call, uint64_t before)
{
    const cai_cuda *cuda = call->emm->cuda;
    uint64_t now = before;
    int32_t error;
    if (!cuda->context_push || !cuda->context_pop)
        return cai_priv_emm_say(call->err, CAI_ERR_UNAVAILABLE, "the CUDA table cannot push a context");
    error = cuda->context_push(cuda->self, call->emm->context);
    call->entered = !error;
    if (error && !cuda->context_current(cuda->self, &now) && now != before)
        (void)cuda->context_pop(cuda->self);
    return cai_priv_emm_did(call, error, "context_push");
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_enter(cai_priv_emm_call *call)
{
    const cai_cuda *cuda = call->emm->cuda;
    uint64_t current = 0;
    int32_t error;
    if (!cuda || !cuda->context_current) return CAI_OK;
    error = cuda->context_current(cuda->self, &current);
    if (error) return cai_priv_emm_failed(call, error, "context_current");
    return current == call->emm->context ? CAI_OK : cai_priv_emm_push(call, current);
}

/* Returns `status`, or its own failure. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_pop(cai_priv_emm_call *call, cai_status status)
{
    const cai_cuda *cuda = call->emm->cuda;
    const int32_t error = cuda->context_pop(cuda->self);
    uint64_t now = 0;
    call->entered = 0;
    if (error && !cuda->context_current(cuda->self, &now) && now == call->emm->context)
        (void)cuda->context_pop(cuda->self);
    return status ? status : cai_priv_emm_did(call, error, "context_pop");
}

static inline cai_status cai_priv_emm_leave(cai_priv_emm_call *call, cai_status status)
{
    return call->entered ? cai_priv_emm_pop(call, status) : status;
}

/* While something captures globally, much is forbidden on a thread, unless its mode is relaxed. */
static int32_t cai_priv_emm_relax(const cai_cuda *cuda, int32_t *mode)
{
    *mode = 2;
    return cuda->capture_mode ? cuda->capture_mode(cuda->self, mode) : 0;
}

/* Returns `error`, or its own failure. */
static int32_t cai_priv_emm_unrelax(const cai_cuda *cuda, int32_t mode, int32_t error)
{
    int32_t again = mode, own;
    if (!cuda->capture_mode) return error;
    own = cuda->capture_mode(cuda->self, &mode);
    if (own) (void)cuda->capture_mode(cuda->self, &again);
    return error ? error : own;
}

/* The host waits for `object`, a stream or an event, by `wait`; 0: for the context. */
static cai_status cai_priv_emm_wait(cai_priv_emm_call *call, uint64_t object,
                                    int32_t (*wait)(void *self, uint64_t object), const char *what)
{
    const cai_cuda *cuda = call->emm->cuda;
    int32_t mode, error, restored;
    if (!object && !cuda->context_synchronize) return CAI_OK; /* of such a platform nothing better is known */
    if (object && !wait)
        return cai_priv_emm_say(call->err, CAI_ERR_UNAVAILABLE, "the CUDA table has no %s", what);
    error = cai_priv_emm_relax(cuda, &mode);
    if (error) return cai_priv_emm_failed(call, error, "capture_mode");
    error = object ? wait(cuda->self, object) : cuda->context_synchronize(cuda->self);
    restored = cai_priv_emm_unrelax(cuda, mode, 0);
    return error ? cai_priv_emm_failed(call, error, what) : cai_priv_emm_did(call, restored, "capture_mode");
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_captures(cai_priv_emm_call *call, uint64_t stream, int32_t error)
{
    const cai_status status =
        error ? cai_priv_emm_failed(call, error, "stream_capture")
              : cai_priv_emm_say(call->err, CAI_ERR_CAPTURE, "stream 0x%llx is capturing",
                                 (unsigned long long)stream);
    if (error < 900 || error > 908) return status;
    if (call->err) call->err->code = CAI_ERR_CAPTURE;
    return CAI_ERR_CAPTURE;
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_no_capture(cai_priv_emm_call *call, uint64_t stream)
{
    const cai_cuda *cuda = call->emm->cuda;
    cai_cuda_capture capture;
    int32_t error;
    if (!cuda || !cuda->stream_capture) return CAI_OK;
    error = cuda->stream_capture(cuda->self, stream, &capture);
    if (!error && capture.status == CAI_CAPTURE_NONE) return CAI_OK;
    return cai_priv_emm_captures(call, stream, error);
}

static cai_status cai_priv_emm_thread(cai_priv_emm_call *call)
{
    const cai_cuda *cuda = call->emm->cuda;
    if (!cuda || !cuda->host_thread) return CAI_OK;
    return cai_priv_emm_did(call, cuda->host_thread(cuda->self, &call->thread), "host_thread");
}

/* One stream of the manager's context waits for another. */
static cai_status cai_priv_emm_order(cai_priv_emm_call *call, uint64_t before, uint64_t after)
{
    cai_error own;
    const cai_status status = cai_stream_order(call->emm->pool, before, after, &own);
    if (!status) return CAI_OK;
    if (own.native == 4) call->gone = 1;
    if (own.native == 4 && call->ending) return CAI_OK;
    if (call->err) *call->err = own;
    return status;
}

/* -------------------------------------------------------------------- >>hooks */
/* The first use of a table since the manager was made or reset. Its failing memory_info only means that no
 * limit of bytes is known (R115). */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_first_use(cai_priv_emm_call *call, struct cai_emm_source *source)
{
    cai_emm *emm = call->emm;
    const cai_emm_hooks *hooks = &source->hooks;
    size_t unused = 0, total = 0;
    uint64_t limit = emm->options.pending_bytes;
    int ready, error;
    cai_priv_emm_lock(emm);
    ready = source->ready;
    cai_priv_emm_unlock(emm);
    if (!ready) {
        error = hooks->initialize ? hooks->initialize(hooks->ctx, emm->device) : 0;
        if (error) return cai_priv_emm_hook_failed(call, source, error, "initialize");
        if (!limit && hooks->memory_info && !hooks->memory_info(hooks->ctx, &unused, &total))
            limit = total / 5;
        cai_priv_emm_lock(emm);
        source->ready = 1;
        source->limit = limit ? limit : UINT64_MAX;
        cai_priv_emm_unlock(emm);
    }
    cai_priv_emm_store(&emm->ready, source);
    return CAI_OK;
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_ready(cai_priv_emm_call *call, struct cai_emm_source *source)
{
    return cai_priv_emm_load(&call->emm->ready) == source ? CAI_OK : cai_priv_emm_first_use(call, source);
}

/* What is asked of a hook that allocates. */
typedef struct cai_priv_emm_wish {
    int32_t kind, pair;
    uint32_t flags;
    int32_t hidden; /* for an array */
    size_t size, alignment;
    uint64_t stream;
    void *ptr; /* to pin */
} cai_priv_emm_wish;

static const char *cai_priv_emm_hook_name(int32_t pair, int frees)
{
    static const char *const names[CAI_PRIV_PAIRS][2] = {{"device_alloc", "device_free"},
                                                         {"host_alloc", "host_free"},
                                                         {"pin", "unpin"},
                                                         {"managed_alloc", "managed_free"}};
    return names[pair][frees];
}

CAI_PRIV_EMM_HOT int cai_priv_emm_call_alloc(const struct cai_emm_source *source,
                                             const cai_priv_emm_wish *wish, size_t size, void **ptr)
{
    const cai_emm_hooks *hooks = &source->hooks;
    void *ctx = source->ctx[wish->pair];
    *ptr = wish->ptr;
    switch (wish->pair) {
    case CAI_PRIV_BY_HOST: return hooks->host_alloc(ctx, ptr, size, wish->flags);
    case CAI_PRIV_BY_PIN: return hooks->pin(ctx, wish->ptr, size, wish->flags);
    case CAI_PRIV_BY_MANAGED: return hooks->managed_alloc(ctx, ptr, size, wish->flags);
    default: return hooks->device_alloc(ctx, ptr, size, cai_cuda_stream(wish->stream));
    }
}

CAI_PRIV_EMM_HOT int cai_priv_emm_call_free(const struct cai_emm_source *source, int32_t pair, void *ptr,
                                            size_t size, uint64_t stream)
{
    return source->free_hooks[pair](source->ctx[pair], ptr, size, cai_cuda_stream(stream));
}

/* --------------------------------------------------------------- >>collecting */
/* What a hook needs to free an object whose slot is given back. */
typedef struct cai_priv_emm_block {
    const struct cai_emm_source *source;
    void *ptr;
    size_t size;
    uint64_t stream;
    int32_t pair;
} cai_priv_emm_block;

/* Gives the slot of an object back before its memory. Under the guard. */
CAI_PRIV_EMM_HOT cai_priv_emm_block cai_priv_emm_detach(struct cai_emm_slot *slot, uint64_t stream)
{
    const cai_priv_emm_block block = {slot->source, slot->block, slot->block_size, stream, slot->pair};
    slot->emm->count.freed++;
    slot->source->held--;
    cai_priv_emm_put(slot);
    return block;
}

static void cai_priv_emm_count_failure(cai_emm *emm, int32_t error)
{
    cai_priv_emm_lock(emm);
    if (!emm->count.failed++) emm->count.first_failure = error;
    cai_priv_emm_unlock(emm);
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_free_failed(cai_priv_emm_call *call,
                                                      const cai_priv_emm_block *block, int32_t error)
{
    if (error == 4) return CAI_OK; /* R105 */
    cai_priv_emm_count_failure(call->emm, error);
    return cai_priv_emm_hook_failed(call, block->source, error, cai_priv_emm_hook_name(block->pair, 1));
}

/* Frees an object by its hook. It is gone whatever the hook says: nobody could know what a second try would
 * free. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_free_now(cai_priv_emm_call *call, const cai_priv_emm_block *block)
{
    int error;
    if (call->gone) return CAI_OK;
    error = cai_priv_emm_call_free(block->source, block->pair, block->ptr, block->size, block->stream);
    return error ? cai_priv_emm_free_failed(call, block, error) : CAI_OK;
}

/* Under the guard. True: a limit is passed. */
static int cai_priv_emm_over(const cai_emm *emm, const struct cai_emm_source *source)
{
    return emm->count.pending > (uint64_t)emm->options.pending_count ||
           emm->count.pending_bytes > source->limit;
}

/* Under the guard: to the end of the list. */
static void cai_priv_emm_queue(struct cai_emm_slot *slot)
{
    cai_emm *emm = slot->emm;
    slot->next = NULL;
    if (emm->pending_last) emm->pending_last->next = slot;
    else emm->pending_first = slot;
    emm->pending_last = slot;
}

/* Under the guard. True: a limit is passed outside of any scope of defer. */
static int cai_priv_emm_append(const cai_priv_emm_call *call, struct cai_emm_slot *slot, uint64_t stream)
{
    cai_emm *emm = slot->emm;
    slot->stream = stream;
    slot->thread = call->thread;
    if (slot->after == stream && (stream != CAI_STREAM_PER_THREAD || slot->after_thread == call->thread))
        slot->after = 0;
    cai_priv_emm_queue(slot);
    emm->count.pending++;
    emm->count.pending_bytes += slot->block_size;
    return !emm->defer_depth && cai_priv_emm_over(emm, slot->source);
}
/* True: the stream means nothing to the hook, as it waits for the device. */
static inline int cai_priv_emm_waits(const struct cai_emm_slot *slot)
{
    return slot->source->collects[slot->pair] && slot->pair != CAI_PRIV_BY_PIN;
}

/* Not CAI_OK: nothing may be freed on `stream` now, as it captures, or is stream 2 of another thread. */
static cai_status cai_priv_emm_may_use(cai_priv_emm_call *call, uint64_t stream, uint64_t thread)
{
    cai_priv_emm_call asking = *call;
    cai_error own;
    asking.err = &own;
    if (stream == CAI_STREAM_PER_THREAD) {
        CAI_TRY(cai_priv_emm_thread(call));
        if (call->thread != thread)
            return cai_priv_emm_say(call->err, CAI_ERR_THREAD, "a free waits on stream 2 of host thread %llu",
                                    (unsigned long long)thread);
    }
    if (cai_priv_emm_no_capture(&asking, stream) != CAI_ERR_CAPTURE) return CAI_OK; /* the hook will say */
    if (call->err) *call->err = own;
    return CAI_ERR_CAPTURE;
}

static cai_status cai_priv_emm_may_free(cai_priv_emm_call *call, const struct cai_emm_slot *slot)
{
    if (cai_priv_emm_waits(slot)) return CAI_OK;
    CAI_TRY(cai_priv_emm_may_use(call, slot->stream, slot->thread));
    if (!slot->after) return CAI_OK;
    if (slot->after != CAI_PRIV_ALL) return cai_priv_emm_may_use(call, slot->after, slot->after_thread);
    return cai_priv_emm_wait(call, 0, NULL, "context_synchronize");
}

/* How collected frees are carried out: those that may be now; all, as somebody asked; all, as no work is
 * pending any more. */
enum { CAI_PRIV_IF_ALLOWED, CAI_PRIV_ALLOWED, CAI_PRIV_IDLE };

/* Where memory is freed when no work is pending any more: the default streams need no asking. */
static inline uint64_t cai_priv_emm_idle_stream(uint64_t stream)
{
    return stream > CAI_STREAM_PER_THREAD ? stream : (uint64_t)CAI_STREAM_LEGACY;
}

/* Puts a collected free in its place in the order of streams; where that cannot be, the host waits. */
static cai_status cai_priv_emm_follow(const cai_priv_emm_call *call, const struct cai_emm_slot *slot)
{
    cai_priv_emm_call quiet = cai_priv_emm_quiet(call);
    const cai_cuda *cuda = call->emm->cuda;
    if (!cuda || call->gone || cai_priv_emm_waits(slot)) return CAI_OK;
    if (slot->after && slot->after != CAI_PRIV_ALL && cai_priv_emm_order(&quiet, slot->after, slot->stream))
        CAI_TRY(cai_priv_emm_wait(&quiet, 0, NULL, "context_synchronize"));
    if (slot->pair != CAI_PRIV_BY_PIN) return CAI_OK;
    return cai_priv_emm_wait(&quiet, slot->stream, cuda->stream_synchronize, "stream_synchronize");
}

/* True: a collected free may be carried out now. */
static int cai_priv_emm_clear(const cai_priv_emm_call *call, const struct cai_emm_slot *slot, int32_t how)
{
    cai_priv_emm_call quiet = cai_priv_emm_quiet(call);
    cai_status followed;
    if (call->gone || how == CAI_PRIV_IDLE) return 1;
    if (how == CAI_PRIV_IF_ALLOWED && cai_priv_emm_may_free(&quiet, slot)) return 0;
    followed = cai_priv_emm_follow(call, slot);
    return !followed || how == CAI_PRIV_ALLOWED;
}

static cai_status cai_priv_emm_free_collected(cai_priv_emm_call *call, struct cai_emm_slot *slot,
                                              int32_t how)
{
    cai_emm *emm = call->emm;
    const uint64_t stream = how == CAI_PRIV_IDLE ? cai_priv_emm_idle_stream(slot->stream) : slot->stream;
    cai_priv_emm_block block;
    cai_priv_emm_lock(emm);
    emm->count.pending--;
    emm->count.pending_bytes -= slot->block_size;
    block = cai_priv_emm_detach(slot, stream);
    cai_priv_emm_unlock(emm);
    return cai_priv_emm_free_now(call, &block);
}

/* The first of the list; NULL: it is empty. */
static struct cai_emm_slot *cai_priv_emm_next_collected(cai_emm *emm)
{
    struct cai_emm_slot *slot;
    cai_priv_emm_lock(emm);
    slot = emm->pending_first;
    if (slot) emm->pending_first = slot->next;
    if (!emm->pending_first) emm->pending_last = NULL;
    cai_priv_emm_unlock(emm);
    return slot;
}

/* Frees what was collected, one after the other, so that threads may share that; those that must wait go to
 * the end of the list. Returns the first error. */
static cai_status cai_priv_emm_carry_out(cai_priv_emm_call *call, int32_t how)
{
    cai_emm *emm = call->emm;
    struct cai_emm_slot *slot;
    cai_status first = CAI_OK;
    cai_emm_count count;
    cai_emm_counts(emm, &count);
    for (; count.pending && (slot = cai_priv_emm_next_collected(emm)) != NULL; --count.pending) {
        if (cai_priv_emm_clear(call, slot, how)) {
            cai_priv_emm_keep_first(call, &first, cai_priv_emm_free_collected(call, slot, how));
            continue;
        }
        cai_priv_emm_lock(emm);
        cai_priv_emm_queue(slot);
        cai_priv_emm_unlock(emm);
    }
    return first;
}

static cai_status cai_priv_emm_flush(cai_priv_emm_call *call)
{
    cai_status status;
    call->ending = 1;
    status = cai_priv_emm_enter(call);
    if (!status) status = cai_priv_emm_carry_out(call, CAI_PRIV_IF_ALLOWED);
    return cai_priv_emm_leave(call, status);
}

CAI_API cai_status cai_emm_flush(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    int nothing;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_flush", err));
    cai_priv_emm_lock(emm);
    nothing = emm->defer_depth || !emm->pending_first;
    cai_priv_emm_unlock(emm);
    return nothing ? CAI_OK : cai_priv_emm_flush(&call);
}

/* Tells a table that a scope begins or ends, if it wants to know. */
static cai_status cai_priv_emm_tell(cai_priv_emm_call *call, const struct cai_emm_source *source, int on)
{
    cai_status status;
    int error = 0;
    if (!source->hooks.defer) return CAI_OK;
    status = cai_priv_emm_enter(call);
    if (!status && !call->gone) error = source->hooks.defer(source->hooks.ctx, on);
    return cai_priv_emm_leave(call, status ? status : cai_priv_emm_hook_did(call, source, error, "defer"));
}

CAI_API cai_status cai_emm_defer_begin(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    cai_status status;
    int32_t depth;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_defer_begin", err));
    cai_priv_emm_lock(emm);
    depth = emm->defer_depth++;
    source = emm->source;
    if (!depth) source->deferred = 1;
    cai_priv_emm_unlock(emm);
    if (depth) return CAI_OK;
    status = cai_priv_emm_tell(&call, source, 1);
    if (!status) return CAI_OK;
    cai_priv_emm_lock(emm);
    emm->defer_depth--;
    source->deferred = 0;
    cai_priv_emm_unlock(emm);
    return status;
}

/* The next table that was told of the scope; NULL: none. */
static struct cai_emm_source *cai_priv_emm_next_deferred(cai_emm *emm)
{
    struct cai_emm_source *source;
    cai_priv_emm_lock(emm);
    for (source = emm->sources; source && !source->deferred;) source = source->next;
    if (source) source->deferred = 0;
    cai_priv_emm_unlock(emm);
    return source;
}

CAI_API cai_status cai_emm_defer_end(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    cai_status first = CAI_OK;
    int32_t depth;
    int over;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_defer_end", err));
    call.ending = 1;
    cai_priv_emm_lock(emm);
    depth = emm->defer_depth;
    if (depth) emm->defer_depth--;
    over = cai_priv_emm_over(emm, emm->source);
    cai_priv_emm_unlock(emm);
    if (!depth) return cai_priv_emm_misuse(err, "cai_emm_defer_end", "no scope is open");
    if (depth > 1) return CAI_OK;
    while ((source = cai_priv_emm_next_deferred(emm)) != NULL)
        cai_priv_emm_keep_first(&call, &first, cai_priv_emm_tell(&call, source, 0));
    if (over) cai_priv_emm_keep_first(&call, &first, cai_priv_emm_flush(&call));
    return first;
}

/* --------------------------------------------------------------- >>allocating */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_out_of_memory(cai_priv_emm_call *call,
                                                        const struct cai_emm_source *source,
                                                        const cai_priv_emm_wish *wish)
{
    cai_emm_count count;
    cai_emm_counts(call->emm, &count);
    (void)cai_priv_emm_say(call->err, CAI_ERR_OUT_OF_MEMORY,
                           "%s of %s: out of memory for %lu bytes; %llu bytes in %llu objects are live",
                           cai_priv_emm_hook_name(wish->pair, 0), cai_priv_emm_name(source),
                           (unsigned long)wish->size, (unsigned long long)count.live_bytes,
                           (unsigned long long)count.live);
    if (call->err) call->err->native = 2;
    return CAI_ERR_OUT_OF_MEMORY;
}

/* R118: all that can be freed is, in a scope of defer as well. What fails in that is counted. */
CAI_PRIV_EMM_COLD void cai_priv_emm_make_room(const cai_priv_emm_call *call)
{
    cai_emm *emm = call->emm;
    cai_priv_emm_call quiet = cai_priv_emm_quiet(call);
    quiet.ending = 1;
    if (emm->pool) cai_priv_emm_ignore(cai_keepalive_drain(emm->pool, NULL));
    cai_priv_emm_ignore(cai_priv_emm_carry_out(&quiet, CAI_PRIV_IF_ALLOWED));
    cai_priv_emm_lock(emm);
    emm->count.retries++;
    cai_priv_emm_unlock(emm);
}

/* Frees what is not given to the caller. */
CAI_PRIV_EMM_COLD void cai_priv_emm_undo(const cai_priv_emm_call *call, const struct cai_emm_source *source,
                                         const cai_priv_emm_wish *wish, size_t size, void *ptr)
{
    cai_priv_emm_call quiet = cai_priv_emm_quiet(call);
    const uint64_t stream = wish->stream ? wish->stream : (uint64_t)CAI_STREAM_LEGACY;
    const cai_priv_emm_block block = {source, ptr, size, stream, wish->pair};
    cai_priv_emm_ignore(cai_priv_emm_free_now(&quiet, &block));
}

/* The same where the manager's context was left before. */
CAI_PRIV_EMM_COLD void cai_priv_emm_undo_outside(const cai_priv_emm_call *call,
                                                 const struct cai_emm_source *source,
                                                 const cai_priv_emm_wish *wish, size_t size, void *ptr)
{
    cai_priv_emm_call again = cai_priv_emm_quiet(call);
    cai_error own;
    again.err = &own;
    again.gone = 0;
    if (cai_priv_emm_enter(&again)) {
        cai_priv_emm_count_failure(call->emm, own.native);
        return;
    }
    cai_priv_emm_undo(&again, source, wish, size, ptr);
    cai_priv_emm_ignore(cai_priv_emm_leave(&again, CAI_OK));
}

/* What a hook gave and should not have. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_broken(cai_priv_emm_call *call, const struct cai_emm_source *source,
                                                 const cai_priv_emm_wish *wish, size_t size, void *block)
{
    const char *hook = cai_priv_emm_hook_name(wish->pair, 0);
    if (!block)
        return cai_priv_emm_say(call->err, CAI_ERR_MEMORY, "%s of %s succeeded and gave NULL for %lu bytes",
                                hook, cai_priv_emm_name(source), (unsigned long)size);
    cai_priv_emm_undo(call, source, wish, size, block);
    return cai_priv_emm_say(call->err, CAI_ERR_MEMORY, "%s of %s gave %p, which is not aligned to %lu bytes",
                            hook, cai_priv_emm_name(source), block,
                            (unsigned long)(wish->alignment < 256 ? wish->alignment : 256));
}

/* The hook failed: R118 for out of memory. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_again(cai_priv_emm_call *call, const struct cai_emm_source *source,
                                                const cai_priv_emm_wish *wish, size_t size, void **block,
                                                int error)
{
    if (error == 2) {
        cai_priv_emm_make_room(call);
        error = cai_priv_emm_call_alloc(source, wish, size, block);
        if (error == 2) return cai_priv_emm_out_of_memory(call, source, wish);
    }
    return cai_priv_emm_hook_did(call, source, error, cai_priv_emm_hook_name(wish->pair, 0));
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_obtain(cai_priv_emm_call *call, struct cai_emm_source *source,
                                                const cai_priv_emm_wish *wish, size_t size, void **block)
{
    const size_t promised = wish->alignment < 256 ? wish->alignment : 256;
    int error;
    CAI_TRY(cai_priv_emm_ready(call, source));
    if (wish->stream) CAI_TRY(cai_priv_emm_no_capture(call, wish->stream));
    if (wish->stream == CAI_STREAM_PER_THREAD) CAI_TRY(cai_priv_emm_thread(call));
    error = cai_priv_emm_call_alloc(source, wish, size, block);
    if (error) CAI_TRY(cai_priv_emm_again(call, source, wish, size, block, error));
    if (*block && !((uintptr_t)*block & (promised - 1))) return CAI_OK;
    return cai_priv_emm_broken(call, source, wish, size, *block);
}

/* Makes memory an object with one reference. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_fill(cai_priv_emm_call *call, struct cai_emm_source *source,
                                              const cai_priv_emm_wish *wish, size_t size, void *block,
                                              struct cai_emm_slot **out)
{
    cai_emm *emm = call->emm;
    const uint64_t mask = wish->alignment > 256 ? wish->alignment - 1 : 0;
    struct cai_emm_slot *slot;
    CAI_TRY(cai_priv_emm_take(call, out));
    slot = *out;
    slot->root = slot;
    slot->source = source;
    slot->address = ((uint64_t)(uintptr_t)block + mask) & ~mask;
    slot->size = wish->size;
    slot->stream = wish->stream;
    slot->thread = call->thread;
    slot->after = 0;
    slot->block = block;
    slot->block_size = size;
    slot->call = NULL;
    slot->kind = wish->pair == CAI_PRIV_BY_DEVICE ? source->hooks.kind : wish->kind;
    slot->pair = wish->pair;
    slot->hidden = wish->hidden;
    slot->number = ++emm->numbers;
    slot->epoch = emm->epoch;
    slot->references = slot->keeps = 1;
    source->held++;
    emm->count.allocated++;
    emm->count.live++;
    emm->count.live_bytes += size;
    call->made = cai_priv_emm_handle(slot);
    cai_priv_emm_unlock(emm);
    return CAI_OK;
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_new(cai_priv_emm_call *call, const cai_priv_emm_wish *wish,
                                             struct cai_emm_slot **out)
{
    const size_t size = wish->alignment > 256 ? wish->size + (wish->alignment - 256) : wish->size;
    struct cai_emm_source *source = cai_priv_emm_load(&call->emm->source);
    void *block = NULL;
    cai_status status;
    if (!source->free_hooks[wish->pair])
        return cai_priv_emm_say(call->err, CAI_ERR_UNAVAILABLE, "%s has no hook %s",
                                cai_priv_emm_name(source), cai_priv_emm_hook_name(wish->pair, 0));
    CAI_TRY(cai_priv_emm_enter(call));
    status = cai_priv_emm_obtain(call, source, wish, size, &block);
    if (status) return cai_priv_emm_leave(call, status);
    status = cai_priv_emm_leave(call, CAI_OK);
    if (!status) status = cai_priv_emm_fill(call, source, wish, size, block, out);
    if (status) cai_priv_emm_undo_outside(call, source, wish, size, block);
    return status;
}

CAI_PRIV_EMM_HOT cai_priv_emm_wish cai_priv_emm_wish_for(int32_t kind, int32_t pair, size_t size,
                                                         uint32_t flags)
{
    cai_priv_emm_wish wish;
    memset(&wish, 0, sizeof wish);
    wish.kind = kind;
    wish.pair = pair;
    wish.flags = flags;
    wish.size = size;
    wish.alignment = 1;
    return wish;
}

CAI_API cai_status cai_emm_alloc(cai_memory *out, cai_emm *emm, size_t size, size_t alignment,
                                 uint64_t stream, cai_error *err)
{
    cai_priv_emm_wish wish = cai_priv_emm_wish_for(CAI_KIND_DEVICE, CAI_PRIV_BY_DEVICE, size, 0);
    cai_priv_emm_call call;
    struct cai_emm_slot *slot = NULL;
    if (!out) return cai_priv_emm_misuse(err, "cai_emm_alloc", "out is NULL");
    *out = 0;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_alloc", err));
    wish.alignment = alignment ? alignment : 256;
    if (wish.alignment & (wish.alignment - 1))
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "alignment = %lu is not a power of two",
                                (unsigned long)alignment);
    if (wish.alignment > 256 && size > SIZE_MAX - (wish.alignment - 256))
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "size = %lu with alignment = %lu exceeds %lu bytes",
                                (unsigned long)size, (unsigned long)alignment, (unsigned long)SIZE_MAX);
    CAI_TRY(cai_priv_emm_check_stream(emm, stream, err));
    if (!size) return CAI_OK;
    wish.stream = stream;
    CAI_TRY(cai_priv_emm_new(&call, &wish, &slot));
    *out = call.made;
    return CAI_OK;
}

/* Host and managed memory. */
static cai_status cai_priv_emm_host(const char *function, cai_memory *out, cai_emm *emm,
                                    const cai_priv_emm_wish *wish, uint32_t allowed, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_slot *slot = NULL;
    if (!out) return cai_priv_emm_misuse(err, function, "out is NULL");
    *out = 0;
    CAI_TRY(cai_priv_emm_open(&call, emm, function, err));
    if (wish->flags & ~allowed)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "%s: flags = 0x%lx has unknown bits", function,
                                (unsigned long)wish->flags);
    if (!wish->size) return CAI_OK;
    if (wish->pair == CAI_PRIV_BY_PIN && !wish->ptr) return cai_priv_emm_misuse(err, function, "ptr is NULL");
    CAI_TRY(cai_priv_emm_new(&call, wish, &slot));
    *out = call.made;
    return CAI_OK;
}

CAI_API cai_status cai_emm_host_alloc(cai_memory *out, cai_emm *emm, size_t size, uint32_t flags,
                                      cai_error *err)
{
    const int32_t kind = flags & CAI_HOST_MAPPED ? CAI_KIND_MAPPED : CAI_KIND_PINNED;
    cai_priv_emm_wish wish = cai_priv_emm_wish_for(kind, CAI_PRIV_BY_HOST, size, flags);
    return cai_priv_emm_host("cai_emm_host_alloc", out, emm, &wish,
                             CAI_HOST_PORTABLE | CAI_HOST_MAPPED | CAI_HOST_WRITE_COMBINED, err);
}

CAI_API cai_status cai_emm_pin(cai_memory *out, cai_emm *emm, void *ptr, size_t size, uint32_t flags,
                               cai_error *err)
{
    cai_priv_emm_wish wish = cai_priv_emm_wish_for(CAI_KIND_REGISTERED, CAI_PRIV_BY_PIN, size, flags);
    wish.ptr = ptr;
    return cai_priv_emm_host("cai_emm_pin", out, emm, &wish, CAI_HOST_PORTABLE | CAI_HOST_MAPPED, err);
}

CAI_API cai_status cai_emm_managed_alloc(cai_memory *out, cai_emm *emm, size_t size, uint32_t flags,
                                         cai_error *err)
{
    cai_priv_emm_wish wish = cai_priv_emm_wish_for(CAI_KIND_MANAGED, CAI_PRIV_BY_MANAGED, size, flags);
    if (!flags) wish.flags = CAI_MANAGED_GLOBAL;
    return cai_priv_emm_host("cai_emm_managed_alloc", out, emm, &wish, CAI_MANAGED_GLOBAL | CAI_MANAGED_HOST,
                             err);
}

/* ------------------------------------------------------------------ >>freeing */
/* What a free knows of an object, as it was when it was looked at. */
typedef struct cai_priv_emm_look {
    struct cai_emm_slot *slot, *root;
    uint32_t generation;
    int32_t last;          /* the only reference to the object */
    int32_t lost;
    uint32_t orders;
    uint64_t home, thread; /* the memory's stream, and whose it is if that is 2 */
} cai_priv_emm_look;

/* Under the guard. */
CAI_PRIV_EMM_HOT void cai_priv_emm_look_at(struct cai_emm_slot *slot, cai_priv_emm_look *look)
{
    look->slot = slot;
    look->root = slot->root;
    look->generation = slot->generation;
    look->last = slot->references == 1 && slot->root->keeps == 1;
    look->lost = cai_priv_emm_lost(slot);
    look->orders = slot->root->orders;
    look->home = slot->root->stream;
    look->thread = slot->root->thread;
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_look_up(const cai_priv_emm_call *call, cai_memory memory,
                                                 cai_priv_emm_look *look)
{
    struct cai_emm_slot *slot;
    CAI_TRY(cai_priv_emm_seize(call, memory, &slot));
    cai_priv_emm_look_at(slot, look);
    cai_priv_emm_unlock(call->emm);
    return CAI_OK;
}

static cai_status cai_priv_emm_look_up_live(const cai_priv_emm_call *call, cai_memory memory,
                                            cai_priv_emm_look *look)
{
    CAI_TRY(cai_priv_emm_look_up(call, memory, look));
    if (!look->lost) return CAI_OK;
    return cai_priv_emm_say(call->err, CAI_ERR_STALE, "memory 0x%llx is gone with a reset",
                            (unsigned long long)memory);
}

/* K19: where memory is given back on a stream that is not its own, one waits for the other: with the last
 * reference `stream`, which frees it, else the memory's, so that whoever is last comes after all. */
CAI_PRIV_EMM_COLD cai_status cai_priv_emm_order_other(cai_priv_emm_call *call, const cai_priv_emm_look *look,
                                                      uint64_t stream)
{
    if (stream == CAI_STREAM_PER_THREAD || look->home == CAI_STREAM_PER_THREAD)
        CAI_TRY(cai_priv_emm_thread(call));
    if (look->home == CAI_STREAM_PER_THREAD && look->thread != call->thread)
        return cai_priv_emm_say(call->err, CAI_ERR_THREAD,
                                "the memory is on stream 2 of host thread %llu, and this is thread %llu",
                                (unsigned long long)look->thread, (unsigned long long)call->thread);
    if (!look->home || look->home == stream || !call->emm->pool || call->gone) return CAI_OK;
    return look->last ? cai_priv_emm_order(call, look->home, stream)
                      : cai_priv_emm_order(call, stream, look->home);
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_order_free(cai_priv_emm_call *call, const cai_priv_emm_look *look,
                                                    uint64_t stream)
{
    if (call->gone) return CAI_OK;
    CAI_TRY(cai_priv_emm_no_capture(call, stream));
    if ((look->home == stream && stream != CAI_STREAM_PER_THREAD) || call->gone) return CAI_OK;
    return cai_priv_emm_order_other(call, look, stream);
}

/* Under the guard: the free of an object must be ordered after `stream`. */
CAI_PRIV_EMM_COLD void cai_priv_emm_come_after(struct cai_emm_slot *root, uint64_t stream, uint64_t thread)
{
    if (stream != CAI_STREAM_PER_THREAD) thread = 0;
    if (root->after && (root->after != stream || root->after_thread != thread)) stream = CAI_PRIV_ALL;
    root->after = stream;
    root->after_thread = thread;
}

/* Under the guard: one reference less. True: it was the slot's last. */
CAI_PRIV_EMM_HOT int cai_priv_emm_count_down(cai_priv_emm_call *call, const cai_priv_emm_look *look,
                                             uint64_t *stream)
{
    struct cai_emm_slot *root = look->root;
    if (!root->stream && !call->gone) { /* the first stream that is heard of */
        root->stream = *stream;
        root->thread = call->thread;
    }
    if (call->after) cai_priv_emm_come_after(root, call->after, call->thread);
    call->dropped = 1;
    root->orders++;
    if (--look->slot->references) return 0;
    look->slot->generation++;
    if (--root->keeps) return 1;
    if (!look->last || root->stream != look->home)
        *stream = root->stream; /* another thread was faster: this waits for its and our work */
    if (look->lost) {
        call->emm->count.lost++;
        return 1;
    }
    call->emm->count.live--;
    call->emm->count.live_bytes -= root->block_size;
    return 1;
}

CAI_PRIV_EMM_COLD cai_status cai_priv_emm_wait_stream(cai_priv_emm_call *call, uint64_t stream)
{
    const cai_cuda *cuda = call->emm->cuda;
    if (!cuda || call->gone) return CAI_OK;
    return cai_priv_emm_wait(call, stream, cuda->stream_synchronize, "stream_synchronize");
}

/* With the guard, which it returns with. */
CAI_PRIV_EMM_COLD void cai_priv_emm_call_back(struct cai_emm_slot *slot)
{
    cai_priv_emm_unlock(slot->emm);
    slot->call(slot->user_data);
    cai_priv_emm_lock(slot->emm);
}

/* The last reference to an object went. Takes the guard over, which is free after. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_dispose(cai_priv_emm_call *call, struct cai_emm_slot *slot,
                                                 uint64_t stream)
{
    cai_emm *emm = call->emm;
    const int32_t pin = slot->pair == CAI_PRIV_BY_PIN;
    cai_priv_emm_block block;
    cai_status status = CAI_OK;
    if (!call->gone &&
        (slot->after || (!pin && (emm->defer_depth || slot->source->collects[slot->pair])))) {
        const int over = cai_priv_emm_append(call, slot, stream);
        cai_priv_emm_unlock(emm);
        return over ? cai_priv_emm_carry_out(call, CAI_PRIV_IF_ALLOWED) : CAI_OK;
    }
    block = cai_priv_emm_detach(slot, stream);
    cai_priv_emm_unlock(emm);
    if (pin) cai_priv_emm_keep_first(call, &status, cai_priv_emm_wait_stream(call, stream)); /* R119 */
    cai_priv_emm_keep_first(call, &status, cai_priv_emm_free_now(call, &block));
    return status;
}

/* Under the guard. True: another thread changed what the order of streams depended on. */
CAI_PRIV_EMM_HOT int cai_priv_emm_outdated(const cai_priv_emm_call *call, const cai_priv_emm_look *look)
{
    if (call->settled || call->gone || look->lost) return 0;
    return look->root->stream != look->home ||
           (look->last && (look->slot->references != 1 || look->root->keeps != 1));
}

/* Gives the reference back that was looked at. If call->dropped is not set after success, `look` is new. */
CAI_PRIV_EMM_HOT cai_status cai_priv_emm_drop(cai_priv_emm_call *call, cai_priv_emm_look *look,
                                              uint64_t stream)
{
    struct cai_emm_slot *slot = look->slot, *root = look->root;
    cai_emm *emm = call->emm;
    int gone, last;
    cai_priv_emm_lock(emm);
    if (slot->generation != look->generation || !slot->references) {
        cai_priv_emm_unlock(emm);
        return cai_priv_emm_stale(call->err, (uint64_t)look->generation << 32 | (slot->index + 1));
    }
    if (cai_priv_emm_outdated(call, look)) {
        cai_priv_emm_look_at(slot, look);
        cai_priv_emm_unlock(emm);
        return CAI_OK;
    }
    gone = cai_priv_emm_count_down(call, look, &stream);
    last = gone && !root->keeps; /* or else another thread may free the object as soon as the guard is free */
    if (gone && slot != root) {
        if (slot->call) cai_priv_emm_call_back(slot);
        cai_priv_emm_put(slot);
    }
    if (last) {
        if (root->call) cai_priv_emm_call_back(root);
        if (!look->lost) return cai_priv_emm_dispose(call, root, stream);
        cai_priv_emm_put(root);
    }
    cai_priv_emm_unlock(emm);
    return CAI_OK;
}

CAI_PRIV_EMM_HOT cai_status cai_priv_emm_give_back(cai_priv_emm_call *call, cai_priv_emm_look *look,
                                                   uint64_t stream)
{
    cai_status status;
    call->ending = 1;
    if (look->lost) return cai_priv_emm_drop(call, look, stream);
    do {
        status = cai_priv_emm_enter(call);
        if (!status) status = cai_priv_emm_order_free(call, look, stream);
        if (!status) status = cai_priv_emm_drop(call, look, stream);
        status = cai_priv_emm_leave(call, status);
    } while (!status && !call->dropped);
    return status;
}

CAI_API cai_status cai_emm_free(cai_emm *emm, cai_memory memory, uint64_t stream, cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_free", err));
    if (!memory) return CAI_OK;
    CAI_TRY(cai_priv_emm_check_stream(emm, stream, err));
    CAI_TRY(cai_priv_emm_look_up(&call, memory, &look));
    return cai_priv_emm_give_back(&call, &look, stream);
}

CAI_API cai_status cai_emm_set_stream(cai_emm *emm, cai_memory memory, uint64_t stream, cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    cai_status status;
    int done;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_set_stream", err));
    CAI_TRY(cai_priv_emm_check_stream(emm, stream, err));
    do { /* again if another thread was faster */
        CAI_TRY(cai_priv_emm_look_up_live(&call, memory, &look));
        look.last = 1; /* the new one waits */
        status = cai_priv_emm_enter(&call);
        if (!status) status = cai_priv_emm_order_free(&call, &look, stream);
        CAI_TRY(cai_priv_emm_leave(&call, status));
        cai_priv_emm_lock(emm);
        done = look.slot->generation == look.generation && look.root->orders == look.orders;
        if (done) {
            look.root->orders++;
            look.root->stream = stream;
            look.root->thread = call.thread;
        }
        cai_priv_emm_unlock(emm);
    } while (!done);
    return CAI_OK;
}

CAI_API cai_status cai_emm_retain(cai_emm *emm, cai_memory memory, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_slot *slot;
    int full;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_retain", err));
    CAI_TRY(cai_priv_emm_seize(&call, memory, &slot));
    full = slot->references == INT32_MAX;
    if (!full) slot->references++;
    cai_priv_emm_unlock(emm);
    return full ? cai_priv_emm_say(err, CAI_ERR_CAPACITY, "the object has 2147483647 references") : CAI_OK;
}

/* A view of what was looked at, if that is still there. */
static cai_status cai_priv_emm_make_view(cai_priv_emm_call *call, const cai_priv_emm_look *look,
                                         size_t offset, size_t size, int32_t hidden,
                                         struct cai_emm_slot **out)
{
    cai_emm *emm = call->emm;
    struct cai_emm_slot *view;
    int there;
    CAI_TRY(cai_priv_emm_take(call, out));
    view = *out;
    there = look->slot->generation == look->generation && look->slot->references;
    if (there) {
        look->root->keeps++;
        view->root = look->root;
        view->kind = look->root->kind;
        view->epoch = emm->epoch;
        view->number = ++emm->numbers;
        view->address = look->slot->address + offset;
        view->size = size;
        view->call = NULL;
        view->hidden = hidden;
        view->references = 1;
        call->made = cai_priv_emm_handle(view);
    } else {
        cai_priv_emm_put(view);
    }
    cai_priv_emm_unlock(emm);
    return there ? CAI_OK : cai_priv_emm_say(call->err, CAI_ERR_STALE, "another thread freed the memory");
}

CAI_API cai_status cai_emm_view(cai_memory *out, cai_emm *emm, cai_memory memory, size_t offset, size_t size,
                                cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    struct cai_emm_slot *view;
    if (!out) return cai_priv_emm_misuse(err, "cai_emm_view", "out is NULL");
    *out = 0;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_view", err));
    if (!memory && !offset && !size) return CAI_OK;
    CAI_TRY(cai_priv_emm_look_up_live(&call, memory, &look));
    if (offset > look.slot->size || size > look.slot->size - offset)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT,
                                "offset = %llu, size = %llu: the object has %llu bytes",
                                (unsigned long long)offset, (unsigned long long)size,
                                (unsigned long long)look.slot->size);
    if (!size) return CAI_OK;
    CAI_TRY(cai_priv_emm_make_view(&call, &look, offset, size, 0, &view));
    *out = call.made;
    return CAI_OK;
}

CAI_API cai_status cai_emm_on_free(cai_emm *emm, cai_memory memory, void (*callback)(void *user_data),
                                   void *user_data, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_slot *slot;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_on_free", err));
    CAI_TRY(cai_priv_emm_seize(&call, memory, &slot));
    slot->call = callback;
    slot->user_data = user_data;
    cai_priv_emm_unlock(emm);
    return CAI_OK;
}

/* Under the guard. */
static void cai_priv_emm_describe(const struct cai_emm_slot *slot, cai_memory_info *out)
{
    out->memory = slot->hidden ? 0 : cai_priv_emm_handle(slot);
    out->number = slot->number;
    out->address = slot->address;
    out->size = slot->size;
    out->stream = slot->root->stream;
    out->kind = slot->kind;
    out->references = slot->references;
    out->view = slot->root != slot;
    out->lost = cai_priv_emm_lost(slot);
}

CAI_API cai_status cai_emm_info(cai_emm *emm, cai_memory memory, cai_memory_info *out, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_slot *slot;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_info", err));
    if (!out) return cai_priv_emm_misuse(err, "cai_emm_info", "out is NULL");
    CAI_TRY(cai_priv_emm_seize(&call, memory, &slot));
    cai_priv_emm_describe(slot, out);
    cai_priv_emm_unlock(emm);
    return CAI_OK;
}

CAI_API void *cai_emm_pointer(cai_emm *emm, cai_memory memory)
{
    cai_memory_info info;
    if (cai_emm_info(emm, memory, &info, NULL) || info.lost) return NULL;
    return (void *)(uintptr_t)info.address;
}

CAI_API cai_status cai_emm_ipc_handle(cai_emm_ipc *out, cai_emm *emm, cai_memory memory, cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    const struct cai_emm_source *source;
    const cai_emm_hooks *hooks;
    void *base = NULL;
    cai_status status;
    int error = 0;
    if (!out) return cai_priv_emm_misuse(err, "cai_emm_ipc_handle", "out is NULL");
    memset(out, 0, sizeof *out);
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_ipc_handle", err));
    CAI_TRY(cai_priv_emm_look_up_live(&call, memory, &look));
    source = look.root->source;
    hooks = &source->hooks;
    if (look.slot->kind != CAI_KIND_DEVICE)
        return cai_priv_emm_say(err, CAI_ERR_MEMORY, "memory of kind %d has no handle for other processes",
                                (int)look.slot->kind);
    if (!hooks->ipc_handle)
        return cai_priv_emm_say(err, CAI_ERR_UNAVAILABLE, "%s has no hook ipc_handle",
                                cai_priv_emm_name(source));
    status = cai_priv_emm_enter(&call);
    if (!status) error = hooks->ipc_handle(hooks->ctx, look.root->block, out->handle, &base);
    status = status ? status : cai_priv_emm_hook_did(&call, source, error, "ipc_handle");
    out->offset = look.slot->address - (uint64_t)(uintptr_t)base;
    out->size = look.slot->size;
    out->device = emm->device;
    return cai_priv_emm_leave(&call, status);
}

/* ------------------------------------------------------------------- >>arrays */
/* The host waits for everything, unless that would end a capture of the memory's stream. */
static cai_status cai_priv_emm_synchronize(cai_priv_emm_call *call, uint64_t home)
{
    cai_status status;
    if (!call->emm->cuda) return CAI_OK;
    status = cai_priv_emm_enter(call);
    if (!status && !call->gone) status = cai_priv_emm_no_capture(call, home);
    if (!status && !call->gone) status = cai_priv_emm_wait(call, 0, NULL, "context_synchronize");
    return cai_priv_emm_leave(call, status);
}

/* The memory's stream waits for the array's event; while it captures, the host does. */
static cai_status cai_priv_emm_follow_event(cai_priv_emm_call *call, uint64_t event, uint64_t stream)
{
    const cai_cuda *cuda = call->emm->cuda;
    cai_status status;
    if (!cuda) return CAI_OK;
    CAI_TRY(cai_priv_emm_enter(call));
    status = call->gone ? CAI_OK : cai_priv_emm_no_capture(call, stream);
    if (status == CAI_ERR_CAPTURE &&
        cai_priv_emm_wait(call, event, cuda->event_synchronize, "event_synchronize"))
        status = CAI_ERR_CUDA;
    if (!status && !call->gone)
        status = cai_priv_emm_did(call, cuda->stream_wait_event(cuda->self, stream, event),
                                  "stream_wait_event");
    return cai_priv_emm_leave(call, status);
}

/* Orders the memory's stream, which it returns, or the array's after what is pending on the array. */
static cai_status cai_priv_emm_order_array(cai_priv_emm_call *call, const cai_array *array, uint64_t home,
                                           uint64_t *stream)
{
    *stream = home;
    if (array->sync == CAI_SYNC_UNKNOWN) return CAI_ERR_STREAM;
    if (array->sync == CAI_SYNC_EVENT) return cai_priv_emm_follow_event(call, array->event, home);
    if (array->sync == CAI_SYNC_NONE) return CAI_OK;
    *stream = array->stream;
    if (array->stream == CAI_STREAM_PER_THREAD) {
        CAI_TRY(cai_priv_emm_thread(call));
        if (array->thread != call->thread) return CAI_ERR_THREAD;
    }
    return cai_priv_emm_check_stream(call->emm, array->stream, NULL);
}

/* Nobody can be told of a failure here. While something captures, the free is collected, with the stream that
 * it comes after; where the order cannot be made on the device, the host waits. */
static void cai_priv_emm_give_back_array(cai_priv_emm_call *call, cai_priv_emm_look *look,
                                         const cai_array *array)
{
    const uint64_t legacy = CAI_STREAM_LEGACY;
    uint64_t home = look->home ? look->home : legacy, stream = home;
    cai_status status = home == CAI_STREAM_PER_THREAD ? cai_priv_emm_thread(call) : CAI_OK;
    if (!status) status = cai_priv_emm_order_array(call, array, home, &stream);
    if (!status) status = cai_priv_emm_give_back(call, look, stream);
    if (!status || call->dropped) return;
    if (home == CAI_STREAM_PER_THREAD && look->thread != call->thread) home = legacy;
    if (status == CAI_ERR_CAPTURE) call->after = stream;
    else if (cai_priv_emm_synchronize(call, home)) call->after = CAI_PRIV_ALL;
    if (cai_priv_emm_enter(call)) call->gone = 1; /* no context, no memory of it */
    call->settled = 1;
    look->last = 1;
    cai_priv_emm_ignore(cai_priv_emm_leave(call, cai_priv_emm_drop(call, look, home)));
}

static void cai_priv_emm_release_array(cai_array *array)
{
    struct cai_emm_slot *slot = (struct cai_emm_slot *)array->owner;
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    array->release = NULL;
    if (cai_priv_emm_open(&call, slot->emm, "release", NULL)) return;
    call.ending = 1;
    cai_priv_emm_lock(slot->emm);
    cai_priv_emm_look_at(slot, &look);
    cai_priv_emm_unlock(slot->emm);
    if (!look.lost) cai_priv_emm_give_back_array(&call, &look, array);
    else cai_priv_emm_ignore(cai_priv_emm_drop(&call, &look, CAI_STREAM_LEGACY));
}

static void cai_priv_emm_dress(cai_array *array, struct cai_emm_slot *slot)
{
    static const int32_t memories[] = {CAI_MEMORY_DEVICE, CAI_MEMORY_DEVICE, CAI_MEMORY_HOST,
                                       CAI_MEMORY_PINNED, CAI_MEMORY_PINNED, CAI_MEMORY_MANAGED,
                                       CAI_MEMORY_PINNED};
    array->memory = memories[slot->kind];
    array->device = slot->kind == CAI_KIND_HOST ? CAI_DEVICE_UNKNOWN : slot->emm->device;
    cai_array_own(array, cai_priv_emm_release_array, slot);
}

CAI_API cai_status cai_emm_array(cai_array *out, cai_emm *emm, int32_t code, int32_t ndim,
                                 const int64_t *shape, uint64_t stream, cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_wish wish;
    struct cai_emm_slot *slot = NULL;
    if (!out) return cai_priv_emm_misuse(err, "cai_emm_array", "out is NULL");
    out->release = NULL;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_array", err));
    CAI_TRY(cai_priv_emm_check_stream(emm, stream, err));
    CAI_TRY(cai_array_init(out, code, ndim, shape, NULL, (void *)(uintptr_t)256, err)); /* aligned as ours */
    out->sync = CAI_SYNC_NONE;
    if (!out->size) return CAI_OK;
    if ((uint64_t)out->nbytes > SIZE_MAX)
        return cai_priv_emm_say(err, CAI_ERR_SHAPE, "%lld bytes exceed the address space",
                                (long long)out->nbytes);
    wish = cai_priv_emm_wish_for(CAI_KIND_DEVICE, CAI_PRIV_BY_DEVICE, (size_t)out->nbytes, 0);
    wish.alignment = 256;
    wish.stream = stream;
    wish.hidden = 1;
    CAI_TRY(cai_priv_emm_new(&call, &wish, &slot));
    out->data = slot->address;
    cai_priv_emm_dress(out, slot);
    if (!emm->pool) return CAI_OK;
    out->sync = CAI_SYNC_STREAM;
    out->stream = stream;
    out->thread = call.thread;
    return CAI_OK;
}

CAI_API cai_status cai_emm_own(cai_array *array, cai_emm *emm, cai_memory memory, cai_error *err)
{
    cai_priv_emm_call call;
    cai_priv_emm_look look;
    struct cai_emm_slot *slot;
    uint64_t start, first, size;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_own", err));
    CAI_TRY(cai_array_check(array, err));
    if (array->release) return cai_priv_emm_misuse(err, "cai_emm_own", "the array has an owner");
    CAI_TRY(cai_priv_emm_look_up_live(&call, memory, &look));
    start = array->data + (uint64_t)array->lo;
    first = start - look.slot->address;
    size = (uint64_t)(array->hi - array->lo);
    if (array->size && (first > look.slot->size || size > look.slot->size - first))
        return cai_priv_emm_say(err, CAI_ERR_MEMORY,
                                "%llu bytes from 0x%llx are not inside the object: %llu from 0x%llx",
                                (unsigned long long)size, (unsigned long long)start,
                                (unsigned long long)look.slot->size, (unsigned long long)look.slot->address);
    CAI_TRY(cai_priv_emm_make_view(&call, &look, 0, (size_t)look.slot->size, 1, &slot));
    cai_priv_emm_dress(array, slot);
    return CAI_OK;
}

/* ----------------------------------------------------------------- >>built-in */
/* CUDA's own functions; ctx is the CUDA table. These are forbidden while something captures globally, so they
 * run under the relaxed mode. What was allocated does not stay if the mode cannot be restored. */
static int cai_priv_emm_cuda_take(void *ctx, int32_t pair, void **ptr, size_t size, unsigned int flags)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    int32_t (*undo)(void *self, uint64_t pointer) = cuda->memory_free;
    uint64_t pointer = (uint64_t)(uintptr_t)*ptr;
    int32_t mode, error, restored;
    error = cai_priv_emm_relax(cuda, &mode);
    if (error) return error;
    if (pair == CAI_PRIV_BY_DEVICE) {
        error = cuda->memory_alloc(cuda->self, &pointer, size);
    } else if (pair == CAI_PRIV_BY_HOST) {
        error = cuda->host_alloc(cuda->self, &pointer, size, flags);
        undo = cuda->host_free;
    } else if (pair == CAI_PRIV_BY_PIN) {
        error = cuda->host_register(cuda->self, pointer, size, flags);
        undo = cuda->host_unregister;
    } else {
        error = cuda->managed_alloc(cuda->self, &pointer, size, flags);
    }
    restored = cai_priv_emm_unrelax(cuda, mode, error);
    if (restored && !error) (void)undo(cuda->self, pointer);
    *ptr = restored ? NULL : (void *)(uintptr_t)pointer;
    return restored;
}

static int cai_priv_emm_cuda_give(void *ctx, int32_t pair, void *ptr)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    const uint64_t pointer = (uint64_t)(uintptr_t)ptr;
    int32_t mode, error = cai_priv_emm_relax(cuda, &mode);
    if (error) return error;
    if (pair == CAI_PRIV_BY_HOST) error = cuda->host_free(cuda->self, pointer);
    else if (pair == CAI_PRIV_BY_PIN) error = cuda->host_unregister(cuda->self, pointer);
    else error = cuda->memory_free(cuda->self, pointer);
    return cai_priv_emm_unrelax(cuda, mode, error);
}

static int cai_priv_emm_cuda_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)stream;
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_DEVICE, ptr, size, 0);
}

static int cai_priv_emm_cuda_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    (void)stream;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_DEVICE, ptr);
}

static int cai_priv_emm_cuda_host_alloc(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_HOST, ptr, size, flags);
}

static int cai_priv_emm_cuda_host_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    (void)stream;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_HOST, ptr);
}

static int cai_priv_emm_cuda_pin(void *ctx, void *ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_PIN, &ptr, size, flags);
}

static int cai_priv_emm_cuda_unpin(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)size;
    (void)stream;
    return cai_priv_emm_cuda_give(ctx, CAI_PRIV_BY_PIN, ptr);
}

static int cai_priv_emm_cuda_managed(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    return cai_priv_emm_cuda_take(ctx, CAI_PRIV_BY_MANAGED, ptr, size, flags);
}

static int cai_priv_emm_async_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    uint64_t pointer = 0;
    const int32_t error = cuda->memory_alloc_async(cuda->self, &pointer, size, (uint64_t)(uintptr_t)stream);
    *ptr = (void *)(uintptr_t)pointer;
    return error;
}

static int cai_priv_emm_async_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    (void)size;
    return cuda->memory_free_async(cuda->self, (uint64_t)(uintptr_t)ptr, (uint64_t)(uintptr_t)stream);
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

static int cai_priv_emm_cuda_ipc(void *ctx, void *ptr, void *handle, void **base)
{
    const cai_cuda *cuda = (const cai_cuda *)ctx;
    uint64_t first = 0, size = 0;
    int32_t error = cuda->ipc_export(cuda->self, (uint64_t)(uintptr_t)ptr, handle);
    if (!error) error = cuda->pointer_range(cuda->self, (uint64_t)(uintptr_t)ptr, &first, &size);
    *base = (void *)(uintptr_t)first;
    return error;
}

static void cai_priv_emm_start_table(cai_emm_hooks *out, const char *name)
{
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->version = CAI_EMM_VERSION;
    memcpy(out->name, name, strlen(name));
}

static cai_status cai_priv_emm_start_cuda(cai_emm_hooks *table, const cai_emm_hooks *out,
                                          const cai_cuda *cuda, const char *name, cai_error *err)
{
    if (!out) return cai_priv_emm_misuse(err, name, "out is NULL");
    if (!cuda) return cai_priv_emm_misuse(err, name, "cuda is NULL");
    if (cuda->struct_size < sizeof *cuda || cuda->version != CAI_CUDA_VERSION)
        return cai_priv_emm_say(err, CAI_ERR_ABI, "%s: the CUDA table has %lu bytes and version %lu", name,
                                (unsigned long)cuda->struct_size, (unsigned long)cuda->version);
    cai_priv_emm_start_table(table, name);
    table->ctx = (void *)(uintptr_t)cuda; /* the hooks take it as const */
    table->flags = CAI_EMM_CUDA_HOST;
    if (cuda->memory_info) table->memory_info = cai_priv_emm_cuda_info;
    return CAI_OK;
}

CAI_API cai_status cai_emm_hooks_cuda(cai_emm_hooks *out, const cai_cuda *cuda, cai_error *err)
{
    cai_emm_hooks table;
    CAI_TRY(cai_priv_emm_start_cuda(&table, out, cuda, "cuda", err));
    if (!cuda->memory_alloc || !cuda->memory_free)
        return cai_priv_emm_say(err, CAI_ERR_UNAVAILABLE,
                                "the CUDA table has no memory_alloc and memory_free");
    table.flags |= CAI_EMM_COLLECT;
    table.device_alloc = cai_priv_emm_cuda_alloc;
    table.device_free = cai_priv_emm_cuda_free;
    if (cuda->ipc_export && cuda->pointer_range) table.ipc_handle = cai_priv_emm_cuda_ipc;
    *out = table;
    return CAI_OK;
}

CAI_API cai_status cai_emm_hooks_async(cai_emm_hooks *out, const cai_cuda *cuda, cai_error *err)
{
    cai_emm_hooks table;
    CAI_TRY(cai_priv_emm_start_cuda(&table, out, cuda, "cuda_async", err));
    if (!cuda->memory_alloc_async || !cuda->memory_free_async)
        return cai_priv_emm_say(err, CAI_ERR_UNAVAILABLE,
                                "the CUDA table has no memory_alloc_async and memory_free_async");
    table.kind = CAI_KIND_POOL;
    table.device_alloc = cai_priv_emm_async_alloc;
    table.device_free = cai_priv_emm_async_free;
    *out = table;
    return CAI_OK;
}

/* malloc's pointer stands before the aligned block. */
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

CAI_API void cai_emm_hooks_host(cai_emm_hooks *out)
{
    if (!out) return;
    cai_priv_emm_start_table(out, "host");
    out->kind = CAI_KIND_HOST;
    out->device_alloc = cai_priv_emm_plain_alloc;
    out->device_free = cai_priv_emm_plain_free;
}

/* ------------------------------------------------------------------ >>manager */
static void *cai_priv_emm_malloc(void *user_data, size_t size)
{
    (void)user_data;
    return malloc(size);
}

static void cai_priv_emm_mfree(void *user_data, void *ptr, size_t size)
{
    (void)user_data;
    (void)size;
    free(ptr);
}

/* CAI_EMM_CUDA_HOST: CUDA's own functions where a pair is not there. Freeing by them waits for the device, so
 * it is collected. */
static void cai_priv_emm_adopt_cuda(cai_emm_hooks *hooks, int32_t *from_cuda, const cai_cuda *cuda)
{
    if (!hooks->host_alloc && cuda->host_alloc && cuda->host_free) {
        hooks->host_alloc = cai_priv_emm_cuda_host_alloc;
        hooks->host_free = cai_priv_emm_cuda_host_free;
        from_cuda[CAI_PRIV_BY_HOST] = 1;
    }
    if (!hooks->pin && cuda->host_register && cuda->host_unregister) {
        hooks->pin = cai_priv_emm_cuda_pin;
        hooks->unpin = cai_priv_emm_cuda_unpin;
        from_cuda[CAI_PRIV_BY_PIN] = 1;
    }
    if (!hooks->managed_alloc && cuda->managed_alloc && cuda->memory_free) {
        hooks->managed_alloc = cai_priv_emm_cuda_managed;
        hooks->managed_free = cai_priv_emm_cuda_free;
        from_cuda[CAI_PRIV_BY_MANAGED] = 1;
    }
}

/* NULL: no host memory. */
static struct cai_emm_source *cai_priv_emm_new_source(const cai_emm *emm, const cai_emm_hooks *hooks)
{
    const cai_emm_options *options = &emm->options;
    struct cai_emm_source *source;
    int32_t pair;
    source = (struct cai_emm_source *)options->alloc_fn(options->user_data, sizeof *source);
    if (!source) return NULL;
    memset(source, 0, sizeof *source);
    source->given = source->hooks = *hooks;
    source->limit = UINT64_MAX;
    if (hooks->flags & CAI_EMM_CUDA_HOST)
        cai_priv_emm_adopt_cuda(&source->hooks, source->from_cuda, emm->cuda);
    for (pair = 0; pair < CAI_PRIV_PAIRS; ++pair) {
        const int32_t from_cuda = source->from_cuda[pair];
        source->ctx[pair] = from_cuda ? (void *)(uintptr_t)emm->cuda : hooks->ctx;
        source->collects[pair] = from_cuda || hooks->flags & CAI_EMM_COLLECT;
    }
    source->free_hooks[CAI_PRIV_BY_DEVICE] = source->hooks.device_free;
    source->free_hooks[CAI_PRIV_BY_HOST] = source->hooks.host_free;
    source->free_hooks[CAI_PRIV_BY_PIN] = source->hooks.unpin;
    source->free_hooks[CAI_PRIV_BY_MANAGED] = source->hooks.managed_free;
    return source;
}

/* The table in the list that equals `hooks`, or a new one there, and whether it is to be told of a scope. */
static cai_status cai_priv_emm_enlist(cai_priv_emm_call *call, const cai_emm_hooks *hooks,
                                      struct cai_emm_source **out, int *tell)
{
    cai_emm *emm = call->emm;
    struct cai_emm_source *fresh = cai_priv_emm_new_source(emm, hooks), *source;
    if (!fresh)
        return cai_priv_emm_say(call->err, CAI_ERR_OUT_OF_MEMORY, "no %lu bytes of host memory for a table",
                                (unsigned long)sizeof *fresh);
    cai_priv_emm_lock(emm);
    for (source = emm->sources; source; source = source->next) {
        if (!memcmp(&source->given, hooks, sizeof *hooks)) break;
    }
    *out = source ? source : fresh;
    if (source && !source->held && source != emm->source) { /* its ctx may be another by now */
        source->ready = 0;
        if (cai_priv_emm_load(&emm->ready) == source) cai_priv_emm_store(&emm->ready, NULL);
    }
    if (!source) {
        fresh->next = emm->sources;
        emm->sources = fresh;
    }
    *tell = emm->defer_depth && !(*out)->deferred;
    if (*tell) (*out)->deferred = 1;
    cai_priv_emm_unlock(emm);
    if (source) emm->options.free_fn(emm->options.user_data, fresh, sizeof *fresh);
    return CAI_OK;
}

/* Makes a table the one for new memory. */
static cai_status cai_priv_emm_use(cai_priv_emm_call *call, const char *function, const cai_emm_hooks *hooks)
{
    cai_emm *emm = call->emm;
    cai_emm_hooks copy;
    struct cai_emm_source *source = NULL;
    cai_status status;
    int tell = 0;
    CAI_TRY(cai_priv_emm_copy_hooks(&copy, hooks, call->err));
    if (!emm->cuda && (copy.kind != CAI_KIND_HOST || copy.flags & CAI_EMM_CUDA_HOST))
        return cai_priv_emm_misuse(call->err, function,
                                   "pool is NULL or not made; only hooks of CAI_KIND_HOST need none");
    CAI_TRY(cai_priv_emm_enlist(call, &copy, &source, &tell));
    status = tell ? cai_priv_emm_tell(call, source, 1) : CAI_OK;
    cai_priv_emm_lock(emm);
    if (status) source->deferred = 0;
    else cai_priv_emm_store(&emm->source, source);
    cai_priv_emm_unlock(emm);
    return status;
}

static cai_status cai_priv_emm_check_options(const cai_emm_options *options, cai_error *err)
{
    if (!options->alloc_fn != !options->free_fn)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "options: one of alloc_fn and free_fn is NULL");
    if (options->pending_count < 0)
        return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "options: pending_count = %d is negative",
                                (int)options->pending_count);
    if (!options->reserved) return CAI_OK;
    return cai_priv_emm_say(err, CAI_ERR_ARGUMENT, "options: reserved = %d is not 0", (int)options->reserved);
}

static cai_status cai_priv_emm_find_context(cai_priv_emm_call *call)
{
    cai_emm *emm = call->emm;
    const cai_cuda *cuda = emm->cuda;
    if (!cuda || !cuda->context_current) return CAI_OK;
    CAI_TRY(cai_priv_emm_did(call, cuda->context_current(cuda->self, &emm->context), "context_current"));
    if (!emm->context)
        return cai_priv_emm_say(call->err, CAI_ERR_UNAVAILABLE,
                                "no context is current: choose a device (cudaSetDevice) before");
    if (!cuda->context_device) return CAI_OK;
    return cai_priv_emm_did(call, cuda->context_device(cuda->self, &emm->device), "context_device");
}

CAI_API cai_status cai_emm_init(cai_emm *emm, cai_stream_pool *pool, const cai_emm_hooks *hooks,
                                const cai_emm_options *options, cai_error *err)
{
    cai_priv_emm_call call;
    cai_status status;
    if (!emm) return cai_priv_emm_misuse(err, "cai_emm_init", "emm is NULL");
    memset(emm, 0, sizeof *emm);
    if (options) CAI_TRY(cai_priv_emm_check_options(options, err));
    CAI_TRY(cai_emm_hooks_check(hooks, err));
    if (options) emm->options = *options;
    if (!emm->options.pending_count) emm->options.pending_count = 10;
    if (!emm->options.alloc_fn) {
        emm->options.alloc_fn = cai_priv_emm_malloc;
        emm->options.free_fn = cai_priv_emm_mfree;
    }
    emm->generation = (uint32_t)((uintptr_t)emm / sizeof(void *)) * 2654435761u >> 1;
    emm->pool = pool;
    emm->cuda = pool ? pool->cuda : NULL;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_init", err));
    status = cai_priv_emm_find_context(&call);
    if (!status) status = cai_priv_emm_use(&call, "cai_emm_init", hooks);
    if (status) emm->options.alloc_fn = NULL; /* not made */
    return status;
}

CAI_API cai_status cai_emm_change(cai_emm *emm, const cai_emm_hooks *hooks, cai_error *err)
{
    cai_priv_emm_call call;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_change", err));
    return cai_priv_emm_use(&call, "cai_emm_change", hooks);
}

CAI_API cai_status cai_emm_initialize(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    int ready;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_initialize", err));
    source = cai_priv_emm_load(&emm->source);
    cai_priv_emm_lock(emm);
    ready = source->ready;
    cai_priv_emm_unlock(emm);
    if (ready) return CAI_OK;
    CAI_TRY(cai_priv_emm_enter(&call));
    return cai_priv_emm_leave(&call, cai_priv_emm_first_use(&call, source));
}

CAI_API cai_status cai_emm_memory_info(cai_emm *emm, size_t *free_bytes, size_t *total_bytes, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    size_t available = 0, total = 0;
    cai_status status;
    int error = 0;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_memory_info", err));
    if (!free_bytes || !total_bytes)
        return cai_priv_emm_misuse(err, "cai_emm_memory_info", "free_bytes or total_bytes is NULL");
    source = cai_priv_emm_load(&emm->source);
    if (!source->hooks.memory_info)
        return cai_priv_emm_say(err, CAI_ERR_UNAVAILABLE, "%s has no hook memory_info",
                                cai_priv_emm_name(source));
    CAI_TRY(cai_priv_emm_enter(&call));
    status = cai_priv_emm_ready(&call, source);
    if (!status) error = source->hooks.memory_info(source->hooks.ctx, &available, &total);
    if (error) status = cai_priv_emm_hook_failed(&call, source, error, "memory_info");
    CAI_TRY(cai_priv_emm_leave(&call, status));
    *free_bytes = available;
    *total_bytes = total;
    return CAI_OK;
}

CAI_API void cai_emm_counts(cai_emm *emm, cai_emm_count *out)
{
    cai_priv_emm_call call;
    if (!out) return;
    memset(out, 0, sizeof *out);
    if (cai_priv_emm_open(&call, emm, "cai_emm_counts", NULL)) return;
    cai_priv_emm_lock(emm);
    *out = emm->count;
    cai_priv_emm_unlock(emm);
}

CAI_API int64_t cai_emm_live(cai_emm *emm, cai_memory_info *out, int64_t capacity)
{
    cai_priv_emm_call call;
    int64_t count = 0;
    uint32_t index, end = 1;
    if (cai_priv_emm_open(&call, emm, "cai_emm_live", NULL)) return 0;
    for (index = 0; index < end; ++index) {
        const struct cai_emm_slot *slot;
        cai_priv_emm_lock(emm);
        end = emm->slot_count;
        slot = index < end ? cai_priv_emm_at(emm, index) : NULL;
        if (slot && slot->references) {
            if (out && count < capacity) cai_priv_emm_describe(slot, &out[count]);
            ++count;
        }
        cai_priv_emm_unlock(emm);
    }
    return count;
}

/* Frees what no hook reset drops. Nobody else uses the manager now. */
static void cai_priv_emm_lose(cai_priv_emm_call *call, struct cai_emm_slot *slot, cai_status *first)
{
    const struct cai_emm_source *source = slot->source;
    const cai_priv_emm_block block = {source, slot->block, slot->block_size,
                                      cai_priv_emm_idle_stream(slot->stream), slot->pair};
    if (!call->gone && (!source->hooks.reset || source->from_cuda[slot->pair])) {
        call->emm->count.freed++;
        cai_priv_emm_keep_first(call, first, cai_priv_emm_free_now(call, &block));
    }
    slot->source = NULL;
}

/* A table without memory, other than the current, is not touched: its ctx may be gone. */
static void cai_priv_emm_reset_table(cai_priv_emm_call *call, struct cai_emm_source *source, int held,
                                     cai_status *first)
{
    int error = 0;
    source->ready = 0;
    source->held = 0;
    if (held && source->hooks.reset) error = source->hooks.reset(source->hooks.ctx);
    cai_priv_emm_keep_first(call, first, cai_priv_emm_hook_did(call, source, error, "reset"));
}

CAI_API cai_status cai_emm_reset(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    cai_status first;
    uint32_t i;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_reset", err));
    if (emm->defer_depth)
        return cai_priv_emm_say(err, CAI_ERR_PENDING, "cai_emm_reset: %d scopes of defer are open",
                                (int)emm->defer_depth);
    call.ending = 1;
    call.err = NULL;
    if (cai_priv_emm_enter(&call)) call.gone = 1; /* with the context went its memory */
    call.err = err;
    first = cai_priv_emm_carry_out(&call, CAI_PRIV_IDLE);
    for (i = 0; i < emm->slot_count; ++i) {
        struct cai_emm_slot *slot = cai_priv_emm_at(emm, i);
        if (slot->source && slot->keeps) cai_priv_emm_lose(&call, slot, &first);
    }
    cai_priv_emm_reset_table(&call, emm->source, 1, &first);
    for (source = emm->sources; source; source = source->next) {
        if (source != emm->source) cai_priv_emm_reset_table(&call, source, source->held > 0, &first);
    }
    emm->ready = NULL;
    emm->epoch++;
    emm->count.live = emm->count.live_bytes = 0;
    return cai_priv_emm_leave(&call, first);
}

/* Frees what was collected if all of it may be freed now. */
static cai_status cai_priv_emm_finish(cai_priv_emm_call *call)
{
    const struct cai_emm_slot *slot;
    cai_status status;
    call->ending = 1;
    CAI_TRY(cai_priv_emm_enter(call));
    for (slot = call->emm->pending_first; slot; slot = slot->next) {
        status = cai_priv_emm_may_free(call, slot);
        if (status == CAI_ERR_CUDA) status = CAI_ERR_PENDING; /* the host cannot wait */
        if (status && call->err) call->err->code = status;
        if (status) return cai_priv_emm_leave(call, status);
    }
    return cai_priv_emm_leave(call, cai_priv_emm_carry_out(call, CAI_PRIV_ALLOWED));
}

CAI_API cai_status cai_emm_destroy(cai_emm *emm, cai_error *err)
{
    cai_priv_emm_call call;
    struct cai_emm_source *source;
    cai_status status = CAI_OK;
    int64_t live;
    int32_t i;
    CAI_TRY(cai_priv_emm_open(&call, emm, "cai_emm_destroy", err));
    live = cai_emm_live(emm, NULL, 0);
    if (live || emm->defer_depth)
        return cai_priv_emm_say(err, CAI_ERR_PENDING,
                                "cai_emm_destroy: %lld objects and views are referenced, %d scopes are open",
                                (long long)live, (int)emm->defer_depth);
    if (emm->pending_first) status = cai_priv_emm_finish(&call);
    if (emm->pending_first) return status;
    while ((source = emm->sources) != NULL) {
        emm->sources = source->next;
        emm->options.free_fn(emm->options.user_data, source, sizeof *source);
    }
    for (i = 0; i < CAI_EMM_CHUNKS && emm->chunks[i]; ++i)
        emm->options.free_fn(emm->options.user_data, emm->chunks[i],
                             sizeof(struct cai_emm_slot) * CAI_PRIV_EMM_FIRST_CHUNK << i);
    memset(emm, 0, sizeof *emm);
    return status;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

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
