/* cai_stream.h - where memory lives, and ordering between CUDA streams at both ends of an exchange - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header in the declarations, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_STREAM_IMPLEMENTATION)
#define CAI_STREAM_IMPLEMENTATION
#endif

/* Included again, cai.h adds what is wanted of it and refuses late configuration. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 1
#error "cai_stream.h: this is version 0.1, which needs cai.h 0.1"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && CAI_STREAM_H_INCLUDED != 100
#error "cai_stream.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_STREAM_H_INCLUDED
#define CAI_STREAM_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file:

        #define CAI_IMPLEMENTATION
        #include "cai_stream.h"

    Everywhere else include it without the define. The implementation includes <cuda_runtime_api.h> and links
    the CUDA Runtime; with CAI_NO_CUDART it does neither, and CUDA is loaded at run time (cai_cuda_load).

WHAT IT IS
    Two libraries exchange arrays on different streams. The consumer's work must come after the producer's,
    and what the producer does next must come after the consumer's work. This header puts both orders in place
    with one event and one wait each, and calls CUDA not at all where there is nothing to order. No host
    thread waits, unless the producer does not say where its work is pending.

THE FUNCTIONS MOST USERS NEED
    cai_cuda_linked        once: the CUDA that the program is linked with; or
    cai_cuda_load          CUDA loaded at run time, where there is one
    cai_stream_pool_init   once: the pool of events, on either
    cai_exchange_begin     consumer: my stream waits for the producers' streams
    cai_exchange_end       consumer: their streams wait for mine
    cai_exchange_release   consumer: give the arrays back, at once or when my stream has passed
    cai_stream_export      producer: my work is on this stream (and on these others)
    cai_locate             which device, which kind of memory, inside its allocation?
    cai_place              several arrays: on which device and stream to work on them

EXAMPLE (a consumer)
        int32_t launch(const cai_array *x, struct CUstream_st *s); // your kernel; returns cudaGetLastError()

        cai_status scale(cai_stream_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err);
        cai_status scale(cai_stream_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err)
        {
            const cai_array *io[1] = {x};
            cai_exchange ex;
            cai_status worked, released;
            CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err));
            worked = cai_exchange_end(&ex, cai_cuda_status(launch(x, s), "scale_kernel", err), err);
            released = cai_exchange_release(&ex, x, worked ? NULL : err); // whatever end says
            return worked ? worked : released;
        }

CONFIGURATION (define before the first include; besides that of cai.h)
    CAI_STREAM_IMPLEMENTATION  compile the implementation of this header here
    CAI_NO_CUDART              implementation without <cuda_runtime_api.h>: no cai_cuda_linked
    CAI_NO_LOADER              implementation without cai_cuda_load (no <dlfcn.h>, no <windows.h>)
    CAI_NO_THREADS             no atomics: every pool is used by one thread at a time

STREAMS
    A stream is a uint64_t as in cai_array.stream: 1 legacy default, 2 per-thread default, else a handle. 0 is
    refused everywhere: it means 1 or 2, as your own unit was compiled. CAI_STREAM(s) makes the number of a
    cudaStream_t in your unit. 1 and 2 are relative to a context: of an array, the context of its memory; of
    an argument, the current one. 2 belongs to a host thread: used on another it is CAI_ERR_THREAD, and as an
    import cannot know the thread, say it there: cai_stream_remember_thread.

OWNERSHIP
    A pool is the caller's, at one address from init to destroy, and outlives the exchanges, the events and
    the arrays given to it. It allocates nothing: storage for the keep-alive list is the caller's. The end of
    an exchange does not allow to release an array: cai_exchange_release knows when.

WHAT A CALL LEAVES BEHIND
    The current context is the same after every call as before, and CUDA's last error too: the backends call
    the driver, which has none. Event queries run with a relaxed capture mode of the thread, so that captures
    elsewhere live on.

ERRORS
    As in cai.h. Where CUDA failed: CAI_ERR_CUDA, or CAI_ERR_CAPTURE where its error is about a capture (900
    to 908); cai_error.native is its number, and the message names the operation: "event_record: CUDA error
    400 (invalid resource handle)". While the process ends CUDA answers 4 (deinitialized) to everything:
    cai_exchange_end and everything that releases, drops or destroys take that for success.

THREADS
    Any number of threads may use one pool. Each exchange belongs to the thread that began it until it ends.

CUDA
    CUDA 11.2 or later (cai_cuda_linked: 11.3). Everything goes through a table, cai_cuda: fill in your own to
    test without a GPU (tests/sim does) or to map another platform.

RULES
    R70-R85, R100-R106 in comments: docs/rules.md.

NOT HERE
    Allocation (cai_emm.h), copies, kernels, creation of streams, peer access.

CHANGES
    0.1.0  first version
*/

struct CUstream_st; /* what cudaStream_t points to */

#if defined(CAI_NAMESPACE)
#define cai_coerce_memory CAI_PRIV_RENAMED(cai_coerce_memory)
#define cai_cuda_linked CAI_PRIV_RENAMED(cai_cuda_linked)
#define cai_cuda_load CAI_PRIV_RENAMED(cai_cuda_load)
#define cai_cuda_status CAI_PRIV_RENAMED(cai_cuda_status)
#define cai_cuda_unload CAI_PRIV_RENAMED(cai_cuda_unload)
#define cai_exchange_begin CAI_PRIV_RENAMED(cai_exchange_begin)
#define cai_exchange_begin_with CAI_PRIV_RENAMED(cai_exchange_begin_with)
#define cai_exchange_end CAI_PRIV_RENAMED(cai_exchange_end)
#define cai_exchange_release CAI_PRIV_RENAMED(cai_exchange_release)
#define cai_keepalive_drain CAI_PRIV_RENAMED(cai_keepalive_drain)
#define cai_keepalive_poll CAI_PRIV_RENAMED(cai_keepalive_poll)
#define cai_keepalive_push CAI_PRIV_RENAMED(cai_keepalive_push)
#define cai_locate CAI_PRIV_RENAMED(cai_locate)
#define cai_place CAI_PRIV_RENAMED(cai_place)
#define cai_stream_detach CAI_PRIV_RENAMED(cai_stream_detach)
#define cai_stream_drop_event CAI_PRIV_RENAMED(cai_stream_drop_event)
#define cai_stream_export CAI_PRIV_RENAMED(cai_stream_export)
#define cai_stream_order CAI_PRIV_RENAMED(cai_stream_order)
#define cai_stream_pool_destroy CAI_PRIV_RENAMED(cai_stream_pool_destroy)
#define cai_stream_pool_forget CAI_PRIV_RENAMED(cai_stream_pool_forget)
#define cai_stream_pool_init CAI_PRIV_RENAMED(cai_stream_pool_init)
#define cai_stream_remember_thread CAI_PRIV_RENAMED(cai_stream_remember_thread)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- >>CUDA table */
/* The struct below crosses shared objects; see cai.h on the guard. */
#ifndef CAI_CUDA_ABI_V0
#define CAI_CUDA_ABI_V0

/** What a capture query tells. */
struct cai_cuda_capture_v0 {
    int32_t status;   /* CAI_CAPTURE_... */
    int32_t reserved; /* 0 */
    uint64_t id;      /* of the capture; equal for all streams in it */
};

/** What a pointer query tells. */
struct cai_cuda_pointer_v0 {
    int32_t memory;          /* CAI_MEMORY_...; CAI_MEMORY_HOST: CUDA does not know the pointer */
    int32_t device;          /* ordinal, CAI_DEVICE_UNKNOWN for CAI_MEMORY_HOST */
    uint32_t flags;          /* CAI_POINTER_... */
    uint32_t reserved;       /* 0 */
    uint64_t context;        /* of the allocation; 0: it has none (pools, mapped memory) */
    uint64_t device_pointer; /* the address that a device uses; 0: none */
};

/** CUDA as this header calls it. Every operation returns 0 or CUDA's error number, which driver and runtime
 *  share, and gets `self`. Contexts, streams and events are their handles as numbers; stream 1 and 2 mean the
 *  default streams of the current context. NULL: not available (docs/reference.md says what is lost). */
struct cai_cuda_v0 {
    uint32_t struct_size; /* sizeof of the maker's struct; a shorter one than this is refused */
    uint32_t version;     /* CAI_CUDA_VERSION */
    uint32_t flags;       /* 0 or CAI_CUDA_NO_DEFAULT_STREAMS */
    uint32_t reserved;    /* 0 */
    void *self;
    /* contexts */
    int32_t (*context_current)(void *self, uint64_t *context); /* 0: none is current */
    int32_t (*context_push)(void *self, uint64_t context);
    int32_t (*context_pop)(void *self);
    int32_t (*context_synchronize)(void *self);                /* the current one */
    int32_t (*context_device)(void *self, int32_t *device);    /* of the current one */
    int32_t (*device_context)(void *self, int32_t device, uint64_t *context); /* the primary context */
    /* streams */
    int32_t (*stream_context)(void *self, uint64_t stream, uint64_t *context);
    int32_t (*stream_capture)(void *self, uint64_t stream, struct cai_cuda_capture_v0 *capture);
    int32_t (*stream_id)(void *self, uint64_t stream, uint64_t *id); /* unique as long as the process lives */
    int32_t (*stream_wait_event)(void *self, uint64_t stream, uint64_t event);
    int32_t (*stream_synchronize)(void *self, uint64_t stream);
    /* events: created without timing, in the current context */
    int32_t (*event_create)(void *self, uint64_t *event);
    int32_t (*event_destroy)(void *self, uint64_t event);
    int32_t (*event_record)(void *self, uint64_t event, uint64_t stream);
    int32_t (*event_query)(void *self, uint64_t event);        /* 600: not yet */
    int32_t (*event_synchronize)(void *self, uint64_t event);
    /* the capture mode of this thread: 0 global, 1 thread-local, 2 relaxed; exchanges it with *mode */
    int32_t (*capture_mode)(void *self, int32_t *mode);
    /* memory */
    int32_t (*pointer_info)(void *self, uint64_t pointer, struct cai_cuda_pointer_v0 *info);
    int32_t (*pointer_range)(void *self, uint64_t pointer, uint64_t *base, uint64_t *size); /* bytes */
    int32_t (*pageable_access)(void *self, int32_t device, int32_t *yes); /* may it read plain host memory? */
    /* the calling host thread, never 0; not a CUDA call. Systems give the number of a thread that ended to a
     * later one. */
    int32_t (*host_thread)(void *self, uint64_t *thread);
    /* allocation, for cai_emm.h: in the current context; sizes in bytes, flags as CUDA has them */
    int32_t (*memory_alloc)(void *self, uint64_t *pointer, uint64_t size);
    int32_t (*memory_free)(void *self, uint64_t pointer);
    int32_t (*memory_alloc_async)(void *self, uint64_t *pointer, uint64_t size, uint64_t stream); /* from the
                                                                          current pool of the device */
    int32_t (*memory_free_async)(void *self, uint64_t pointer, uint64_t stream);
    int32_t (*host_alloc)(void *self, uint64_t *pointer, uint64_t size, uint32_t flags);
    int32_t (*host_free)(void *self, uint64_t pointer);
    int32_t (*host_register)(void *self, uint64_t pointer, uint64_t size, uint32_t flags);
    int32_t (*host_unregister)(void *self, uint64_t pointer);
    int32_t (*managed_alloc)(void *self, uint64_t *pointer, uint64_t size, uint32_t flags);
    int32_t (*memory_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);
    /* other processes: handles of 64 bytes, UUIDs of 16 */
    int32_t (*ipc_export)(void *self, uint64_t pointer, void *handle); /* of the whole allocation */
    int32_t (*ipc_open)(void *self, const void *handle, uint64_t *pointer);
    int32_t (*ipc_close)(void *self, uint64_t pointer);
    int32_t (*device_uuid)(void *self, int32_t device, void *uuid);
};

#endif /* CAI_CUDA_ABI_V0 */

typedef struct cai_cuda_v0 cai_cuda;
typedef struct cai_cuda_capture_v0 cai_cuda_capture;
typedef struct cai_cuda_pointer_v0 cai_cuda_pointer;

enum { CAI_CUDA_VERSION = 1 };

enum {
    CAI_CUDA_NO_DEFAULT_STREAMS = 1 << 0 /* R106: 1 and 2 are no streams here (HIP); they are refused */
};

enum { CAI_CAPTURE_NONE = 0, CAI_CAPTURE_ACTIVE = 1, CAI_CAPTURE_INVALIDATED = 2 };

enum {
    CAI_POINTER_POOL = 1 << 0,   /* from a memory pool: other devices need access to the pool */
    CAI_POINTER_ARRAY = 1 << 1   /* a CUDA array: a texture, no linear memory */
};

/** The driver as both backends use it. Fill it by cai_cuda_linked or cai_cuda_load; `cuda` is the table and
 *  points into this struct, which therefore stays where it is. */
typedef struct cai_cuda_driver {
    cai_cuda cuda;
    void *library;           /* what cai_cuda_load opened */
    int32_t runtime_version; /* of the runtime that was asked, 12040 for 12.4; 0: none was found */
    int32_t driver_version;  /* the newest CUDA that the driver can do */
    void (*entries[40])(void);
} cai_cuda_driver;

/** The CUDA that this program is linked with. Not under CAI_NO_CUDART. Makes no context, but may initialize
 *  the driver. out: of the caller, stays where it is; nothing to free.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (no driver, or one without an operation that is needed). */
#if !defined(CAI_NO_CUDART) || !defined(CAI_STATIC)
CAI_API CAI_MUST_CHECK cai_status cai_cuda_linked(cai_cuda_driver *out, cai_error *err);
#endif

#if !defined(CAI_NO_LOADER) || !defined(CAI_STATIC)
/** CUDA loaded at run time, for programs that must start where there is none. path: of a libcudart, or NULL;
 *  a path that does not load is an error, nothing else is tried. With NULL: a runtime that is already in the
 *  process, else one of CUDA 13, 12 or 11, and if that does not lead to the driver, the driver's own library.
 *  Not under CAI_NO_LOADER. Success says that there is a driver, not that there is a device.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (the message says why). */
CAI_API CAI_MUST_CHECK cai_status cai_cuda_load(cai_cuda_driver *out, const char *path, cai_error *err);

/** Closes what cai_cuda_load opened; its table must not be used any more. NULL is fine. Not
 *  under CAI_NO_LOADER. */
CAI_API void cai_cuda_unload(cai_cuda_driver *driver);
#endif

/** The status of your own call: CAI_OK for 0, else CAI_ERR_CUDA with the message "scale_kernel: CUDA error
 *  700 (illegal address)". error: a cudaError_t or CUresult. what: names the call. */
CAI_API CAI_MUST_CHECK cai_status cai_cuda_status(int32_t error, const char *what, cai_error *err);

/* ------------------------------------------------------------------ >>streams */
#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* as in the implementation */
#endif
/** The number of a cudaStream_t; `when_null` is what a NULL stream means. Use CAI_STREAM. */
static inline uint64_t cai_stream_number(struct CUstream_st *stream, uint64_t when_null)
{
    return stream ? (uint64_t)(uintptr_t)stream : when_null;
}

/** The cudaStream_t of a number. */
static inline struct CUstream_st *cai_cuda_stream(uint64_t stream)
{
    return (struct CUstream_st *)(uintptr_t)stream;
}
#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

/** The number of a cudaStream_t, in the unit where it stands: a NULL stream is the per-thread default stream
 *  where that unit is compiled so (nvcc --default-stream per-thread), else the legacy one. If CUDA's headers
 *  were included before, what they took it for decides. */
#if defined(__CUDA_RUNTIME_API_H__)
#if defined(__CUDART_API_PER_THREAD_DEFAULT_STREAM)
#define CAI_PRIV_PER_THREAD
#endif
#elif defined(__cuda_cuda_h__)
#if defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CAI_PRIV_PER_THREAD
#endif
#elif defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CAI_PRIV_PER_THREAD
#endif
#if defined(CAI_PRIV_PER_THREAD)
#define CAI_STREAM(stream) cai_stream_number(stream, CAI_STREAM_PER_THREAD)
#else
#define CAI_STREAM(stream) cai_stream_number(stream, CAI_STREAM_LEGACY)
#endif

/* ------------------------------------------------------------------- >>memory */
enum { CAI_BOUNDS_UNKNOWN = 0, CAI_BOUNDS_INSIDE = 1 };

/** Where the data of an array lives. */
typedef struct cai_location {
    int32_t memory;    /* CAI_MEMORY_... */
    int32_t device;    /* of the memory; for pinned and managed memory the one current when it was made */
    int32_t bounds;    /* CAI_BOUNDS_...; unknown unless asked for */
    int32_t needs_peer; /* 1: in a pool of another device than the current; it must grant access */
    uint64_t context;  /* of the allocation, or 0 */
    uint64_t data;     /* the address that kernels use; nearly always array->data */
    uint64_t base;     /* of the allocation; 0: not known */
    uint64_t nbytes;   /* of the allocation; 0: not known */
} cai_location;

enum {
    CAI_LOCATE_BOUNDS = 1 << 0,   /* check the extent [lo, hi) against the allocation */
    CAI_LOCATE_PAGEABLE = 1 << 1  /* take plain host memory where the current device can read it (HMM, ATS) */
};

/** Asks CUDA where an array lives, stores array->device and ->memory, of the mask too, and fills `out` (may
 *  be NULL). An empty array is not asked about. On failure nothing is stored.
 *  flags: CAI_LOCATE_.... Bounds stay unknown where CUDA does not know the allocation, as it may not from the
 *  context of another device.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA (also for an earlier error of the
 *  device), CAI_ERR_MEMORY (plain or freed memory, a texture, no address for devices, extent outside the
 *  allocation, mask on another device). */
CAI_API CAI_MUST_CHECK cai_status cai_locate(cai_array *array, const cai_cuda *cuda, uint32_t flags,
                                             cai_location *out, cai_error *err);

/* --------------------------------------------------------------------- >>pool */
/** A place in the keep-alive list. Storage only. */
typedef struct cai_keepalive {
    cai_array array;
    uint64_t event, context;
    int32_t next, dead;
} cai_keepalive;

/** An idle event. */
typedef struct cai_pool_event {
    uint64_t context, event;
} cai_pool_event;

enum {
    CAI_POOL_EVENTS = 64,   /* idle events that a pool keeps; more are destroyed */
    CAI_EXCHANGE_EDGES = 16 /* distinct producer streams of one exchange */
};

enum {
    CAI_POOL_CHECK_STREAMS = 1 << 0 /* R85: two queries more per stream tell a stream from one that was made
                                       anew with its handle between begin and end (CAI_ERR_STALE) */
};

/** Events and arrays that wait. Not to be moved or copied; look, don't touch. */
typedef struct cai_stream_pool {
    const cai_cuda *cuda;
    uint32_t flags;
    int32_t guard;          /* held for a few instructions */
    int32_t open_exchanges; /* begun and not ended */
    int32_t idle_count;
    int32_t waiting;        /* arrays in the keep-alive list */
    int32_t first, last, free; /* of the list; -1: none */
    int32_t capacity;
    cai_keepalive *keepalive;
    cai_pool_event idle[CAI_POOL_EVENTS];
} cai_stream_pool;

/** Makes an empty pool. cuda: outlives it. keepalive: storage for `capacity` arrays that wait for a stream,
 *  of the caller; NULL and 0: none. flags: 0 or CAI_POOL_CHECK_STREAMS. Makes no CUDA call.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (the table), CAI_ERR_UNAVAILABLE (it cannot order anything). */
CAI_API CAI_MUST_CHECK cai_status cai_stream_pool_init(cai_stream_pool *pool, const cai_cuda *cuda,
                                                       cai_keepalive *keepalive, int32_t capacity,
                                                       uint32_t flags, cai_error *err);

/** Destroys the idle events. No other call uses the pool any more. Refused (CAI_ERR_PENDING, nothing done)
 *  while an exchange is open or an array waits. Errors: CAI_ERR_ARGUMENT, CAI_ERR_PENDING, CAI_ERR_CUDA
 *  (the first; the pool is empty then). */
CAI_API CAI_MUST_CHECK cai_status cai_stream_pool_destroy(cai_stream_pool *pool, cai_error *err);

/** Forgets the idle events of a context that was destroyed or reset; 0: of all. They went with their context.
 *  Arrays that wait for its streams are released by the next poll. No other call uses the pool meanwhile. */
CAI_API void cai_stream_pool_forget(cai_stream_pool *pool, uint64_t context);

/* ----------------------------------------------------------------- >>exchange */
/** How both ends are ordered. */
enum {
    CAI_MODE_EVENT = 0,   /* by events on the device (R75, R76) */
    CAI_MODE_HOST = 1,    /* the host waits for the producers at begin, for the consumer at end (R76); in
                             between it may touch host-accessible data itself */
    CAI_MODE_ENQUEUE = 2, /* work in the first producer's stream: launch on ex->stream (R75); as 1 or 2 that
                             is the current context's, ordered with the producer's */
    CAI_MODE_IGNORE = 3   /* R79: not at all; the caller has its own order */
};

/** What CAI_SYNC_UNKNOWN means: pending work, but where? */
enum {
    CAI_UNKNOWN_SYNCHRONIZE = 0, /* synchronize the context of the data: blocks the host. Of pinned and
                                    managed memory that is the one where it was made; no stream of it may be
                                    capturing, or CUDA ends that capture */
    CAI_UNKNOWN_STREAM = 1,      /* order on unknown_stream: the caller knows the producer's stream */
    CAI_UNKNOWN_LEGACY = 2,      /* order on the legacy stream: right for blocking streams only (R104) */
    CAI_UNKNOWN_TRUST = 3        /* no work is pending: the caller knows */
};

enum {
    CAI_EXCHANGE_JOIN_CAPTURE = 1 << 0 /* R103: a producer that captures may pull the consumer's stream into
                                          its capture; end joins it back */
};

/** Options of an exchange; zero means the default. */
typedef struct cai_exchange_options {
    int32_t mode;            /* CAI_MODE_... */
    int32_t unknown;         /* CAI_UNKNOWN_... */
    uint64_t unknown_stream; /* with CAI_UNKNOWN_STREAM, on the device of the data */
    uint32_t flags;          /* 0 or CAI_EXCHANGE_JOIN_CAPTURE */
    uint32_t reserved;       /* 0 */
} cai_exchange_options;

/** A producer stream of an exchange. */
typedef struct cai_exchange_edge {
    uint64_t stream, context, id, capture;
    uint32_t flags;
    int32_t array; /* the first that names it */
} cai_exchange_edge;

/** An exchange between begin and end. On the stack, without initialization; may be moved. */
typedef struct cai_exchange {
    cai_stream_pool *pool;
    uint64_t stream;  /* launch here */
    uint32_t state;
    uint32_t flags;
    cai_exchange_options options;
    uint64_t context; /* of that stream, once it is known */
    uint64_t thread;  /* that began, where it matters */
    uint64_t id, capture;
    int32_t edge_count;
    int32_t reserved;
    cai_exchange_edge edges[CAI_EXCHANGE_EDGES];
} cai_exchange;

/** Begins an exchange by the default options: see cai_exchange_begin_with. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_begin(cai_exchange *ex, cai_stream_pool *pool,
                                                     const cai_array *const *arrays, int32_t count,
                                                     uint64_t stream, cai_error *err);

/** Makes `stream`, the consumer's, wait for what the producers of `arrays`, and of their masks, have
 *  pending: one record and one wait for each distinct stream; no CUDA call for arrays on `stream` itself
 *  (a handle), without pending work, or empty. arrays: `count` of them, 0 or more, the same one twice is
 *  fine; they may die before the end. At most 16 distinct streams, and as many events. options: NULL for
 *  the default.
 *
 *  Everything is checked, captures included, before the first record. If begin fails nothing is owed (a
 *  stream that a first wait pulled into a capture stays there), and `ex` is scratch; after success call
 *  cai_exchange_end exactly once, also when your work failed. Queries: the current context, and of each
 *  distinct stream its context and its capture; the memory where an array says 1 or 2 (R83) or its sync is
 *  unknown, as those are relative to the device of the data.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_STREAM (0, or -1), CAI_ERR_THREAD (stream 2 of another
 *  thread; cai_stream_detach on that one), CAI_ERR_CAPTURE (R103; always with an event), CAI_ERR_CAPACITY,
 *  CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. index: the array. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_begin_with(cai_exchange *ex, cai_stream_pool *pool,
                                                          const cai_array *const *arrays, int32_t count,
                                                          uint64_t stream,
                                                          const cai_exchange_options *options,
                                                          cai_error *err);

/** Ends an exchange: each producer's stream waits for the consumer's work (R76) - one record in all, one
 *  wait each, also when that work failed. A producer whose stream cannot get its wait does not keep back
 *  the others. No back edge goes to arrays without a stream: those with CAI_SYNC_NONE, or an event alone,
 *  or CAI_SYNC_UNKNOWN but for a stream that you named; their owners must not touch the data before your
 *  stream has passed (CAI_MODE_HOST waits for it). status: of the work; it is returned if it is not
 *  CAI_OK, and `err` is left as it is. Otherwise the first error: CAI_ERR_ARGUMENT (not begun, or ended
 *  before), CAI_ERR_CAPTURE, CAI_ERR_STALE, CAI_ERR_CUDA. Before all that CAI_ERR_THREAD, whatever the
 *  status: stream 2 takes part and this is another thread; the exchange stays open, end it on the right
 *  one. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_end(cai_exchange *ex, cai_status status, cai_error *err);

/** Releases an array of an exchange that was ended, one of those that took part (R80): at once if its
 *  owner's streams wait for the consumer's work, else when that has passed, by way of the keep-alive list.
 *  A borrowed array is not touched. Call it whatever end returned; if it fails, array->release is still
 *  set and the array still owned. In a capture, the owner of an array must outlive the graph: that is not
 *  looked after.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_THREAD, and those of cai_keepalive_push. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_release(cai_exchange *ex, cai_array *array, cai_error *err);

/* ----------------------------------------------------------------- >>ordering */
/** Makes `after` wait for the work that is in `before` now. Both in the sense of the current context; nothing
 *  is done if they are the same. Errors: as cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_order(cai_stream_pool *pool, uint64_t before, uint64_t after,
                                                   cai_error *err);

/** Producer: says that what is pending on `array` is on `stream`, and makes `stream` wait for `count`
 *  other streams with work on it (R77: work on 7, 9 and 15, exported 3). pending: may be NULL where count
 *  is 0; may name `stream` itself. Later work on those must come after `stream`, which alone gets the back
 *  edges. 1 and 2 are refused (CAI_ERR_STREAM) if the memory is of another context, where they would mean
 *  another stream. A stream that is exported outlives the array (R81). The mask is exported by a call of
 *  its own. On failure `array` is unchanged. Errors: as cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_export(cai_array *array, cai_stream_pool *pool, uint64_t stream,
                                                    const uint64_t *pending, int32_t count, cai_error *err);

/** Says that stream 2 of an array that was just imported is that of the calling thread, so that its use on
 *  another one is an error. No-op for other streams. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI,
 *  CAI_ERR_UNAVAILABLE. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_remember_thread(cai_array *array, cai_stream_pool *pool,
                                                             cai_error *err);

/** Turns CAI_SYNC_STREAM into CAI_SYNC_EVENT: records an event, which any thread can wait for. Stream 2,
 *  only from its own thread, does not stay beside the event, as others cannot give it the back edge; other
 *  streams do. The mask is detached by a call of its own. Before the array is released,
 *  cai_stream_drop_event. Errors: as cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_detach(cai_array *array, cai_stream_pool *pool, cai_error *err);

/** Destroys the event of cai_stream_detach, not of a view; sync is CAI_SYNC_UNKNOWN then, and the array
 *  ready for release.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_drop_event(cai_array *array, cai_stream_pool *pool,
                                                        cai_error *err);

/* --------------------------------------------------------------- >>placement */
/** Where work on several arrays runs: it follows the data, and never guesses. */
enum {
    CAI_PLACE_IDENTICAL = 0,   /* all arrays that have a stream have the same one, or it is an error (what
                                  dpctl demands) */
    CAI_PLACE_SAME_DEVICE = 1, /* on the stream of the first input that has one; an exchange joins the rest */
    CAI_PLACE_INTO = 2         /* on the stream that is given; an exchange joins all */
};

enum {
    CAI_PLACE_ALLOW_OVERLAP = 1 << 0 /* out may share bytes with an input in any way: the caller looks at
                                        placement.overlap, and works by way of other memory */
};

typedef struct cai_placement {
    uint64_t stream; /* begin the exchange on this one, and launch there */
    int32_t device;  /* of the operands; CAI_DEVICE_UNKNOWN: all can be used on every device */
    int32_t memory;  /* CAI_MEMORY_...: the kind that a new result should have; unknown without inputs */
    int32_t decided; /* the input that decided the stream; -1: `stream` was taken */
    int32_t overlap; /* the first input that shares bytes with out otherwise than element by element, or -1 */
} cai_placement;

/** The kind of memory of a result of two: device before managed before pinned. CAI_MEMORY_UNKNOWN: one of
 *  them is none that a device can use. */
CAI_API int32_t cai_coerce_memory(int32_t a, int32_t b);

/** Says where to work on `count` inputs, and checks `out`. Calls no CUDA; the arrays were located before
 *  (cai_locate). inputs: NULL stands for a scalar; scalars, host arrays without axes and empty arrays have no
 *  say. Of masks only the streams count. names: of the inputs, for messages; NULL: "input 0". out: NULL, or
 *  the array to write to: it has no say in where, but must be there, must be writable, and must not overlap
 *  itself or, other than element by element, an input. Arrays with work on several streams are joined by the
 *  exchange, to which out belongs, too.
 *  policy: CAI_PLACE_...; flags: 0 or CAI_PLACE_ALLOW_OVERLAP. stream: with CAI_PLACE_INTO where to work, on
 *  the device of the operands; else taken if no input has a stream; 0: none. Streams 1 and 2 are compared by
 *  device, 2 by host thread, too: the operands are taken to be of primary contexts. Thread rule: none.
 *  Errors, with the operand named and its index (of out: `count`): CAI_ERR_PLACEMENT (device or stream; index
 *  -1: no input has a stream), CAI_ERR_MEMORY (plain host memory, or not located), CAI_ERR_EXPECT (out; the
 *  name of an input that it overlaps), CAI_ERR_STREAM, CAI_ERR_ARGUMENT, CAI_ERR_ABI. `placement` is not
 *  touched then. */
CAI_API CAI_MUST_CHECK cai_status cai_place(const cai_array *const *inputs, const char *const *names,
                                            int32_t count, const cai_array *out, int32_t policy,
                                            uint32_t flags, uint64_t stream, cai_placement *placement,
                                            cai_error *err);

/* --------------------------------------------------------------- >>keep-alive */
/** Moves an owned array to the keep-alive list: it is released, on a thread that polls or drains, when the
 *  work that is in `stream` now has passed. Never from a callback of CUDA. `array` is borrowed after success;
 *  a borrowed one is not touched. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_STREAM, CAI_ERR_CAPTURE (the
 *  stream is capturing), CAI_ERR_CAPACITY (the list is full even after a poll: drain, or release later),
 *  CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_push(cai_array *array, cai_stream_pool *pool, uint64_t stream,
                                                     cai_error *err);

/** Releases the arrays whose streams have passed, in the order in which they came; waits for nothing. A
 *  release callback may call it again. waiting: gets the number of arrays that still wait; may be NULL.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA (the first; if the context is dead its arrays were released). */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_poll(cai_stream_pool *pool, int32_t *waiting, cai_error *err);

/** cai_keepalive_poll that waits for all of them. Arrays that another thread is just polling are that
 *  thread's. */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_drain(cai_stream_pool *pool, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_STREAM_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>guard  >>failing  >>driver table  >>finding the driver  >>calling  >>events  >>members
 *   >>captures  >>begin  >>end  >>ordering  >>placing  >>keeping  >>pool  >>locating */

#if defined(CAI_STREAM_IMPLEMENTATION) && !defined(CAI_STREAM_IMPLEMENTED)
#define CAI_STREAM_IMPLEMENTED

#include <string.h>
#ifndef CAI_NO_CUDART
#include <cuda_runtime_api.h>
#endif
#if !defined(CAI_NO_LOADER) && defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#elif !defined(CAI_NO_LOADER)
#include <dlfcn.h>
#endif
#ifdef _WIN32
#if defined(_MSC_VER) && !defined(CAI_NO_THREADS)
#include <intrin.h>
#endif
#elif !defined(CAI_NO_CUDART) || !defined(CAI_NO_LOADER)
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CAI_PRIV_STREAM_COLD __attribute__((cold, noinline)) static
#define CAI_PRIV_STREAM_NOINLINE __attribute__((noinline)) static /* keeps the common path beside it lean */
#else
#define CAI_PRIV_STREAM_COLD static
#define CAI_PRIV_STREAM_NOINLINE static
#endif

/* The layout of the structs that cross shared objects, with pointers of 8 and of 4 bytes. */
typedef char cai_priv_assert_cuda_capture[sizeof(struct cai_cuda_capture_v0) == 16 ? 1 : -1];
typedef char cai_priv_assert_cuda_pointer[sizeof(struct cai_cuda_pointer_v0) == 32 ? 1 : -1];
typedef char cai_priv_assert_cuda[sizeof(struct cai_cuda_v0) == (sizeof(void *) == 8 ? 304 : 160) ? 1 : -1];

/* -------------------------------------------------------------------- >>guard */
/* Held for a few instructions, never across a CUDA call or a callback. */
#if defined(CAI_NO_THREADS)
static inline void cai_priv_lock(cai_stream_pool *pool) { (void)pool; }
static inline void cai_priv_unlock(cai_stream_pool *pool) { (void)pool; }
static inline void cai_priv_count_open(cai_stream_pool *pool, int32_t by) { pool->open_exchanges += by; }
#elif defined(__GNUC__) || defined(__clang__)
static inline void cai_priv_lock(cai_stream_pool *pool)
{
    while (__atomic_exchange_n(&pool->guard, 1, __ATOMIC_ACQUIRE)) {}
}

static inline void cai_priv_unlock(cai_stream_pool *pool)
{
    __atomic_store_n(&pool->guard, 0, __ATOMIC_RELEASE);
}

static inline void cai_priv_count_open(cai_stream_pool *pool, int32_t by)
{
    (void)__atomic_fetch_add(&pool->open_exchanges, by, __ATOMIC_RELAXED);
}
#elif defined(_MSC_VER)
static inline void cai_priv_lock(cai_stream_pool *pool)
{
    while (_InterlockedExchange((volatile long *)&pool->guard, 1)) {}
}

static inline void cai_priv_unlock(cai_stream_pool *pool)
{
    (void)_InterlockedExchange((volatile long *)&pool->guard, 0);
}

static inline void cai_priv_count_open(cai_stream_pool *pool, int32_t by)
{
    (void)_InterlockedExchangeAdd((volatile long *)&pool->open_exchanges, by);
}
#else
#error "cai_stream.h: no atomics known for this compiler; define CAI_NO_THREADS if every pool has one thread"
#endif

/* ------------------------------------------------------------------ >>failing */
static const char *cai_priv_cuda_error_text(int32_t error)
{
    static const struct {
        int32_t error;
        const char *text;
    } list[] = {
        {1, "invalid value"}, {2, "out of memory"}, {3, "not initialized"}, {4, "the process is ending"},
        {9, "invalid configuration"}, {35, "insufficient driver"}, {36, "insufficient driver for a call"},
        {46, "devices unavailable"},
        {98, "invalid device function"}, {100, "no device"}, {101, "invalid device"},
        {201, "no valid context is current"}, {209, "no kernel image for this device"},
        {214, "uncorrectable ECC error"}, {217, "peer access unsupported"}, {220, "NVLink error"},
        {400, "invalid resource handle"}, {401, "illegal state"}, {500, "not found"}, {600, "not ready"},
        {700, "illegal address"}, {701, "launch out of resources"}, {702, "launch timeout"},
        {709, "context is destroyed"}, {710, "device-side assert"}, {715, "illegal instruction"},
        {716, "misaligned address"}, {717, "invalid address space"}, {718, "invalid program counter"},
        {719, "launch failure"}, {800, "not permitted"}, {801, "not supported"},
        {900, "not permitted while a stream is capturing"}, {901, "the capture was invalidated"},
        {902, "would merge two captures"}, {903, "not the stream that began the capture"},
        {904, "a stream of the capture was not joined"}, {905, "dependency crosses the border of a capture"},
        {906, "the legacy stream is used while a blocking stream is capturing"},
        {907, "the event was recorded in a capture"}, {908, "not the thread that began the capture"},
        {999, "unknown error"}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof list[0]; ++i) {
        if (list[i].error == error) return list[i].text;
    }
    return "see CUDA's list";
}

static char *cai_priv_say_text(char *at, const char *end, const char *text)
{
    while (*text && at < end) *at++ = *text++;
    return at;
}

static char *cai_priv_say_number(char *at, const char *end, uint64_t value, uint32_t base)
{
    char digits[20];
    int32_t n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n && at < end) *at++ = digits[--n];
    return at;
}

/* Every error ends here; returns `status`. %w: the word; %d, %x: the next of a, b, c, in decimal or hex. */
CAI_PRIV_STREAM_COLD cai_status cai_priv_say(cai_error *err, cai_status status, int32_t index,
                                             const char *sentence, const char *word, int64_t a, int64_t b,
                                             int64_t c)
{
    const int64_t values[3] = {a, b, c};
    int32_t next = 0;
    char *at, *end;
    if (!err) return status;
    at = err->message;
    end = at + sizeof err->message - 1;
    for (; *sentence && at < end; ++sentence) {
        if (*sentence != '%') {
            *at++ = *sentence;
        } else if (*++sentence == 'w') {
            at = cai_priv_say_text(at, end, word);
        } else {
            const int64_t value = values[next++];
            const int negative = *sentence == 'd' && value < 0;
            if (negative) *at++ = '-';
            at = cai_priv_say_number(at, end, negative ? 0 - (uint64_t)value : (uint64_t)value,
                                     *sentence == 'd' ? 10 : 16);
        }
    }
    *at = 0;
    err->code = status;
    err->native = 0;
    err->entry = status == CAI_ERR_STREAM ? CAI_ENTRY_STREAM : CAI_ENTRY_NONE;
    err->index = index;
    return status;
}

CAI_PRIV_STREAM_COLD cai_status cai_priv_stream_misuse(cai_error *err, const char *sentence)
{
    return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, sentence, "", 0, 0, 0);
}

CAI_PRIV_STREAM_COLD cai_status cai_priv_cuda_failed(cai_error *err, cai_status status, int32_t error,
                                                     const char *what)
{
    char *at, *end;
    (void)cai_priv_say(err, status, -1, "%w: CUDA error %d (", what, error, 0, 0);
    if (!err) return status;
    at = err->message + strlen(err->message);
    end = err->message + sizeof err->message - 1;
    at = cai_priv_say_text(at, end, cai_priv_cuda_error_text(error));
    at = cai_priv_say_text(at, end, ")");
    *at = 0;
    err->native = error;
    return status;
}

CAI_API cai_status cai_cuda_status(int32_t error, const char *what, cai_error *err)
{
    return error ? cai_priv_cuda_failed(err, CAI_ERR_CUDA, error, what ? what : "CUDA") : CAI_OK;
}

/* ------------------------------------------------------------- >>driver table */
#if !defined(CAI_NO_CUDART) || !defined(CAI_NO_LOADER)
#if defined(_WIN32)
#define CAI_PRIV_CUDAAPI __stdcall
#else
#define CAI_PRIV_CUDAAPI
#endif

/* The driver's functions: X(name, symbol, symbol in the library, version, needed). The version is that of the
 * signature below, and never newer: a newer one may have other parameters. */
#define CAI_PRIV_ENTRY_LIST(X)                                                                               \
    X(INIT, "cuInit", "cuInit", 2000, 1)                                                                     \
    X(DRIVER_VERSION, "cuDriverGetVersion", "cuDriverGetVersion", 2020, 1)                                   \
    X(CTX_CURRENT, "cuCtxGetCurrent", "cuCtxGetCurrent", 4000, 1)                                            \
    X(CTX_PUSH, "cuCtxPushCurrent", "cuCtxPushCurrent_v2", 4000, 1)                                          \
    X(CTX_POP, "cuCtxPopCurrent", "cuCtxPopCurrent_v2", 4000, 1)                                             \
    X(CTX_SYNCHRONIZE, "cuCtxSynchronize", "cuCtxSynchronize", 2000, 1)                                      \
    X(CTX_DEVICE, "cuCtxGetDevice", "cuCtxGetDevice", 2000, 1)                                               \
    X(PRIMARY_RETAIN, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000, 1)                       \
    X(PRIMARY_RELEASE, "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000, 1)                \
    X(STREAM_CTX, "cuStreamGetCtx", "cuStreamGetCtx", 9020, 1)                                               \
    X(STREAM_CAPTURE, "cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo", 10010, 1)                          \
    X(STREAM_ID, "cuStreamGetId", "cuStreamGetId", 12000, 0)                                                 \
    X(STREAM_WAIT, "cuStreamWaitEvent", "cuStreamWaitEvent", 3020, 1)                                        \
    X(STREAM_SYNCHRONIZE, "cuStreamSynchronize", "cuStreamSynchronize", 2000, 1)                             \
    X(EVENT_CREATE, "cuEventCreate", "cuEventCreate", 2000, 1)                                               \
    X(EVENT_DESTROY, "cuEventDestroy", "cuEventDestroy_v2", 4000, 1)                                         \
    X(EVENT_RECORD, "cuEventRecord", "cuEventRecord", 2000, 1)                                               \
    X(EVENT_QUERY, "cuEventQuery", "cuEventQuery", 2000, 1)                                                  \
    X(EVENT_SYNCHRONIZE, "cuEventSynchronize", "cuEventSynchronize", 2000, 1)                                \
    X(CAPTURE_MODE, "cuThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode", 10010, 1)      \
    X(POINTER_INFO, "cuPointerGetAttributes", "cuPointerGetAttributes", 7000, 1)                             \
    X(POINTER_RANGE, "cuMemGetAddressRange", "cuMemGetAddressRange_v2", 3020, 1)                             \
    X(DEVICE_ATTRIBUTE, "cuDeviceGetAttribute", "cuDeviceGetAttribute", 2000, 1)                             \
    X(MEM_ALLOC, "cuMemAlloc", "cuMemAlloc_v2", 3020, 0)                                                     \
    X(MEM_FREE, "cuMemFree", "cuMemFree_v2", 3020, 0)                                                        \
    X(MEM_ALLOC_ASYNC, "cuMemAllocAsync", "cuMemAllocAsync", 11020, 0)                                       \
    X(MEM_FREE_ASYNC, "cuMemFreeAsync", "cuMemFreeAsync", 11020, 0)                                          \
    X(HOST_ALLOC, "cuMemHostAlloc", "cuMemHostAlloc", 2020, 0)                                               \
    X(HOST_FREE, "cuMemFreeHost", "cuMemFreeHost", 2000, 0)                                                  \
    X(HOST_REGISTER, "cuMemHostRegister", "cuMemHostRegister_v2", 6050, 0)                                   \
    X(HOST_UNREGISTER, "cuMemHostUnregister", "cuMemHostUnregister", 4000, 0)                                \
    X(MANAGED_ALLOC, "cuMemAllocManaged", "cuMemAllocManaged", 6000, 0)                                      \
    X(MEM_INFO, "cuMemGetInfo", "cuMemGetInfo_v2", 3020, 0)                                                  \
    X(IPC_EXPORT, "cuIpcGetMemHandle", "cuIpcGetMemHandle", 4010, 0)                                         \
    X(IPC_OPEN, "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000, 0)                                     \
    X(IPC_CLOSE, "cuIpcCloseMemHandle", "cuIpcCloseMemHandle", 4010, 0)                                      \
    X(DEVICE_UUID, "cuDeviceGetUuid", "cuDeviceGetUuid_v2", 11040, 0)

enum {
#define CAI_PRIV_ENUMERATOR(name, symbol, library, version, needed) CAI_PRIV_CU_##name,
    CAI_PRIV_ENTRY_LIST(CAI_PRIV_ENUMERATOR)
#undef CAI_PRIV_ENUMERATOR
    CAI_PRIV_CU_COUNT
};
typedef char cai_priv_assert_entries[CAI_PRIV_CU_COUNT <= 40 ? 1 : -1]; /* of cai_cuda_driver.entries */

/* Copies an entry to a pointer of the right type: ISO C has no cast between the two. */
static inline void cai_priv_entry(void *self, int32_t entry, void *function)
{
    cai_cuda_driver *driver = (cai_cuda_driver *)self;
    memcpy(function, &driver->entries[entry], sizeof driver->entries[entry]);
}

static inline void *cai_priv_handle(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static inline uint64_t cai_priv_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* A slot that is one call: of the entry with parameters of these types, by these arguments. */
#define CAI_PRIV_SLOT(name, entry, types, parameters, arguments)                                             \
    static int32_t cai_priv_driver_##name parameters                                                         \
    {                                                                                                        \
        int(CAI_PRIV_CUDAAPI *call) types;                                                                   \
        cai_priv_entry(self, CAI_PRIV_CU_##entry, &call);                                                    \
        return call arguments;                                                                               \
    }

/* The first call of a process finds the driver not initialized. True: it is now, try again. */
static int cai_priv_driver_init(void *self, int32_t *error)
{
    int(CAI_PRIV_CUDAAPI *init)(unsigned int);
    if (*error != 3) return 0;
    cai_priv_entry(self, CAI_PRIV_CU_INIT, &init);
    *error = init(0);
    return !*error;
}

static int32_t cai_priv_driver_context_current(void *self, uint64_t *context)
{
    int(CAI_PRIV_CUDAAPI *call)(void **);
    void *handle = NULL;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_CTX_CURRENT, &call);
    error = call(&handle);
    if (cai_priv_driver_init(self, &error)) error = call(&handle);
    *context = cai_priv_number(handle);
    return error;
}

CAI_PRIV_SLOT(context_push, CTX_PUSH, (void *), (void *self, uint64_t context), (cai_priv_handle(context)))

static int32_t cai_priv_driver_context_pop(void *self)
{
    int(CAI_PRIV_CUDAAPI *call)(void **);
    void *popped = NULL;
    cai_priv_entry(self, CAI_PRIV_CU_CTX_POP, &call);
    return call(&popped);
}

CAI_PRIV_SLOT(context_synchronize, CTX_SYNCHRONIZE, (void), (void *self), ())
CAI_PRIV_SLOT(context_device, CTX_DEVICE, (int *), (void *self, int32_t *device), (device))

/* The reference is given back at once: the context lives as long as the runtime, or whoever made the memory,
 * uses it. */
static int32_t cai_priv_driver_device_context(void *self, int32_t device, uint64_t *context)
{
    int(CAI_PRIV_CUDAAPI *retain)(void **, int);
    int(CAI_PRIV_CUDAAPI *release)(int);
    void *handle = NULL;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_PRIMARY_RETAIN, &retain);
    cai_priv_entry(self, CAI_PRIV_CU_PRIMARY_RELEASE, &release);
    error = retain(&handle, device);
    if (cai_priv_driver_init(self, &error)) error = retain(&handle, device);
    if (error) return error;
    *context = cai_priv_number(handle);
    return release(device);
}

static int32_t cai_priv_driver_stream_context(void *self, uint64_t stream, uint64_t *context)
{
    int(CAI_PRIV_CUDAAPI *call)(void *, void **);
    void *handle = NULL;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_STREAM_CTX, &call);
    error = call(cai_priv_handle(stream), &handle);
    *context = cai_priv_number(handle);
    return error;
}

static int32_t cai_priv_driver_stream_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    int(CAI_PRIV_CUDAAPI *call)(void *, int *, uint64_t *);
    int status = 0;
    uint64_t id = 0;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_STREAM_CAPTURE, &call);
    error = call(cai_priv_handle(stream), &status, &id);
    capture->status = status;
    capture->reserved = 0;
    capture->id = id;
    return error;
}

static int32_t cai_priv_driver_stream_id(void *self, uint64_t stream, uint64_t *id)
{
    int(CAI_PRIV_CUDAAPI *call)(void *, unsigned long long *);
    unsigned long long number = 0;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_STREAM_ID, &call);
    error = call(cai_priv_handle(stream), &number);
    *id = number;
    return error;
}

CAI_PRIV_SLOT(stream_wait_event, STREAM_WAIT, (void *, void *, unsigned int),
              (void *self, uint64_t stream, uint64_t event),
              (cai_priv_handle(stream), cai_priv_handle(event), 0))

CAI_PRIV_SLOT(stream_synchronize, STREAM_SYNCHRONIZE, (void *), (void *self, uint64_t stream),
              (cai_priv_handle(stream)))

static int32_t cai_priv_driver_event_create(void *self, uint64_t *event)
{
    int(CAI_PRIV_CUDAAPI *call)(void **, unsigned int);
    void *handle = NULL;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_EVENT_CREATE, &call);
    error = call(&handle, 2); /* CU_EVENT_DISABLE_TIMING */
    *event = cai_priv_number(handle);
    return error;
}

CAI_PRIV_SLOT(event_destroy, EVENT_DESTROY, (void *), (void *self, uint64_t event), (cai_priv_handle(event)))
CAI_PRIV_SLOT(event_record, EVENT_RECORD, (void *, void *), (void *self, uint64_t event, uint64_t stream),
              (cai_priv_handle(event), cai_priv_handle(stream)))
CAI_PRIV_SLOT(event_query, EVENT_QUERY, (void *), (void *self, uint64_t event), (cai_priv_handle(event)))
CAI_PRIV_SLOT(event_synchronize, EVENT_SYNCHRONIZE, (void *), (void *self, uint64_t event),
              (cai_priv_handle(event)))
CAI_PRIV_SLOT(capture_mode, CAPTURE_MODE, (int *), (void *self, int32_t *mode), (mode))

/* The plural form takes any pointer and gives zeros for one that CUDA does not know (R102). */
static int32_t cai_priv_driver_pointer_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    enum { TYPE, DEVICE, CONTEXT, MANAGED, DEVICE_POINTER, POOL, ATTRIBUTES };
    int attributes[ATTRIBUTES] = {2, 9, 1, 8, 3, 17}; /* CU_POINTER_ATTRIBUTE_... */
    uint64_t answers[ATTRIBUTES] = {0, 0, 0, 0, 0, 0};
    void *places[ATTRIBUTES];
    int(CAI_PRIV_CUDAAPI *call)(unsigned int, int *, void **, uint64_t);
    int32_t error, i, type, device;
    for (i = 0; i < ATTRIBUTES; ++i) places[i] = &answers[i];
    cai_priv_entry(self, CAI_PRIV_CU_POINTER_INFO, &call);
    error = call(ATTRIBUTES, attributes, places, pointer);
    if (cai_priv_driver_init(self, &error)) error = call(ATTRIBUTES, attributes, places, pointer);
    if (error == 1) error = call(POOL, attributes, places, pointer); /* CUDA 11.2 does not know the last */
    if (error == 201) error = call(DEVICE_POINTER, attributes, places, pointer); /* it needs a context */
    if (error) return error;
    memcpy(&type, &answers[TYPE], sizeof type);
    memcpy(&device, &answers[DEVICE], sizeof device);
    memset(info, 0, sizeof *info);
    info->memory = !type ? CAI_MEMORY_HOST : answers[MANAGED] || type == 4 ? CAI_MEMORY_MANAGED
                   : type == 1 ? CAI_MEMORY_PINNED : CAI_MEMORY_DEVICE;
    info->device = type ? device : CAI_DEVICE_UNKNOWN;
    if (answers[POOL]) info->flags |= CAI_POINTER_POOL;
    if (type == 3) info->flags |= CAI_POINTER_ARRAY;
    info->context = answers[CONTEXT];
    info->device_pointer = answers[DEVICE_POINTER];
    if (!info->device_pointer && info->memory > CAI_MEMORY_PINNED) info->device_pointer = pointer;
    return 0;
}

static int32_t cai_priv_driver_pointer_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    int(CAI_PRIV_CUDAAPI *call)(uint64_t *, size_t *, uint64_t);
    size_t bytes = 0;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_POINTER_RANGE, &call);
    error = call(base, &bytes, pointer);
    *size = bytes;
    return error;
}

CAI_PRIV_SLOT(pageable_access, DEVICE_ATTRIBUTE, (int *, int, int),
              (void *self, int32_t device, int32_t *yes),
              (yes, 88, device)) /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */

CAI_PRIV_SLOT(memory_alloc, MEM_ALLOC, (uint64_t *, size_t), (void *self, uint64_t *pointer, uint64_t size),
              (pointer, (size_t)size))
CAI_PRIV_SLOT(memory_free, MEM_FREE, (uint64_t), (void *self, uint64_t pointer), (pointer))
CAI_PRIV_SLOT(memory_alloc_async, MEM_ALLOC_ASYNC, (uint64_t *, size_t, void *),
              (void *self, uint64_t *pointer, uint64_t size, uint64_t stream),
              (pointer, (size_t)size, cai_priv_handle(stream)))
CAI_PRIV_SLOT(memory_free_async, MEM_FREE_ASYNC, (uint64_t, void *),
              (void *self, uint64_t pointer, uint64_t stream), (pointer, cai_priv_handle(stream)))
CAI_PRIV_SLOT(host_free, HOST_FREE, (void *), (void *self, uint64_t pointer), (cai_priv_handle(pointer)))
CAI_PRIV_SLOT(host_register, HOST_REGISTER, (void *, size_t, unsigned int),
              (void *self, uint64_t pointer, uint64_t size, uint32_t flags),
              (cai_priv_handle(pointer), (size_t)size, flags))
CAI_PRIV_SLOT(host_unregister, HOST_UNREGISTER, (void *), (void *self, uint64_t pointer),
              (cai_priv_handle(pointer)))
CAI_PRIV_SLOT(managed_alloc, MANAGED_ALLOC, (uint64_t *, size_t, unsigned int),
              (void *self, uint64_t *pointer, uint64_t size, uint32_t flags), (pointer, (size_t)size, flags))
CAI_PRIV_SLOT(ipc_export, IPC_EXPORT, (void *, uint64_t), (void *self, uint64_t pointer, void *handle),
              (handle, pointer))
CAI_PRIV_SLOT(ipc_close, IPC_CLOSE, (uint64_t), (void *self, uint64_t pointer), (pointer))

static int32_t cai_priv_driver_host_alloc(void *self, uint64_t *pointer, uint64_t size, uint32_t flags)
{
    int(CAI_PRIV_CUDAAPI *call)(void **, size_t, unsigned int);
    void *made = NULL;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_HOST_ALLOC, &call);
    error = call(&made, (size_t)size, flags);
    *pointer = cai_priv_number(made);
    return error;
}

static int32_t cai_priv_driver_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    int(CAI_PRIV_CUDAAPI *call)(size_t *, size_t *);
    size_t available = 0, total = 0;
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_MEM_INFO, &call);
    error = call(&available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return error;
}

static int32_t cai_priv_driver_ipc_open(void *self, const void *handle, uint64_t *pointer)
{
    struct by_value {
        char bytes[64];
    } copy;
    int(CAI_PRIV_CUDAAPI *call)(uint64_t *, struct by_value, unsigned int);
    memcpy(&copy, handle, sizeof copy);
    cai_priv_entry(self, CAI_PRIV_CU_IPC_OPEN, &call);
    return call(pointer, copy, 1); /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
}

static int32_t cai_priv_driver_device_uuid(void *self, int32_t device, void *uuid)
{
    int(CAI_PRIV_CUDAAPI *call)(void *, int);
    int32_t error;
    cai_priv_entry(self, CAI_PRIV_CU_DEVICE_UUID, &call);
    error = call(uuid, device);
    return cai_priv_driver_init(self, &error) ? call(uuid, device) : error;
}

static int32_t cai_priv_driver_host_thread(void *self, uint64_t *thread)
{
    (void)self;
#ifdef _WIN32
    *thread = (uint64_t)GetCurrentThreadId();
#else
    *thread = (uint64_t)(uintptr_t)pthread_self();
#endif
    return 0;
}

#undef CAI_PRIV_SLOT

static void cai_priv_driver_fill(cai_cuda_driver *out)
{
    cai_cuda *cuda = &out->cuda;
    cuda->struct_size = (uint32_t)sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->self = out;
    cuda->context_current = cai_priv_driver_context_current;
    cuda->context_push = cai_priv_driver_context_push;
    cuda->context_pop = cai_priv_driver_context_pop;
    cuda->context_synchronize = cai_priv_driver_context_synchronize;
    cuda->context_device = cai_priv_driver_context_device;
    cuda->device_context = cai_priv_driver_device_context;
    cuda->stream_context = cai_priv_driver_stream_context;
    cuda->stream_capture = cai_priv_driver_stream_capture;
    cuda->stream_wait_event = cai_priv_driver_stream_wait_event;
    cuda->stream_synchronize = cai_priv_driver_stream_synchronize;
    cuda->event_create = cai_priv_driver_event_create;
    cuda->event_destroy = cai_priv_driver_event_destroy;
    cuda->event_record = cai_priv_driver_event_record;
    cuda->event_query = cai_priv_driver_event_query;
    cuda->event_synchronize = cai_priv_driver_event_synchronize;
    cuda->capture_mode = cai_priv_driver_capture_mode;
    cuda->pointer_info = cai_priv_driver_pointer_info;
    cuda->pointer_range = cai_priv_driver_pointer_range;
    cuda->pageable_access = cai_priv_driver_pageable_access;
    cuda->host_thread = cai_priv_driver_host_thread; /* the others: of entries that were found */
#define CAI_PRIV_FILL(slot, entry)                                                                           \
    if (out->entries[CAI_PRIV_CU_##entry]) cuda->slot = cai_priv_driver_##slot;
    CAI_PRIV_FILL(stream_id, STREAM_ID) CAI_PRIV_FILL(memory_alloc, MEM_ALLOC)
    CAI_PRIV_FILL(memory_free, MEM_FREE) CAI_PRIV_FILL(memory_alloc_async, MEM_ALLOC_ASYNC)
    CAI_PRIV_FILL(memory_free_async, MEM_FREE_ASYNC) CAI_PRIV_FILL(host_alloc, HOST_ALLOC)
    CAI_PRIV_FILL(host_free, HOST_FREE) CAI_PRIV_FILL(host_register, HOST_REGISTER)
    CAI_PRIV_FILL(host_unregister, HOST_UNREGISTER) CAI_PRIV_FILL(managed_alloc, MANAGED_ALLOC)
    CAI_PRIV_FILL(memory_info, MEM_INFO) CAI_PRIV_FILL(ipc_export, IPC_EXPORT)
    CAI_PRIV_FILL(ipc_open, IPC_OPEN) CAI_PRIV_FILL(ipc_close, IPC_CLOSE)
    CAI_PRIV_FILL(device_uuid, DEVICE_UUID)
#undef CAI_PRIV_FILL
}

/* ------------------------------------------------------- >>finding the driver */
/* Finds one function of the driver: by cuGetProcAddress, whose parameters CUDA 12 extended, or by name in the
 * driver's library. */
typedef struct cai_priv_finder {
    void *get_proc_address;
    int32_t major;  /* of the runtime that gave it */
    void *library;
} cai_priv_finder;

#ifndef CAI_NO_LOADER
static void *cai_priv_library_symbol(void *library, const char *symbol);
#endif

static void *cai_priv_find(const cai_priv_finder *finder, const char *symbol, const char *in_library,
                           int32_t version)
{
    enum { LEGACY_STREAM = 1 }; /* plain functions, whatever the unit was compiled for */
    int(CAI_PRIV_CUDAAPI *find11)(const char *, void **, int, uint64_t);
    int(CAI_PRIV_CUDAAPI *find12)(const char *, void **, int, uint64_t, int *);
    void *found = NULL;
    int query = 0, error;
#ifndef CAI_NO_LOADER
    if (!finder->get_proc_address) return cai_priv_library_symbol(finder->library, in_library);
#endif
    (void)in_library;
    memcpy(&find11, &finder->get_proc_address, sizeof find11);
    memcpy(&find12, &finder->get_proc_address, sizeof find12);
    error = finder->major < 12 ? find11(symbol, &found, version, LEGACY_STREAM)
                               : find12(symbol, &found, version, LEGACY_STREAM, &query);
    return error ? NULL : found;
}

static cai_status cai_priv_driver_find_all(cai_cuda_driver *out, const cai_priv_finder *finder,
                                           cai_error *err)
{
    static const struct {
        const char *symbol, *library;
        int32_t version, needed;
    } list[] = {
#define CAI_PRIV_ROW(name, symbol, library, version, needed) {symbol, library, version, needed},
        CAI_PRIV_ENTRY_LIST(CAI_PRIV_ROW)
#undef CAI_PRIV_ROW
    };
    int(CAI_PRIV_CUDAAPI *version)(int *);
    int32_t i;
    for (i = 0; i < CAI_PRIV_CU_COUNT; ++i) {
        void *found = cai_priv_find(finder, list[i].symbol, list[i].library, list[i].version);
        if (!found && list[i].needed)
            return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the CUDA driver has no %w (of CUDA %d.%d)",
                                list[i].symbol, list[i].version / 1000, list[i].version % 1000 / 10, 0);
        memcpy(&out->entries[i], &found, sizeof found);
    }
    cai_priv_entry(out, CAI_PRIV_CU_DRIVER_VERSION, &version);
    if (version(&out->driver_version)) out->driver_version = 0;
    cai_priv_driver_fill(out);
    return CAI_OK;
}

#ifndef CAI_NO_CUDART
CAI_API cai_status cai_cuda_linked(cai_cuda_driver *out, cai_error *err)
{
    cai_priv_finder finder = {NULL, CUDART_VERSION / 1000, NULL};
    cai_cuda_driver driver;
    cudaError_t pending, error;
    int version = 0;
    if (!out) return cai_priv_stream_misuse(err, "cai_cuda_linked: out is NULL");
    pending = cudaPeekAtLastError();
#if CUDART_VERSION >= 12050
    {
        enum cudaDriverEntryPointQueryResult query;
        error = cudaGetDriverEntryPointByVersion("cuGetProcAddress", &finder.get_proc_address, 12000,
                                                 cudaEnableDefault, &query);
    }
#elif CUDART_VERSION >= 12000
    {
        enum cudaDriverEntryPointQueryResult query;
        error = cudaGetDriverEntryPoint("cuGetProcAddress", &finder.get_proc_address, cudaEnableDefault,
                                        &query);
    }
#elif CUDART_VERSION >= 11030
    error = cudaGetDriverEntryPoint("cuGetProcAddress", &finder.get_proc_address, cudaEnableDefault);
#else
#error "cai_stream.h: cai_cuda_linked needs CUDA 11.3; define CAI_NO_CUDART and use cai_cuda_load"
#endif
    if (error != cudaSuccess && pending == cudaSuccess) (void)cudaGetLastError();
    if (error != cudaSuccess)
        return cai_priv_cuda_failed(err, CAI_ERR_UNAVAILABLE, (int32_t)error, "looking for the CUDA driver");
    if (!finder.get_proc_address)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the CUDA driver is older than 11.3", "", 0, 0, 0);
    memset(&driver, 0, sizeof driver);
    if (cudaRuntimeGetVersion(&version) == cudaSuccess) driver.runtime_version = version;
    CAI_TRY(cai_priv_driver_find_all(&driver, &finder, err));
    *out = driver;
    out->cuda.self = out;
    return CAI_OK;
}
#endif

#ifndef CAI_NO_LOADER
#if defined(_WIN32)
static const char *const cai_priv_runtimes[] = {"cudart64_13.dll", "cudart64_12.dll", "cudart64_110.dll"};
static const char cai_priv_driver_library[] = "nvcuda.dll";

static void *cai_priv_library_open(const char *name, int only_if_loaded)
{
    return only_if_loaded && !GetModuleHandleA(name) ? NULL : (void *)LoadLibraryA(name);
}

static void cai_priv_library_close(void *library)
{
    (void)FreeLibrary((HMODULE)library);
}

static void *cai_priv_library_symbol(void *library, const char *symbol)
{
    FARPROC found = library ? GetProcAddress((HMODULE)library, symbol) : NULL;
    void *address = NULL;
    memcpy(&address, &found, sizeof address);
    return address;
}
#else
static const char *const cai_priv_runtimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
static const char cai_priv_driver_library[] = "libcuda.so.1";

static void *cai_priv_library_open(const char *name, int only_if_loaded)
{
    return dlopen(name, only_if_loaded ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY);
}

static void cai_priv_library_close(void *library)
{
    (void)dlclose(library);
}

static void *cai_priv_library_symbol(void *library, const char *symbol)
{
    return library ? dlsym(library, symbol) : NULL;
}
#endif

/* Asks a runtime for cuGetProcAddress, by a function of 3, 4 or 5 parameters. Returns CUDA's error. */
static int32_t cai_priv_ask_runtime(void *runtime, int32_t version, void **get_proc_address)
{
    int(CAI_PRIV_CUDAAPI *by_version)(const char *, void **, unsigned int, unsigned long long, int *);
    int(CAI_PRIV_CUDAAPI *by_name12)(const char *, void **, unsigned long long, int *);
    int(CAI_PRIV_CUDAAPI *by_name11)(const char *, void **, unsigned long long);
    const char name[] = "cuGetProcAddress";
    void *asked = cai_priv_library_symbol(runtime, "cudaGetDriverEntryPointByVersion");
    int query = 0;
    if (asked && version >= 12050) {
        memcpy(&by_version, &asked, sizeof by_version);
        return by_version(name, get_proc_address, 12000, 0, &query);
    }
    asked = cai_priv_library_symbol(runtime, "cudaGetDriverEntryPoint");
    if (!asked || version < 11030) return 0; /* CUDA 11.2: the driver's library is asked by name */
    memcpy(&by_name11, &asked, sizeof by_name11);
    memcpy(&by_name12, &asked, sizeof by_name12);
    return version < 12000 ? by_name11(name, get_proc_address, 0)
                           : by_name12(name, get_proc_address, 0, &query);
}

static void *cai_priv_open_any(int only_if_loaded)
{
    void *library = NULL;
    size_t i;
    for (i = 0; !library && i < sizeof cai_priv_runtimes / sizeof cai_priv_runtimes[0]; ++i)
        library = cai_priv_library_open(cai_priv_runtimes[i], only_if_loaded);
    return library;
}

/* Asks the runtime in out->library for the driver; finder->get_proc_address stays NULL if the driver is to be
 * asked by name. */
static cai_status cai_priv_load_runtime(cai_cuda_driver *out, cai_priv_finder *finder, cai_error *err)
{
    int(CAI_PRIV_CUDAAPI *get_version)(int *);
    void *symbol = cai_priv_library_symbol(out->library, "cudaRuntimeGetVersion");
    int version = 0;
    int32_t error;
    if (!symbol)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the library has no cudaRuntimeGetVersion", "", 0,
                            0, 0);
    memcpy(&get_version, &symbol, sizeof get_version);
    error = get_version(&version);
    if (error) return cai_priv_cuda_failed(err, CAI_ERR_UNAVAILABLE, error, "cudaRuntimeGetVersion");
    if (version < 11020)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the runtime is of CUDA %d.%d, 11.2 is needed", "",
                            version / 1000, version % 1000 / 10, 0);
    out->runtime_version = version;
    finder->major = version / 1000;
    error = cai_priv_ask_runtime(out->library, version, &finder->get_proc_address);
    return error ? cai_priv_cuda_failed(err, CAI_ERR_UNAVAILABLE, error, "looking for the CUDA driver")
                 : CAI_OK;
}

/* The driver's own library, by name, in place of a runtime that does not lead to it. */
static cai_status cai_priv_load_driver(cai_cuda_driver *out, cai_priv_finder *finder, cai_error *err)
{
    finder->get_proc_address = NULL;
    finder->library = cai_priv_library_open(cai_priv_driver_library, 0);
    if (!finder->library)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1,
                            out->library
                                ? "there is no CUDA driver: the runtime does not lead to one, and %w "
                                  "cannot be loaded"
                                : "there is no CUDA: no runtime of 13, 12 or 11, and no %w",
                            cai_priv_driver_library, 0, 0, 0);
    if (out->library) cai_priv_library_close(out->library);
    out->library = finder->library;
    return CAI_OK;
}

static cai_status cai_priv_load(cai_cuda_driver *out, const char *path, cai_error *err)
{
    cai_priv_finder finder = {NULL, 0, NULL};
    cai_status status = CAI_OK;
    out->library = path ? cai_priv_library_open(path, 0) : cai_priv_open_any(1);
    if (path && !out->library)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "cannot load %w", path, 0, 0, 0);
    if (!out->library) out->library = cai_priv_open_any(0);
    if (out->library) status = cai_priv_load_runtime(out, &finder, path ? err : NULL);
    if (status && path) return status;
    if (status || !finder.get_proc_address) CAI_TRY(cai_priv_load_driver(out, &finder, err));
    return cai_priv_driver_find_all(out, &finder, err);
}

CAI_API cai_status cai_cuda_load(cai_cuda_driver *out, const char *path, cai_error *err)
{
    cai_cuda_driver driver;
    cai_status status;
    if (!out) return cai_priv_stream_misuse(err, "cai_cuda_load: out is NULL");
    memset(&driver, 0, sizeof driver);
    status = cai_priv_load(&driver, path, err);
    if (status) {
        cai_cuda_unload(&driver);
        return status;
    }
    *out = driver;
    out->cuda.self = out;
    return CAI_OK;
}

CAI_API void cai_cuda_unload(cai_cuda_driver *driver)
{
    if (!driver || !driver->library) return;
    cai_priv_library_close(driver->library);
    driver->library = NULL;
}
#endif
#endif /* a backend */

/* ------------------------------------------------------------------ >>calling */
/* One public call: which CUDA, which context was current, where errors go. */
typedef struct cai_priv_call {
    cai_stream_pool *pool;
    const cai_cuda *cuda;
    cai_error *err;
    uint64_t current;     /* context */
    int32_t current_known;
    int32_t ending;       /* the end of something: "the process is ending" is no error (R105) */
    int32_t gone;         /* and that was answered */
    int32_t failed;       /* something else went wrong before that */
} cai_priv_call;

static cai_priv_call cai_priv_open(cai_stream_pool *pool, cai_error *err)
{
    cai_priv_call call;
    memset(&call, 0, sizeof call);
    call.pool = pool;
    call.cuda = pool->cuda;
    call.err = err;
    return call;
}

/* The status of a CUDA call. */
static inline cai_status cai_priv_did(cai_priv_call *call, int32_t error, const char *operation)
{
    if (!error) return CAI_OK;
    if (error == 4 && call->ending) call->gone = 1;
    if (!call->gone) call->failed = 1;
    return cai_priv_cuda_failed(call->gone ? NULL : call->err,
                                error >= 900 && error <= 908 ? CAI_ERR_CAPTURE : CAI_ERR_CUDA, error,
                                operation);
}

/* Keeps the first error of several. */
static void cai_priv_keep_first(cai_priv_call *call, cai_status *first, cai_status status)
{
    if (!status || *first) return;
    *first = status;
    call->err = NULL;
}

/* Says which array a failure is about. */
static cai_status cai_priv_blame(const cai_priv_call *call, int32_t index, cai_status status)
{
    if (status && call->err && !call->gone) call->err->index = index;
    return status;
}

CAI_PRIV_STREAM_COLD cai_status cai_priv_lacks(const cai_priv_call *call, const char *operation)
{
    return cai_priv_say(call->err, CAI_ERR_UNAVAILABLE, -1, "the CUDA table has no %w", operation, 0, 0, 0);
}

static cai_status cai_priv_find_current(cai_priv_call *call)
{
    const cai_cuda *cuda = call->cuda;
    if (call->current_known || !cuda->context_current) return CAI_OK;
    CAI_TRY(cai_priv_did(call, cuda->context_current(cuda->self, &call->current), "context_current"));
    call->current_known = 1;
    return CAI_OK;
}

static inline int cai_priv_is_handle(uint64_t stream)
{
    return stream > CAI_STREAM_PER_THREAD;
}

/* The context of a stream in the sense of the current context. */
static cai_status cai_priv_ask_context(cai_priv_call *call, uint64_t stream, uint64_t *context)
{
    const cai_cuda *cuda = call->cuda;
    *context = call->current;
    if (!cai_priv_is_handle(stream) || !cuda->stream_context) return CAI_OK;
    return cai_priv_did(call, cuda->stream_context(cuda->self, stream, context), "stream_context");
}

/* After a push or pop that failed, which may have been done all the same: CUDA also reports earlier
 * errors. */
static void cai_priv_restore(const cai_priv_call *call)
{
    const cai_cuda *cuda = call->cuda;
    uint64_t current = call->current;
    if (!cuda->context_current || cuda->context_current(cuda->self, &current)) return;
    if (current != call->current) (void)cuda->context_pop(cuda->self);
}

/* Makes `context` current where it is not; cai_priv_leave undoes that and keeps the first error. */
static cai_status cai_priv_enter(cai_priv_call *call, uint64_t context, int32_t *entered)
{
    const cai_cuda *cuda = call->cuda;
    int32_t error;
    *entered = 0;
    if (context == call->current || !context) return CAI_OK;
    if (!cuda->context_push || !cuda->context_pop) /* fine where there is but one context */
        return cuda->context_current ? cai_priv_lacks(call, "context_push and context_pop") : CAI_OK;
    error = cuda->context_push(cuda->self, context);
    *entered = !error;
    if (error) cai_priv_restore(call);
    return cai_priv_did(call, error, "context_push");
}

static cai_status cai_priv_leave(cai_priv_call *call, int32_t entered, cai_status status)
{
    const cai_cuda *cuda = call->cuda;
    int32_t error;
    if (!entered) return status;
    error = cuda->context_pop(cuda->self);
    if (error) cai_priv_restore(call);
    return status ? status : cai_priv_did(call, error, "context_pop");
}

/* Host waits and queries are forbidden on a thread while something captures globally, unless its mode is
 * relaxed. */
static cai_status cai_priv_relax(cai_priv_call *call, int32_t *mode)
{
    const cai_cuda *cuda = call->cuda;
    *mode = 2;
    if (!cuda->capture_mode) return CAI_OK;
    return cai_priv_did(call, cuda->capture_mode(cuda->self, mode), "capture_mode");
}

static cai_status cai_priv_unrelax(cai_priv_call *call, int32_t mode, cai_status status)
{
    const cai_cuda *cuda = call->cuda;
    int32_t error, again = mode;
    if (!cuda->capture_mode) return status;
    error = cuda->capture_mode(cuda->self, &mode);
    if (error) (void)cuda->capture_mode(cuda->self, &again);
    return status ? status : cai_priv_did(call, error, "capture_mode");
}

/* ------------------------------------------------------------------- >>events */
/* An idle event of the context, which is current, or a new one. */
static cai_status cai_priv_event_take(cai_priv_call *call, uint64_t context, uint64_t *event)
{
    cai_stream_pool *pool = call->pool;
    const cai_cuda *cuda = call->cuda;
    int32_t i;
    *event = 0;
    cai_priv_lock(pool);
    for (i = pool->idle_count - 1; i >= 0 && pool->idle[i].context != context;) --i;
    if (i >= 0) {
        *event = pool->idle[i].event;
        pool->idle[i] = pool->idle[--pool->idle_count];
    }
    cai_priv_unlock(pool);
    if (*event) return CAI_OK;
    return cai_priv_did(call, cuda->event_create(cuda->self, event), "event_create");
}

/* An event may be recorded anew while waits for it are pending (R101). One that was recorded in a capture is
 * not used again. Keeps the first error. */
static cai_status cai_priv_event_give(cai_priv_call *call, uint64_t context, uint64_t event, int32_t retire,
                                      cai_status status)
{
    cai_stream_pool *pool = call->pool;
    const cai_cuda *cuda = call->cuda;
    int32_t kept = 0, error;
    if (!retire) {
        cai_priv_lock(pool);
        kept = pool->idle_count < CAI_POOL_EVENTS;
        if (kept) {
            pool->idle[pool->idle_count].context = context;
            pool->idle[pool->idle_count++].event = event;
        }
        cai_priv_unlock(pool);
    }
    if (kept) return status;
    error = cuda->event_destroy(cuda->self, event);
    return status ? status : cai_priv_did(call, error, "event_destroy");
}

/* Records an event of the pool on a stream. */
static cai_status cai_priv_record(cai_priv_call *call, uint64_t stream, uint64_t context, int32_t retire,
                                  uint64_t *event)
{
    const cai_cuda *cuda = call->cuda;
    int32_t entered;
    cai_status status;
    *event = 0;
    CAI_TRY(cai_priv_enter(call, context, &entered));
    status = cai_priv_event_take(call, context, event);
    if (!status)
        status = cai_priv_did(call, cuda->event_record(cuda->self, *event, stream), "event_record");
    status = cai_priv_leave(call, entered, status);
    if (status && *event) status = cai_priv_event_give(call, context, *event, retire, status);
    return status;
}

static cai_status cai_priv_wait(cai_priv_call *call, uint64_t stream, uint64_t context, uint64_t event)
{
    const cai_cuda *cuda = call->cuda;
    int32_t entered;
    cai_status status;
    CAI_TRY(cai_priv_enter(call, context, &entered));
    status = cai_priv_did(call, cuda->stream_wait_event(cuda->self, stream, event), "stream_wait_event");
    return cai_priv_leave(call, entered, status);
}

/* What `operation` waits for on the host: a context (object 0), or a stream or event in it. */
static cai_status cai_priv_block(cai_priv_call *call, uint64_t context, uint64_t object,
                                 const char *operation, int32_t (*wait)(void *self, uint64_t object))
{
    const cai_cuda *cuda = call->cuda;
    int32_t mode, entered;
    cai_status status;
    if (!wait && (object || !cuda->context_synchronize)) return cai_priv_lacks(call, operation);
    CAI_TRY(cai_priv_relax(call, &mode));
    status = cai_priv_enter(call, context, &entered);
    if (!status) {
        status = cai_priv_did(call, wait ? wait(cuda->self, object) : cuda->context_synchronize(cuda->self),
                              operation);
        status = cai_priv_leave(call, entered, status);
    }
    return cai_priv_unrelax(call, mode, status);
}

/* ------------------------------------------------------------------ >>members */
enum {
    CAI_PRIV_OPEN = 0x43414945, /* states of an exchange: not what uninitialized memory holds */
    CAI_PRIV_OPEN_IN_ORDER = 0x43414946, /* begun without a CUDA call; ends without one */
    CAI_PRIV_ENDED = 0x43414958,
    CAI_PRIV_FORWARD = 1 << 0,  /* of an edge: the consumer waits for it */
    CAI_PRIV_RETURNED = 1 << 1, /* it waits for the consumer, since end */
    CAI_PRIV_LOST = 1 << 2,     /* it cannot */
    CAI_PRIV_SETTLED = 1 << 0   /* of an exchange: the consumer's work has passed, or the process ends */
};

/* What begin is about to do. */
typedef struct cai_priv_plan {
    cai_priv_call call;
    cai_exchange *ex;
    const cai_array *const *arrays;
    int64_t member_count; /* arrays and masks */
    int32_t item;         /* index of the array that is looked at */
    int32_t ordered;      /* members that need the consumer's context */
    int32_t blocking;     /* members whose context is to be synchronized */
    int32_t event_count, context_count;
    uint64_t events[CAI_EXCHANGE_EDGES];
    uint64_t contexts[CAI_EXCHANGE_EDGES];
} cai_priv_plan;

/* Array k / 2, or its mask; NULL where there is nothing to order. */
static const cai_array *cai_priv_member(const cai_array *const *arrays, int64_t k)
{
    const cai_array *member = k & 1 ? arrays[k >> 1]->mask : arrays[k >> 1];
    return member && member->size ? member : NULL;
}

/* The sync of a member and its stream, as the options read CAI_SYNC_UNKNOWN. */
static int32_t cai_priv_sync(const cai_exchange_options *options, const cai_array *member, uint64_t *stream)
{
    *stream = member->stream;
    if (member->sync != CAI_SYNC_UNKNOWN) return member->sync;
    if (options->unknown == CAI_UNKNOWN_TRUST) return CAI_SYNC_NONE;
    if (options->unknown == CAI_UNKNOWN_SYNCHRONIZE) return CAI_SYNC_UNKNOWN;
    *stream = options->unknown == CAI_UNKNOWN_LEGACY ? (uint64_t)CAI_STREAM_LEGACY : options->unknown_stream;
    return CAI_SYNC_STREAM;
}

/* The calling thread, which a stream 2 is about. */
static cai_status cai_priv_thread(const cai_priv_call *call, uint64_t *thread)
{
    const cai_cuda *cuda = call->cuda;
    int32_t error;
    if (!cuda->host_thread) return cai_priv_lacks(call, "host_thread");
    error = cuda->host_thread(cuda->self, thread);
    return error ? cai_priv_cuda_failed(call->err, CAI_ERR_CUDA, error, "host_thread") : CAI_OK;
}

/* A number that may be passed on: not 0 (R71), not DLPack's -1 (R74). */
static cai_status cai_priv_check_stream(const cai_priv_call *call, uint64_t stream, int32_t index)
{
    if (!stream)
        return cai_priv_say(call->err, CAI_ERR_STREAM, index,
                            "stream 0 is ambiguous: make the number of a cudaStream_t by CAI_STREAM(stream)",
                            "", 0, 0, 0);
    if (stream == UINT64_MAX)
        return cai_priv_say(call->err, CAI_ERR_STREAM, index,
                            "stream -1 is no stream; without synchronization: CAI_MODE_IGNORE", "", 0, 0, 0);
    if (!cai_priv_is_handle(stream) && call->cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS)
        return cai_priv_say(call->err, CAI_ERR_STREAM, index,
                            "stream %d is no stream of this platform: pass a handle", "", (int64_t)stream, 0,
                            0);
    return CAI_OK;
}

static cai_status cai_priv_check_thread(const cai_priv_call *call, uint64_t thread, int32_t index)
{
    uint64_t here;
    CAI_TRY(cai_priv_thread(call, &here));
    if (thread == here) return CAI_OK;
    if (!thread)
        return cai_priv_say(call->err, CAI_ERR_THREAD, index,
                            "stream 2 of an array does not say of which host thread it is: "
                            "cai_stream_remember_thread where it was imported",
                            "", 0, 0, 0);
    return cai_priv_say(
        call->err, CAI_ERR_THREAD, index,
        "stream 2 is the per-thread stream of host thread 0x%x, this is 0x%x; cai_stream_detach "
        "there makes an event of it",
        "", (int64_t)thread, (int64_t)here, 0);
}

static cai_exchange_edge *cai_priv_find_edge(cai_exchange *ex, uint64_t stream, uint64_t context)
{
    int32_t i;
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        if (edge->stream == stream && (cai_priv_is_handle(stream) || edge->context == context)) return edge;
    }
    return NULL;
}

CAI_PRIV_STREAM_COLD cai_status cai_priv_too_many(const cai_priv_plan *plan, const char *what)
{
    return cai_priv_say(plan->call.err, CAI_ERR_CAPACITY, plan->item,
                        "more than %d distinct %w in one exchange", what, CAI_EXCHANGE_EDGES, 0, 0);
}

static cai_status cai_priv_add_edge(cai_priv_plan *plan, uint64_t stream, uint64_t context, uint32_t flags)
{
    cai_exchange *ex = plan->ex;
    cai_exchange_edge *edge = cai_priv_find_edge(ex, stream, context);
    if (!edge) {
        if (ex->edge_count == CAI_EXCHANGE_EDGES) return cai_priv_too_many(plan, "streams");
        edge = &ex->edges[ex->edge_count++];
        memset(edge, 0, sizeof *edge);
        edge->stream = stream;
        edge->context = context;
        edge->array = plan->item;
    }
    edge->flags |= flags;
    return CAI_OK;
}

static cai_status cai_priv_add_once(const cai_priv_plan *plan, uint64_t *list, int32_t *count, uint64_t value,
                                    const char *what)
{
    int32_t i;
    for (i = 0; i < *count; ++i) {
        if (list[i] == value) return CAI_OK;
    }
    if (*count == CAI_EXCHANGE_EDGES) return cai_priv_too_many(plan, what);
    list[(*count)++] = value;
    return CAI_OK;
}

/* Judges one member without CUDA, and counts what it needs. Handles are collected to see that they fit. */
static cai_status cai_priv_judge_member(cai_priv_plan *plan, const cai_array *member)
{
    cai_exchange *ex = plan->ex;
    const cai_priv_call *call = &plan->call;
    uint64_t stream;
    const int32_t sync = cai_priv_sync(&ex->options, member, &stream);
    const int has_stream = sync == CAI_SYNC_STREAM || (sync == CAI_SYNC_EVENT && stream);
    if (sync < CAI_SYNC_UNKNOWN || sync > CAI_SYNC_EVENT)
        return cai_priv_say(call->err, CAI_ERR_ARGUMENT, plan->item, "sync = %d is no CAI_SYNC_...", "",
                            sync, 0, 0);
    if (sync == CAI_SYNC_EVENT && !member->event)
        return cai_priv_say(call->err, CAI_ERR_ARGUMENT, plan->item, "CAI_SYNC_EVENT with event 0", "", 0, 0,
                            0);
    if (has_stream) CAI_TRY(cai_priv_check_stream(call, stream, plan->item));
    if (ex->options.mode == CAI_MODE_IGNORE) return CAI_OK;
    if (sync == CAI_SYNC_EVENT)
        CAI_TRY(cai_priv_add_once(plan, plan->events, &plan->event_count, member->event, "events"));
    if (has_stream && stream == CAI_STREAM_PER_THREAD) {
        CAI_TRY(cai_priv_thread(call, &ex->thread));
        if (member->sync != CAI_SYNC_UNKNOWN)
            CAI_TRY(cai_priv_check_thread(call, member->thread, plan->item));
    }
    plan->blocking += sync == CAI_SYNC_UNKNOWN;
    plan->ordered += sync == CAI_SYNC_EVENT;
    if (!has_stream) return CAI_OK;
    if (stream == ex->stream && cai_priv_is_handle(stream) && ex->options.mode != CAI_MODE_HOST)
        return CAI_OK;
    ++plan->ordered;
    return cai_priv_is_handle(stream) ? cai_priv_add_edge(plan, stream, 0, 0) : CAI_OK;
}

/* The context of the memory of an array, which its streams 1 and 2 are relative to (R83). */
static cai_status cai_priv_memory_context(cai_priv_call *call, const cai_array *member, uint64_t *context)
{
    const cai_cuda *cuda = call->cuda;
    cai_cuda_pointer info;
    memset(&info, 0, sizeof info);
    info.device = member->device;
    *context = call->current;
    if (cuda->pointer_info)
        CAI_TRY(cai_priv_did(call, cuda->pointer_info(cuda->self, member->data, &info), "pointer_info"));
    if (info.context) *context = info.context;
    else if (info.device >= 0 && cuda->device_context)
        return cai_priv_did(call, cuda->device_context(cuda->self, info.device, context), "device_context");
    return CAI_OK;
}

/* The context of a producer's handle, asked once. */
static cai_status cai_priv_handle_context(cai_priv_plan *plan, uint64_t stream, uint64_t *context)
{
    const cai_exchange_edge *edge = cai_priv_find_edge(plan->ex, stream, 0);
    if (!edge && stream != plan->ex->stream) return cai_priv_ask_context(&plan->call, stream, context);
    *context = edge ? edge->context : plan->ex->context;
    return CAI_OK;
}

/* The context of the consumer's stream; of 1 and 2 the current one, which there must be. */
static cai_status cai_priv_find_consumer(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    CAI_TRY(cai_priv_ask_context(&plan->call, ex->stream, &ex->context));
    if (ex->context || cai_priv_is_handle(ex->stream) || !plan->call.cuda->context_current) return CAI_OK;
    return cai_priv_did(&plan->call, 201, "context_current");
}

/* Makes the edge of a member, or puts down its context to be synchronized. */
static cai_status cai_priv_resolve_member(cai_priv_plan *plan, const cai_array *member)
{
    cai_exchange *ex = plan->ex;
    uint64_t stream, context;
    const int32_t sync = cai_priv_sync(&ex->options, member, &stream);
    if (sync == CAI_SYNC_NONE) return CAI_OK;
    if (sync == CAI_SYNC_UNKNOWN) {
        CAI_TRY(cai_priv_memory_context(&plan->call, member, &context));
        return cai_priv_add_once(plan, plan->contexts, &plan->context_count, context, "contexts");
    }
    if (!stream) return CAI_OK;
    if (cai_priv_is_handle(stream)) {
        if (stream == ex->stream && ex->options.mode != CAI_MODE_HOST) return CAI_OK;
        CAI_TRY(cai_priv_handle_context(plan, stream, &context));
    } else {
        CAI_TRY(cai_priv_memory_context(&plan->call, member, &context));
        if (stream == ex->stream && context == ex->context && ex->options.mode != CAI_MODE_HOST)
            return CAI_OK;
    }
    return cai_priv_add_edge(plan, stream, context, sync == CAI_SYNC_STREAM ? CAI_PRIV_FORWARD : 0);
}

typedef cai_status (*cai_priv_visit)(cai_priv_plan *plan, const cai_array *member);

static cai_status cai_priv_each_member(cai_priv_plan *plan, cai_priv_visit visit)
{
    int64_t k;
    for (k = 0; k < plan->member_count; ++k) {
        const cai_array *member = cai_priv_member(plan->arrays, k);
        plan->item = (int32_t)(k >> 1);
        if (member) CAI_TRY(cai_priv_blame(&plan->call, plan->item, visit(plan, member)));
    }
    return CAI_OK;
}

/* ----------------------------------------------------------------- >>captures */
/* The id of the capture that a stream is in; 0: none. The query does no harm to a capture; a refusal is about
 * one (R103). */
static cai_status cai_priv_ask_capture(cai_priv_call *call, uint64_t stream, uint64_t context, uint64_t *id)
{
    const cai_cuda *cuda = call->cuda;
    cai_cuda_capture capture;
    int32_t entered = 0;
    cai_status status;
    *id = 0;
    if (!cuda->stream_capture) return CAI_OK;
    memset(&capture, 0, sizeof capture);
    if (!cai_priv_is_handle(stream)) CAI_TRY(cai_priv_enter(call, context, &entered));
    status = cai_priv_did(call, cuda->stream_capture(cuda->self, stream, &capture), "stream_capture");
    CAI_TRY(cai_priv_leave(call, entered, status));
    if (capture.status == CAI_CAPTURE_INVALIDATED)
        return cai_priv_say(call->err, CAI_ERR_CAPTURE, -1, "the capture of stream 0x%x was invalidated", "",
                            (int64_t)stream, 0, 0);
    if (capture.status) *id = capture.id;
    return CAI_OK;
}

static cai_status cai_priv_ask_edge_capture(cai_priv_call *call, const cai_exchange *ex,
                                            cai_exchange_edge *edge)
{
    cai_status status = CAI_OK;
    edge->capture = ex->capture;
    if (edge->stream != ex->stream || edge->context != ex->context)
        status = cai_priv_ask_capture(call, edge->stream, edge->context, &edge->capture);
    return cai_priv_blame(call, edge->array, status);
}

CAI_PRIV_STREAM_COLD cai_status cai_priv_capture_refused(const cai_priv_call *call, int32_t index,
                                                         const char *sentence, uint64_t a, uint64_t b)
{
    return cai_priv_say(call->err, CAI_ERR_CAPTURE, index, sentence, "", (int64_t)a, (int64_t)b, 0);
}

/* All streams are in the capture `wanted`, or none is in any (0). */
static cai_status cai_priv_compare_capture(const cai_priv_call *call, const cai_exchange *ex,
                                           const cai_exchange_edge *edge, uint64_t wanted)
{
    if (edge->capture == wanted) return CAI_OK;
    if (!wanted)
        return cai_priv_capture_refused(
            call, edge->array,
            "stream 0x%x is capturing and would pull stream 0x%x into its capture "
            "(cai_exchange_begin_with allows it by CAI_EXCHANGE_JOIN_CAPTURE)",
            edge->stream, ex->stream);
    return cai_priv_capture_refused(call, edge->array,
                                    edge->capture ? "streams 0x%x and 0x%x are in different captures"
                                    : ex->capture
                                        ? "stream 0x%x is capturing and stream 0x%x is not"
                                        : "stream 0x%x would join a capture and stream 0x%x is in none",
                                    ex->stream, edge->stream);
}

/* Captures of the consumer and of all edges, and that they agree. may_join: a producer's capture may pull the
 * consumer in. */
static cai_status cai_priv_check_captures(cai_priv_call *call, cai_exchange *ex, uint32_t may_join)
{
    uint64_t wanted;
    int32_t i;
    CAI_TRY(cai_priv_ask_capture(call, ex->stream, ex->context, &ex->capture));
    for (i = 0; i < ex->edge_count; ++i) CAI_TRY(cai_priv_ask_edge_capture(call, ex, &ex->edges[i]));
    wanted = ex->capture;
    for (i = 0; i < ex->edge_count && may_join && !wanted; ++i) wanted = ex->edges[i].capture;
    for (i = 0; i < ex->edge_count && ex->options.mode != CAI_MODE_HOST; ++i)
        CAI_TRY(cai_priv_compare_capture(call, ex, &ex->edges[i], wanted));
    return CAI_OK;
}

/* What a capture forbids beside edges: waits of the host, and events of which nobody knows where they were
 * recorded. */
static cai_status cai_priv_check_plan_captures(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    const char *sentence = NULL;
    uint64_t capture;
    int64_t k = 0;
    int32_t i;
    CAI_TRY(cai_priv_check_captures(&plan->call, ex, ex->options.flags & CAI_EXCHANGE_JOIN_CAPTURE));
    capture = ex->capture;
    for (i = 0; i < ex->edge_count; ++i) capture |= ex->edges[i].capture;
    if (ex->options.mode == CAI_MODE_HOST)
        sentence = "CAI_MODE_HOST: stream 0x%x or a producer's is capturing and cannot be waited for";
    else if (plan->context_count)
        sentence =
            "an array does not say where work is pending, and its context cannot be synchronized while "
            "stream 0x%x or a producer's is capturing";
    else if (plan->event_count)
        sentence = "an event may be from outside of the capture that stream 0x%x or a producer's is in";
    if (!capture || !sentence) return CAI_OK;
    for (i = -1; i < 0 && plan->event_count && k < plan->member_count; ++k) {
        const cai_array *member = cai_priv_member(plan->arrays, k);
        if (member && member->sync == CAI_SYNC_EVENT) i = (int32_t)(k >> 1);
    }
    return cai_priv_capture_refused(&plan->call, i, sentence, ex->stream, 0);
}

/* R85: stream_id tells a stream from another that got its handle. */
static cai_status cai_priv_check_id(cai_priv_call *call, uint64_t stream, uint64_t *id)
{
    const cai_cuda *cuda = call->cuda;
    const uint64_t before = *id;
    if (!cai_priv_is_handle(stream)) return CAI_OK;
    CAI_TRY(cai_priv_did(call, cuda->stream_id(cuda->self, stream, id), "stream_id"));
    if (!before || before == *id) return CAI_OK;
    return cai_priv_say(call->err, CAI_ERR_STALE, -1,
                        "stream 0x%x was destroyed and another made with its handle: id %d was %d", "",
                        (int64_t)stream, (int64_t)*id, (int64_t)before);
}

static int cai_priv_checks_ids(const cai_priv_call *call)
{
    return call->pool->flags & CAI_POOL_CHECK_STREAMS && call->cuda->stream_id;
}

/* The stream of an edge; one that captures cannot be asked. */
static cai_status cai_priv_check_edge_id(cai_priv_call *call, const cai_exchange *ex, cai_exchange_edge *edge)
{
    if (edge->stream == ex->stream || edge->capture) return CAI_OK;
    return cai_priv_blame(call, edge->array, cai_priv_check_id(call, edge->stream, &edge->id));
}

static cai_status cai_priv_check_ids(cai_priv_call *call, cai_exchange *ex)
{
    int32_t i;
    if (!cai_priv_checks_ids(call)) return CAI_OK;
    if (!ex->capture) CAI_TRY(cai_priv_check_id(call, ex->stream, &ex->id));
    for (i = 0; i < ex->edge_count; ++i) CAI_TRY(cai_priv_check_edge_id(call, ex, &ex->edges[i]));
    return CAI_OK;
}

/* -------------------------------------------------------------------- >>begin */
/* `after` waits for what is in `edge` now. */
static cai_status cai_priv_follow(cai_priv_call *call, const cai_exchange *ex, const cai_exchange_edge *edge)
{
    const int32_t retire = edge->capture != 0;
    uint64_t event;
    cai_status status;
    CAI_TRY(cai_priv_record(call, edge->stream, edge->context, retire, &event));
    status = cai_priv_wait(call, ex->stream, ex->context, event);
    return cai_priv_event_give(call, edge->context, event, retire, status);
}

/* Everything was checked; now the calls that order. */
static cai_status cai_priv_carry_out(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    cai_priv_call *call = &plan->call;
    const cai_cuda *cuda = call->cuda;
    const int32_t host = ex->options.mode == CAI_MODE_HOST;
    int32_t i;
    for (i = 0; i < plan->context_count; ++i)
        CAI_TRY(cai_priv_block(call, plan->contexts[i], 0, "context_synchronize", NULL));
    for (i = 0; i < ex->edge_count; ++i) {
        const cai_exchange_edge *edge = &ex->edges[i];
        if (!(edge->flags & CAI_PRIV_FORWARD)) continue;
        if (!host) CAI_TRY(cai_priv_blame(call, edge->array, cai_priv_follow(call, ex, edge)));
        else CAI_TRY(cai_priv_block(call, cai_priv_is_handle(edge->stream) ? 0 : edge->context, edge->stream,
                                    "stream_synchronize", cuda->stream_synchronize));
    }
    for (i = 0; i < plan->event_count; ++i) {
        if (!host) CAI_TRY(cai_priv_wait(call, ex->stream, ex->context, plan->events[i]));
        else CAI_TRY(cai_priv_block(call, 0, plan->events[i], "event_synchronize", cuda->event_synchronize));
    }
    return CAI_OK;
}

static cai_status cai_priv_check_options(const cai_exchange_options *options, cai_error *err)
{
    if (options->mode < CAI_MODE_EVENT || options->mode > CAI_MODE_IGNORE)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "mode = %d is no CAI_MODE_...", "", options->mode, 0,
                            0);
    if (options->unknown < CAI_UNKNOWN_SYNCHRONIZE || options->unknown > CAI_UNKNOWN_TRUST)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "unknown = %d is no CAI_UNKNOWN_...", "",
                            options->unknown, 0, 0);
    if (options->flags & ~(uint32_t)CAI_EXCHANGE_JOIN_CAPTURE)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "flags = 0x%x has unknown bits", "", options->flags, 0,
                            0);
    if (options->reserved)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "reserved = %d is not 0", "", options->reserved, 0, 0);
    return CAI_OK;
}

/* CAI_MODE_ENQUEUE: the first producer's stream is the consumer's. */
static uint64_t cai_priv_choose_stream(const cai_priv_plan *plan, uint64_t stream)
{
    uint64_t producer;
    int64_t k;
    for (k = 0; k < plan->member_count; ++k) {
        const cai_array *member = cai_priv_member(plan->arrays, k);
        if (member && cai_priv_sync(&plan->ex->options, member, &producer) == CAI_SYNC_STREAM)
            return producer;
    }
    return stream;
}

static cai_status cai_priv_prepare(cai_priv_plan *plan, cai_exchange *ex, cai_stream_pool *pool,
                                   uint64_t stream, const cai_exchange_options *options, cai_error *err)
{
    memset(plan, 0, offsetof(cai_priv_plan, events));
    memset(ex, 0, offsetof(cai_exchange, edges));
    plan->call = cai_priv_open(pool, err);
    plan->ex = ex;
    ex->pool = pool;
    if (options) {
        CAI_TRY(cai_priv_check_options(options, err));
        ex->options = *options;
    }
    CAI_TRY(cai_priv_check_stream(&plan->call, stream, -1));
    ex->stream = stream;
    return stream == CAI_STREAM_PER_THREAD ? cai_priv_thread(&plan->call, &ex->thread) : CAI_OK;
}

/* From members to edges, with every check before the first call that orders. */
static cai_status cai_priv_order_members(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    CAI_TRY(cai_priv_each_member(plan, cai_priv_judge_member));
    ex->edge_count = 0;
    if (!cai_priv_is_handle(ex->stream)) CAI_TRY(cai_priv_find_current(&plan->call));
    ex->context = plan->call.current; /* of 1 and 2; the release needs it, too */
    if (!(plan->ordered + plan->blocking)) return CAI_OK;
    CAI_TRY(cai_priv_find_current(&plan->call));
    if (plan->ordered) CAI_TRY(cai_priv_find_consumer(plan));
    CAI_TRY(cai_priv_each_member(plan, cai_priv_resolve_member));
    if (!(ex->edge_count + plan->event_count + plan->context_count)) return CAI_OK;
    CAI_TRY(cai_priv_check_plan_captures(plan));
    CAI_TRY(cai_priv_check_ids(&plan->call, ex));
    return cai_priv_carry_out(plan);
}

CAI_PRIV_STREAM_NOINLINE cai_status cai_priv_begin(cai_exchange *ex, cai_stream_pool *pool,
                                                   const cai_array *const *arrays, int32_t count,
                                                   uint64_t stream, const cai_exchange_options *options,
                                                   cai_error *err)
{
    cai_priv_plan plan;
    int32_t i;
    CAI_TRY(cai_priv_prepare(&plan, ex, pool, stream, options, err));
    for (i = 0; i < count; ++i) {
        const cai_status status = cai_array_check(arrays[i], err);
        if (status && err) err->index = i;
        if (status) return status;
    }
    plan.arrays = arrays;
    plan.member_count = (int64_t)count * 2;
    if (ex->options.mode == CAI_MODE_ENQUEUE) ex->stream = cai_priv_choose_stream(&plan, stream);
    CAI_TRY(cai_priv_order_members(&plan));
    ex->state = CAI_PRIV_OPEN;
    cai_priv_count_open(pool, 1);
    return CAI_OK;
}

/* An array of which nothing is to be asked: pending work, if any, is on `stream` itself. */
static inline int cai_priv_in_order(const cai_array *array, uint64_t stream)
{
    if (!array || array->abi != CAI_ABI || array->struct_size != sizeof *array || array->mask) return 0;
    if ((uint32_t)array->ndim > CAI_MAX_NDIM) return 0; /* begin_with says what is wrong */
    return array->sync == CAI_SYNC_STREAM ? array->stream == stream : array->sync == CAI_SYNC_NONE;
}

CAI_API cai_status cai_exchange_begin(cai_exchange *ex, cai_stream_pool *pool, const cai_array *const *arrays,
                                      int32_t count, uint64_t stream, cai_error *err)
{
    int32_t i = 0;
    if (stream - 3 >= UINT64_MAX - 3 || !ex || !pool || !pool->cuda || !arrays || count < 1)
        return cai_exchange_begin_with(ex, pool, arrays, count, stream, NULL, err);
    do {
        if (!cai_priv_in_order(arrays[i], stream))
            return cai_exchange_begin_with(ex, pool, arrays, count, stream, NULL, err);
    } while (++i < count);
    ex->pool = pool;
    ex->stream = stream;
    ex->state = CAI_PRIV_OPEN_IN_ORDER;
    ex->flags = 0;
    ex->edge_count = 0;
    ex->context = 0;
    memset(&ex->options, 0, sizeof ex->options);
    cai_priv_count_open(pool, 1);
    return CAI_OK;
}

CAI_API cai_status cai_exchange_begin_with(cai_exchange *ex, cai_stream_pool *pool,
                                           const cai_array *const *arrays, int32_t count, uint64_t stream,
                                           const cai_exchange_options *options, cai_error *err)
{
    if (!ex) return cai_priv_stream_misuse(err, "cai_exchange_begin: ex is NULL");
    ex->state = 0;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_exchange_begin: pool is NULL or not made");
    if (count < 0)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "cai_exchange_begin: count = %d is negative", "",
                            count, 0, 0);
    if (count && !arrays) return cai_priv_stream_misuse(err, "cai_exchange_begin: arrays is NULL");
    return cai_priv_begin(ex, pool, arrays, count, stream, options, err);
}

/* ---------------------------------------------------------------------- >>end */
/* Finds the edges that cannot get a back edge, and says what is wrong with the first of them; the others get
 * theirs all the same. */
static cai_status cai_priv_check_edges(cai_priv_call *call, cai_exchange *ex)
{
    cai_status first = CAI_OK, status, stale;
    int32_t i;
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        status = cai_priv_ask_edge_capture(call, ex, edge);
        if (!status) status = cai_priv_compare_capture(call, ex, edge, ex->capture);
        if (status) edge->flags |= CAI_PRIV_LOST;
        cai_priv_keep_first(call, &first, status);
    }
    if (!cai_priv_checks_ids(call)) return first;
    stale = ex->capture ? CAI_OK : cai_priv_check_id(call, ex->stream, &ex->id);
    cai_priv_keep_first(call, &first, stale);
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        if (edge->flags & CAI_PRIV_LOST) continue;
        status = stale ? stale : cai_priv_check_edge_id(call, ex, edge);
        if (status) edge->flags |= CAI_PRIV_LOST;
        cai_priv_keep_first(call, &first, status);
    }
    return first;
}

/* One record, and a wait for each producer. */
static cai_status cai_priv_give_back(cai_priv_call *call, cai_exchange *ex)
{
    cai_status first = CAI_OK;
    uint64_t event;
    int32_t i, lost = 0;
    for (i = 0; i < ex->edge_count; ++i) lost += (ex->edges[i].flags & CAI_PRIV_LOST) != 0;
    if (lost == ex->edge_count) return CAI_OK;
    CAI_TRY(cai_priv_record(call, ex->stream, ex->context, ex->capture != 0, &event));
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        cai_status status;
        if (edge->flags & CAI_PRIV_LOST) continue;
        status = cai_priv_blame(call, edge->array, cai_priv_wait(call, edge->stream, edge->context, event));
        if (!status) edge->flags |= CAI_PRIV_RETURNED;
        cai_priv_keep_first(call, &first, status);
    }
    return cai_priv_event_give(call, ex->context, event, ex->capture != 0, first);
}

static cai_status cai_priv_end_on_host(cai_priv_call *call, cai_exchange *ex)
{
    cai_status status;
    if (!cai_priv_is_handle(ex->stream)) CAI_TRY(cai_priv_find_current(call));
    CAI_TRY(cai_priv_ask_capture(call, ex->stream, ex->context, &ex->capture));
    if (ex->capture)
        return cai_priv_capture_refused(
            call, -1, "CAI_MODE_HOST: stream 0x%x is capturing and cannot be waited for", ex->stream, 0);
    status = cai_priv_block(call, cai_priv_is_handle(ex->stream) ? 0 : ex->context, ex->stream,
                            "stream_synchronize", call->cuda->stream_synchronize);
    if (!status) ex->flags |= CAI_PRIV_SETTLED;
    return status;
}

static cai_status cai_priv_end_on_device(cai_priv_call *call, cai_exchange *ex)
{
    cai_status first, status;
    CAI_TRY(cai_priv_find_current(call));
    CAI_TRY(cai_priv_ask_capture(call, ex->stream, ex->context, &ex->capture));
    first = cai_priv_check_edges(call, ex);
    status = cai_priv_give_back(call, ex);
    return first ? first : status;
}

/* With CUDA calls, or a thread to check. */
CAI_PRIV_STREAM_NOINLINE cai_status cai_priv_end(cai_exchange *ex, cai_status status, cai_error *err)
{
    cai_priv_call call;
    cai_status ended = CAI_OK;
    if (!ex || ex->state != CAI_PRIV_OPEN)
        return status ? status : cai_priv_stream_misuse(err, "cai_exchange_end: not begun, or ended before");
    call = cai_priv_open(ex->pool, err);
    if (ex->thread && ex->options.mode != CAI_MODE_IGNORE)
        CAI_TRY(cai_priv_check_thread(&call, ex->thread, -1));
    call.err = status ? NULL : err;
    call.ending = 1;
    if (ex->options.mode == CAI_MODE_HOST) ended = cai_priv_end_on_host(&call, ex);
    else if (ex->edge_count) ended = cai_priv_end_on_device(&call, ex);
    if (call.gone) {
        ex->flags |= CAI_PRIV_SETTLED;
        if (!call.failed) ended = CAI_OK;
    }
    ex->state = CAI_PRIV_ENDED;
    cai_priv_count_open(ex->pool, -1);
    return status ? status : ended;
}

CAI_API cai_status cai_exchange_end(cai_exchange *ex, cai_status status, cai_error *err)
{
    if (!ex || ex->state != CAI_PRIV_OPEN_IN_ORDER) return cai_priv_end(ex, status, err);
    ex->state = CAI_PRIV_ENDED;
    cai_priv_count_open(ex->pool, -1);
    return status;
}

/* Do the streams of the owner wait for the consumer's work (R76, R80)? */
static int cai_priv_returned(const cai_exchange *ex, const cai_array *member)
{
    uint64_t stream;
    int32_t i, found = 0, missing = 0, sync;
    if (!member || !member->size) return 1;
    sync = cai_priv_sync(&ex->options, member, &stream);
    if (sync != CAI_SYNC_STREAM && sync != CAI_SYNC_EVENT) return 0;
    if (member->sync == CAI_SYNC_UNKNOWN && ex->options.unknown == CAI_UNKNOWN_LEGACY) return 0;
    for (i = 0; i < ex->edge_count; ++i) {
        if (ex->edges[i].stream != stream) continue;
        if (ex->edges[i].flags & CAI_PRIV_RETURNED) found = 1;
        else missing = 1;
    }
    return !missing && (found || (stream && stream == ex->stream));
}

static cai_status cai_priv_keep(cai_priv_call *call, cai_array *array, uint64_t stream, uint64_t context);

CAI_API cai_status cai_exchange_release(cai_exchange *ex, cai_array *array, cai_error *err)
{
    cai_priv_call call;
    if (!ex || ex->state != CAI_PRIV_ENDED)
        return cai_priv_stream_misuse(err, "cai_exchange_release: the exchange was not ended");
    CAI_TRY(cai_array_check(array, err));
    if (!array->release) return CAI_OK;
    if (ex->flags & CAI_PRIV_SETTLED ||
        (ex->options.mode != CAI_MODE_IGNORE && cai_priv_returned(ex, array) &&
         cai_priv_returned(ex, array->mask))) {
        cai_array_release(array);
        return CAI_OK;
    }
    call = cai_priv_open(ex->pool, err);
    if (ex->stream == CAI_STREAM_PER_THREAD) CAI_TRY(cai_priv_check_thread(&call, ex->thread, -1));
    return cai_priv_keep(&call, array, ex->stream, ex->context);
}

/* ----------------------------------------------------------------- >>ordering */
/* plan->ex->stream waits for other streams. */
static cai_status cai_priv_join(cai_priv_plan *plan, const uint64_t *streams, int32_t count)
{
    cai_exchange *ex = plan->ex;
    cai_priv_call *call = &plan->call;
    for (plan->item = 0; plan->item < count; ++plan->item) {
        const uint64_t stream = streams[plan->item];
        CAI_TRY(cai_priv_check_stream(call, stream, plan->item));
        if (stream != ex->stream) CAI_TRY(cai_priv_add_edge(plan, stream, 0, CAI_PRIV_FORWARD));
    }
    if (!ex->edge_count) return CAI_OK;
    CAI_TRY(cai_priv_find_current(call));
    CAI_TRY(cai_priv_find_consumer(plan));
    for (plan->item = 0; plan->item < ex->edge_count; ++plan->item) {
        cai_exchange_edge *edge = &ex->edges[plan->item];
        CAI_TRY(cai_priv_ask_context(call, edge->stream, &edge->context));
    }
    CAI_TRY(cai_priv_check_captures(call, ex, 0));
    return cai_priv_carry_out(plan);
}

CAI_API cai_status cai_stream_order(cai_stream_pool *pool, uint64_t before, uint64_t after, cai_error *err)
{
    cai_priv_plan plan;
    cai_exchange ex;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_order: pool is NULL or not made");
    CAI_TRY(cai_priv_prepare(&plan, &ex, pool, after, NULL, err));
    return cai_priv_join(&plan, &before, 1);
}

/* 1 and 2 are the caller's in the current context, and to a consumer in that of the memory (R83). */
static cai_status cai_priv_check_default_stream(cai_priv_plan *plan, const cai_array *array)
{
    uint64_t context;
    if (cai_priv_is_handle(plan->ex->stream) || !array->size) return CAI_OK;
    CAI_TRY(cai_priv_find_current(&plan->call));
    CAI_TRY(cai_priv_memory_context(&plan->call, array, &context));
    if (context == plan->call.current) return CAI_OK;
    return cai_priv_say(plan->call.err, CAI_ERR_STREAM, -1,
                        "stream %d of the current context is not that of the memory's context, for which a "
                        "consumer takes it: export a handle",
                        "", (int64_t)plan->ex->stream, 0, 0);
}

CAI_API cai_status cai_stream_export(cai_array *array, cai_stream_pool *pool, uint64_t stream,
                                     const uint64_t *pending, int32_t count, cai_error *err)
{
    cai_priv_plan plan;
    cai_exchange ex;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_export: pool is NULL or not made");
    if (count < 0 || (count && !pending))
        return cai_priv_stream_misuse(err, "cai_stream_export: pending is NULL, or count negative");
    CAI_TRY(cai_array_check(array, err));
    if (array->sync == CAI_SYNC_EVENT)
        return cai_priv_stream_misuse(err,
                                      "cai_stream_export: the array has an event: cai_stream_drop_event");
    CAI_TRY(cai_priv_prepare(&plan, &ex, pool, stream, NULL, err));
    CAI_TRY(cai_priv_check_default_stream(&plan, array));
    CAI_TRY(cai_priv_join(&plan, pending, count));
    array->sync = CAI_SYNC_STREAM;
    array->stream = stream;
    array->event = 0;
    array->thread = ex.thread;
    return CAI_OK;
}

CAI_API cai_status cai_stream_remember_thread(cai_array *array, cai_stream_pool *pool, cai_error *err)
{
    cai_priv_call call;
    cai_array *mask;
    uint64_t thread = 0;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_remember_thread: pool is NULL or not made");
    CAI_TRY(cai_array_check(array, err));
    mask = array->mask;
    call = cai_priv_open(pool, err);
    if (array->stream == CAI_STREAM_PER_THREAD || (mask && mask->stream == CAI_STREAM_PER_THREAD))
        CAI_TRY(cai_priv_thread(&call, &thread));
    if (array->stream == CAI_STREAM_PER_THREAD) array->thread = thread;
    if (mask && mask->stream == CAI_STREAM_PER_THREAD) mask->thread = thread;
    return CAI_OK;
}

static cai_status cai_priv_detach(cai_priv_call *call, cai_array *array)
{
    uint64_t context, event, capture;
    CAI_TRY(cai_priv_check_stream(call, array->stream, -1));
    if (array->stream == CAI_STREAM_PER_THREAD) CAI_TRY(cai_priv_check_thread(call, array->thread, -1));
    CAI_TRY(cai_priv_find_current(call));
    if (cai_priv_is_handle(array->stream)) CAI_TRY(cai_priv_ask_context(call, array->stream, &context));
    else CAI_TRY(cai_priv_memory_context(call, array, &context));
    CAI_TRY(cai_priv_ask_capture(call, array->stream, context, &capture));
    if (capture)
        return cai_priv_capture_refused(
            call, -1, "stream 0x%x is capturing: an event of a capture cannot be handed out", array->stream,
            0);
    CAI_TRY(cai_priv_record(call, array->stream, context, 0, &event));
    array->sync = CAI_SYNC_EVENT;
    array->event = event;
    if (array->stream == CAI_STREAM_PER_THREAD) array->stream = array->thread = 0;
    return CAI_OK;
}

CAI_API cai_status cai_stream_detach(cai_array *array, cai_stream_pool *pool, cai_error *err)
{
    cai_priv_call call;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_detach: pool is NULL or not made");
    CAI_TRY(cai_array_check(array, err));
    if (array->sync == CAI_SYNC_NONE || !array->size) return CAI_OK;
    if (array->sync != CAI_SYNC_STREAM)
        return cai_priv_stream_misuse(err, "cai_stream_detach: the array is not ordered by a stream");
    call = cai_priv_open(pool, err);
    return cai_priv_detach(&call, array);
}

CAI_API cai_status cai_stream_drop_event(cai_array *array, cai_stream_pool *pool, cai_error *err)
{
    cai_priv_call call;
    cai_status status;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_drop_event: pool is NULL or not made");
    CAI_TRY(cai_array_check(array, err));
    if (array->sync != CAI_SYNC_EVENT) return CAI_OK;
    call = cai_priv_open(pool, err);
    call.ending = 1;
    status = cai_priv_did(&call, call.cuda->event_destroy(call.cuda->self, array->event), "event_destroy");
    if (status && !call.gone) return status;
    array->event = 0;
    array->stream = 0;
    array->sync = CAI_SYNC_UNKNOWN;
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>placing */
enum { CAI_PRIV_OPERAND_NAME = 64 };

/* What is known so far, and the operand that is looked at. */
typedef struct cai_priv_place {
    cai_placement at;
    uint64_t thread; /* of the stream, if that is 2 */
    int32_t device;  /* of the operand that decided it, if it is 1 or 2 */
    const char *const *names;
    int32_t count, item, policy;
    cai_error *err;
} cai_priv_place;

/* "x", "input 2", "out". */
CAI_PRIV_STREAM_COLD cai_status cai_priv_misplaced(const cai_priv_place *place, cai_status status,
                                                   const char *sentence, int64_t a, int64_t b)
{
    char name[CAI_PRIV_OPERAND_NAME] = "";
    char *at = name;
    const char *end = name + sizeof name - 1;
    const int named = place->item < place->count && place->names && place->names[place->item];
    at = cai_priv_say_text(at, end,
                           place->item == place->count ? "out"
                           : named                     ? place->names[place->item]
                                                       : "input ");
    if (place->item < place->count && !named) at = cai_priv_say_number(at, end, (uint64_t)place->item, 10);
    *at = 0;
    return cai_priv_say(place->err, status, place->item, sentence, name, a, b, 0);
}

CAI_API int32_t cai_coerce_memory(int32_t a, int32_t b)
{
    const int32_t least = a < b ? a : b, most = a < b ? b : a;
    return least < CAI_MEMORY_PINNED || most > CAI_MEMORY_DEVICE ? CAI_MEMORY_UNKNOWN : most;
}

/* Only what is in the memory of a device is bound to it. */
static cai_status cai_priv_place_memory(cai_priv_place *place, const cai_array *array)
{
    const int on_device = array->memory == CAI_MEMORY_DEVICE;
    if (!cai_coerce_memory(array->memory, array->memory) || (on_device && array->device < 0))
        return cai_priv_misplaced(place, CAI_ERR_MEMORY,
                                  array->memory == CAI_MEMORY_HOST
                                      ? "%w is plain host memory, %d bytes: no kernel can use it"
                                      : "%w: where its memory is, is not known: cai_locate",
                                  array->nbytes, 0);
    if (!on_device) return CAI_OK;
    if (place->at.device == CAI_DEVICE_UNKNOWN) place->at.device = array->device;
    if (place->at.device == array->device) return CAI_OK;
    return cai_priv_misplaced(place, CAI_ERR_PLACEMENT, "%w is on device %d, operands before it on device %d",
                              array->device, place->at.device);
}

static cai_status cai_priv_place_stream(cai_priv_place *place, const cai_array *array)
{
    const int has = array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT;
    if (!has || !array->stream || place->policy == CAI_PLACE_INTO) return CAI_OK;
    if (!place->at.stream) {
        place->at.stream = array->stream;
        place->at.decided = place->item;
        place->thread = array->thread;
        place->device = array->device;
    }
    if (place->policy == CAI_PLACE_SAME_DEVICE) return CAI_OK;
    if (array->stream != place->at.stream)
        return cai_priv_misplaced(place, CAI_ERR_PLACEMENT,
                                  "%w is on stream 0x%x, and the work on stream 0x%x",
                                  (int64_t)array->stream, (int64_t)place->at.stream);
    if (cai_priv_is_handle(array->stream) || place->at.decided < 0) return CAI_OK;
    if (array->device != place->device)
        return cai_priv_misplaced(place, CAI_ERR_PLACEMENT,
                                  "%w is on stream %d of another device than the work",
                                  (int64_t)array->stream, 0);
    if (array->stream != CAI_STREAM_PER_THREAD || array->thread == place->thread) return CAI_OK;
    return cai_priv_misplaced(place, CAI_ERR_PLACEMENT,
                              "%w is on stream 2 of another host thread than the work", 0, 0);
}

static cai_status cai_priv_place_check(const cai_priv_place *place, const cai_array *array)
{
    const cai_status status = cai_array_check(array, place->err);
    if (status && place->err) place->err->index = place->item;
    return status;
}

static cai_status cai_priv_place_operand(cai_priv_place *place, const cai_array *array)
{
    CAI_TRY(cai_priv_place_memory(place, array));
    CAI_TRY(cai_priv_place_stream(place, array));
    return array->mask ? cai_priv_place_stream(place, array->mask) : CAI_OK;
}

static cai_status cai_priv_place_inputs(cai_priv_place *place, const cai_array *const *inputs)
{
    for (place->item = 0; place->item < place->count; ++place->item) {
        const cai_array *array = inputs[place->item];
        if (!array) continue;
        CAI_TRY(cai_priv_place_check(place, array));
        if (!array->size || (!array->ndim && array->memory == CAI_MEMORY_HOST)) continue;
        CAI_TRY(cai_priv_place_operand(place, array));
        place->at.memory =
            place->at.memory ? cai_coerce_memory(place->at.memory, array->memory) : array->memory;
    }
    return CAI_OK;
}

/* Element by element the same memory: work in place is right. */
static int cai_priv_in_place(const cai_array *a, const cai_array *b)
{
    int32_t axis;
    if (a->data != b->data || a->ndim != b->ndim || a->nbytes != b->nbytes) return 0;
    for (axis = 0; axis < a->ndim; ++axis) {
        if (a->shape[axis] != b->shape[axis]) return 0;
        if (a->shape[axis] > 1 && a->strides[axis] != b->strides[axis]) return 0;
    }
    return 1;
}

static cai_status cai_priv_place_out(cai_priv_place *place, const cai_array *const *inputs,
                                     const cai_array *out, uint32_t flags)
{
    int32_t i;
    CAI_TRY(cai_priv_place_check(place, out));
    if (!(out->flags & CAI_WRITABLE))
        return cai_priv_misplaced(place, CAI_ERR_EXPECT, "%w is read-only", 0, 0);
    if (!out->size) return CAI_OK;
    if (!(out->flags & CAI_NO_SELF_OVERLAP))
        return cai_priv_misplaced(place, CAI_ERR_EXPECT, "%w: elements share bytes, or may", 0, 0);
    for (i = 0; i < place->count && place->at.overlap < 0; ++i) {
        if (inputs[i] && cai_overlap(inputs[i], out) != CAI_OVERLAP_NO && !cai_priv_in_place(inputs[i], out))
            place->at.overlap = i;
    }
    if (place->at.overlap >= 0 && !(flags & CAI_PLACE_ALLOW_OVERLAP)) {
        place->item = place->at.overlap; /* the name; the index is that of out */
        (void)cai_priv_misplaced(place, CAI_ERR_EXPECT,
                                 "%w shares bytes with out, or may, and not element by element", 0, 0);
        if (place->err) place->err->index = place->count;
        return CAI_ERR_EXPECT;
    }
    return cai_priv_place_operand(place, out);
}

static cai_status cai_priv_place_begin(const cai_array *const *inputs, int32_t count, int32_t policy,
                                       uint32_t flags, uint64_t stream, const cai_placement *placement,
                                       cai_error *err)
{
    if (!placement || count < 0 || (count && !inputs))
        return cai_priv_stream_misuse(err, "cai_place: placement or inputs is NULL, or count negative");
    if (policy < CAI_PLACE_IDENTICAL || policy > CAI_PLACE_INTO)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "cai_place: policy = %d is none", "", policy, 0, 0);
    if (flags & ~(uint32_t)CAI_PLACE_ALLOW_OVERLAP)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "cai_place: flags = 0x%x are none", "", (int64_t)flags,
                            0, 0);
    if (stream != UINT64_MAX && (stream || policy != CAI_PLACE_INTO)) return CAI_OK;
    return cai_priv_say(err, CAI_ERR_STREAM, -1, "stream %d is none to work on", "", (int64_t)stream, 0, 0);
}

CAI_API cai_status cai_place(const cai_array *const *inputs, const char *const *names, int32_t count,
                             const cai_array *out, int32_t policy, uint32_t flags, uint64_t stream,
                             cai_placement *placement, cai_error *err)
{
    cai_priv_place place;
    CAI_TRY(cai_priv_place_begin(inputs, count, policy, flags, stream, placement, err));
    memset(&place, 0, sizeof place);
    place.at.device = CAI_DEVICE_UNKNOWN;
    place.at.decided = place.at.overlap = -1;
    place.names = names;
    place.count = count;
    place.policy = policy;
    place.err = err;
    CAI_TRY(cai_priv_place_inputs(&place, inputs));
    if (!place.at.stream) place.at.stream = stream;
    if (!place.at.stream)
        return cai_priv_say(err, CAI_ERR_PLACEMENT, -1, "none of %d inputs has a stream: say where to work",
                            "", count, 0, 0);
    if (out) CAI_TRY(cai_priv_place_out(&place, inputs, out, flags));
    *placement = place.at;
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>keeping */
/* Indices into pool->keepalive, linked by next; -1 ends. */
typedef struct cai_priv_list {
    int32_t first, last;
} cai_priv_list;

static void cai_priv_list_append(cai_keepalive *nodes, cai_priv_list *list, int32_t node)
{
    nodes[node].next = -1;
    if (list->first < 0) list->first = node;
    else nodes[list->last].next = node;
    list->last = node;
}

static int32_t cai_priv_node_take(cai_stream_pool *pool)
{
    int32_t node;
    cai_priv_lock(pool);
    node = pool->free;
    if (node >= 0) pool->free = pool->keepalive[node].next;
    cai_priv_unlock(pool);
    return node;
}

static void cai_priv_node_give(cai_stream_pool *pool, int32_t node, int32_t waited)
{
    cai_priv_lock(pool);
    pool->keepalive[node].next = pool->free;
    pool->free = node;
    pool->waiting -= waited;
    cai_priv_unlock(pool);
}

/* Errors after which no work of a context goes on: what it kept alive may go. */
static int cai_priv_is_dead(int32_t error)
{
    static const int32_t dead[] = {4,   214, 220, 226, 700, 702, 709, 710, 714,
                                   715, 716, 717, 718, 719, 721, 810, 911};
    size_t i;
    for (i = 0; i < sizeof dead / sizeof dead[0]; ++i) {
        if (dead[i] == error) return 1;
    }
    return 0;
}

/* Has the stream passed? Keeps the first error in *status. */
static int cai_priv_has_passed(cai_priv_call *call, cai_keepalive *node, int32_t wait, cai_status *status)
{
    const cai_cuda *cuda = call->cuda;
    cai_status failed;
    int32_t error;
    node->dead = 0;
    if (!node->event) return 1; /* its context was forgotten */
    error =
        wait ? cuda->event_synchronize(cuda->self, node->event) : cuda->event_query(cuda->self, node->event);
    if (!error || error == 600) return !error;
    node->dead = cai_priv_is_dead(error);
    failed = cai_priv_did(call, error, wait ? "event_synchronize" : "event_query");
    if (!call->gone) cai_priv_keep_first(call, status, failed);
    return node->dead;
}

static void cai_priv_let_go(cai_priv_call *call, int32_t index)
{
    cai_keepalive *node = &call->pool->keepalive[index];
    cai_array array;
    call->err = NULL; /* an event that cannot be destroyed does not keep the array */
    if (node->event) (void)cai_priv_event_give(call, node->context, node->event, node->dead, CAI_OK);
    cai_array_move(&array, &node->array);
    cai_priv_node_give(call->pool, index, 1);
    cai_array_release(&array);
}

/* The list is taken off the pool, so that other threads and callbacks can go on with it. */
static cai_priv_list cai_priv_take_list(cai_stream_pool *pool)
{
    cai_priv_list list;
    cai_priv_lock(pool);
    list.first = pool->first;
    list.last = pool->last;
    pool->first = pool->last = -1;
    cai_priv_unlock(pool);
    return list;
}

/* Puts back what still waits, before what came since. */
static void cai_priv_put_list(cai_stream_pool *pool, const cai_priv_list *list)
{
    if (list->first < 0) return;
    cai_priv_lock(pool);
    pool->keepalive[list->last].next = pool->first;
    if (pool->first < 0) pool->last = list->last;
    pool->first = list->first;
    cai_priv_unlock(pool);
}

static cai_status cai_priv_keepalive_run(cai_stream_pool *pool, int32_t wait, cai_error *err)
{
    cai_priv_call call = cai_priv_open(pool, err);
    cai_priv_list list = cai_priv_take_list(pool), rest = {-1, -1}, passed = {-1, -1};
    cai_status status, relaxed;
    int32_t node, next, mode;
    if (list.first < 0) return CAI_OK;
    call.ending = 1;
    relaxed = cai_priv_relax(&call, &mode);
    if (relaxed && !call.gone) {
        cai_priv_put_list(pool, &list);
        return relaxed;
    }
    status = CAI_OK;
    for (node = list.first; node >= 0; node = next) {
        next = pool->keepalive[node].next;
        if (call.gone || cai_priv_has_passed(&call, &pool->keepalive[node], wait, &status))
            cai_priv_list_append(pool->keepalive, &passed, node);
        else
            cai_priv_list_append(pool->keepalive, &rest, node);
    }
    if (!relaxed) status = cai_priv_unrelax(&call, mode, status);
    if (call.gone && !call.failed) status = CAI_OK;
    cai_priv_put_list(pool, &rest);
    for (node = passed.first; node >= 0; node = next) {
        next = pool->keepalive[node].next;
        cai_priv_let_go(&call, node);
    }
    return status;
}

static int32_t cai_priv_still_listed(cai_stream_pool *pool, int32_t *waiting)
{
    int32_t listed;
    cai_priv_lock(pool);
    listed = pool->first >= 0;
    *waiting = pool->waiting;
    cai_priv_unlock(pool);
    return listed;
}

CAI_API cai_status cai_keepalive_poll(cai_stream_pool *pool, int32_t *waiting, cai_error *err)
{
    cai_status status;
    int32_t left;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_keepalive_poll: pool is NULL or not made");
    if (!pool->cuda->event_query)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the CUDA table has no event_query", "", 0, 0, 0);
    status = cai_priv_keepalive_run(pool, 0, err);
    (void)cai_priv_still_listed(pool, &left);
    if (waiting) *waiting = left;
    return status;
}

CAI_API cai_status cai_keepalive_drain(cai_stream_pool *pool, cai_error *err)
{
    int32_t waiting;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_keepalive_drain: pool is NULL or not made");
    if (!pool->cuda->event_synchronize)
        return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the CUDA table has no event_synchronize", "", 0, 0,
                            0);
    while (cai_priv_still_listed(pool, &waiting)) CAI_TRY(cai_priv_keepalive_run(pool, 1, err));
    return CAI_OK;
}

/* Records what an array waits for in the node that was taken for it. context: 0 where it is to be asked. */
static cai_status cai_priv_keep_until(cai_priv_call *call, cai_keepalive *node, uint64_t stream,
                                      uint64_t context)
{
    uint64_t capture;
    CAI_TRY(cai_priv_find_current(call));
    if (!context) CAI_TRY(cai_priv_ask_context(call, stream, &context));
    CAI_TRY(cai_priv_ask_capture(call, stream, context, &capture));
    if (capture)
        return cai_priv_capture_refused(call, -1,
                                        "stream 0x%x is capturing: nothing can be released after its work",
                                        stream, 0);
    node->context = context;
    return cai_priv_record(call, stream, context, 0, &node->event);
}

/* While the process ends there is nothing to wait for. */
static cai_status cai_priv_unless_gone(const cai_priv_call *call, cai_array *array, cai_status status)
{
    if (!call->gone) return status;
    cai_array_release(array);
    return CAI_OK;
}

static cai_status cai_priv_keep(cai_priv_call *call, cai_array *array, uint64_t stream, uint64_t context)
{
    cai_stream_pool *pool = call->pool;
    cai_priv_list list;
    cai_status status;
    int32_t node;
    call->ending = 1;
    if (!context && !cai_priv_is_handle(stream)) { /* before a callback can make another one current */
        status = cai_priv_find_current(call);
        if (status) return cai_priv_unless_gone(call, array, status);
        context = call->current;
    }
    node = cai_priv_node_take(pool);
    if (node < 0 && pool->cuda->event_query) {
        (void)cai_priv_keepalive_run(pool, 0, NULL);
        call->current_known = 0;
        node = cai_priv_node_take(pool);
    }
    if (node < 0)
        return cai_priv_say(
            call->err, CAI_ERR_CAPACITY, -1,
            pool->capacity ? "the keep-alive list is full (%d arrays): cai_keepalive_drain, or release later"
                           : "the pool was made without places for arrays that wait (capacity %d)",
            "", pool->capacity, 0, 0);
    status = cai_priv_keep_until(call, &pool->keepalive[node], stream, context);
    if (status) {
        cai_priv_node_give(pool, node, 0);
        return cai_priv_unless_gone(call, array, status);
    }
    cai_array_move(&pool->keepalive[node].array, array);
    cai_priv_lock(pool);
    list.first = pool->first;
    list.last = pool->last;
    cai_priv_list_append(pool->keepalive, &list, node);
    pool->first = list.first;
    pool->last = list.last;
    ++pool->waiting;
    cai_priv_unlock(pool);
    return CAI_OK;
}

CAI_API cai_status cai_keepalive_push(cai_array *array, cai_stream_pool *pool, uint64_t stream,
                                      cai_error *err)
{
    cai_priv_call call;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_keepalive_push: pool is NULL or not made");
    CAI_TRY(cai_array_check(array, err));
    call = cai_priv_open(pool, err);
    CAI_TRY(cai_priv_check_stream(&call, stream, -1));
    return array->release ? cai_priv_keep(&call, array, stream, 0) : CAI_OK;
}

/* --------------------------------------------------------------------- >>pool */
static cai_status cai_priv_check_cuda(const cai_cuda *cuda, cai_error *err)
{
    if (!cuda) return cai_priv_stream_misuse(err, "cuda is NULL");
    if (cuda->version != CAI_CUDA_VERSION || cuda->struct_size < sizeof *cuda)
        return cai_priv_say(err, CAI_ERR_ABI, -1,
                            "a CUDA table of version %d and %d bytes; this header knows "
                            "version 1 of %d bytes",
                            "", cuda->version, cuda->struct_size, (int64_t)sizeof *cuda);
    return CAI_OK;
}

static cai_status cai_priv_check_operations(const cai_cuda *cuda, uint32_t flags, cai_error *err)
{
    const char *lacking = NULL;
    if (!cuda->event_create) lacking = "event_create";
    else if (!cuda->event_destroy) lacking = "event_destroy";
    else if (!cuda->event_record) lacking = "event_record";
    else if (!cuda->stream_wait_event) lacking = "stream_wait_event";
    else if (!cuda->stream_id && flags & CAI_POOL_CHECK_STREAMS) lacking = "stream_id";
    if (!lacking) return CAI_OK;
    return cai_priv_say(err, CAI_ERR_UNAVAILABLE, -1, "the CUDA table has no %w", lacking, 0, 0, 0);
}

CAI_API cai_status cai_stream_pool_init(cai_stream_pool *pool, const cai_cuda *cuda, cai_keepalive *keepalive,
                                        int32_t capacity, uint32_t flags, cai_error *err)
{
    int32_t i;
    if (!pool) return cai_priv_stream_misuse(err, "cai_stream_pool_init: pool is NULL");
    if (capacity < 0 || (capacity && !keepalive))
        return cai_priv_stream_misuse(err, "cai_stream_pool_init: keepalive is NULL, or capacity negative");
    if (flags & ~(uint32_t)CAI_POOL_CHECK_STREAMS)
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "cai_stream_pool_init: flags = 0x%x has unknown bits",
                            "", flags, 0, 0);
    CAI_TRY(cai_priv_check_cuda(cuda, err));
    CAI_TRY(cai_priv_check_operations(cuda, flags, err));
    memset(pool, 0, sizeof *pool);
    pool->cuda = cuda;
    pool->flags = flags;
    pool->keepalive = keepalive;
    pool->capacity = capacity;
    pool->first = pool->last = -1;
    pool->free = capacity ? 0 : -1;
    for (i = 0; i < capacity; ++i) keepalive[i].next = i + 1 < capacity ? i + 1 : -1;
    return CAI_OK;
}

CAI_API cai_status cai_stream_pool_destroy(cai_stream_pool *pool, cai_error *err)
{
    cai_priv_call call;
    cai_status first = CAI_OK;
    if (!pool || !pool->cuda)
        return cai_priv_stream_misuse(err, "cai_stream_pool_destroy: pool is NULL or not made");
    if (pool->open_exchanges || pool->waiting)
        return cai_priv_say(err, CAI_ERR_PENDING, -1,
                            "%d exchanges were begun and not ended, %d arrays wait in the keep-alive list",
                            "", pool->open_exchanges, pool->waiting, 0);
    call = cai_priv_open(pool, err);
    call.ending = 1;
    while (pool->idle_count) {
        const uint64_t event = pool->idle[--pool->idle_count].event;
        const cai_status status =
            cai_priv_did(&call, call.cuda->event_destroy(call.cuda->self, event), "event_destroy");
        if (!call.gone) cai_priv_keep_first(&call, &first, status);
    }
    pool->cuda = NULL;
    return first;
}

CAI_API void cai_stream_pool_forget(cai_stream_pool *pool, uint64_t context)
{
    int32_t i, kept = 0;
    if (!pool || !pool->cuda) return;
    cai_priv_lock(pool);
    for (i = 0; i < pool->idle_count; ++i) {
        if (context && pool->idle[i].context != context) pool->idle[kept++] = pool->idle[i];
    }
    pool->idle_count = kept;
    for (i = pool->first; i >= 0; i = pool->keepalive[i].next) {
        if (!context || pool->keepalive[i].context == context) pool->keepalive[i].event = 0;
    }
    cai_priv_unlock(pool);
}

/* ----------------------------------------------------------------- >>locating */
CAI_PRIV_STREAM_COLD cai_status cai_priv_no_memory(const cai_priv_call *call, const cai_array *array,
                                                   const char *sentence, uint64_t a, uint64_t b)
{
    cai_status status = cai_priv_say(call->err, CAI_ERR_MEMORY, -1, sentence, "", (int64_t)array->data,
                                     (int64_t)a, (int64_t)b);
    if (call->err) call->err->entry = CAI_ENTRY_DATA;
    return status;
}

static cai_status cai_priv_current_device(cai_priv_call *call, int32_t *device)
{
    const cai_cuda *cuda = call->cuda;
    *device = CAI_DEVICE_UNKNOWN;
    if (!cuda->context_device) return CAI_OK;
    return cai_priv_did(call, cuda->context_device(cuda->self, device), "context_device");
}

/* Memory that CUDA does not know: some devices read it all the same. */
static cai_status cai_priv_locate_pageable(cai_priv_call *call, const cai_array *array, uint32_t flags,
                                           cai_location *out)
{
    const cai_cuda *cuda = call->cuda;
    int32_t yes = 0;
    if (!(flags & CAI_LOCATE_PAGEABLE))
        return cai_priv_no_memory(call, array, "data 0x%x is plain host memory, or was freed", 0, 0);
    if (!cuda->pageable_access) return cai_priv_lacks(call, "pageable_access");
    CAI_TRY(cai_priv_current_device(call, &out->device));
    if (out->device >= 0)
        CAI_TRY(cai_priv_did(call, cuda->pageable_access(cuda->self, out->device, &yes), "pageable_access"));
    if (!yes)
        return cai_priv_no_memory(
            call, array,
            "data 0x%x is plain host memory, or was freed, and the current device cannot read "
            "such memory",
            0, 0);
    out->data = array->data;
    return CAI_OK;
}

/* Every byte of [lo, hi) against the allocation. */
static cai_status cai_priv_locate_bounds(cai_priv_call *call, const cai_array *array, cai_location *out)
{
    const cai_cuda *cuda = call->cuda;
    uint64_t offset, low, high;
    int32_t error;
    if (!cuda->pointer_range) return CAI_OK;
    error = cuda->pointer_range(cuda->self, array->data, &out->base, &out->nbytes);
    if (error == 1 || error == 201 || error == 500) { /* not known, or not in the current context */
        out->base = out->nbytes = 0;
        return CAI_OK;
    }
    CAI_TRY(cai_priv_did(call, error, "pointer_range"));
    offset = array->data - out->base;
    low = offset + (uint64_t)array->lo;
    high = offset + (uint64_t)array->hi;
    if (array->data < out->base || low > offset || high > out->nbytes || high < offset)
        return cai_priv_no_memory(
            call, array,
            "data 0x%x: bytes up to %d from the start of an allocation of %d bytes are not all "
            "in it",
            array->lo < 0 && low > offset ? low : high, out->nbytes);
    out->bounds = CAI_BOUNDS_INSIDE;
    return CAI_OK;
}

static cai_status cai_priv_locate_one(cai_priv_call *call, const cai_array *array, uint32_t flags,
                                      cai_location *out)
{
    const cai_cuda *cuda = call->cuda;
    cai_cuda_pointer info;
    int32_t device;
    memset(out, 0, sizeof *out);
    out->device = CAI_DEVICE_UNKNOWN;
    if (!array->size) return CAI_OK;
    if (!cuda->pointer_info) return cai_priv_lacks(call, "pointer_info");
    memset(&info, 0, sizeof info);
    CAI_TRY(cai_priv_did(call, cuda->pointer_info(cuda->self, array->data, &info), "pointer_info"));
    out->memory = info.memory;
    if (info.memory == CAI_MEMORY_HOST) return cai_priv_locate_pageable(call, array, flags, out);
    if (info.flags & CAI_POINTER_ARRAY)
        return cai_priv_no_memory(call, array, "data 0x%x is a CUDA array (a texture), no linear memory", 0,
                                  0);
    if (!info.device_pointer && info.memory == CAI_MEMORY_PINNED)
        return cai_priv_no_memory(call, array,
                                  "data 0x%x has no address for devices: it was registered without "
                                  "mapping",
                                  0, 0);
    out->device = info.device;
    out->context = info.context;
    out->data = info.device_pointer ? info.device_pointer : array->data;
    if (info.flags & CAI_POINTER_POOL) {
        CAI_TRY(cai_priv_current_device(call, &device));
        out->needs_peer = device >= 0 && device != info.device;
    }
    return flags & CAI_LOCATE_BOUNDS ? cai_priv_locate_bounds(call, array, out) : CAI_OK;
}

CAI_API cai_status cai_locate(cai_array *array, const cai_cuda *cuda, uint32_t flags, cai_location *out,
                              cai_error *err)
{
    cai_priv_call call;
    cai_location where, of_mask;
    CAI_TRY(cai_priv_check_cuda(cuda, err));
    CAI_TRY(cai_array_check(array, err));
    if (flags & ~(uint32_t)(CAI_LOCATE_BOUNDS | CAI_LOCATE_PAGEABLE))
        return cai_priv_say(err, CAI_ERR_ARGUMENT, -1, "cai_locate: flags = 0x%x has unknown bits", "", flags,
                            0, 0);
    memset(&call, 0, sizeof call);
    call.cuda = cuda;
    call.err = err;
    CAI_TRY(cai_priv_locate_one(&call, array, flags, &where));
    if (array->mask) {
        CAI_TRY(cai_priv_locate_one(&call, array->mask, flags, &of_mask));
        if (where.memory == CAI_MEMORY_DEVICE && of_mask.memory == CAI_MEMORY_DEVICE &&
            where.device != of_mask.device)
            return cai_priv_no_memory(&call, array, "data 0x%x is on device %d and its mask on device %d",
                                      (uint64_t)where.device, (uint64_t)of_mask.device);
        array->mask->device = of_mask.device;
        array->mask->memory = of_mask.memory;
    }
    array->device = where.device;
    array->memory = where.memory;
    if (out) *out = where;
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_STREAM_IMPLEMENTATION */

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
