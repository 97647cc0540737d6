/* cai_stream.h - order between CUDA streams at both ends of an exchange, and the place of memory - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header in the declarations, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_STREAM_IMPLEMENTATION)
#define CAI_STREAM_IMPLEMENTATION
#endif

/* A second include of cai.h adds the parts that are requested now, and refuses late configuration. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_stream.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && CAI_STREAM_H_INCLUDED != 200
#error "cai_stream.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_STREAM_H_INCLUDED
#define CAI_STREAM_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file:

        #define CAI_IMPLEMENTATION
        #include "cai_stream.h"

    Include it without the define everywhere else. The implementation includes <cuda_runtime_api.h> and links
    the CUDA Runtime. With CAI_NO_CUDART it does neither, and cai_cuda_load loads CUDA at run time.

WHAT IT IS
    Two libraries exchange arrays on different streams. The consumer's work must come after the producer's
    work. The producer's next work must come after the consumer's. This header makes both orders with one
    event and one wait each. If your stream is a handle (not 1 or 2) and there is nothing to order, it makes
    no CUDA call. The CPU waits only if an array does not say where its work is pending.

EXAMPLE (a consumer)
        int32_t launch(const cai_array *x, struct CUstream_st *s); // your kernel; returns cudaGetLastError()

        cai_status scale(cai_event_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err);
        cai_status scale(cai_event_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err)
        {
            cai_array *io[1] = {x};
            cai_exchange ex;
            CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err));
            return cai_exchange_finish(&ex, cai_cuda_status(launch(x, s), "scale_kernel", err), io, 1, err);
        }

THE FUNCTIONS MOST USERS NEED
    cai_exchange_begin     consumer: my stream waits for the producers' streams
    cai_exchange_finish    consumer: their streams wait for mine, and they get their arrays back
    cai_stream_export      producer: my work is on this stream (and on these others)
    cai_locate             which device, which kind of memory, inside its allocation?
    cai_cuda_linked        once: the CUDA that the program is linked with
    cai_cuda_load          or once: CUDA loaded at run time, if the machine has it
    cai_event_pool_init    once: the pool of events, for either of the two

CONFIGURATION (define before the first include, in addition to that of cai.h)
    CAI_STREAM_IMPLEMENTATION  compile the implementation of this header here
    CAI_NO_CUDART              implementation without <cuda_runtime_api.h>: no cai_cuda_linked
    CAI_NO_LOADER              implementation without cai_cuda_load (no <dlfcn.h>)
    CAI_NO_THREADS             no atomics, no <sched.h>: every pool is used by one thread at a time

STREAMS
    A stream is a uint64_t as in cai_array.stream. 1 is the legacy default stream and 2 the per-thread default
    stream. Other numbers are handles. 0 is an error everywhere, because it could mean 1 or 2. CAI_STREAM(s)
    makes the number of a cudaStream_t in your file. docs/order.md says which context 1 and 2 belong to, and
    which thread stream 2.

HANDLES
    CUDA crashes on a stream or an event that was destroyed. Your stream and the arrays of an exchange live
    until cai_exchange_finish or cai_exchange_end returns. The stream of an array lives as long as the array
    (R81). An argument of another function lives until that function returns. A pool keeps no handles but its
    own events. Before a context is destroyed, call cai_event_pool_forget.

RELEASE
    cai_exchange_finish gives owned arrays back: at once if the owner's free comes after your work, else when
    your work has passed (docs/order.md has the cases). Until then an array waits in the keep-alive list. A
    later call gives it back, on the thread of that call. The release callback of such an array finds `owner`,
    `data`, `device` and `sync`. `sync` is CAI_SYNC_NONE, or CAI_SYNC_STREAM with a handle or 1 in `stream`.
    packed_axis is -1. All other fields are 0. Keep what the callback needs in the memory of `owner`. These
    callbacks run in the relaxed capture mode, so that they end no capture of another thread.

WHAT A CALL LEAVES BEHIND
    A call may change the current context and the thread's capture mode, and restores both before it returns.
    cudaGetLastError is not changed, because this header calls the driver API, which has no last error.

ERRORS
    As in cai.h. If CUDA fails, the status is CAI_ERR_CUDA, or CAI_ERR_CAPTURE if the error is about a capture
    (900 to 908). cai_error.native is CUDA's number, and the message names the operation: "event_record: CUDA
    error 400 (invalid resource handle)". While the process ends, CUDA returns 4 (deinitialized) from every
    call. cai_exchange_end, and every function that releases, drops or destroys, treats 4 as success.

THREADS
    Any number of threads may use one pool, and one thread at a time an exchange. If stream 2 takes part, only
    the thread that began the exchange may end it (CAI_ERR_THREAD). After fork the child must not use a pool
    of the parent, whose guard may stay held.

CUDA
    CUDA 11.2 or later (cai_cuda_linked: 11.3). Every CUDA call goes through a table, cai_cuda. Fill in your
    own table to test without a GPU (as sim does) or to support another platform.

RULES
    R70-R85, R100-R106 in comments: docs/rules.md.

NOT HERE
    Allocation (cai_emm.h), the choice of a stream for several arrays (ext/cai_place.h), kernels,
    creation of streams, peer access.
*/

#include <stddef.h>

struct CUstream_st; /* what cudaStream_t points to */

#if defined(CAI_NAMESPACE)
#define cai_cuda_linked CAI_PRIV_RENAMED(cai_cuda_linked)
#define cai_cuda_load CAI_PRIV_RENAMED(cai_cuda_load)
#define cai_cuda_status CAI_PRIV_RENAMED(cai_cuda_status)
#define cai_event_pool_destroy CAI_PRIV_RENAMED(cai_event_pool_destroy)
#define cai_event_pool_forget CAI_PRIV_RENAMED(cai_event_pool_forget)
#define cai_event_pool_init CAI_PRIV_RENAMED(cai_event_pool_init)
#define cai_event_pool_set_modes CAI_PRIV_RENAMED(cai_event_pool_set_modes)
#define cai_exchange_begin CAI_PRIV_RENAMED(cai_exchange_begin)
#define cai_exchange_begin_with CAI_PRIV_RENAMED(cai_exchange_begin_with)
#define cai_exchange_end CAI_PRIV_RENAMED(cai_exchange_end)
#define cai_exchange_finish CAI_PRIV_RENAMED(cai_exchange_finish)
#define cai_keepalive_drain CAI_PRIV_RENAMED(cai_keepalive_drain)
#define cai_keepalive_poll CAI_PRIV_RENAMED(cai_keepalive_poll)
#define cai_keepalive_push CAI_PRIV_RENAMED(cai_keepalive_push)
#define cai_locate CAI_PRIV_RENAMED(cai_locate)
#define cai_stream_detach CAI_PRIV_RENAMED(cai_stream_detach)
#define cai_stream_drop_event CAI_PRIV_RENAMED(cai_stream_drop_event)
#define cai_stream_export CAI_PRIV_RENAMED(cai_stream_export)
#define cai_stream_order CAI_PRIV_RENAMED(cai_stream_order)
#define cai_stream_remember_thread CAI_PRIV_RENAMED(cai_stream_remember_thread)
#endif

#if defined(__cplusplus) && defined(__clang__)
/* Around C that is also C++. Strict flags of clang refuse casts of C, and NULL. */
#define CAI_PRIV_C_BEGIN                                                                                     \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wold-style-cast\"")                \
    _Pragma("clang diagnostic ignored \"-Wzero-as-null-pointer-constant\"") extern "C" {
#define CAI_PRIV_C_END } _Pragma("clang diagnostic pop")
#elif defined(__cplusplus)
#define CAI_PRIV_C_BEGIN extern "C" {
#define CAI_PRIV_C_END }
#else
#define CAI_PRIV_C_BEGIN
#define CAI_PRIV_C_END
#endif

CAI_PRIV_C_BEGIN

typedef struct cai_event_pool cai_event_pool; /* >>storage */
typedef struct cai_cuda_v0 cai_cuda;          /* >>CUDA table */

/* ----------------------------------------------------------------- >>exchange */
/** How both ends of an exchange are ordered. */
enum {
    CAI_MODE_EVENT = 0,  /* by events on the device (R75, R76), or as cai_event_pool_set_modes says */
    CAI_MODE_HOST = 1,   /* the host waits for the producers at begin and for the consumer at end. Between the
                            two the host may use data that it can access (R76) */
    CAI_MODE_IGNORE = 2  /* no order; the caller makes its own, before begin and before the end (R79) */
};

/** What an exchange does about CAI_SYNC_UNKNOWN: work may be pending on a stream that nobody named. */
enum {
    CAI_UNKNOWN_SYNCHRONIZE = 0, /* the host waits for all work of the data's context, of the current context
                                    and of the active primary context of each device. A capture of a blocking
                                    stream there is CAI_ERR_CAPTURE. A capture of a non-blocking stream there
                                    is not seen, and CUDA ends it */
    CAI_UNKNOWN_STREAM = 1,      /* order on unknown_stream; the caller knows the producer's stream */
    CAI_UNKNOWN_LEGACY = 2,      /* order on the legacy stream; right for blocking streams only (R104). For
                                    memory without a context: of the current context and of the primary one */
    CAI_UNKNOWN_ASSUME_IDLE = 3  /* the caller knows that no work is pending */
};

enum {
    CAI_EXCHANGE_EDGES = 16, /* distinct producer streams of one exchange */
    CAI_EXCHANGE_JOIN_CAPTURE = 1 << 0 /* a producer that captures may pull the consumer's stream into its
                                          capture; end joins it back (R103) */
};

/** Options of an exchange. Zero means the default. */
typedef struct cai_exchange_options {
    int32_t mode;            /* CAI_MODE_... */
    int32_t unknown;         /* CAI_UNKNOWN_... */
    uint64_t unknown_stream; /* with CAI_UNKNOWN_STREAM, on the device of the data */
    uint32_t flags;          /* 0 or CAI_EXCHANGE_JOIN_CAPTURE */
    uint32_t reserved;       /* 0 */
} cai_exchange_options;

/** A producer stream of an exchange. */
typedef struct cai_exchange_edge {
    uint64_t stream, context, context_id, capture;
    uint32_t flags;
    int32_t array; /* the first array that names it */
} cai_exchange_edge;

/** An exchange between begin and end. It needs no initialization, and may be on the stack and moved. */
typedef struct cai_exchange {
    cai_event_pool *pool;
    uint64_t stream; /* the consumer's: launch here */
    uint32_t state;
    uint32_t flags;
    cai_exchange_options options;
    uint64_t context, context_id; /* of that stream, once they are known */
    uint64_t thread;              /* that began it, if stream 2 takes part */
    uint64_t capture;
    int32_t edge_count;
    int32_t reserved;
    cai_exchange_edge edges[CAI_EXCHANGE_EDGES];
} cai_exchange;

/** Begins an exchange with the default options. See cai_exchange_begin_with. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_begin(cai_exchange *ex, cai_event_pool *pool,
                                                     cai_array *const *arrays, int32_t count,
                                                     uint64_t stream, cai_error *err);

/** Makes `stream`, the consumer's, wait for the pending work of the producers of `arrays` and of their masks.
 *  It makes one record and one wait for each distinct stream, at most 16, and one wait for each event, at most
 *  16. It makes no CUDA call for an array that is empty, has no pending work, or is on `stream` itself (a
 *  handle). `count` may be 0, and an array may be named twice. The arrays are not changed. `options` may be
 *  NULL for the default. If begin orders work and the consumer does not capture, begin also releases arrays of
 *  the keep-alive list whose work has passed, the oldest first. All checks, also of captures, come before the
 *  first record. After success end the exchange exactly once, also if your work failed (cai_exchange_finish or
 *  cai_exchange_end). If begin fails, there is nothing to end, and `ex` has no meaning. Waits that were
 *  already made stay. A stream that such a wait pulled into a capture stays in the capture. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_STREAM (0, -1, backend), CAI_ERR_CAPTURE (R103), CAI_ERR_CAPACITY,
 *  CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. CAI_ERR_THREAD: call cai_stream_detach on the thread of stream 2.
 *  cai_error.index is that of the array. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_begin_with(cai_exchange *ex, cai_event_pool *pool,
                                                          cai_array *const *arrays, int32_t count,
                                                          uint64_t stream,
                                                          const cai_exchange_options *options,
                                                          cai_error *err);

/** Ends an exchange and gives `count` arrays of it back to their owners (RELEASE above). Each producer's
 *  stream waits for the consumer's work, also if that work failed (R76, R80). This takes one record in all and
 *  one wait for each stream. If one stream cannot get its wait, the others still get theirs. An array without
 *  a stream gets no back edge. Its owner must not touch the data before your stream has passed. `status` is
 *  that of your work. `arrays` may be NULL if `count` is 0, and may omit arrays that you keep. Borrowed arrays
 *  are not touched. An array that is named twice is released once. The first of these errors is returned:
 *  `status` with `err` as you filled it, the error of the end, and the error of a release with the array's
 *  index. An array whose release failed is still owned. Release it after a wait for your stream, or try
 *  cai_keepalive_push. If the keep-alive list is full, the host waits for its oldest array.
 *  If the exchange was not begun (begin failed, or `ex` is zeroed) or has ended, nothing is done, and the
 *  arrays stay yours. The result is `status`, or CAI_ERR_ARGUMENT if `status` is CAI_OK. On the wrong thread
 *  (CAI_ERR_THREAD) nothing is done either. Errors: those of cai_exchange_end and of cai_keepalive_push,
 *  CAI_ERR_ARGUMENT (`count` is negative, or `arrays` or one of them is NULL). The exchange is ended then, and
 *  the other arrays are released. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_finish(cai_exchange *ex, cai_status status,
                                                      cai_array *const *arrays, int32_t count,
                                                      cai_error *err);

/** Ends an exchange without a release. Give back the arrays that you keep with cai_keepalive_push. If an
 *  array has CAI_ORDERED_FREE and named a stream, cai_array_release is enough.
 *  Errors: CAI_ERR_ARGUMENT (not begun, or ended before), CAI_ERR_THREAD, CAI_ERR_CAPTURE,
 *  CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. The first one is returned. */
CAI_API CAI_MUST_CHECK cai_status cai_exchange_end(cai_exchange *ex, cai_status status, cai_error *err);

/** Returns the status of your own CUDA call: CAI_OK for 0, else CAI_ERR_CUDA with the message "scale_kernel:
 *  CUDA error 700 (illegal address)". `error` is a cudaError_t or CUresult. `what` names the call. */
CAI_API CAI_MUST_CHECK cai_status cai_cuda_status(int32_t error, const char *what, cai_error *err);

/* ------------------------------------------------------------------ >>streams */
/** Returns the number of a cudaStream_t, and `when_null` for a NULL stream. Use CAI_STREAM. */
static inline uint64_t cai_stream_from_cuda(struct CUstream_st *stream, uint64_t when_null)
{
    return stream ? (uint64_t)(uintptr_t)stream : when_null;
}

/** Returns the cudaStream_t of a number. */
static inline struct CUstream_st *cai_stream_to_cuda(uint64_t stream)
{
    return (struct CUstream_st *)(uintptr_t)stream;
}

/** Returns the number of a cudaStream_t, in the unit where it stands. A NULL stream is the per-thread default
 *  stream if that unit is compiled so (nvcc --default-stream per-thread), else the legacy default stream. If
 *  CUDA's headers were included before, their choice decides. */
#if defined(__CUDA_RUNTIME_API_H__) ? defined(__CUDART_API_PER_THREAD_DEFAULT_STREAM)                        \
    : defined(__cuda_cuda_h__)      ? defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)                          \
                                    : defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CAI_STREAM(stream) cai_stream_from_cuda(stream, CAI_STREAM_PER_THREAD)
#else
#define CAI_STREAM(stream) cai_stream_from_cuda(stream, CAI_STREAM_LEGACY)
#endif

/* ----------------------------------------------------------------- >>ordering */
/** Makes `after` wait for the work that is in `before` now. 1 and 2 are those of the current context. If the
 *  two are the same, nothing is done. Errors: CAI_ERR_ARGUMENT, CAI_ERR_STREAM (0, or -1), CAI_ERR_CAPTURE
 *  (R103), CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. cai_error.index is 0 for `before`. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_order(cai_event_pool *pool, uint64_t before, uint64_t after,
                                                   cai_error *err);

/** For a producer. Stores `stream` in `array` as the stream of its pending work. Makes `stream` wait for
 *  `count` other streams with work on the array. So work on 7, 9 and 15 is exported as 3 (R77). `pending` may
 *  be NULL if `count` is 0, and may contain `stream` itself. Later work on the others must come after
 *  `stream`, because only `stream` gets the back edges. If the memory is of another context, streams 1 and 2
 *  fail with CAI_ERR_STREAM. `stream` must outlive the array (R81). Export the mask with its own call. On
 *  failure `array` is unchanged. Errors: CAI_ERR_ARGUMENT (also for CAI_SYNC_EVENT; call cai_stream_drop_event
 *  first), CAI_ERR_ABI, CAI_ERR_STREAM (also 0 and -1), CAI_ERR_CAPTURE (R103), CAI_ERR_CAPACITY (more than 16
 *  distinct streams), CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. cai_error.index is that of `pending`. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_export(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                                    const uint64_t *pending, int32_t count, cai_error *err);

/** Stores the calling thread as that of stream 2, in an array that was just imported and in its mask. Does
 *  nothing for other streams. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_remember_thread(cai_array *array, cai_event_pool *pool,
                                                             cai_error *err);

/** Turns CAI_SYNC_STREAM into CAI_SYNC_EVENT: records an event, for which any thread can wait. Stream 2 is
 *  accepted only from its own thread, and is then removed from the array, because no other thread can make it
 *  wait. Other streams stay. The array owns the event (CAI_OWN_EVENT). cai_exchange_finish and
 *  cai_keepalive_push destroy it. If the array is borrowed or released in another way, call
 *  cai_stream_drop_event. Detach the mask with its own call. Does nothing for CAI_SYNC_NONE and empty arrays.
 *  On failure `array` is unchanged. Errors: CAI_ERR_ARGUMENT (not ordered by a stream), CAI_ERR_ABI,
 *  CAI_ERR_STREAM (0, -1), CAI_ERR_CAPTURE, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. CAI_ERR_THREAD: stream 2 of
 *  another thread, or of an unknown one. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_detach(cai_array *array, cai_event_pool *pool, cai_error *err);

/** Destroys the event of cai_stream_detach (CAI_OWN_EVENT). An event of another owner is only forgotten. The
 *  array then has CAI_SYNC_UNKNOWN and no stream. cai_exchange_finish does not need this call. Does nothing
 *  for an array without an event. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_drop_event(cai_array *array, cai_event_pool *pool,
                                                        cai_error *err);

/* --------------------------------------------------------------- >>keep-alive */
/** Gives an owned array back when the work that is in `stream` now has passed. Use it for an array that you
 *  kept after the end of its exchange. An array without an exchange is also possible, if its own work has
 *  passed or comes before that in `stream`. The stream is used in this call only. After success `array` is
 *  borrowed. A borrowed array stays as it is. If the list is full, what has passed is released, or the host
 *  waits for the oldest array. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_STREAM (0, or -1),
 *  CAI_ERR_CAPTURE (the stream is capturing), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_push(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                                     cai_error *err);

/** Releases what has passed, the oldest first, and tries again what could not be freed before. It does not
 *  wait. A release callback may call it again. `waiting` gets the number of arrays that still wait, and may
 *  be NULL. Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA (the first; arrays of a dead context
 *  are released). */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_poll(cai_event_pool *pool, int32_t *waiting, cai_error *err);

/** Waits for all arrays of the list and releases them. After CAI_OK nothing waits any more. CAI_ERR_PENDING:
 *  something still waits. It can be freed only after a capture of another stream, or another call has it now:
 *  of another thread, or the call that runs this release callback. That call releases it, or puts it back.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE, CAI_ERR_PENDING, CAI_ERR_CUDA (the first). */
CAI_API CAI_MUST_CHECK cai_status cai_keepalive_drain(cai_event_pool *pool, cai_error *err);

/* --------------------------------------------------------------------- >>pool */
/** A place in the keep-alive list. It is storage only. */
typedef struct cai_keepalive {
    void (*release)(cai_array *array);
    void *owner;
    uint64_t data, stream; /* stream 0: CAI_SYNC_NONE */
    uint64_t event, context, context_id;
    int32_t device, next;
    int32_t joined;   /* it waits for the event of the place before it */
    int32_t reserved;
} cai_keepalive;

/** Makes an empty pool, without a CUDA call. `cuda` must outlive the pool. Slots behind the end of a shorter
 *  table are NULL. `keepalive` is the caller's storage for `capacity` arrays that wait for a stream. If
 *  `capacity` is 0, the pool uses its own 32 places. `flags` is 0.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (the table), CAI_ERR_UNAVAILABLE (the table lacks an operation). */
CAI_API CAI_MUST_CHECK cai_status cai_event_pool_init(cai_event_pool *pool, const cai_cuda *cuda,
                                                      cai_keepalive *keepalive, int32_t capacity,
                                                      uint32_t flags, cai_error *err);

/** Destroys the idle events. No other call may use the pool any more. It fails with CAI_ERR_PENDING and does
 *  nothing while an array waits, or while an exchange is open whose end would call CUDA.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_PENDING, CAI_ERR_CUDA (the first error, and the pool is empty then). */
CAI_API CAI_MUST_CHECK cai_status cai_event_pool_destroy(cai_event_pool *pool, cai_error *err);

/** Removes all that a pool keeps of a context. The host waits for the arrays that wait for its work, and
 *  releases them. Then the idle events of the context are destroyed. `context` 0 means every context. Call it
 *  before the context is destroyed, and below CUDA 12.0 also before a reset (cudaDeviceReset), which no query
 *  can find there. Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA (the first; what is left then
 *  was not waited for). */
CAI_API CAI_MUST_CHECK cai_status cai_event_pool_forget(cai_event_pool *pool, uint64_t context,
                                                        cai_error *err);

/** Chooses how the exchanges and exports of a pool are ordered (R79). `mode` is CAI_MODE_EVENT, _HOST or
 *  _IGNORE, and takes the place of CAI_MODE_EVENT in every exchange that begins from now on. What the headers
 *  above this one order for their own memory stays in order. `export_mode` is one of the three for
 *  cai_stream_export. EVENT: the array names its stream. HOST: the host waits for the stream, and the array
 *  has CAI_SYNC_NONE. IGNORE: the array has CAI_SYNC_NONE at once, and your program must know that no work is
 *  pending. An array that names no stream gets no back edge: do not touch its data before the consumer's
 *  stream has passed. At first both modes are EVENT. Threads: no other call may use the pool meanwhile.
 *  Errors: CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_event_pool_set_modes(cai_event_pool *pool, int32_t mode,
                                                           int32_t export_mode, cai_error *err);

/* ------------------------------------------------------------------- >>memory */
enum { CAI_BOUNDS_UNKNOWN = 0, CAI_BOUNDS_INSIDE = 1 };

/** The place of an array's data. */
typedef struct cai_location {
    int32_t memory;    /* CAI_MEMORY_... */
    int32_t device;    /* of the memory; of pinned and managed memory the one current when it was made */
    int32_t bounds;    /* CAI_BOUNDS_...; unknown without CAI_LOCATE_BOUNDS */
    int32_t needs_peer; /* 1: in a memory pool of a device that is not current; the pool must grant access.
                           For other memory it is 0, and the caller must know about peer access */
    uint64_t context;  /* of the allocation, or 0 */
    uint64_t data;     /* the address that kernels use; mostly array->data */
    uint64_t base;     /* of the allocation, of mapped memory (cuMemMap) of its segment; 0: not known */
    uint64_t nbytes;   /* from base; 0: not known */
} cai_location;

enum {
    CAI_LOCATE_BOUNDS = 1 << 0,   /* check the extent [lo, hi) against the allocation */
    CAI_LOCATE_PAGEABLE = 1 << 1, /* accept plain host memory if the current device can read it (HMM, ATS) */
    CAI_LOCATE_STORE_ADDRESS = 1 << 2 /* store the address that kernels use in array->data; it differs from
                                         the host's for some registered host memory (R7) */
};

/** Queries CUDA for the place of an array. It stores array->device, array->memory, and of memory that CUDA
 *  knows array->backend, also in the mask, and fills `out`, which may be NULL. It does not query CUDA for an
 *  empty array. On failure nothing is stored. `name` is the array's name in messages. `flags` is 0 or
 *  CAI_LOCATE_.... If the current context does not know the memory, the context of the allocation is queried,
 *  then the active primary context of the device. Bounds stay unknown if no such context knows the allocation,
 *  and for mapped memory (cuMemMap) if the array leaves one segment. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI,
 *  CAI_ERR_STREAM (the backend), CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA (also an earlier error of the device;
 *  native 201: no context is current, and CUDA needs one). CAI_ERR_MEMORY: plain or freed memory, a texture, no
 *  address for devices that is known, an extent outside of the allocation, a mask on another device. */
CAI_API CAI_MUST_CHECK cai_status cai_locate(cai_array *array, const char *name, const cai_cuda *cuda,
                                             uint32_t flags, cai_location *out, cai_error *err);

/* --------------------------------------------------------------- >>CUDA table */
/* Shared objects exchange the struct below. cai.h explains the guard. */
#ifndef CAI_CUDA_ABI_V0
#define CAI_CUDA_ABI_V0

/** The result of a capture query. */
struct cai_cuda_capture_v0 {
    int32_t status;   /* CAI_CAPTURE_... */
    int32_t reserved; /* 0 */
    uint64_t id;      /* of the capture; equal for all streams in it */
};

/** The result of a pointer query. */
struct cai_cuda_pointer_v0 {
    int32_t memory;          /* CAI_MEMORY_...; CAI_MEMORY_HOST if CUDA does not know the pointer */
    int32_t device;          /* ordinal; CAI_DEVICE_UNKNOWN for CAI_MEMORY_HOST */
    uint32_t flags;          /* CAI_POINTER_... */
    uint32_t reserved;       /* 0 */
    uint64_t context;        /* of the allocation; 0 if it has none (pools, mapped memory) */
    uint64_t device_pointer; /* the address that a device uses; 0: none, or see CAI_POINTER_NO_CONTEXT */
};

/** Rows of bytes to copy. Addresses are of a device or of the host. */
struct cai_cuda_copy_v0 {
    uint64_t to, from;               /* addresses of the first byte */
    uint64_t to_pitch, from_pitch;   /* bytes from row to row, at least `width` */
    uint64_t to_height, from_height; /* rows from plane to plane, at least `height` */
    uint64_t width, height, depth;   /* bytes of a row, rows of a plane, planes; each at least 1 */
};

/** The table through which this header calls CUDA. Every operation gets `self`, and returns 0 or CUDA's error
 *  number. Driver and runtime share these numbers. Contexts, streams and events are handles, given as
 *  numbers. Streams 1 and 2 are the default streams of the current context. The slots of CUDA 11.2 up to
 *  host_thread are needed. Any other slot may be NULL, which means that it is not available.
 *  docs/cuda-table.md lists what is lost then, and has a table for a platform with one context. */
struct cai_cuda_v0 {
    uint32_t struct_size; /* sizeof of the maker's struct; slots behind its end are NULL (docs/abi.md) */
    uint32_t version;     /* CAI_CUDA_VERSION */
    uint32_t flags;       /* 0 or bits CAI_CUDA_... */
    uint32_t reserved;    /* 0 */
    void *self;
    /* contexts */
    int32_t (*context_current)(void *self, uint64_t *context); /* 0: none is current */
    int32_t (*context_push)(void *self, uint64_t context);
    int32_t (*context_pop)(void *self);
    int32_t (*context_synchronize)(void *self);                /* the current one */
    int32_t (*context_device)(void *self, int32_t *device);    /* of the current one */
    int32_t (*device_context)(void *self, int32_t device, uint64_t *context); /* the primary context if it
                                                          is active, else 0; makes and destroys none */
    /* streams */
    int32_t (*stream_context)(void *self, uint64_t stream, uint64_t *context);
    int32_t (*stream_capture)(void *self, uint64_t stream, struct cai_cuda_capture_v0 *capture);
    int32_t (*stream_id)(void *self, uint64_t stream, uint64_t *id); /* unique until the process ends */
    int32_t (*stream_wait_event)(void *self, uint64_t stream, uint64_t event);
    int32_t (*stream_synchronize)(void *self, uint64_t stream);
    /* events: created without timing, in the current context */
    int32_t (*event_create)(void *self, uint64_t *event);
    int32_t (*event_destroy)(void *self, uint64_t event);
    int32_t (*event_record)(void *self, uint64_t event, uint64_t stream);
    int32_t (*event_query)(void *self, uint64_t event);        /* 600: not yet */
    int32_t (*event_synchronize)(void *self, uint64_t event);
    /* exchanges the capture mode of this thread with *mode: 0 global, 1 thread-local, 2 relaxed */
    int32_t (*capture_mode)(void *self, int32_t *mode);
    /* memory */
    int32_t (*pointer_info)(void *self, uint64_t pointer, struct cai_cuda_pointer_v0 *info);
    int32_t (*pointer_range)(void *self, uint64_t pointer, uint64_t *base, uint64_t *size); /* bytes */
    int32_t (*device_attribute)(void *self, int32_t device, int32_t attribute, int32_t *value);
    /* the calling host thread: never 0, and the same number in every library of the process; not a CUDA call.
     * The number of a thread that ended is used again as late as the system allows. */
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
    /* copies and fills in the order of the stream, of memory of a device or of the host; sizes in bytes. For
     * pageable memory the host may wait. */
    int32_t (*copy_async)(void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream);
    int32_t (*copy_3d_async)(void *self, const struct cai_cuda_copy_v0 *copy, uint64_t stream);
    int32_t (*set_async)(void *self, uint64_t to, uint32_t value, uint64_t size,
                         uint64_t stream); /* the lowest byte of `value` in each byte */
    int32_t (*set_2d_async)(void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width,
                            uint64_t height, uint64_t stream);
    /* copies between memory of two devices, with or without peer access. The contexts are those of the
     * memory. pointer_info tells them; where it tells 0 it is the primary one of the device. */
    int32_t (*copy_peer_async)(void *self, uint64_t to, uint64_t to_context, uint64_t from,
                               uint64_t from_context, uint64_t size, uint64_t stream);
    int32_t (*copy_3d_peer_async)(void *self, const struct cai_cuda_copy_v0 *copy, uint64_t to_context,
                                  uint64_t from_context, uint64_t stream);
    /* since CUDA 12.0, 12.5 and 5.0: a number that no other context of the process ever has; an event behind
     * all work of a context (it ends each capture there); 1 for a stream that is non-blocking */
    int32_t (*context_id)(void *self, uint64_t context, uint64_t *id);
    int32_t (*context_record)(void *self, uint64_t context, uint64_t event);
    int32_t (*stream_flags)(void *self, uint64_t stream, uint32_t *flags);
    /* memory pools of one's own. reuse: 1 follow events, 2 opportunistic, 4 internal dependencies */
    int32_t (*pool_create)(void *self, int32_t device, uint32_t reuse, uint64_t *pool);
    int32_t (*pool_destroy)(void *self, uint64_t pool);
    int32_t (*memory_alloc_from_pool)(void *self, uint64_t *pointer, uint64_t size, uint64_t pool,
                                      uint64_t stream);
    /* a reference to the primary context, for one who keeps it: the first makes it, the last destroys it */
    int32_t (*primary_retain)(void *self, int32_t device, uint64_t *context);
    int32_t (*primary_release)(void *self, int32_t device);
    /* since CUDA 11.3: `gone` is called once, with `user`, when the graph that `stream` captures into, all that
     * is made of it, and their launches have ended. It may run on any thread, and must not call CUDA. Not after
     * an error. 401: the stream does not capture */
    int32_t (*capture_retain)(void *self, uint64_t stream, void (*gone)(void *user), void *user);
};

#endif /* CAI_CUDA_ABI_V0 */

typedef struct cai_cuda_capture_v0 cai_cuda_capture;
typedef struct cai_cuda_copy_v0 cai_cuda_copy;
typedef struct cai_cuda_pointer_v0 cai_cuda_pointer;

enum { CAI_CUDA_VERSION = 1 };

enum {
    CAI_CUDA_NO_DEFAULT_STREAMS = 1 << 0, /* 1 and 2 are no streams of this platform (HIP before ROCm 6.2), and
                                             are refused (R106) */
    CAI_CUDA_HIP = 1 << 1 /* of HIP, as in cai_hip.h: the backend of its arrays is CAI_BACKEND_HIP */
};

/** Attributes of a device, by CUDA's numbers (CU_DEVICE_ATTRIBUTE_...). The value is 1: yes, or 0. */
enum {
    CAI_ATTRIBUTE_PAGEABLE_ACCESS = 88,  /* the device can read and write plain host memory (HMM, ATS) */
    CAI_ATTRIBUTE_CONCURRENT_MANAGED = 89 /* the host may use managed memory while kernels run */
};

enum { CAI_CAPTURE_NONE = 0, CAI_CAPTURE_ACTIVE = 1, CAI_CAPTURE_INVALIDATED = 2 };

enum {
    CAI_POINTER_POOL = 1 << 0,   /* from a memory pool: other devices need access to the pool */
    CAI_POINTER_ARRAY = 1 << 1,  /* a CUDA array (a texture), which is no linear memory */
    CAI_POINTER_NO_CONTEXT = 1 << 2 /* a query in another context may find more: no context is current on
                                       this thread, or the current one has no address for this memory */
};

/** The driver, as both backends use it. Fill it with cai_cuda_linked or cai_cuda_load. `cuda` is the table.
 *  It points into this struct, so the struct must stay at its address. */
typedef struct cai_cuda_driver {
    cai_cuda cuda;
    void *library;           /* what cai_cuda_load opened */
    int32_t runtime_version; /* of the linked runtime, 12040 for 12.4; 0 after cai_cuda_load */
    int32_t driver_version;  /* the newest CUDA that the driver supports */
    void (*entries[64])(void); /* more than there are */
} cai_cuda_driver;

/** Fills `out` with the CUDA that this program is linked with. It makes no context, but may initialize the
 *  driver. `out` must stay at its address. There is nothing to free. Not available under CAI_NO_CUDART.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (no driver, or one without an operation that is needed). */
#if !defined(CAI_NO_CUDART) || !defined(CAI_STATIC)
CAI_API CAI_MUST_CHECK cai_status cai_cuda_linked(cai_cuda_driver *out, cai_error *err);
#endif

#if !defined(CAI_NO_LOADER) || !defined(CAI_STATIC)
/** Loads the CUDA driver at run time, for programs that must also start without CUDA. `path` names the
 *  driver's library. NULL is libcuda.so.1, or nvcuda.dll of the system folder. Nothing else is tried, and no
 *  runtime is needed. Success means that there is a driver, not that there is a device. The library stays
 *  open until the process ends. Not available under CAI_NO_LOADER. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_UNAVAILABLE (the message gives the reason). */
CAI_API CAI_MUST_CHECK cai_status cai_cuda_load(cai_cuda_driver *out, const char *path, cai_error *err);
#endif

/* ------------------------------------------------------------------ >>storage */
enum {
    CAI_POOL_EVENTS = 32, /* idle events that a pool keeps; more are destroyed */
    CAI_POOL_PLACES = 32  /* arrays that can wait in a pool without places of the caller */
};

/** An idle event. */
typedef struct cai_pool_event {
    uint64_t context, context_id, event;
} cai_pool_event;

/** What exports of ext/cai_dlpack.h have parked in a pool. */
typedef struct cai_pool_parked {
    int64_t arrays, bytes;             /* now */
    int64_t peak_arrays, peak_bytes;   /* the most so far */
    int64_t limit_arrays, limit_bytes; /* cai_dlpack_limit; 0: none */
} cai_pool_parked;

/** Events, and arrays that wait. A pool is the caller's and allocates nothing. It must outlive the exchanges,
 *  the events and the arrays given to it. Do not move, copy or write it. Its fields may be read. */
struct cai_event_pool {
    const cai_cuda *cuda;
    uint32_t flags;
    int32_t guard;             /* held for a few instructions */
    int32_t open_exchanges;    /* begun and not ended, of those whose end calls CUDA */
    int32_t waiting;           /* arrays in the keep-alive list, and what is parked */
    int32_t first, last, free; /* of the list; -1: none */
    int32_t passed_first, passed_last; /* those that will be released next */
    int32_t capacity;          /* places */
    int32_t mode, export_mode; /* cai_event_pool_set_modes */
    int32_t idle_count;
    int32_t backend;                   /* of the table */
    struct cai_priv_parked *parked; /* what could not be freed when its owner let go */
    cai_pool_parked dlpack;         /* how much of that is exports of ext/cai_dlpack.h */
    cai_keepalive *keepalive;
    cai_cuda whole;                        /* if the maker's table is shorter than this header's */
    cai_pool_event idle[CAI_POOL_EVENTS];
    cai_keepalive places[CAI_POOL_PLACES]; /* if the caller gave none */
};

/* ------------------------------------------------------------------- >>shared */
/* The shared part of the implementations of this header and of those above it. Not for users. */
enum {
    /* flags of an exchange for order that the lifetime of memory relies on */
    CAI_PRIV_KEEP_MODE = 1 << 30, /* events, whatever the modes of the pool are */
    CAI_PRIV_ONE_WAY = 1 << 29    /* end gives no back edge: the consumer keeps the array */
};

static inline cai_exchange_options cai_priv_keep_mode(void)
{
    const cai_exchange_options options = {CAI_MODE_EVENT, CAI_UNKNOWN_SYNCHRONIZE, 0, CAI_PRIV_KEEP_MODE, 0};
    return options;
}

/* Memory that could not be freed when its owner let go: because somebody captures, say. The node is a part of
 * the owner. cai_priv_park puts the node into the pool. Each poll, drain and release of the list calls `again`,
 * which returns whether the node is gone. If `wait` is set, the host may wait for work. */
typedef struct cai_priv_parked {
    struct cai_priv_parked *next;
    int (*again)(struct cai_priv_parked *node, int wait);
} cai_priv_parked;

/* No work of a context continues after these errors. The arrays that waited for it may be released. */
static inline int cai_priv_is_dead(int32_t error)
{
    static const int32_t dead[] = {4,   214, 220, 226, 700, 702, 709, 710, 714,
                                   715, 716, 717, 718, 719, 721, 810, 911};
    uint32_t i;
    for (i = 0; i < sizeof dead / sizeof dead[0]; ++i) {
        if (dead[i] == error) return 1;
    }
    return 0;
}

static inline int32_t cai_priv_backend(const cai_cuda *cuda)
{
    return cuda->flags & CAI_CUDA_HIP ? CAI_BACKEND_HIP : CAI_BACKEND_CUDA;
}

/* Returns whether a table refuses an array. Tables of HIP take arrays of CUDA: a dictionary cannot say HIP. */
static inline int cai_priv_is_foreign(const cai_cuda *cuda, int32_t backend)
{
    return backend != CAI_BACKEND_CUDA && backend != cai_priv_backend(cuda);
}

/* Returns whether the table has this version. It may end anywhere after `self`. */
static inline int cai_priv_knows_cuda(const cai_cuda *cuda)
{
    return cuda->version == CAI_CUDA_VERSION && cuda->struct_size >= offsetof(cai_cuda, context_current);
}

/* Returns the table. A shorter table is copied to `whole`, where the slots after its end are NULL. */
static inline const cai_cuda *cai_priv_whole_cuda(const cai_cuda *cuda, cai_cuda *whole)
{
    const size_t behind_head = cuda->struct_size - offsetof(cai_cuda, context_current);
    const size_t end = cuda->struct_size - behind_head % sizeof cuda->context_current;
    size_t i;
    if (cuda->struct_size >= sizeof *cuda) return cuda;
    for (i = 0; i < sizeof *whole; ++i)
        ((unsigned char *)whole)[i] = i < end ? ((const unsigned char *)cuda)[i] : (unsigned char)0;
    whole->struct_size = (uint32_t)sizeof *whole;
    return whole;
}

/* Returns whether the stream is a handle. 0, 1 and 2 are none. 1 and 2 are streams of a context. */
static inline int cai_priv_is_handle(uint64_t stream)
{
    return stream > CAI_STREAM_PER_THREAD;
}

/* Returns whether CUDA accepts the number. 0 (R71) and DLPack's -1 (R74) are refused. 1 and 2 are refused on a
 * platform without them (R106). If the platform does not matter, `cuda` may be NULL. */
static inline int cai_priv_is_stream(const cai_cuda *cuda, uint64_t stream)
{
    if (cai_priv_is_handle(stream)) return stream != UINT64_MAX;
    return stream && !(cuda && cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS);
}

/* Returns the message for a number that cai_priv_is_stream refuses. */
static inline const char *cai_priv_stream_fault(uint64_t stream)
{
    if (!stream) return "stream 0 is ambiguous: CAI_STREAM(stream) returns the number of a cudaStream_t";
    if (stream == UINT64_MAX) return "stream -1 is no stream: use CAI_MODE_IGNORE for no order";
    return stream == CAI_STREAM_LEGACY ? "stream 1 is no stream of this platform: pass a handle"
                                       : "stream 2 is no stream of this platform: pass a handle";
}

/* Returns the status for such a number, with the rule. */
static inline cai_status cai_priv_bad_stream(uint64_t stream)
{
    return CAI_PRIV_RULE(CAI_ERR_STREAM, !stream ? 71 : stream == UINT64_MAX ? 74 : 106);
}

/* cai_priv_context_enter makes another context current. cai_priv_context_leave undoes that. Both return CUDA's
 * error. CUDA also reports earlier errors, so a push or a pop that failed may have been done. If the context is
 * current after a failure, it is popped. */
static inline int32_t cai_priv_context_undo(const cai_cuda *cuda, uint64_t context, int32_t error)
{
    uint64_t now = 0;
    if (!error || !cuda->context_current || cuda->context_current(cuda->self, &now)) return error;
    if (now == context) (void)cuda->context_pop(cuda->self);
    return error;
}

static inline int32_t cai_priv_context_enter(const cai_cuda *cuda, uint64_t context)
{
    return cai_priv_context_undo(cuda, context, cuda->context_push(cuda->self, context));
}

static inline int32_t cai_priv_context_leave(const cai_cuda *cuda, uint64_t context)
{
    return cai_priv_context_undo(cuda, context, cuda->context_pop(cuda->self));
}

/* Returns 900 if the stream captures, CUDA's error if the query fails, else 0. This query is harmless. The
 * query of an id, or a wait, would end the capture. */
static inline int32_t cai_priv_captures(const cai_cuda *cuda, uint64_t stream)
{
    cai_cuda_capture capture;
    int32_t error = 0;
    capture.status = CAI_CAPTURE_NONE;
    if (cuda->stream_capture) error = cuda->stream_capture(cuda->self, stream, &capture);
    return error || capture.status == CAI_CAPTURE_NONE ? error : 900;
}

/* Returns whether the context was not reset. For a destroyed context CUDA does not define the answer. */
static inline int cai_priv_context_lives(const cai_cuda *cuda, uint64_t context, uint64_t context_id)
{
    uint64_t now = context;
    int32_t error;
    if (!context || !cuda->context_id) return 1;
    error = cuda->context_id(cuda->self, context, &now);
    return error ? error != 709 : now == context_id;
}

/* CUDA forbids host waits and queries on a thread while a stream captures globally, unless the thread's mode
 * is relaxed. Pass *mode to cai_priv_mode_restore, which returns `error`, or its own if that is 0. */
static inline int32_t cai_priv_mode_relax(const cai_cuda *cuda, int32_t *mode)
{
    *mode = 2;
    return cuda->capture_mode ? cuda->capture_mode(cuda->self, mode) : 0;
}

static inline int32_t cai_priv_mode_restore(const cai_cuda *cuda, int32_t mode, int32_t error)
{
    int32_t again = mode, own;
    if (!cuda->capture_mode) return error;
    own = cuda->capture_mode(cuda->self, &mode);
    if (own) (void)cuda->capture_mode(cuda->self, &again);
    return error ? error : own;
}

CAI_PRIV_C_END

#endif /* CAI_STREAM_H_INCLUDED */

/* ==================================================================== >>guard */
/* The guard of all headers, compiled with this one and for those that define CAI_PRIV_WANT_GUARD. It is held
 * for a few instructions, never during a CUDA call, a hook or a callback. A thread that waits first pauses,
 * then yields, then sleeps. It sleeps because the holder may be preempted and of a lower priority. If another
 * thread holds the guard when the process forks, the guard stays held in the child. */
#if (defined(CAI_STREAM_IMPLEMENTATION) || defined(CAI_PRIV_WANT_GUARD)) && !defined(CAI_PRIV_GUARD)
#define CAI_PRIV_GUARD

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif

#if defined(CAI_NO_THREADS)
static inline void cai_priv_guard_take(int32_t *guard) { (void)guard; }
static inline void cai_priv_guard_give(int32_t *guard) { (void)guard; }
static inline void cai_priv_back_off(uint32_t looks) { (void)looks; }
static inline int32_t cai_priv_guarded_look(const int32_t *at) { return *at; }
static inline void cai_priv_guarded_put(int32_t *at, int32_t value) { *at = value; }
#else

#if !defined(_WIN32)
#include <poll.h>
#include <sched.h>
#endif
#if defined(__GNUC__) || defined(__clang__)
#define CAI_PRIV_ATOMIC_SWAP(at, value) __atomic_exchange_n(at, value, __ATOMIC_ACQUIRE)
#define CAI_PRIV_ATOMIC_STORE(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define CAI_PRIV_ATOMIC_LOAD(at) __atomic_load_n(at, __ATOMIC_RELAXED)
#elif defined(_MSC_VER)
#include <intrin.h>
#define CAI_PRIV_ATOMIC_SWAP(at, value) _InterlockedExchange((volatile long *)(at), value)
#define CAI_PRIV_ATOMIC_STORE(at, value) ((void)_InterlockedExchange((volatile long *)(at), value))
#define CAI_PRIV_ATOMIC_LOAD(at) (*(const volatile int32_t *)(at))
#else
#error "cai_stream.h: no atomics are known for this compiler; define CAI_NO_THREADS if there is one thread"
#endif

/* Reads a number without the guard. cai_priv_guarded_put writes the number under the guard. */
static inline int32_t cai_priv_guarded_look(const int32_t *at)
{
    return CAI_PRIV_ATOMIC_LOAD(at);
}

static inline void cai_priv_guarded_put(int32_t *at, int32_t value)
{
    CAI_PRIV_ATOMIC_STORE(at, value);
}

static inline void cai_priv_guard_give(int32_t *guard)
{
    CAI_PRIV_ATOMIC_STORE(guard, 0);
}

/* Pauses, yields or sleeps (1 ms) in a thread that has looked `looks` times for a change by another thread. */
CAI_PRIV_COLD void cai_priv_back_off(uint32_t looks)
{
#if defined(_WIN32)
    if (looks >= 128) Sleep(1);
    else if (looks >= 64) (void)SwitchToThread();
    else YieldProcessor();
#else
    struct pollfd none = {0, 0, 0};
    if (looks >= 128) (void)poll(&none, 0, 1);
    else if (looks >= 64) (void)sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm64__)
    else __asm__ __volatile__("yield" ::: "memory");
#endif
#endif
}

CAI_PRIV_COLD void cai_priv_guard_wait(int32_t *guard)
{
    uint32_t looks = 0;
    do {
        while (cai_priv_guarded_look(guard)) cai_priv_back_off(looks++);
    } while (CAI_PRIV_ATOMIC_SWAP(guard, 1));
}

/* If the guard was 0 before, it was free. */
static inline void cai_priv_guard_take(int32_t *guard)
{
    if (CAI_PRIV_ATOMIC_SWAP(guard, 1)) cai_priv_guard_wait(guard);
}
#endif /* CAI_NO_THREADS */

/* Adds what could not be freed now. The pool tries it again. */
static inline void cai_priv_park(cai_event_pool *pool, cai_priv_parked *node)
{
    cai_priv_guard_take(&pool->guard);
    node->next = pool->parked;
    pool->parked = node;
    cai_priv_guarded_put(&pool->waiting, pool->waiting + 1);
    cai_priv_guard_give(&pool->guard);
}
#endif /* CAI_PRIV_WANT_GUARD */

/* The slot host_thread of tables that are filled in from a driver: of this header, and of ext/cai_hip.h. */
#if (defined(CAI_PRIV_WANT_HOST_THREAD) ||                                                                   \
     (defined(CAI_STREAM_IMPLEMENTATION) && (!defined(CAI_NO_CUDART) || !defined(CAI_NO_LOADER)))) &&        \
    !defined(CAI_PRIV_HOST_THREAD)
#define CAI_PRIV_HOST_THREAD
#include <string.h>
#if !defined(_WIN32)
#include <pthread.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#endif

#if defined(__linux__)
/* The other name does not conflict with the declaration of <unistd.h>, which strict C99 hides. */
extern unsigned long cai_priv_system_call(long number, ...) __asm__("syscall");
#endif

/* A system gives the number of an ended thread to the next thread. The kernel's number (22 bits on Linux)
 * differs until the kernel has used all of them. On Windows the time of creation differs. */
static inline int32_t cai_priv_host_thread(void *self, uint64_t *thread)
{
    uint64_t number = 0, more = 0;
#if defined(_WIN32)
    FILETIME created, ended, in_kernel, in_user;
    if (GetThreadTimes(GetCurrentThread(), &created, &ended, &in_kernel, &in_user))
        more = created.dwHighDateTime;
    if (more) more = more << 32 | created.dwLowDateTime;
    more *= UINT64_C(0x9e3779b97f4a7c15);
    number = GetCurrentThreadId();
#else
    const pthread_t own = pthread_self(); /* a number, or a pointer */
    memcpy(&number, &own, sizeof own < sizeof number ? sizeof own : sizeof number);
#ifdef __linux__
    more = cai_priv_system_call(SYS_gettid);
    more <<= 42;
#endif
#endif
    (void)self;
    *thread = number ^ more ? number ^ more : 1;
    return 0;
}
#endif /* CAI_PRIV_WANT_HOST_THREAD */

/* ============================================================ >>implementation
 *   >>failing  >>calling  >>events  >>members  >>captures  >>begin  >>end  >>keeping  >>finish
 *   >>ordering  >>pool  >>locating  >>driver table  >>finding the driver */

#if defined(CAI_STREAM_IMPLEMENTATION) && !defined(CAI_STREAM_IMPLEMENTED)
#define CAI_STREAM_IMPLEMENTED

#include <string.h>
#ifndef CAI_NO_CUDART
#include <cuda_runtime_api.h>
#endif
#if !defined(_WIN32) && !defined(CAI_NO_LOADER)
#include <dlfcn.h>
#endif
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

CAI_PRIV_C_BEGIN

/* The layout of the structs that cross shared objects, with pointers of 8 and of 4 bytes. */
typedef char cai_priv_assert_cuda_capture[sizeof(struct cai_cuda_capture_v0) == 16 ? 1 : -1];
typedef char cai_priv_assert_cuda_pointer[sizeof(struct cai_cuda_pointer_v0) == 32 ? 1 : -1];
typedef char cai_priv_assert_cuda[sizeof(struct cai_cuda_v0) == (sizeof(void *) == 8 ? 424 : 220) ? 1 : -1];
typedef char cai_priv_assert_pool[sizeof(cai_event_pool) <= 4096 ? 1 : -1];

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
        {214, "uncorrectable ECC error"}, {216, "the context is in use by another thread"},
        {217, "peer access unsupported"}, {220, "NVLink error"}, {226, "contained uncorrectable error"},
        {400, "invalid resource handle"}, {401, "illegal state"}, {500, "not found"}, {600, "not ready"},
        {700, "illegal address"}, {701, "launch out of resources"}, {702, "launch timeout"},
        {709, "context is destroyed"}, {710, "device-side assert"}, {714, "hardware stack error"},
        {715, "illegal instruction"}, {716, "misaligned address"}, {717, "invalid address space"},
        {718, "invalid program counter"}, {719, "launch failure"}, {721, "tensor memory leak"},
        {800, "not permitted"}, {801, "not supported"}, {810, "MPS client terminated"},
        {900, "not permitted while a stream is capturing"}, {901, "the capture was invalidated"},
        {902, "would merge two captures"}, {903, "not the stream that began the capture"},
        {904, "a stream of the capture was not joined"}, {905, "dependency crosses the border of a capture"},
        {906, "the legacy stream is used while a blocking stream is capturing"},
        {907, "the event was recorded in a capture"}, {908, "not the thread that began the capture"},
        {911, "external device error"}, {999, "unknown error"}};
    size_t i;
    for (i = 0; i < sizeof list / sizeof list[0]; ++i) {
        if (list[i].error == error) return list[i].text;
    }
    return "see CUDA's list";
}

CAI_PRIV_COLD cai_status cai_priv_stream_misuse(cai_error *err, const char *sentence)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s", sentence);
}

CAI_PRIV_COLD cai_status cai_priv_stream_lacks(cai_error *err, const char *operation)
{
    return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA table has no %s", operation);
}

CAI_PRIV_COLD cai_status cai_priv_no_pool(cai_error *err, const char *function)
{
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: pool is NULL or not made", function);
}

/* `later` is text after the sentence. */
CAI_PRIV_COLD cai_status cai_priv_cuda_failed(cai_error *err, cai_status status, int32_t error,
                                              const char *what, const char *later)
{
    const int32_t rule = error >= 900 && error <= 908 ? 103 : 0;
    status = cai_priv_error(err, CAI_PRIV_RULE(status, rule), "%s: CUDA error %d (%s)%s", what, error,
                            cai_priv_cuda_error_text(error), later);
    if (err) err->native = error;
    return status;
}

CAI_API cai_status cai_cuda_status(int32_t error, const char *what, cai_error *err)
{
    return error ? cai_priv_cuda_failed(err, CAI_ERR_CUDA, error, what ? what : "CUDA", "") : CAI_OK;
}

/* ------------------------------------------------------------------ >>calling */
/* One public call: the table, the context that was current, and where to store errors. */
typedef struct cai_priv_stream_call {
    cai_event_pool *pool;
    const cai_cuda *cuda;
    cai_error *err;
    uint64_t current;     /* context */
    int32_t current_known;
    int32_t device;       /* of the current context, once it is known */
    int32_t ending;       /* this call ends something: "the process is ending" is no error (R105) */
    int32_t gone;         /* CUDA returned that */
    int32_t failed;       /* another error came before that */
    int32_t dead;         /* another one said that no work of a context continues */
    int32_t relaxed;      /* 1: for callbacks. Then `mode` is what the thread had */
    int32_t mode;
} cai_priv_stream_call;

static cai_priv_stream_call cai_priv_stream_open(cai_event_pool *pool, const cai_cuda *cuda, cai_error *err)
{
    cai_priv_stream_call call;
    memset(&call, 0, sizeof call);
    call.pool = pool;
    call.cuda = cuda;
    call.err = err;
    call.device = CAI_DEVICE_UNKNOWN;
    return call;
}

static cai_status cai_priv_stream_begin_call(cai_priv_stream_call *call, cai_event_pool *pool,
                                             const char *function, cai_error *err)
{
    *call = cai_priv_stream_open(pool, pool ? pool->cuda : NULL, err);
    return call->cuda ? CAI_OK : cai_priv_no_pool(err, function);
}

CAI_PRIV_COLD cai_status cai_priv_stream_note(cai_priv_stream_call *call, int32_t error,
                                              const char *operation)
{
    const int dead = error != 4 && cai_priv_is_dead(error);
    if (error == 4 && call->ending) call->gone = 1;
    if (!call->gone) call->failed = 1;
    if (dead) call->dead = 1;
    return cai_priv_cuda_failed(call->gone ? NULL : call->err,
                                error >= 900 && error <= 908 ? CAI_ERR_CAPTURE : CAI_ERR_CUDA, error,
                                operation,
                                dead && error != 709 ? " of an earlier operation" : "");
}

/* Returns the status of a CUDA call. */
static inline cai_status cai_priv_stream_did(cai_priv_stream_call *call, int32_t error, const char *operation)
{
    return error ? cai_priv_stream_note(call, error, operation) : CAI_OK;
}

/* Calls an operation of the table. If it fails, the message names the operation. */
#define CAI_PRIV_STREAM_CUDA(call, operation, ...)                                                           \
    cai_priv_stream_did(call, (call)->cuda->operation((call)->cuda->self, __VA_ARGS__), #operation)

/* Keeps the first error of several. */
static void cai_priv_stream_keep_first(cai_priv_stream_call *call, cai_status *first, cai_status status)
{
    if (!status || *first) return;
    *first = status;
    call->err = NULL;
}

/* Stores the index of the array that a failure is about. */
static cai_status cai_priv_blame(const cai_priv_stream_call *call, int32_t index, cai_status status)
{
    if (status && call->err && !call->gone) call->err->index = index;
    return status;
}

static cai_status cai_priv_find_current(cai_priv_stream_call *call)
{
    if (call->current_known) return CAI_OK;
    CAI_TRY(CAI_PRIV_STREAM_CUDA(call, context_current, &call->current));
    call->current_known = 1;
    return CAI_OK;
}

CAI_PRIV_COLD cai_status cai_priv_no_context(const cai_priv_stream_call *call, int32_t device)
{
    (void)cai_priv_error(call->err, CAI_ERR_CUDA,
                         "no context of device %d is current on this host thread, and its primary context is "
                         "not active: choose a device (cudaSetDevice)",
                         device);
    if (call->err) call->err->native = 201;
    return CAI_ERR_CUDA;
}

/* Finds the context of a stream of the caller. 1 and 2 are streams of the current context. If none is current,
 * they are streams of the primary context of `device`, which the runtime would use. */
static cai_status cai_priv_ask_context(cai_priv_stream_call *call, uint64_t stream, int32_t device,
                                       uint64_t *context)
{
    if (cai_priv_is_handle(stream)) return CAI_PRIV_STREAM_CUDA(call, stream_context, stream, context);
    CAI_TRY(cai_priv_find_current(call));
    *context = call->current;
    if (*context) return CAI_OK;
    CAI_TRY(CAI_PRIV_STREAM_CUDA(call, device_context, device, context));
    return *context ? CAI_OK : cai_priv_no_context(call, device);
}

/* Finds the number that stands for a context in the pool. A reset changes the number, but not the handle. */
static cai_status cai_priv_ask_context_id(cai_priv_stream_call *call, uint64_t context, uint64_t *id)
{
    *id = context;
    if (!call->cuda->context_id) return CAI_OK;
    return CAI_PRIV_STREAM_CUDA(call, context_id, context, id);
}

/* Finds the device of the current context, with one query. If no context is current, some drivers return 0. The
 * result is then unknown. */
static cai_status cai_priv_current_device(cai_priv_stream_call *call, int32_t *device)
{
    *device = CAI_DEVICE_UNKNOWN;
    CAI_TRY(cai_priv_find_current(call));
    if (!call->current) return CAI_OK;
    if (call->device == CAI_DEVICE_UNKNOWN)
        CAI_TRY(CAI_PRIV_STREAM_CUDA(call, context_device, &call->device));
    *device = call->device;
    return CAI_OK;
}

/* Makes `context` current and stores it in *entered, or stores 0 if it is current. cai_priv_stream_leave undoes
 * that and keeps the first error. */
static cai_status cai_priv_stream_enter(cai_priv_stream_call *call, uint64_t context, uint64_t *entered)
{
    int32_t error;
    *entered = 0;
    CAI_TRY(cai_priv_find_current(call));
    if (context == call->current) return CAI_OK;
    error = cai_priv_context_enter(call->cuda, context);
    if (!error) *entered = context;
    return cai_priv_stream_did(call, error, "context_push");
}

/* Does the same for a call on a stream. CUDA finds the context of a handle, so any current context is right. */
static cai_status cai_priv_stream_enter_for(cai_priv_stream_call *call, uint64_t stream, uint64_t context,
                                            uint64_t *entered)
{
    *entered = 0;
    return cai_priv_is_handle(stream) ? CAI_OK : cai_priv_stream_enter(call, context, entered);
}

static cai_status cai_priv_stream_leave(cai_priv_stream_call *call, uint64_t entered, cai_status status)
{
    int32_t error;
    if (!entered) return status;
    error = cai_priv_context_leave(call->cuda, entered);
    return status ? status : cai_priv_stream_did(call, error, "context_pop");
}

static cai_status cai_priv_relax(cai_priv_stream_call *call, int32_t *mode)
{
    return cai_priv_stream_did(call, cai_priv_mode_relax(call->cuda, mode), "capture_mode");
}

static cai_status cai_priv_unrelax(cai_priv_stream_call *call, int32_t mode, cai_status status)
{
    const int32_t error = cai_priv_mode_restore(call->cuda, mode, 0);
    return status ? status : cai_priv_stream_did(call, error, "capture_mode");
}

/* ------------------------------------------------------------------- >>events */
/* A point in the work of a stream, with what is known of the stream. */
typedef struct cai_priv_point {
    uint64_t stream, context, context_id;
    uint64_t event; /* recorded there; 0: none yet */
} cai_priv_point;

/* Returns an idle event of the context, or 0 if there is none. */
static uint64_t cai_priv_event_take(cai_event_pool *pool, uint64_t context_id)
{
    uint64_t event = 0;
    int32_t i;
    cai_priv_guard_take(&pool->guard);
    for (i = pool->idle_count - 1; i >= 0 && pool->idle[i].context_id != context_id;) --i;
    if (i >= 0) {
        event = pool->idle[i].event;
        pool->idle[i] = pool->idle[--pool->idle_count];
    }
    cai_priv_guard_give(&pool->guard);
    return event;
}

/* Reads a number of the pool that other threads write. */
static int32_t cai_priv_read(cai_event_pool *pool, const int32_t *number)
{
    int32_t value;
    cai_priv_guard_take(&pool->guard);
    value = *number;
    cai_priv_guard_give(&pool->guard);
    return value;
}

/* Gives an event back to the pool. It may be recorded again while waits for it are pending (R101). If it was
 * recorded in a capture, it is not used again (retire). Keeps the first error. */
static cai_status cai_priv_event_give(cai_priv_stream_call *call, const cai_priv_point *point, int retire,
                                      cai_status status)
{
    cai_event_pool *pool = call->pool;
    int32_t kept = 0, error;
    if (!point->event) return status;
    if (!retire) {
        cai_priv_guard_take(&pool->guard);
        kept = pool->idle_count < CAI_POOL_EVENTS;
        if (kept) {
            cai_pool_event *idle = &pool->idle[pool->idle_count++];
            idle->context = point->context;
            idle->context_id = point->context_id;
            idle->event = point->event;
        }
        cai_priv_guard_give(&pool->guard);
    }
    if (kept) return status;
    error = call->cuda->event_destroy(call->cuda->self, point->event);
    if (status) return status;
    status = cai_priv_stream_did(call, error, "event_destroy");
    return call->gone ? CAI_OK : status;
}

/* Destroys idle events of one context, of all (context 0), or none (only_dead). Events of a context that was
 * reset are only forgotten. Returns the first error. */
static cai_status cai_priv_events_remove(cai_priv_stream_call *call, uint64_t context, int only_dead)
{
    cai_event_pool *pool = call->pool;
    cai_pool_event idle[CAI_POOL_EVENTS];
    cai_status first = CAI_OK, status;
    int32_t i, count;
    if (only_dead && !call->cuda->context_id) return CAI_OK; /* nothing tells which these are */
    cai_priv_guard_take(&pool->guard);
    count = pool->idle_count;
    memcpy(idle, pool->idle, sizeof idle);
    pool->idle_count = 0;
    cai_priv_guard_give(&pool->guard);
    for (i = count; i-- > 0;) {
        const cai_priv_point point = {0, idle[i].context, idle[i].context_id, idle[i].event};
        const int chosen = !context || context == point.context;
        if (chosen && !cai_priv_context_lives(call->cuda, point.context, point.context_id)) continue;
        status = cai_priv_event_give(call, &point, chosen && !only_dead, CAI_OK);
        cai_priv_stream_keep_first(call, &first, status);
    }
    return first;
}

static cai_status cai_priv_event_create(cai_priv_stream_call *call, uint64_t context, uint64_t *event)
{
    uint64_t entered;
    int32_t error;
    cai_status status;
    *event = 0;
    if (cai_priv_read(call->pool, &call->pool->idle_count) == CAI_POOL_EVENTS)
        (void)cai_priv_events_remove(call, 0, 1);
    CAI_TRY(cai_priv_stream_enter(call, context, &entered));
    error = call->cuda->event_create(call->cuda->self, event);
    if (error) *event = 0;
    status = cai_priv_stream_leave(call, entered, cai_priv_stream_did(call, error, "event_create"));
    if (!status || !*event) return status;
    (void)call->cuda->event_destroy(call->cuda->self, *event);
    *event = 0;
    return status;
}

/* Records an event of the pool in the stream. An event whose record failed is not used again. */
static cai_status cai_priv_record(cai_priv_stream_call *call, cai_priv_point *point)
{
    uint64_t entered;
    int32_t error;
    cai_status status;
    point->event = cai_priv_event_take(call->pool, point->context_id);
    if (!point->event) CAI_TRY(cai_priv_event_create(call, point->context, &point->event));
    status = cai_priv_stream_enter_for(call, point->stream, point->context, &entered);
    if (!status) {
        error = call->cuda->event_record(call->cuda->self, point->event, point->stream);
        status = cai_priv_stream_leave(call, entered, cai_priv_stream_did(call, error, "event_record"));
    }
    if (!status) return CAI_OK;
    if (!call->dead) (void)call->cuda->event_destroy(call->cuda->self, point->event);
    point->event = 0;
    return status;
}

static cai_status cai_priv_stream_wait(cai_priv_stream_call *call, uint64_t stream, uint64_t context,
                                       uint64_t event)
{
    uint64_t entered;
    cai_status status;
    CAI_TRY(cai_priv_stream_enter_for(call, stream, context, &entered));
    status = CAI_PRIV_STREAM_CUDA(call, stream_wait_event, stream, event);
    return cai_priv_stream_leave(call, entered, status);
}

/* Lets the host wait with `operation` for a context (object 0), for a stream in it, or for an event. */
static cai_status cai_priv_stream_block(cai_priv_stream_call *call, uint64_t context, uint64_t object,
                                        const char *operation, int32_t (*wait)(void *self, uint64_t object))
{
    const cai_cuda *cuda = call->cuda;
    uint64_t entered;
    int32_t mode;
    cai_status status;
    CAI_TRY(cai_priv_relax(call, &mode));
    status = cai_priv_stream_enter_for(call, object, context, &entered);
    if (!status) {
        status = cai_priv_stream_did(
            call, wait ? wait(cuda->self, object) : cuda->context_synchronize(cuda->self), operation);
        status = cai_priv_stream_leave(call, entered, status);
    }
    return cai_priv_unrelax(call, mode, status);
}

/* ------------------------------------------------------------------ >>members */
enum {
    CAI_PRIV_OPEN = 0x43414945, /* states of an exchange, unlikely in uninitialized memory */
    CAI_PRIV_OPEN_IN_ORDER = 0x43414946, /* begun without a CUDA call, and ends without one */
    CAI_PRIV_ENDED = 0x43414958,
    CAI_PRIV_FORWARD = 1 << 0,  /* of an edge: the consumer waits for it */
    CAI_PRIV_RETURNED = 1 << 1, /* since end it waits for the consumer */
    CAI_PRIV_LOST = 1 << 2,     /* it cannot wait for the consumer */
    CAI_PRIV_SETTLED = 1 << 0,  /* of an exchange: no work of the consumer is left, or the process ends */
    CAI_PRIV_CONTEXTS = 64      /* that one exchange synchronizes */
};

/* The work of a begin. */
typedef struct cai_priv_plan {
    cai_priv_stream_call call;
    cai_exchange *ex;
    cai_array *const *arrays;
    int64_t member_count; /* arrays and masks */
    int32_t item;         /* index of the array that is checked */
    int32_t ordered;      /* members that need the consumer's context */
    int32_t blocking;     /* members whose work is on a stream that nobody named */
    int32_t event_count, context_count;
    int32_t event_item;   /* the first array with an event */
    uint64_t events[CAI_EXCHANGE_EDGES];
    uint64_t contexts[CAI_PRIV_CONTEXTS]; /* to synchronize */
} cai_priv_plan;

/* Returns array k / 2, or its mask if k is odd. Returns NULL if there is nothing to order. */
static const cai_array *cai_priv_member(cai_array *const *arrays, int64_t k)
{
    const cai_array *member = k & 1 ? arrays[k >> 1]->mask : arrays[k >> 1];
    return member && member->size ? member : NULL;
}

/* Returns the sync of a member, and finds its stream. The options replace CAI_SYNC_UNKNOWN. */
static int32_t cai_priv_sync(const cai_exchange_options *options, const cai_array *member, uint64_t *stream)
{
    *stream = member->stream;
    if (member->sync != CAI_SYNC_UNKNOWN) return member->sync;
    if (options->unknown == CAI_UNKNOWN_ASSUME_IDLE) return CAI_SYNC_NONE;
    if (options->unknown == CAI_UNKNOWN_SYNCHRONIZE) return CAI_SYNC_UNKNOWN;
    *stream = options->unknown == CAI_UNKNOWN_LEGACY ? (uint64_t)CAI_STREAM_LEGACY : options->unknown_stream;
    return CAI_SYNC_STREAM;
}

static cai_status cai_priv_stream_check(const cai_priv_stream_call *call, uint64_t stream)
{
    if (cai_priv_is_stream(call->cuda, stream)) return CAI_OK;
    return cai_priv_error(call->err, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
}

/* Refuses an array of another backend. */
static cai_status cai_priv_check_backend(const cai_priv_stream_call *call, const cai_array *array)
{
    const int32_t own = cai_priv_backend(call->cuda);
    if (!cai_priv_is_foreign(call->cuda, array->backend)) return CAI_OK;
    return cai_priv_error(call->err, CAI_ERR_STREAM, "backend = %d%s, but the table is of %s (%d)",
                          array->backend, array->backend == CAI_BACKEND_HIP ? " (HIP)" : "",
                          own ? "HIP" : "CUDA", own);
}

static cai_status cai_priv_check_thread(cai_priv_stream_call *call, uint64_t thread)
{
    uint64_t here;
    CAI_TRY(CAI_PRIV_STREAM_CUDA(call, host_thread, &here));
    if (thread == here) return CAI_OK;
    if (!thread)
        return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_THREAD, 84),
                              "the host thread of an array's stream 2 is unknown: call "
                              "cai_stream_remember_thread where the array is imported");
    return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_THREAD, 84),
                          "stream 2 is the per-thread stream of host thread 0x%llx, but this is 0x%llx: call "
                          "cai_stream_detach on that thread first",
                          (unsigned long long)thread, (unsigned long long)here);
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

CAI_PRIV_COLD cai_status cai_priv_too_many(const cai_priv_plan *plan, const char *what, int32_t limit)
{
    return cai_priv_error(plan->call.err, CAI_ERR_CAPACITY, "more than %d distinct %s in one exchange", limit,
                          what);
}

static cai_status cai_priv_add_edge(cai_priv_plan *plan, uint64_t stream, uint64_t context, uint32_t flags)
{
    cai_exchange *ex = plan->ex;
    cai_exchange_edge *edge = cai_priv_find_edge(ex, stream, context);
    if (!edge) {
        if (ex->edge_count == CAI_EXCHANGE_EDGES)
            return cai_priv_too_many(plan, "streams", CAI_EXCHANGE_EDGES);
        edge = &ex->edges[ex->edge_count++];
        memset(edge, 0, sizeof *edge);
        edge->stream = stream;
        edge->context = context;
        edge->array = plan->item;
    }
    edge->flags |= flags;
    return CAI_OK;
}

/* Adds a handle to a list of the plan, once. */
static cai_status cai_priv_add_once(cai_priv_plan *plan, const char *what, uint64_t *list, int32_t *count,
                                    int32_t limit, uint64_t handle)
{
    int32_t i;
    for (i = 0; i < *count; ++i) {
        if (list[i] == handle) return CAI_OK;
    }
    if (i == limit) return cai_priv_too_many(plan, what, limit);
    list[(*count)++] = handle;
    return CAI_OK;
}

static cai_status cai_priv_add_context(cai_priv_plan *plan, uint64_t context)
{
    return cai_priv_add_once(plan, "contexts", plan->contexts, &plan->context_count, CAI_PRIV_CONTEXTS,
                             context);
}

/* Checks one member without CUDA, counts its needs, and checks that there is room for its handle. */
static cai_status cai_priv_judge_member(cai_priv_plan *plan, const cai_array *member)
{
    cai_exchange *ex = plan->ex;
    cai_priv_stream_call *call = &plan->call;
    uint64_t stream;
    const int32_t sync = cai_priv_sync(&ex->options, member, &stream);
    const int has_stream = sync == CAI_SYNC_STREAM || (sync == CAI_SYNC_EVENT && stream);
    if (sync < CAI_SYNC_UNKNOWN || sync > CAI_SYNC_EVENT)
        return cai_priv_error(call->err, CAI_ERR_ARGUMENT, "sync = %d is no CAI_SYNC_...", sync);
    if (sync == CAI_SYNC_EVENT && !member->event)
        return cai_priv_stream_misuse(call->err, "sync is CAI_SYNC_EVENT, but event is 0");
    if (has_stream) CAI_TRY(cai_priv_stream_check(call, stream));
    if (ex->options.mode == CAI_MODE_IGNORE) return CAI_OK;
    CAI_TRY(cai_priv_check_backend(call, member));
    if (sync == CAI_SYNC_EVENT) {
        if (!plan->event_count) plan->event_item = plan->item;
        CAI_TRY(cai_priv_add_once(plan, "events", plan->events, &plan->event_count, CAI_EXCHANGE_EDGES,
                                  member->event));
    }
    if (has_stream && stream == CAI_STREAM_PER_THREAD) {
        CAI_TRY(CAI_PRIV_STREAM_CUDA(call, host_thread, &ex->thread));
        if (member->sync != CAI_SYNC_UNKNOWN) CAI_TRY(cai_priv_check_thread(call, member->thread));
    }
    plan->blocking += sync == CAI_SYNC_UNKNOWN;
    plan->ordered += sync == CAI_SYNC_EVENT;
    if (!has_stream) return CAI_OK;
    if (stream == ex->stream && cai_priv_is_handle(stream) && ex->options.mode != CAI_MODE_HOST)
        return CAI_OK;
    ++plan->ordered;
    return cai_priv_is_handle(stream) ? cai_priv_add_edge(plan, stream, 0, 0) : CAI_OK;
}

/* Finds the context of an array's memory, whose streams 1 and 2 the array means (R83). Memory of a pool and
 * mapped memory have no context. They get the current context if it is on the memory's device, else the active
 * primary one. `other` is NULL, or gets the second of the two, in which work may also be pending. */
static cai_status cai_priv_memory_context(cai_priv_stream_call *call, const cai_array *member,
                                          uint64_t *context, uint64_t *other)
{
    cai_cuda_pointer info;
    uint64_t primary = 0;
    int32_t here = CAI_DEVICE_UNKNOWN;
    memset(&info, 0, sizeof info);
    if (other) *other = 0;
    CAI_TRY(CAI_PRIV_STREAM_CUDA(call, pointer_info, member->data, &info));
    *context = info.context;
    if (*context) return CAI_OK;
    CAI_TRY(cai_priv_find_current(call));
    if (info.device < 0) return cai_priv_ask_context(call, CAI_STREAM_LEGACY, 0, context);
    if (call->current) CAI_TRY(cai_priv_current_device(call, &here));
    here = here == info.device;
    if (!here || other)
        CAI_TRY(CAI_PRIV_STREAM_CUDA(call, device_context, info.device, &primary));
    *context = here ? call->current : primary;
    if (here && other && primary != *context) *other = primary;
    return *context ? CAI_OK : cai_priv_no_context(call, info.device);
}

/* Adds the contexts in which unknown work may be pending: the memory's, the current one, and the primary one of
 * each device. Other devices may use pinned and managed memory, and memory of their peers. */
static cai_status cai_priv_add_unknown(cai_priv_plan *plan, const cai_array *member)
{
    cai_priv_stream_call *call = &plan->call;
    uint64_t context;
    int32_t device = 0, error = 0;
    CAI_TRY(cai_priv_memory_context(call, member, &context, NULL));
    CAI_TRY(cai_priv_add_context(plan, context));
    CAI_TRY(cai_priv_find_current(call));
    if (call->current) CAI_TRY(cai_priv_add_context(plan, call->current));
    for (;;) {
        context = 0;
        error = call->cuda->device_context(call->cuda->self, device++, &context);
        if (error == 100 || error == 101) return CAI_OK; /* no more devices */
        CAI_TRY(cai_priv_stream_did(call, error, "device_context"));
        if (context) CAI_TRY(cai_priv_add_context(plan, context));
    }
}

/* Makes the edge of a member, or stores contexts to be synchronized. */
static cai_status cai_priv_resolve_member(cai_priv_plan *plan, const cai_array *member)
{
    cai_exchange *ex = plan->ex;
    const cai_exchange_edge *edge;
    uint64_t stream, context, other = 0;
    const int32_t sync = cai_priv_sync(&ex->options, member, &stream);
    const int unknown = member->sync == CAI_SYNC_UNKNOWN;
    const uint32_t forward = sync == CAI_SYNC_STREAM ? CAI_PRIV_FORWARD : 0;
    if (sync == CAI_SYNC_NONE) return CAI_OK;
    if (sync == CAI_SYNC_UNKNOWN) return cai_priv_add_unknown(plan, member);
    if (!stream) return CAI_OK;
    if (cai_priv_is_handle(stream)) {
        if (stream == ex->stream && ex->options.mode != CAI_MODE_HOST) return CAI_OK;
        edge = cai_priv_find_edge(ex, stream, 0);
        context = edge ? edge->context : stream == ex->stream ? ex->context : 0;
        if (!context) CAI_TRY(cai_priv_ask_context(&plan->call, stream, 0, &context));
    } else {
        CAI_TRY(cai_priv_memory_context(&plan->call, member, &context, unknown ? &other : NULL));
    }
    if (other) CAI_TRY(cai_priv_add_edge(plan, stream, other, forward));
    if (stream == ex->stream && context == ex->context && ex->options.mode != CAI_MODE_HOST) return CAI_OK;
    return cai_priv_add_edge(plan, stream, context, forward);
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
/* Finds the id of the capture that a stream is in, or 0. The query does not disturb a capture. If CUDA refuses
 * the query, the reason is a capture (R103). */
static cai_status cai_priv_ask_capture(cai_priv_stream_call *call, uint64_t stream, uint64_t context,
                                       uint64_t *id)
{
    cai_cuda_capture capture;
    uint64_t entered;
    cai_status status;
    *id = 0;
    memset(&capture, 0, sizeof capture);
    CAI_TRY(cai_priv_stream_enter_for(call, stream, context, &entered));
    status = CAI_PRIV_STREAM_CUDA(call, stream_capture, stream, &capture);
    CAI_TRY(cai_priv_stream_leave(call, entered, status));
    if (capture.status == CAI_CAPTURE_INVALIDATED)
        return cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103),
                              "the capture of stream 0x%llx was invalidated", (unsigned long long)stream);
    if (capture.status) *id = capture.id;
    return CAI_OK;
}

static cai_status cai_priv_capture_refused(const cai_priv_stream_call *call, int32_t index,
                                           const char *before, uint64_t stream, const char *after)
{
    const cai_status status = cai_priv_error(call->err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103), "%s0x%llx%s",
                                             before, (unsigned long long)stream, after);
    return cai_priv_blame(call, index, status);
}

static cai_status cai_priv_ask_edge_capture(cai_priv_stream_call *call, const cai_exchange *ex,
                                            cai_exchange_edge *edge)
{
    cai_status status = CAI_OK;
    edge->capture = ex->capture;
    if (edge->stream != ex->stream || edge->context != ex->context)
        status = cai_priv_ask_capture(call, edge->stream, edge->context, &edge->capture);
    return cai_priv_blame(call, edge->array, status);
}

/* Checks that the stream of `edge` is in the capture `wanted`, or in none (0). */
static cai_status cai_priv_compare_capture(const cai_priv_stream_call *call, const cai_exchange *ex,
                                           const cai_exchange_edge *edge, uint64_t wanted)
{
    const uint64_t one = wanted ? ex->stream : edge->stream, other = wanted ? edge->stream : ex->stream;
    cai_status status;
    if (edge->capture == wanted) return CAI_OK;
    status = cai_priv_error(
        call->err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103),
        wanted && edge->capture ? "streams 0x%llx and 0x%llx are in different captures"
        : ex->capture ? "stream 0x%llx is capturing, but stream 0x%llx is not"
        : wanted ? "stream 0x%llx would join a capture, but stream 0x%llx is not capturing"
        : other == CAI_STREAM_LEGACY
            ? "stream 0x%llx is capturing, and stream 0x%llx cannot be in a capture"
            : "stream 0x%llx is capturing and would pull stream 0x%llx into its capture "
              "(cai_exchange_begin_with allows it by CAI_EXCHANGE_JOIN_CAPTURE)",
        (unsigned long long)one, (unsigned long long)other);
    return cai_priv_blame(call, edge->array, status);
}

/* Queries the captures of the consumer and of all edges, and compares them. With may_join, a producer's capture
 * may pull the consumer in. The legacy stream cannot be captured. */
static cai_status cai_priv_check_captures(cai_priv_stream_call *call, cai_exchange *ex, uint32_t may_join)
{
    uint64_t wanted;
    int32_t i;
    CAI_TRY(cai_priv_ask_capture(call, ex->stream, ex->context, &ex->capture));
    for (i = 0; i < ex->edge_count; ++i) CAI_TRY(cai_priv_ask_edge_capture(call, ex, &ex->edges[i]));
    wanted = ex->capture;
    if (ex->stream == CAI_STREAM_LEGACY) may_join = 0;
    for (i = 0; i < ex->edge_count && may_join && !wanted; ++i) wanted = ex->edges[i].capture;
    for (i = 0; i < ex->edge_count && ex->options.mode != CAI_MODE_HOST; ++i)
        CAI_TRY(cai_priv_compare_capture(call, ex, &ex->edges[i], wanted));
    return CAI_OK;
}

/* Refuses contexts where a blocking stream captures, as the legacy stream tells. A wait would end that. */
static cai_status cai_priv_check_contexts(cai_priv_plan *plan)
{
    cai_priv_stream_call *call = &plan->call;
    uint64_t capture;
    int32_t i;
    if (call->cuda->flags & CAI_CUDA_NO_DEFAULT_STREAMS) return CAI_OK;
    for (i = 0; i < plan->context_count; ++i)
        CAI_TRY(cai_priv_ask_capture(call, CAI_STREAM_LEGACY, plan->contexts[i], &capture));
    return CAI_OK;
}

/* In a capture, refuses waits of the host, and events that may be of another capture or of none. */
static cai_status cai_priv_check_plan_captures(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    uint64_t capture;
    int32_t i;
    CAI_TRY(cai_priv_check_captures(&plan->call, ex, ex->options.flags & CAI_EXCHANGE_JOIN_CAPTURE));
    capture = ex->capture;
    for (i = 0; i < ex->edge_count; ++i) capture |= ex->edges[i].capture;
    if (!capture) return cai_priv_check_contexts(plan);
    if (ex->options.mode == CAI_MODE_HOST)
        return cai_priv_capture_refused(&plan->call, -1, "CAI_MODE_HOST: the host cannot wait while stream ",
                                        ex->stream, " or a producer's is capturing");
    if (plan->context_count)
        return cai_priv_capture_refused(&plan->call, -1,
                                        "the stream of an array's pending work is unknown, and no context "
                                        "can be synchronized while stream ",
                                        ex->stream, " or a producer's is capturing");
    if (!plan->event_count) return CAI_OK;
    return cai_priv_capture_refused(&plan->call, plan->event_item,
                                    "an array's event may be from outside of the capture of stream ",
                                    ex->stream, " or a producer's");
}

/* -------------------------------------------------------------------- >>begin */
/* Makes ex->stream wait for the work that is in the stream of `edge` now. */
static cai_status cai_priv_follow(cai_priv_stream_call *call, const cai_exchange *ex,
                                  const cai_exchange_edge *edge)
{
    cai_priv_point point = {edge->stream, edge->context, edge->context_id, 0};
    cai_status status;
    CAI_TRY(cai_priv_record(call, &point));
    status = cai_priv_stream_wait(call, ex->stream, ex->context, point.event);
    return cai_priv_event_give(call, &point, edge->capture != 0, status);
}

/* Makes the calls that order. Everything was checked before. */
static cai_status cai_priv_stream_carry_out(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    cai_priv_stream_call *call = &plan->call;
    const cai_cuda *cuda = call->cuda;
    const int32_t host = ex->options.mode == CAI_MODE_HOST;
    int32_t i;
    for (i = 0; i < plan->context_count; ++i)
        CAI_TRY(cai_priv_stream_block(call, plan->contexts[i], 0, "context_synchronize", NULL));
    for (i = 0; i < ex->edge_count; ++i) {
        const cai_exchange_edge *edge = &ex->edges[i];
        if (!(edge->flags & CAI_PRIV_FORWARD)) continue;
        if (!host) CAI_TRY(cai_priv_blame(call, edge->array, cai_priv_follow(call, ex, edge)));
        else CAI_TRY(cai_priv_stream_block(call, edge->context, edge->stream, "stream_synchronize",
                                           cuda->stream_synchronize));
    }
    for (i = 0; i < plan->event_count; ++i) {
        const uint64_t event = plan->events[i];
        if (!host) CAI_TRY(cai_priv_stream_wait(call, ex->stream, ex->context, event));
        else CAI_TRY(cai_priv_stream_block(call, 0, event, "event_synchronize", cuda->event_synchronize));
    }
    return CAI_OK;
}

static cai_status cai_priv_check_mode(const char *name, int32_t mode, cai_error *err)
{
    if (mode >= CAI_MODE_EVENT && mode <= CAI_MODE_IGNORE) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s = %d is no CAI_MODE_...", name, mode);
}

static cai_status cai_priv_stream_check_options(const cai_exchange_options *options, cai_error *err)
{
    const uint32_t known =
        (uint32_t)CAI_EXCHANGE_JOIN_CAPTURE | (uint32_t)CAI_PRIV_KEEP_MODE | (uint32_t)CAI_PRIV_ONE_WAY;
    CAI_TRY(cai_priv_check_mode("mode", options->mode, err));
    if (options->unknown < CAI_UNKNOWN_SYNCHRONIZE || options->unknown > CAI_UNKNOWN_ASSUME_IDLE)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "unknown = %d is no CAI_UNKNOWN_...", options->unknown);
    if (options->flags & ~known)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "flags = 0x%x has unknown bits",
                              (unsigned)options->flags);
    if (options->reserved)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "reserved = %u is not 0", (unsigned)options->reserved);
    return CAI_OK;
}

static cai_status cai_priv_prepare(cai_priv_plan *plan, cai_exchange *ex, cai_event_pool *pool,
                                   const char *function, uint64_t stream,
                                   const cai_exchange_options *options, cai_error *err)
{
    memset(plan, 0, offsetof(cai_priv_plan, events));
    memset(ex, 0, offsetof(cai_exchange, edges));
    CAI_TRY(cai_priv_stream_begin_call(&plan->call, pool, function, err));
    plan->ex = ex;
    ex->pool = pool;
    if (options) {
        CAI_TRY(cai_priv_stream_check_options(options, err));
        ex->options = *options;
    }
    CAI_TRY(cai_priv_stream_check(&plan->call, stream));
    ex->stream = stream;
    if (stream != CAI_STREAM_PER_THREAD) return CAI_OK;
    return CAI_PRIV_STREAM_CUDA(&plan->call, host_thread, &ex->thread);
}

/* Finds the device of the data, for a consumer on stream 1 or 2 without a current context. */
static cai_status cai_priv_data_device(cai_priv_plan *plan, int32_t *device)
{
    cai_cuda_pointer info;
    int64_t k;
    *device = 0;
    for (k = 0; k < plan->member_count; ++k) {
        const cai_array *member = cai_priv_member(plan->arrays, k);
        if (!member) continue;
        memset(&info, 0, sizeof info);
        info.device = member->device;
        if (info.device < 0)
            CAI_TRY(CAI_PRIV_STREAM_CUDA(&plan->call, pointer_info, member->data, &info));
        if (info.device < 0) continue;
        *device = info.device;
        return CAI_OK;
    }
    return CAI_OK;
}

/* Finds the context of the consumer's stream. For streams 1 and 2 it stays the same until the end. */
static cai_status cai_priv_find_consumer(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    int32_t device = 0;
    if (ex->context) return CAI_OK;
    if (!cai_priv_is_handle(ex->stream)) {
        CAI_TRY(cai_priv_find_current(&plan->call));
        if (!plan->call.current) CAI_TRY(cai_priv_data_device(plan, &device));
    }
    return cai_priv_ask_context(&plan->call, ex->stream, device, &ex->context);
}

/* Finds the ids of the contexts, with one query for each. */
static cai_status cai_priv_find_ids(cai_priv_stream_call *call, cai_exchange *ex)
{
    int32_t i, k;
    CAI_TRY(cai_priv_ask_context_id(call, ex->context, &ex->context_id));
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        edge->context_id = edge->context == ex->context ? ex->context_id : 0;
        for (k = 0; k < i && !edge->context_id; ++k) {
            if (ex->edges[k].context == edge->context) edge->context_id = ex->edges[k].context_id;
        }
        if (!edge->context_id) CAI_TRY(cai_priv_ask_context_id(call, edge->context, &edge->context_id));
    }
    return CAI_OK;
}

/* Makes the edges of the members. All checks come before the first call that orders. */
static cai_status cai_priv_order_members(cai_priv_plan *plan)
{
    cai_exchange *ex = plan->ex;
    ex->edge_count = 0;
    if (!cai_priv_is_handle(ex->stream) || plan->ordered) CAI_TRY(cai_priv_find_consumer(plan));
    if (!(plan->ordered + plan->blocking)) return CAI_OK;
    CAI_TRY(cai_priv_each_member(plan, cai_priv_resolve_member));
    if (!(ex->edge_count + plan->event_count + plan->context_count)) return CAI_OK;
    CAI_TRY(cai_priv_check_plan_captures(plan));
    if (ex->options.mode != CAI_MODE_HOST && ex->edge_count) CAI_TRY(cai_priv_find_ids(&plan->call, ex));
    return cai_priv_stream_carry_out(plan);
}

/* Counts exchanges whose end calls CUDA. The other exchanges write nothing that threads share. */
static void cai_priv_count_open(const cai_exchange *ex, int32_t by)
{
    if (!ex->edge_count && ex->options.mode != CAI_MODE_HOST) return;
    cai_priv_guard_take(&ex->pool->guard);
    ex->pool->open_exchanges += by;
    cai_priv_guard_give(&ex->pool->guard);
}

static void cai_priv_release_oldest(cai_event_pool *pool);

/* Releases the oldest arrays if the query tells that the consumer does not capture. */
static cai_status cai_priv_release_before(cai_priv_plan *plan)
{
    cai_priv_stream_call quiet;
    uint64_t capture;
    CAI_TRY(cai_priv_find_consumer(plan));
    quiet = plan->call;
    quiet.err = NULL;
    if (cai_priv_ask_capture(&quiet, plan->ex->stream, plan->ex->context, &capture) || capture) return CAI_OK;
    cai_priv_release_oldest(plan->call.pool);
    return CAI_OK;
}

CAI_PRIV_NOINLINE cai_status cai_priv_begin(cai_exchange *ex, cai_event_pool *pool,
                                            cai_array *const *arrays, int32_t count,
                                            uint64_t stream, const cai_exchange_options *options,
                                            cai_error *err)
{
    cai_priv_plan plan;
    int32_t i;
    CAI_TRY(cai_priv_prepare(&plan, ex, pool, "cai_exchange_begin", stream, options, err));
    if (count < 0)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_exchange_begin: count = %d is negative", count);
    if (count && !arrays) return cai_priv_stream_misuse(err, "cai_exchange_begin: arrays is NULL");
    if (ex->options.mode == CAI_MODE_EVENT && !(ex->options.flags & CAI_PRIV_KEEP_MODE))
        ex->options.mode = pool->mode;
    for (i = 0; i < count; ++i) CAI_TRY(cai_priv_blame(&plan.call, i, cai_array_check(arrays[i], err)));
    plan.arrays = arrays;
    plan.member_count = (int64_t)count * 2;
    CAI_TRY(cai_priv_each_member(&plan, cai_priv_judge_member));
    if (plan.ordered && cai_priv_guarded_look(&pool->waiting)) CAI_TRY(cai_priv_release_before(&plan));
    CAI_TRY(cai_priv_order_members(&plan));
    ex->state = CAI_PRIV_OPEN;
    cai_priv_count_open(ex, 1);
    return CAI_OK;
}

/* Its arguments fit in registers, so the fast part of cai_exchange_begin needs no stack. */
CAI_PRIV_NOINLINE cai_status cai_priv_begin_plain(cai_exchange *ex, cai_event_pool *pool,
                                                  cai_array *const *arrays, int32_t count,
                                                  uint64_t stream, cai_error *err)
{
    return cai_exchange_begin_with(ex, pool, arrays, count, stream, NULL, err);
}

/* Returns whether an array needs no query, because its pending work, if any, is on `stream` itself, and its
 * backend is that of the pool or 0. */
static inline int cai_priv_in_order(const cai_event_pool *pool, const cai_array *array, uint64_t stream)
{
    if (!array || array->abi != CAI_ABI || array->struct_size != sizeof *array) return 0;
    if ((uint32_t)array->ndim > CAI_MAX_NDIM || array->must_understand | (uintptr_t)array->mask) return 0;
    if ((uint32_t)array->backend > (uint32_t)pool->backend) return 0; /* which is 0 or 1 */
    return array->sync == CAI_SYNC_STREAM ? array->stream == stream : array->sync == CAI_SYNC_NONE;
}

CAI_API cai_status cai_exchange_begin(cai_exchange *ex, cai_event_pool *pool, cai_array *const *arrays,
                                      int32_t count, uint64_t stream, cai_error *err)
{
    int32_t i = 0;
    if (stream - 3 >= UINT64_MAX - 3 || !ex || !pool || !pool->cuda || !arrays || count < 1 || pool->mode)
        return cai_priv_begin_plain(ex, pool, arrays, count, stream, err);
    do {
        if (!cai_priv_in_order(pool, arrays[i], stream))
            return cai_priv_begin_plain(ex, pool, arrays, count, stream, err);
    } while (++i < count);
    ex->pool = pool;
    ex->stream = stream;
    ex->state = CAI_PRIV_OPEN_IN_ORDER; /* and no other field */
    return CAI_OK;
}

CAI_API cai_status cai_exchange_begin_with(cai_exchange *ex, cai_event_pool *pool,
                                           cai_array *const *arrays, int32_t count, uint64_t stream,
                                           const cai_exchange_options *options, cai_error *err)
{
    cai_status status;
    if (!ex) return cai_priv_stream_misuse(err, "cai_exchange_begin: ex is NULL");
    status = cai_priv_begin(ex, pool, arrays, count, stream, options, err);
    return status && err && err->index >= 0 ? cai_priv_error_before(err, status, "arrays", err->index)
                                            : status;
}

/* ---------------------------------------------------------------------- >>end */
/* Marks the edges that cannot get a back edge, and keeps the first error. The other edges still get one. */
static cai_status cai_priv_check_edges(cai_priv_stream_call *call, cai_exchange *ex)
{
    cai_status first = CAI_OK, status;
    int32_t i;
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        status = cai_priv_ask_edge_capture(call, ex, edge);
        if (!status) status = cai_priv_compare_capture(call, ex, edge, ex->capture);
        if (status) edge->flags |= CAI_PRIV_LOST;
        cai_priv_stream_keep_first(call, &first, status);
    }
    return first;
}

static cai_priv_point cai_priv_consumer_now(const cai_exchange *ex)
{
    const cai_priv_point point = {ex->stream, ex->context, ex->context_id, 0};
    return point;
}

/* Makes one record, and a wait of each producer's stream. *point gets the event. */
static cai_status cai_priv_stream_give_back(cai_priv_stream_call *call, cai_exchange *ex,
                                            cai_priv_point *point)
{
    cai_status first = CAI_OK;
    int32_t i, lost = 0;
    for (i = 0; i < ex->edge_count; ++i) lost += (ex->edges[i].flags & CAI_PRIV_LOST) != 0;
    if (lost == ex->edge_count) return CAI_OK;
    call->dead = 0;
    first = cai_priv_record(call, point);
    if (call->dead) ex->flags |= CAI_PRIV_SETTLED; /* no work of the consumer's context continues */
    if (first) return first;
    for (i = 0; i < ex->edge_count; ++i) {
        cai_exchange_edge *edge = &ex->edges[i];
        cai_status status;
        if (edge->flags & CAI_PRIV_LOST) continue;
        status = cai_priv_stream_wait(call, edge->stream, edge->context, point->event);
        status = cai_priv_blame(call, edge->array, status);
        if (!status) edge->flags |= CAI_PRIV_RETURNED;
        cai_priv_stream_keep_first(call, &first, status);
    }
    return first;
}

static cai_status cai_priv_end_on_host(cai_priv_stream_call *call, cai_exchange *ex)
{
    uint64_t capture;
    cai_status status;
    if (!ex->context && !cai_priv_is_handle(ex->stream))
        CAI_TRY(cai_priv_ask_context(call, ex->stream, 0, &ex->context));
    call->dead = 0;
    status = cai_priv_ask_capture(call, ex->stream, ex->context, &capture);
    if (!status && capture)
        return cai_priv_capture_refused(call, -1, "CAI_MODE_HOST: the host cannot wait while stream ",
                                        ex->stream, " is capturing");
    if (!status)
        status = cai_priv_stream_block(call, ex->context, ex->stream, "stream_synchronize",
                                       call->cuda->stream_synchronize);
    if (!status || call->dead) ex->flags |= CAI_PRIV_SETTLED;
    return status;
}

static cai_status cai_priv_end_on_device(cai_priv_stream_call *call, cai_exchange *ex, cai_priv_point *point)
{
    cai_status first, status;
    call->dead = 0;
    status = cai_priv_ask_capture(call, ex->stream, ex->context, &ex->capture);
    if (call->dead) ex->flags |= CAI_PRIV_SETTLED;
    CAI_TRY(status);
    first = cai_priv_check_edges(call, ex);
    status = cai_priv_stream_give_back(call, ex, point);
    return first ? first : status;
}

/* Ends an exchange that needs CUDA calls or a check of the thread. An event that was recorded outside of a
 * capture stays in *point. */
CAI_PRIV_NOINLINE cai_status cai_priv_end(cai_exchange *ex, cai_status status, cai_priv_point *point,
                                          cai_error *err)
{
    cai_priv_stream_call call;
    cai_status ended = CAI_OK;
    if (!ex || ex->state != CAI_PRIV_OPEN)
        return status ? status : cai_priv_stream_misuse(err, "the exchange was not begun, or has ended");
    *point = cai_priv_consumer_now(ex);
    call = cai_priv_stream_open(ex->pool, ex->pool->cuda, err);
    if (ex->thread && ex->options.mode != CAI_MODE_IGNORE) CAI_TRY(cai_priv_check_thread(&call, ex->thread));
    call.err = status ? NULL : err;
    call.ending = 1;
    if (ex->options.flags & CAI_PRIV_ONE_WAY) ended = CAI_OK;
    else if (ex->options.mode == CAI_MODE_HOST) ended = cai_priv_end_on_host(&call, ex);
    else if (ex->edge_count) ended = cai_priv_end_on_device(&call, ex, point);
    if (ex->capture && point->event) {
        ended = cai_priv_event_give(&call, point, 1, ended);
        point->event = 0;
    }
    if (call.gone) {
        ex->flags |= CAI_PRIV_SETTLED;
        if (!call.failed) ended = CAI_OK;
    }
    ex->state = CAI_PRIV_ENDED;
    cai_priv_count_open(ex, -1);
    return status ? status : ended;
}

/* ------------------------------------------------------------------ >>keeping */
/* Indices into pool->keepalive, linked by next. -1 is the end. */
typedef struct cai_priv_list {
    int32_t first, last;
} cai_priv_list;

/* The places that a run looks at. */
typedef struct cai_priv_run {
    int32_t only_oldest; /* the first event and the places that wait for it */
    int32_t wait;        /* the host waits, but for what is parked only in a run that the caller named */
    uint64_t context;    /* 0: any */
} cai_priv_run;

/* Appends the linked places from `from` to `to`. */
static void cai_priv_list_append(cai_keepalive *places, int32_t *first, int32_t *last, int32_t from,
                                 int32_t to)
{
    if (from < 0) return;
    if (*first < 0) *first = from;
    else places[*last].next = from;
    *last = to;
    places[to].next = -1;
}

static int32_t cai_priv_place_take(cai_event_pool *pool)
{
    int32_t place;
    cai_priv_guard_take(&pool->guard);
    place = pool->free;
    if (place >= 0) pool->free = pool->keepalive[place].next;
    cai_priv_guard_give(&pool->guard);
    return place;
}

/* `waited` is 1 if the place was counted as one that waits, else 0. */
static void cai_priv_place_give(cai_event_pool *pool, int32_t place, int32_t waited)
{
    cai_priv_guard_take(&pool->guard);
    pool->keepalive[place].next = pool->free;
    pool->free = place;
    if (waited) cai_priv_guarded_put(&pool->waiting, pool->waiting - waited);
    cai_priv_guard_give(&pool->guard);
}

/* Returns whether the place is of this run and the work before its event has passed. While the process ends,
 * all work has passed. Keeps the first error in *status. */
static int cai_priv_goes(cai_priv_stream_call *call, cai_keepalive *place, const cai_priv_run *run,
                         cai_status *status)
{
    const cai_cuda *cuda = call->cuda;
    const cai_priv_point point = {0, place->context, place->context_id, place->event};
    cai_priv_stream_call quiet;
    cai_status failed;
    int32_t error = 0;
    if (run->context && place->context != run->context) return 0;
    if (!call->gone && !cai_priv_context_lives(cuda, place->context, place->context_id)) {
        place->event = 0; /* CUDA destroyed it with the work before it */
        return 1;
    }
    if (!call->gone)
        error = run->wait ? cuda->event_synchronize(cuda->self, place->event)
                          : cuda->event_query(cuda->self, place->event);
    if (error == 600) return 0;
    failed = cai_priv_stream_did(call, error, run->wait ? "event_synchronize" : "event_query");
    if (!call->gone) cai_priv_stream_keep_first(call, status, failed);
    if (error && !cai_priv_is_dead(error)) return 0;
    place->event = 0; /* one of a dead context is not named again */
    if (error && !call->gone) return 1;
    quiet = cai_priv_stream_open(call->pool, cuda, NULL);
    (void)cai_priv_event_give(&quiet, &point, 0, CAI_OK); /* a destroy that failed does not keep the array */
    return 1;
}

/* Releases the first array whose work has passed. Returns 0 if there is none. Its place is free before the
 * callback, so that a thread that needs a place never waits for a callback. The caller relaxes the mode. */
static int cai_priv_let_go(cai_event_pool *pool)
{
    cai_keepalive *place;
    cai_array array;
    int32_t i;
    cai_priv_guard_take(&pool->guard);
    i = pool->passed_first;
    if (i >= 0) pool->passed_first = pool->keepalive[i].next;
    cai_priv_guard_give(&pool->guard);
    if (i < 0) return 0;
    place = &pool->keepalive[i];
    memset(&array, 0, sizeof array);
    array.abi = CAI_ABI;
    array.struct_size = (uint32_t)sizeof array;
    array.release = place->release;
    array.owner = place->owner;
    array.data = place->data;
    array.device = place->device;
    array.stream = place->stream;
    array.sync = place->stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    array.packed_axis = -1;
    cai_priv_place_give(pool, i, 1);
    cai_array_release(&array);
    return 1;
}

/* Removes the list from the pool, or the part of its oldest event. Other threads can use the pool meanwhile. */
static cai_priv_list cai_priv_take_list(cai_event_pool *pool, int32_t only_oldest)
{
    cai_keepalive *places = pool->keepalive;
    cai_priv_list list = {-1, -1};
    cai_priv_guard_take(&pool->guard);
    list.first = pool->first;
    list.last = only_oldest ? pool->first : pool->last;
    if (list.first >= 0) {
        while (places[list.last].next >= 0 && places[places[list.last].next].joined)
            list.last = places[list.last].next;
        pool->first = places[list.last].next;
        places[list.last].next = -1;
    }
    cai_priv_guard_give(&pool->guard);
    return list;
}

/* Puts arrays that still wait back before newer arrays, and appends arrays whose work has passed. */
static void cai_priv_put_lists(cai_event_pool *pool, cai_priv_list rest, cai_priv_list passed)
{
    cai_keepalive *places = pool->keepalive;
    cai_priv_guard_take(&pool->guard);
    cai_priv_list_append(places, &rest.first, &rest.last, pool->first, pool->last);
    pool->first = rest.first;
    pool->last = rest.last;
    cai_priv_list_append(places, &pool->passed_first, &pool->passed_last, passed.first, passed.last);
    cai_priv_guard_give(&pool->guard);
}

/* Tries again to free what is parked. Returns how many nodes are gone. */
static int32_t cai_priv_retry_parked(cai_event_pool *pool, int32_t wait)
{
    cai_priv_parked *list, *node, *next;
    int32_t went = 0;
    cai_priv_guard_take(&pool->guard);
    list = pool->parked;
    pool->parked = NULL;
    cai_priv_guard_give(&pool->guard);
    for (node = list; node; node = next) {
        int gone;
        next = node->next;
        gone = node->again(node, wait); /* which may end the life of the node */
        went += gone;
        cai_priv_guard_take(&pool->guard);
        if (gone) {
            cai_priv_guarded_put(&pool->waiting, pool->waiting - 1);
        } else {
            node->next = pool->parked;
            pool->parked = node;
        }
        cai_priv_guard_give(&pool->guard);
    }
    return went;
}

/* Splits a list into arrays that wait and arrays whose work has passed. Returns the number of the latter. */
static int32_t cai_priv_sort(cai_priv_stream_call *call, cai_priv_list list, const cai_priv_run *run,
                             cai_priv_list *rest, cai_priv_list *passed, cai_status *status)
{
    cai_keepalive *places = call->pool->keepalive;
    int32_t i, next, count = 0, has = 0;
    for (i = list.first; i >= 0; i = next) {
        cai_keepalive *place = &places[i];
        cai_priv_list *to;
        if (!place->joined) has = cai_priv_goes(call, place, run, status);
        next = place->next;
        count += has;
        to = has ? passed : rest;
        cai_priv_list_append(places, &to->first, &to->last, i, i);
    }
    return count;
}

/* Queries the events of the list, or waits for them, and releases the arrays whose work has passed, in the
 * relaxed mode. Returns their number. *status is the first error. */
static int32_t cai_priv_keepalive_run(cai_event_pool *pool, const cai_priv_run *run, cai_error *err,
                                      cai_status *status)
{
    cai_priv_stream_call call = cai_priv_stream_open(pool, pool->cuda, err);
    cai_priv_list list, rest = {-1, -1}, passed = {-1, -1};
    int32_t mode, count, i, relaxed;
    call.ending = 1;
    *status = cai_priv_relax(&call, &mode);
    relaxed = !*status;
    if (!relaxed && !call.gone) return 0;
    list = cai_priv_take_list(pool, run->only_oldest);
    count = cai_priv_sort(&call, list, run, &rest, &passed, status);
    cai_priv_put_lists(pool, rest, passed);
    for (i = 0; i < count && cai_priv_let_go(pool); ++i) {}
    count += cai_priv_retry_parked(pool, run->wait && !run->only_oldest);
    if (relaxed) *status = cai_priv_unrelax(&call, mode, *status);
    if (call.gone && !call.failed) *status = CAI_OK;
    return count;
}

/* Releases the oldest arrays that wait, as long as their work has passed, for begin and finish. */
CAI_PRIV_NOINLINE void cai_priv_release_oldest(cai_event_pool *pool)
{
    const cai_priv_run oldest = {1, 0, 0};
    cai_status status;
    while (cai_priv_keepalive_run(pool, &oldest, NULL, &status) && cai_priv_read(pool, &pool->first) >= 0) {}
}

CAI_API cai_status cai_keepalive_poll(cai_event_pool *pool, int32_t *waiting, cai_error *err)
{
    const cai_priv_run all = {0, 0, 0};
    cai_status status = CAI_OK;
    if (!pool || !pool->cuda) return cai_priv_no_pool(err, "cai_keepalive_poll");
    if (cai_priv_guarded_look(&pool->waiting)) (void)cai_priv_keepalive_run(pool, &all, err, &status);
    if (waiting) *waiting = cai_priv_guarded_look(&pool->waiting);
    return status;
}

CAI_API cai_status cai_keepalive_drain(cai_event_pool *pool, cai_error *err)
{
    const cai_priv_run all = {0, 1, 0};
    cai_status status = CAI_OK;
    int32_t waiting, went = 1;
    if (!pool || !pool->cuda) return cai_priv_no_pool(err, "cai_keepalive_drain");
    while ((waiting = cai_priv_guarded_look(&pool->waiting)) != 0 && went) {
        went = cai_priv_keepalive_run(pool, &all, err, &status); /* a release may add what waits, too */
        if (status) return status;
    }
    if (!waiting) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_PENDING,
                          "%d arrays still wait: their memory cannot be freed while a stream captures, or "
                          "another call has them now. Call cai_keepalive_drain after the capture, or after "
                          "that call",
                          waiting);
}

/* cai_priv_let_go for a thread that is not in the relaxed mode. */
CAI_PRIV_COLD int cai_priv_let_one_go(cai_event_pool *pool)
{
    int32_t mode;
    const int32_t kept = cai_priv_mode_relax(pool->cuda, &mode);
    const int went = cai_priv_let_go(pool);
    if (!kept) (void)cai_priv_mode_restore(pool->cuda, mode, 0);
    return went;
}

/* Takes a place. If there is none, it releases what has passed, then the host waits for the oldest array.
 * capacity = free places + those in the two lists + those of threads that query CUDA. -1: it failed. */
static cai_status cai_priv_find_place(cai_priv_stream_call *call, int32_t *place)
{
    cai_event_pool *pool = call->pool;
    cai_priv_run run = {0, 0, 0};
    uint32_t looks = 0;
    for (*place = cai_priv_place_take(pool); *place < 0; *place = cai_priv_place_take(pool)) {
        cai_status status = CAI_OK;
        cai_error said;
        int32_t count = 0;
        if (cai_priv_read(pool, &pool->passed_first) >= 0 && cai_priv_let_one_go(pool)) continue;
        memset(&said, 0, sizeof said);
        if (cai_priv_read(pool, &pool->first) < 0) cai_priv_back_off(looks++);
        else count = cai_priv_keepalive_run(pool, &run, &said, &status);
        if (status && run.wait && !count) {
            if (call->err) *call->err = said;
            return status;
        }
        run.wait = run.only_oldest = 1;
    }
    return CAI_OK;
}

/* Destroys an event of cai_stream_detach. The stream beside the event comes after that work anyway. If this
 * fails, the array is given back all the same. */
static void cai_priv_drop_event(const cai_priv_stream_call *call, cai_array *array)
{
    if (!array || array->sync != CAI_SYNC_EVENT || !(array->flags & CAI_OWN_EVENT)) return;
    (void)call->cuda->event_destroy(call->cuda->self, array->event);
    array->event = 0;
    array->flags &= ~(uint32_t)CAI_OWN_EVENT;
    array->sync = array->stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
}

/* Gives an array back in the relaxed mode, until cai_priv_end_releases. A failure to relax does not keep it. */
static cai_status cai_priv_release_now(cai_priv_stream_call *call, cai_array *array)
{
    const int32_t error = call->relaxed ? 0 : cai_priv_mode_relax(call->cuda, &call->mode);
    cai_status status;
    if (!error) call->relaxed = 1;
    cai_priv_drop_event(call, array);
    cai_priv_drop_event(call, array->mask);
    cai_array_release(array);
    status = cai_priv_stream_did(call, error, "capture_mode");
    return call->gone ? CAI_OK : status;
}

static cai_status cai_priv_end_releases(cai_priv_stream_call *call, cai_status status)
{
    const cai_status restored = call->relaxed ? cai_priv_unrelax(call, call->mode, status) : status;
    return call->gone && !status ? CAI_OK : restored;
}

/* Records an event after the work that is in the stream now, unless that was done. */
static cai_status cai_priv_record_point(cai_priv_stream_call *call, cai_priv_point *point)
{
    uint64_t capture;
    if (point->event) return CAI_OK;
    if (!point->context) CAI_TRY(cai_priv_ask_context(call, point->stream, 0, &point->context));
    CAI_TRY(cai_priv_ask_capture(call, point->stream, point->context, &capture));
    if (capture)
        return cai_priv_capture_refused(call, -1, "stream ", point->stream,
                                        " is capturing: no event of a capture can be kept");
    if (!point->context_id) CAI_TRY(cai_priv_ask_context_id(call, point->context, &point->context_id));
    return cai_priv_record(call, point);
}

/* Moves an owned array to a place, and stores there what the callback will find. */
static void cai_priv_fill_place(const cai_priv_stream_call *call, cai_keepalive *place, cai_array *array)
{
    const int named = (array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT) &&
                      array->stream != CAI_STREAM_PER_THREAD;
    cai_priv_drop_event(call, array);
    cai_priv_drop_event(call, array->mask);
    memset(place, 0, sizeof *place);
    place->release = array->release;
    place->owner = array->owner;
    place->data = array->data;
    place->device = array->device;
    place->stream = named ? array->stream : 0;
    array->release = NULL;
}

/* Arrays that will wait for one event, in places that are not in the list yet. */
typedef struct cai_priv_group {
    cai_priv_list list;
    int32_t count;
} cai_priv_group;

/* Puts a group into the list. Its first place takes the event. */
static void cai_priv_list_group(cai_event_pool *pool, cai_priv_group *group, cai_priv_point *point)
{
    cai_keepalive *head;
    if (group->list.first < 0) return;
    head = &pool->keepalive[group->list.first];
    head->event = point->event;
    head->context = point->context;
    head->context_id = point->context_id;
    point->event = 0;
    cai_priv_guard_take(&pool->guard);
    cai_priv_list_append(pool->keepalive, &pool->first, &pool->last, group->list.first, group->list.last);
    cai_priv_guarded_put(&pool->waiting, pool->waiting + group->count);
    cai_priv_guard_give(&pool->guard);
    group->list.first = group->list.last = -1;
    group->count = 0;
}

/* Keeps an owned array until the work before `point` has passed. On failure the array is still owned. The event
 * is recorded before a place is taken, so that no callback runs if the stream captures. */
static cai_status cai_priv_keep(cai_priv_stream_call *call, cai_array *array, cai_priv_group *group,
                                cai_priv_point *point)
{
    cai_event_pool *pool = call->pool;
    cai_status status;
    int32_t i;
    CAI_TRY(cai_priv_record_point(call, point));
    i = cai_priv_place_take(pool);
    if (i < 0) {
        cai_priv_list_group(pool, group, point); /* so that a wait for a place comes to an end */
        CAI_TRY(cai_priv_find_place(call, &i));
        status = cai_priv_record_point(call, point);
        if (status) {
            cai_priv_place_give(pool, i, 0);
            return status;
        }
    }
    cai_priv_fill_place(call, &pool->keepalive[i], array);
    pool->keepalive[i].joined = group->count > 0;
    cai_priv_list_append(pool->keepalive, &group->list.first, &group->list.last, i, i);
    ++group->count;
    return CAI_OK;
}

CAI_API cai_status cai_keepalive_push(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                      cai_error *err)
{
    cai_priv_stream_call call;
    cai_priv_group group = {{-1, -1}, 0};
    cai_priv_point point = {stream, 0, 0, 0};
    cai_status status;
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_keepalive_push", err));
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_stream_check(&call, stream));
    CAI_TRY(cai_priv_check_backend(&call, array));
    if (!array->release) return CAI_OK;
    call.ending = 1;
    status = cai_priv_keep(&call, array, &group, &point);
    cai_priv_list_group(pool, &group, &point);
    status = cai_priv_event_give(&call, &point, 0, status);
    if (!status || !(call.gone || call.dead)) return status;
    (void)cai_priv_release_now(&call, array); /* no work is left to wait for */
    status = cai_priv_end_releases(&call, status);
    return call.gone ? CAI_OK : status;
}

/* ------------------------------------------------------------------- >>finish */
/* Returns whether the owner's streams wait for the consumer's work (R76, R80). */
static int cai_priv_returned(const cai_exchange *ex, const cai_array *member)
{
    int32_t i, found = 0, missing = 0;
    if (!member || !member->size) return 1;
    if (member->flags & CAI_NO_BACK_EDGE) return 0;
    if (member->sync != CAI_SYNC_STREAM && member->sync != CAI_SYNC_EVENT) return 0;
    for (i = 0; i < ex->edge_count; ++i) {
        if (ex->edges[i].stream != member->stream) continue;
        if (ex->edges[i].flags & CAI_PRIV_RETURNED) found = 1;
        else missing = 1;
    }
    return !missing && (found || (member->stream && member->stream == ex->stream));
}

/* Returns whether the array may be given back at once. */
static int cai_priv_at_once(const cai_exchange *ex, const cai_array *array, int32_t in_capture)
{
    const cai_array *mask = array->mask;
    if (ex->flags & CAI_PRIV_SETTLED || (!array->size && (!mask || !mask->size))) return 1;
    if (ex->options.mode == CAI_MODE_IGNORE) return 0;
    if (!(array->flags & CAI_ORDERED_FREE) && array->size && !in_capture) return 0;
    return cai_priv_returned(ex, array) && cai_priv_returned(ex, mask);
}

/* Gives one array back, or keeps it. If it cannot be kept in a capture, and its streams wait for the consumer,
 * it is given back. Its owner must outlive the graph. */
static cai_status cai_priv_finish_one(cai_priv_stream_call *call, cai_exchange *ex, cai_array *array,
                                      cai_priv_group *group, cai_priv_point *point)
{
    cai_error said;
    cai_error *err = call->err;
    cai_status status;
    /* What begin took is released, whatever else a full check would find. */
    if (!array || array->abi != CAI_ABI || array->struct_size < sizeof *array)
        return cai_array_check(array, err);
    if (!array->release) return CAI_OK;
    if (cai_priv_at_once(ex, array, ex->capture != 0)) return cai_priv_release_now(call, array);
    if (!point->event && ex->stream == CAI_STREAM_PER_THREAD)
        CAI_TRY(cai_priv_check_thread(call, ex->thread));
    call->dead = 0;
    memset(&said, 0, sizeof said);
    call->err = &said;
    status = cai_priv_keep(call, array, group, point);
    call->err = err;
    if (!status) return CAI_OK;
    if (call->dead || call->gone) ex->flags |= CAI_PRIV_SETTLED;
    if (call->dead || call->gone || (status == CAI_ERR_CAPTURE && cai_priv_at_once(ex, array, 1))) {
        const int dead = call->dead;
        const cai_status released = cai_priv_release_now(call, array);
        if (!dead) return released;
    }
    if (err) *err = said;
    return status;
}

/* Gives the arrays of an ended exchange back. Returns the first error. */
static cai_status cai_priv_finish_all(cai_exchange *ex, cai_status status, cai_array *const *arrays,
                                      int32_t count, cai_priv_point *point, cai_error *err)
{
    cai_priv_stream_call call = cai_priv_stream_open(ex->pool, ex->pool->cuda, err);
    cai_priv_group group = {{-1, -1}, 0};
    int32_t i;
    call.ending = 1;
    for (i = 0; i < count; ++i) {
        cai_status released;
        call.err = status ? NULL : err;
        released = cai_priv_finish_one(&call, ex, arrays[i], &group, point);
        if (status || !released) continue;
        status = released;
        if (!err) continue;
        (void)cai_priv_error_before(err, released, "arrays", i);
        err->index = i;
    }
    if (group.count && cai_priv_guarded_look(&ex->pool->waiting)) cai_priv_release_oldest(ex->pool);
    cai_priv_list_group(ex->pool, &group, point);
    call.err = status ? NULL : err;
    return cai_priv_end_releases(&call, cai_priv_event_give(&call, point, 0, status));
}

/* Finishes an exchange that ends with CUDA calls, or that has arrays to release. */
CAI_PRIV_NOINLINE cai_status cai_priv_finish(cai_exchange *ex, cai_status status,
                                             cai_array *const *arrays, int32_t count, cai_error *err)
{
    cai_priv_point point;
    if (ex && ex->state == CAI_PRIV_OPEN_IN_ORDER) {
        cai_event_pool *const pool = ex->pool;
        const uint64_t stream = ex->stream;
        memset(ex, 0, offsetof(cai_exchange, edges));
        ex->pool = pool;
        ex->stream = stream;
        ex->state = CAI_PRIV_ENDED;
        point = cai_priv_consumer_now(ex);
    } else {
        memset(&point, 0, sizeof point);
        status = cai_priv_end(ex, status, &point, err);
        if (!point.stream || ex->state != CAI_PRIV_ENDED) return status; /* it did not end now */
    }
    if (count < 0 || (count && !arrays)) {
        if (!status)
            status = cai_priv_stream_misuse(err,
                                            "cai_exchange_finish: arrays is NULL, or count is negative");
        count = 0;
    }
    return cai_priv_finish_all(ex, status, arrays, count, &point, err);
}

CAI_API cai_status cai_exchange_finish(cai_exchange *ex, cai_status status, cai_array *const *arrays,
                                       int32_t count, cai_error *err)
{
    int32_t i;
    if (!ex || ex->state != CAI_PRIV_OPEN_IN_ORDER || count < 0 || (count && !arrays))
        return cai_priv_finish(ex, status, arrays, count, err);
    for (i = 0; i < count; ++i) {
        if (!arrays[i] || arrays[i]->release) return cai_priv_finish(ex, status, arrays, count, err);
    }
    ex->state = CAI_PRIV_ENDED;
    return status;
}

CAI_API cai_status cai_exchange_end(cai_exchange *ex, cai_status status, cai_error *err)
{
    return cai_exchange_finish(ex, status, NULL, 0, err);
}

/* ----------------------------------------------------------------- >>ordering */
/* Makes plan->ex->stream wait for other streams. */
static cai_status cai_priv_join(cai_priv_plan *plan, const uint64_t *streams, int32_t count)
{
    cai_exchange *ex = plan->ex;
    cai_priv_stream_call *call = &plan->call;
    for (plan->item = 0; plan->item < count; ++plan->item) {
        const uint64_t stream = streams[plan->item];
        cai_status status = cai_priv_stream_check(call, stream);
        if (!status && stream != ex->stream)
            status = cai_priv_add_edge(plan, stream, 0, CAI_PRIV_FORWARD);
        CAI_TRY(cai_priv_blame(call, plan->item, status));
    }
    if (!ex->edge_count) return CAI_OK;
    CAI_TRY(cai_priv_ask_context(call, ex->stream, 0, &ex->context));
    for (plan->item = 0; plan->item < ex->edge_count; ++plan->item) {
        cai_exchange_edge *edge = &ex->edges[plan->item];
        CAI_TRY(cai_priv_ask_context(call, edge->stream, 0, &edge->context));
    }
    CAI_TRY(cai_priv_check_captures(call, ex, 0));
    CAI_TRY(cai_priv_find_ids(call, ex));
    return cai_priv_stream_carry_out(plan);
}

CAI_API cai_status cai_stream_order(cai_event_pool *pool, uint64_t before, uint64_t after, cai_error *err)
{
    cai_priv_plan plan;
    cai_exchange ex;
    CAI_TRY(cai_priv_prepare(&plan, &ex, pool, "cai_stream_order", after, NULL, err));
    return cai_priv_join(&plan, &before, 1);
}

/* Checks stream 1 or 2 of an export: here of the current context, for a consumer of the memory's (R83). */
static cai_status cai_priv_check_default_stream(cai_priv_plan *plan, const cai_array *array)
{
    uint64_t context, own;
    if (cai_priv_is_handle(plan->ex->stream) || !array->size) return CAI_OK;
    CAI_TRY(cai_priv_ask_context(&plan->call, plan->ex->stream, 0, &own));
    CAI_TRY(cai_priv_memory_context(&plan->call, array, &context, NULL));
    if (context == own) return CAI_OK;
    return cai_priv_error(
        plan->call.err, CAI_PRIV_RULE(CAI_ERR_STREAM, 83),
        "a consumer would use stream %d of the memory's context, not of the current context: "
        "export a handle",
        (int)plan->ex->stream);
}

CAI_API cai_status cai_stream_export(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                     const uint64_t *pending, int32_t count, cai_error *err)
{
    cai_priv_plan plan;
    cai_exchange ex;
    int32_t mode;
    if (count < 0 || (count && !pending))
        return cai_priv_stream_misuse(err, "cai_stream_export: pending is NULL, or count is negative");
    CAI_TRY(cai_array_check(array, err));
    if (array->sync == CAI_SYNC_EVENT)
        return cai_priv_stream_misuse(err, "cai_stream_export: the array has an event, call "
                                           "cai_stream_drop_event first");
    CAI_TRY(cai_priv_prepare(&plan, &ex, pool, "cai_stream_export", stream, NULL, err));
    CAI_TRY(cai_priv_check_backend(&plan.call, array));
    mode = pool->export_mode;
    if (mode == CAI_MODE_EVENT) CAI_TRY(cai_priv_check_default_stream(&plan, array));
    if (mode != CAI_MODE_IGNORE) CAI_TRY(cai_priv_join(&plan, pending, count));
    if (mode == CAI_MODE_HOST) CAI_TRY(cai_priv_end_on_host(&plan.call, &ex));
    array->backend = cai_priv_backend(pool->cuda);
    array->sync = mode == CAI_MODE_EVENT ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    array->stream = mode == CAI_MODE_EVENT ? stream : 0;
    array->thread = mode == CAI_MODE_EVENT ? ex.thread : 0;
    array->event = 0;
    return CAI_OK;
}

CAI_API cai_status cai_stream_remember_thread(cai_array *array, cai_event_pool *pool, cai_error *err)
{
    cai_priv_stream_call call;
    cai_array *mask;
    uint64_t thread = 0;
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_stream_remember_thread", err));
    CAI_TRY(cai_array_check(array, err));
    mask = array->mask;
    if (array->stream == CAI_STREAM_PER_THREAD || (mask && mask->stream == CAI_STREAM_PER_THREAD))
        CAI_TRY(CAI_PRIV_STREAM_CUDA(&call, host_thread, &thread));
    if (array->stream == CAI_STREAM_PER_THREAD) array->thread = thread;
    if (mask && mask->stream == CAI_STREAM_PER_THREAD) mask->thread = thread;
    return CAI_OK;
}

CAI_API cai_status cai_stream_detach(cai_array *array, cai_event_pool *pool, cai_error *err)
{
    cai_priv_stream_call call;
    cai_priv_point point = {0, 0, 0, 0};
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_stream_detach", err));
    CAI_TRY(cai_array_check(array, err));
    if (array->sync == CAI_SYNC_NONE || !array->size) return CAI_OK;
    if (array->sync != CAI_SYNC_STREAM)
        return cai_priv_stream_misuse(err, "cai_stream_detach: the array's sync is not CAI_SYNC_STREAM");
    CAI_TRY(cai_priv_check_backend(&call, array));
    CAI_TRY(cai_priv_stream_check(&call, array->stream));
    if (array->stream == CAI_STREAM_PER_THREAD) CAI_TRY(cai_priv_check_thread(&call, array->thread));
    point.stream = array->stream;
    if (!cai_priv_is_handle(point.stream))
        CAI_TRY(cai_priv_memory_context(&call, array, &point.context, NULL));
    CAI_TRY(cai_priv_record_point(&call, &point));
    array->sync = CAI_SYNC_EVENT;
    array->event = point.event;
    array->flags |= CAI_OWN_EVENT;
    if (array->stream == CAI_STREAM_PER_THREAD) array->stream = array->thread = 0;
    return CAI_OK;
}

CAI_API cai_status cai_stream_drop_event(cai_array *array, cai_event_pool *pool, cai_error *err)
{
    cai_priv_stream_call call;
    cai_status status;
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_stream_drop_event", err));
    CAI_TRY(cai_array_check(array, err));
    if (array->sync != CAI_SYNC_EVENT) return CAI_OK;
    CAI_TRY(cai_priv_check_backend(&call, array));
    call.ending = 1;
    if (array->flags & CAI_OWN_EVENT) {
        status = CAI_PRIV_STREAM_CUDA(&call, event_destroy, array->event);
        if (status && !call.gone) return status;
    }
    array->event = 0;
    array->stream = 0;
    array->flags &= ~(uint32_t)CAI_OWN_EVENT;
    array->sync = CAI_SYNC_UNKNOWN;
    return CAI_OK;
}

/* --------------------------------------------------------------------- >>pool */
/* The first slots of a table, in its order. NULL: a slot that is newer than CUDA 11.2, which may be empty. */
static const char *const cai_priv_needed_slots[] = {
    "context_current", "context_push", "context_pop", "context_synchronize", "context_device",
    "device_context", "stream_context", "stream_capture", NULL, "stream_wait_event", "stream_synchronize",
    "event_create", "event_destroy", "event_record", "event_query", "event_synchronize", "capture_mode",
    "pointer_info", NULL, NULL, "host_thread"};

/* Checks a table. *table becomes the table, or `whole` if the table is shorter than this header's. */
static cai_status cai_priv_check_cuda(const cai_cuda *cuda, cai_cuda *whole, const cai_cuda **table,
                                      cai_error *err)
{
    const char *slots;
    size_t i;
    void (*slot)(void);
    *table = cuda;
    if (!cuda) return cai_priv_stream_misuse(err, "cuda is NULL");
    if (!cai_priv_knows_cuda(cuda))
        return cai_priv_error(err, CAI_ERR_ABI,
                              "the CUDA table has version %u and %u bytes, this header needs version 1 and at "
                              "least %u bytes",
                              (unsigned)cuda->version, (unsigned)cuda->struct_size,
                              (unsigned)offsetof(cai_cuda, context_current));
    *table = cai_priv_whole_cuda(cuda, whole);
    slots = (const char *)*table + offsetof(cai_cuda, context_current);
    for (i = 0; i < sizeof cai_priv_needed_slots / sizeof cai_priv_needed_slots[0]; ++i) {
        memcpy(&slot, slots + i * sizeof slot, sizeof slot);
        if (!slot && cai_priv_needed_slots[i]) return cai_priv_stream_lacks(err, cai_priv_needed_slots[i]);
    }
    return CAI_OK;
}

CAI_API cai_status cai_event_pool_init(cai_event_pool *pool, const cai_cuda *cuda, cai_keepalive *keepalive,
                                       int32_t capacity, uint32_t flags, cai_error *err)
{
    const cai_cuda *table;
    cai_cuda whole;
    int32_t i;
    memset(&whole, 0, sizeof whole);
    if (!pool) return cai_priv_stream_misuse(err, "cai_event_pool_init: pool is NULL");
    if (capacity < 0 || (capacity && !keepalive))
        return cai_priv_stream_misuse(err, "cai_event_pool_init: keepalive is NULL, or capacity is negative");
    if (flags)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_event_pool_init: flags = 0x%x has unknown bits",
                              (unsigned)flags);
    CAI_TRY(cai_priv_check_cuda(cuda, &whole, &table, err));
    memset(pool, 0, sizeof *pool);
    pool->whole = whole;
    pool->cuda = table == cuda ? cuda : &pool->whole;
    pool->backend = cai_priv_backend(table);
    pool->keepalive = capacity ? keepalive : pool->places;
    pool->capacity = capacity ? capacity : CAI_POOL_PLACES;
    pool->first = pool->last = pool->passed_first = pool->passed_last = -1;
    for (i = 0; i < pool->capacity; ++i) pool->keepalive[i].next = i + 1 < pool->capacity ? i + 1 : -1;
    return CAI_OK;
}

CAI_API cai_status cai_event_pool_set_modes(cai_event_pool *pool, int32_t mode, int32_t export_mode,
                                            cai_error *err)
{
    if (!pool || !pool->cuda) return cai_priv_no_pool(err, "cai_event_pool_set_modes");
    CAI_TRY(cai_priv_check_mode("mode", mode, err));
    CAI_TRY(cai_priv_check_mode("export_mode", export_mode, err));
    pool->mode = mode;
    pool->export_mode = export_mode;
    return CAI_OK;
}

CAI_API cai_status cai_event_pool_destroy(cai_event_pool *pool, cai_error *err)
{
    cai_priv_stream_call call;
    cai_status status;
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_event_pool_destroy", err));
    if (pool->open_exchanges || pool->waiting)
        return cai_priv_error(err, CAI_ERR_PENDING,
                              "%d exchanges have not ended, and %d arrays wait in the keep-alive list",
                              pool->open_exchanges, pool->waiting);
    call.ending = 1;
    status = cai_priv_events_remove(&call, 0, 0);
    pool->idle_count = 0;
    pool->cuda = NULL;
    return status;
}

CAI_API cai_status cai_event_pool_forget(cai_event_pool *pool, uint64_t context, cai_error *err)
{
    cai_priv_stream_call call;
    cai_priv_run of_context = {0, 1, 0};
    cai_status status = CAI_OK, removed;
    CAI_TRY(cai_priv_stream_begin_call(&call, pool, "cai_event_pool_forget", err));
    of_context.context = context;
    if (cai_priv_guarded_look(&pool->waiting))
        (void)cai_priv_keepalive_run(pool, &of_context, err, &status);
    call.ending = 1;
    if (status) call.err = NULL;
    removed = cai_priv_events_remove(&call, context, 0);
    return status ? status : removed;
}

/* ----------------------------------------------------------------- >>locating */
/* The query about one array, and its results so far. */
typedef struct cai_priv_search {
    cai_priv_stream_call *call;
    const cai_array *array;
    cai_location *out;
    cai_cuda_pointer info;
    uint64_t asked_in; /* the context of the last query; 0: none, or it was not queried */
    int32_t answered;  /* by the last query; if not, another context may know */
    int32_t refused;   /* it was refused because no context is current (201) */
} cai_priv_search;

typedef cai_status (*cai_priv_question)(cai_priv_search *search);

static cai_status cai_priv_about_data(cai_error *err, cai_status status)
{
    if (err) err->entry = CAI_ENTRY_DATA;
    return status;
}

CAI_PRIV_COLD cai_status cai_priv_no_memory(const cai_priv_search *search, int32_t rule,
                                            const char *sentence)
{
    cai_error *err = search->call->err;
    return cai_priv_about_data(err, cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, rule), "data 0x%llx %s",
                                                   (unsigned long long)search->array->data, sentence));
}

/* Finds the kind of memory. Device and managed memory have one address (unified addressing). If no context is
 * current, a driver may know nothing. */
static cai_status cai_priv_ask_pointer(cai_priv_search *search)
{
    cai_priv_stream_call *call = search->call;
    cai_cuda_pointer *info = &search->info;
    int32_t error;
    memset(info, 0, sizeof *info);
    error = call->cuda->pointer_info(call->cuda->self, search->array->data, info);
    search->refused = error == 201;
    search->answered = !error && (info->memory > CAI_MEMORY_PINNED || info->device_pointer);
    if (search->refused || search->answered) return CAI_OK;
    CAI_TRY(cai_priv_stream_did(call, error, "pointer_info"));
    CAI_TRY(cai_priv_find_current(call));
    if (!search->asked_in) search->asked_in = call->current;
    search->answered = search->asked_in != 0;
    if (info->flags & CAI_POINTER_NO_CONTEXT) /* the memory's own context knows all */
        search->answered = search->asked_in && search->asked_in == info->context;
    return CAI_OK;
}

/* Finds the range around the data. It has 0 bytes if it is not known here. */
static cai_status cai_priv_ask_range(cai_priv_search *search)
{
    cai_priv_stream_call *call = search->call;
    cai_location *out = search->out;
    const int32_t error =
        call->cuda->pointer_range(call->cuda->self, search->array->data, &out->base, &out->nbytes);
    search->answered = error != 1 && error != 201 && error != 500;
    if (search->answered) CAI_TRY(cai_priv_stream_did(call, error, "pointer_range"));
    else out->base = out->nbytes = 0;
    search->answered = out->nbytes != 0;
    return CAI_OK;
}

/* Queries in another context. It may be destroyed (201, 709), or belong to another thread alone (216). */
static cai_status cai_priv_ask_inside(cai_priv_search *search, uint64_t context, cai_priv_question question)
{
    cai_priv_stream_call *call = search->call;
    int32_t error;
    if (search->answered || !context || context == call->current) return CAI_OK;
    error = cai_priv_context_enter(call->cuda, context);
    if (error == 201 || error == 216 || error == 709) return CAI_OK;
    CAI_TRY(cai_priv_stream_did(call, error, "context_push"));
    search->asked_in = context;
    return cai_priv_stream_leave(call, context, question(search));
}

/* Queries in the current context, then in the allocation's, then in the primary one of its device (or of device
 * 0). The primary one may be the first that knows the allocation's context. */
static cai_status cai_priv_ask(cai_priv_search *search, cai_priv_question question)
{
    cai_priv_stream_call *call = search->call;
    const cai_cuda *cuda = call->cuda;
    uint64_t own, primary = 0;
    int32_t error;
    search->asked_in = call->current;
    CAI_TRY(question(search));
    if (!search->answered) CAI_TRY(cai_priv_find_current(call));
    own = search->info.context;
    CAI_TRY(cai_priv_ask_inside(search, own, question));
    if (search->answered) return CAI_OK;
    error = cuda->device_context(cuda->self,
                                 search->info.memory > CAI_MEMORY_HOST ? search->info.device : 0, &primary);
    if (error == 100 || error == 101) return CAI_OK; /* no such device */
    CAI_TRY(cai_priv_stream_did(call, error, "device_context"));
    if (primary != own) CAI_TRY(cai_priv_ask_inside(search, primary, question));
    return own ? CAI_OK : cai_priv_ask_inside(search, search->info.context, question);
}

/* Locates memory that CUDA does not know. Some devices can read it. */
static cai_status cai_priv_locate_pageable(cai_priv_search *search, uint32_t flags)
{
    cai_priv_stream_call *call = search->call;
    int32_t *device = &search->out->device, yes = 0;
    if (!(flags & CAI_LOCATE_PAGEABLE))
        return search->answered ? cai_priv_no_memory(search, 7, "is plain host memory, or was freed")
                                : cai_priv_no_memory(search, 0, "is unknown to CUDA, perhaps because no "
                                                                "context is current on this thread");
    if (!call->cuda->device_attribute) return cai_priv_stream_lacks(call->err, "device_attribute");
    CAI_TRY(cai_priv_current_device(call, device));
    if (!call->current) return cai_priv_stream_did(call, 201, "context_device");
    CAI_TRY(CAI_PRIV_STREAM_CUDA(call, device_attribute, *device, CAI_ATTRIBUTE_PAGEABLE_ACCESS, &yes));
    if (!yes)
        return cai_priv_no_memory(
            search, 7, "is plain host memory, or was freed, and the current device cannot read such memory");
    search->out->data = search->array->data;
    return CAI_OK;
}

/* Checks that base <= data + lo and data + hi <= base + nbytes. Of mapped memory CUDA tells one segment, and
 * the next segment may belong to the same array. */
static cai_status cai_priv_locate_bounds(cai_priv_search *search)
{
    const cai_array *array = search->array;
    cai_location *out = search->out;
    const int mapped = search->info.memory == CAI_MEMORY_DEVICE && !search->info.context &&
                       !(search->info.flags & CAI_POINTER_POOL);
    cai_error *err = search->call->err;
    uint64_t offset, low, high;
    int outside;
    if (!search->call->cuda->pointer_range) return CAI_OK;
    CAI_TRY(cai_priv_ask(search, cai_priv_ask_range));
    if (!search->answered) return CAI_OK;
    offset = array->data - out->base;
    low = offset + (uint64_t)array->lo;
    high = offset + (uint64_t)array->hi;
    outside = array->data < out->base || low > offset || high > out->nbytes || high < offset;
    if (outside && !mapped)
        return cai_priv_about_data(
            err, cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 7),
                                "data 0x%llx: the array reaches byte %lld of an allocation of %lld bytes",
                                (unsigned long long)array->data,
                                (long long)(array->data < out->base || low > offset ? low : high),
                                (long long)out->nbytes));
    if (!outside) out->bounds = CAI_BOUNDS_INSIDE;
    return CAI_OK;
}

/* Stores the results of the query, without the bounds. */
static cai_status cai_priv_locate_memory(cai_priv_search *search)
{
    const cai_cuda_pointer *info = &search->info;
    cai_location *out = search->out;
    int32_t device;
    if (info->flags & CAI_POINTER_ARRAY)
        return cai_priv_no_memory(search, 7, "is a CUDA array (a texture), no linear memory");
    if (!info->device_pointer && info->memory == CAI_MEMORY_PINNED)
        return search->answered ? cai_priv_no_memory(search, 7, "has no address for devices: it was registered "
                                                                "without mapping")
                                : cai_priv_no_memory(search, 0, "is pinned memory whose address for devices "
                                                                "is unknown: no context that knows it can be "
                                                                "made current");
    out->device = info->device;
    out->context = info->context;
    out->data = info->device_pointer ? info->device_pointer : search->array->data;
    if (!(info->flags & CAI_POINTER_POOL)) return CAI_OK;
    CAI_TRY(cai_priv_current_device(search->call, &device));
    out->needs_peer = device >= 0 && device != info->device;
    return CAI_OK;
}

/* Checks the address that replaces data (R28). */
static cai_status cai_priv_check_address(const cai_priv_search *search)
{
    const cai_array *array = search->array;
    const uint64_t address = search->out->data, low = address + (uint64_t)array->lo;
    cai_error *err = search->call->err;
    if (low <= address && address + (uint64_t)(array->hi - 1) >= address) return CAI_OK;
    return cai_priv_about_data(
        err, cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 28),
                            "data 0x%llx: elements leave the address space at 0x%llx, the address for devices",
                            (unsigned long long)array->data, (unsigned long long)address));
}

/* Queries an array or a mask, which is not changed. */
static cai_status cai_priv_locate_one(cai_priv_stream_call *call, const cai_array *array, uint32_t flags,
                                      cai_location *out)
{
    cai_priv_search search;
    memset(out, 0, sizeof *out);
    out->device = CAI_DEVICE_UNKNOWN;
    CAI_TRY(cai_priv_check_backend(call, array));
    if (!array->size) return CAI_OK;
    memset(&search, 0, sizeof search);
    search.call = call;
    search.array = array;
    search.out = out;
    CAI_TRY(cai_priv_ask(&search, cai_priv_ask_pointer));
    if (search.refused) return cai_priv_stream_did(call, 201, "pointer_info");
    out->memory = search.info.memory > CAI_MEMORY_HOST ? search.info.memory : (int32_t)CAI_MEMORY_HOST;
    if (out->memory == CAI_MEMORY_HOST) return cai_priv_locate_pageable(&search, flags);
    CAI_TRY(cai_priv_locate_memory(&search));
    if (flags & CAI_LOCATE_BOUNDS) CAI_TRY(cai_priv_locate_bounds(&search));
    return flags & CAI_LOCATE_STORE_ADDRESS ? cai_priv_check_address(&search) : CAI_OK;
}

static void cai_priv_store_location(const cai_priv_stream_call *call, cai_array *array,
                                    const cai_location *where, uint32_t flags)
{
    array->device = where->device;
    array->memory = where->memory;
    if (where->memory > CAI_MEMORY_HOST) array->backend = cai_priv_backend(call->cuda);
    if (!(flags & CAI_LOCATE_STORE_ADDRESS) || !array->size) return;
    array->data = where->data;
    if (where->data & (uint64_t)(array->dtype.alignment - 1)) array->flags &= ~(uint32_t)CAI_ALIGNED;
}

static cai_status cai_priv_locate(cai_priv_stream_call *call, cai_array *array, uint32_t flags,
                                  cai_location *out)
{
    cai_location where;
    cai_array *mask = array->mask;
    CAI_TRY(cai_priv_locate_one(call, array, flags, out));
    if (mask) {
        const cai_status status = cai_priv_locate_one(call, mask, flags, &where);
        if (status) return cai_priv_error_before(call->err, status, "mask", -1);
        if (out->memory == CAI_MEMORY_DEVICE && where.memory == CAI_MEMORY_DEVICE &&
            out->device != where.device)
            return cai_priv_about_data(
                call->err, cai_priv_error(call->err, CAI_ERR_MEMORY,
                                          "data 0x%llx is on device %d and its mask on device %d",
                                          (unsigned long long)array->data, out->device, where.device));
        cai_priv_store_location(call, mask, &where, flags);
    }
    cai_priv_store_location(call, array, out, flags);
    return CAI_OK;
}

CAI_API cai_status cai_locate(cai_array *array, const char *name, const cai_cuda *cuda, uint32_t flags,
                              cai_location *out, cai_error *err)
{
    cai_priv_stream_call call;
    cai_location where;
    const cai_cuda *table;
    cai_cuda whole;
    cai_status status;
    if (!name) return cai_priv_stream_misuse(err, "cai_locate: name is NULL");
    CAI_TRY(cai_priv_check_cuda(cuda, &whole, &table, err));
    status = cai_array_check(array, err);
    if (status) return cai_priv_error_before(err, status, name, -1);
    if (flags & ~(uint32_t)(CAI_LOCATE_BOUNDS | CAI_LOCATE_PAGEABLE | CAI_LOCATE_STORE_ADDRESS))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_locate: flags = 0x%x has unknown bits",
                              (unsigned)flags);
    call = cai_priv_stream_open(NULL, table, err);
    status = cai_priv_locate(&call, array, flags, &where);
    if (status) return cai_priv_error_before(err, status, name, -1);
    if (out) *out = where;
    return CAI_OK;
}

/* ------------------------------------------------------------- >>driver table */
#if !defined(CAI_NO_CUDART) || !defined(CAI_NO_LOADER)
#if defined(_WIN32)
#define CAI_PRIV_CUDAAPI __stdcall
#else
#define CAI_PRIV_CUDAAPI
#endif

struct cai_priv_ipc_handle {
    char bytes[64];
};

struct cai_priv_copy_end {
    size_t x, y, z, level;
    int memory_type;
    void *host;
    uint64_t device;
    void *array, *context; /* context: reserved in CUDA_MEMCPY3D */
    size_t pitch, height;
};

struct cai_priv_copy_3d { /* CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER */
    struct cai_priv_copy_end from, to;
    size_t width, height, depth;
};

struct cai_priv_pool_properties { /* CUmemPoolProps */
    int allocation_type, handle_types, location_type, device;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
};

/* The driver's function of each slot: X(slot, parameters, symbol, suffix, version, needed). In the driver's
 * library its name is the symbol with the suffix. A newer version may have other parameters. */
#define CAI_PRIV_SLOT_LIST(X)                                                                                \
    X(context_current, (void **), "cuCtxGetCurrent", "", 4000, 1)                                            \
    X(context_push, (void *), "cuCtxPushCurrent", "_v2", 4000, 1)                                            \
    X(context_pop, (void **), "cuCtxPopCurrent", "_v2", 4000, 1)                                             \
    X(context_synchronize, (void), "cuCtxSynchronize", "", 2000, 1)                                          \
    X(context_device, (int *), "cuCtxGetDevice", "", 2000, 1)                                                \
    X(device_context, (int, unsigned int *, int *), "cuDevicePrimaryCtxGetState", "", 7000, 1)               \
    X(stream_context, (void *, void **), "cuStreamGetCtx", "", 9020, 1)                                      \
    X(stream_capture, (void *, int *, uint64_t *), "cuStreamGetCaptureInfo", "", 10010, 1)                   \
    X(stream_id, (void *, uint64_t *), "cuStreamGetId", "", 12000, 0)                                        \
    X(stream_wait_event, (void *, void *, unsigned int), "cuStreamWaitEvent", "", 3020, 1)                   \
    X(stream_synchronize, (void *), "cuStreamSynchronize", "", 2000, 1)                                      \
    X(event_create, (void **, unsigned int), "cuEventCreate", "", 2000, 1)                                   \
    X(event_destroy, (void *), "cuEventDestroy", "_v2", 4000, 1)                                             \
    X(event_record, (void *, void *), "cuEventRecord", "", 2000, 1)                                          \
    X(event_query, (void *), "cuEventQuery", "", 2000, 1)                                                    \
    X(event_synchronize, (void *), "cuEventSynchronize", "", 2000, 1)                                        \
    X(capture_mode, (int *), "cuThreadExchangeStreamCaptureMode", "", 10010, 1)                              \
    X(pointer_info, (unsigned int, int *, void **, uint64_t), "cuPointerGetAttributes", "", 7000, 1)         \
    X(pointer_range, (uint64_t *, size_t *, uint64_t), "cuMemGetAddressRange", "_v2", 3020, 1)               \
    X(device_attribute, (int *, int, int), "cuDeviceGetAttribute", "", 2000, 1)                              \
    X(memory_alloc, (uint64_t *, size_t), "cuMemAlloc", "_v2", 3020, 0)                                      \
    X(memory_free, (uint64_t), "cuMemFree", "_v2", 3020, 0)                                                  \
    X(memory_alloc_async, (uint64_t *, size_t, void *), "cuMemAllocAsync", "", 11020, 0)                     \
    X(memory_free_async, (uint64_t, void *), "cuMemFreeAsync", "", 11020, 0)                                 \
    X(host_alloc, (void **, size_t, unsigned int), "cuMemHostAlloc", "", 2020, 0)                            \
    X(host_free, (void *), "cuMemFreeHost", "", 2000, 0)                                                     \
    X(host_register, (void *, size_t, unsigned int), "cuMemHostRegister", "_v2", 6050, 0)                    \
    X(host_unregister, (void *), "cuMemHostUnregister", "", 4000, 0)                                         \
    X(managed_alloc, (uint64_t *, size_t, unsigned int), "cuMemAllocManaged", "", 6000, 0)                   \
    X(memory_info, (size_t *, size_t *), "cuMemGetInfo", "_v2", 3020, 0)                                     \
    X(ipc_export, (void *, uint64_t), "cuIpcGetMemHandle", "", 4010, 0)                                      \
    X(ipc_open, (uint64_t *, struct cai_priv_ipc_handle, unsigned int),                                      \
      "cuIpcOpenMemHandle", "_v2", 11000, 0)                                                                 \
    X(ipc_close, (uint64_t), "cuIpcCloseMemHandle", "", 4010, 0)                                             \
    X(device_uuid, (void *, int), "cuDeviceGetUuid", "_v2", 11040, 0)                                        \
    X(copy_async, (uint64_t, uint64_t, size_t, void *), "cuMemcpyAsync", "", 4000, 0)                        \
    X(copy_3d_async, (const struct cai_priv_copy_3d *, void *), "cuMemcpy3DAsync", "_v2", 3020, 0)           \
    X(set_async, (uint64_t, unsigned char, size_t, void *), "cuMemsetD8Async", "", 3020, 0)                  \
    X(set_2d_async, (uint64_t, size_t, unsigned char, size_t, size_t, void *),                               \
      "cuMemsetD2D8Async", "", 3020, 0)                                                                      \
    X(copy_peer_async, (uint64_t, void *, uint64_t, void *, size_t, void *),                                 \
      "cuMemcpyPeerAsync", "", 4000, 0)                                                                      \
    X(copy_3d_peer_async, (const struct cai_priv_copy_3d *, void *), "cuMemcpy3DPeerAsync", "", 4000, 0)     \
    X(context_id, (void *, uint64_t *), "cuCtxGetId", "", 12000, 0)                                          \
    X(context_record, (void *, void *), "cuCtxRecordEvent", "", 12050, 0)                                    \
    X(stream_flags, (void *, unsigned int *), "cuStreamGetFlags", "", 5000, 0)                               \
    X(pool_create, (void **, const struct cai_priv_pool_properties *), "cuMemPoolCreate", "", 11020, 0)      \
    X(pool_destroy, (void *), "cuMemPoolDestroy", "", 11020, 0)                                              \
    X(memory_alloc_from_pool, (uint64_t *, size_t, void *, void *),                                          \
      "cuMemAllocFromPoolAsync", "", 11020, 0)                                                               \
    X(primary_retain, (void **, int), "cuDevicePrimaryCtxRetain", "", 7000, 1)                               \
    X(primary_release, (int), "cuDevicePrimaryCtxRelease", "_v2", 11000, 1)                                  \
    X(capture_retain, (void *, void *, unsigned int, unsigned int), "cuGraphRetainUserObject", "", 11030, 0)

/* All functions. The first five have no slot of their own. */
#define CAI_PRIV_ENTRY_LIST(X)                                                                               \
    X(init, (unsigned int), "cuInit", "", 2000, 1)                                                           \
    X(driver_version, (int *), "cuDriverGetVersion", "", 2020, 1)                                            \
    X(pool_set, (void *, int, void *), "cuMemPoolSetAttribute", "", 11020, 0)                                \
    X(capture_graph, (void *, int *, uint64_t *, void **, const void **, size_t *),                          \
      "cuStreamGetCaptureInfo", "_v2", 11030, 0)                                                             \
    X(user_object, (void **, void *, void (*)(void *), unsigned int, unsigned int),                          \
      "cuUserObjectCreate", "", 11030, 0)                                                                    \
    CAI_PRIV_SLOT_LIST(X)

enum {
#define CAI_PRIV_ENUMERATOR(name, types, symbol, suffix, version, needed) CAI_PRIV_CU_##name,
    CAI_PRIV_ENTRY_LIST(CAI_PRIV_ENUMERATOR)
#undef CAI_PRIV_ENUMERATOR
    CAI_PRIV_CU_COUNT
};
typedef char cai_priv_assert_entries[CAI_PRIV_CU_COUNT <= 64 ? 1 : -1]; /* of cai_cuda_driver.entries */

/* cai_priv_cu_NAME returns an entry with its type. It uses memcpy, because some compilers warn about a cast. */
#define CAI_PRIV_TYPED(name, types, symbol, suffix, version, needed)                                         \
    typedef int(CAI_PRIV_CUDAAPI *cai_priv_type_##name) types;                                               \
    static inline cai_priv_type_##name cai_priv_cu_##name(void *self)                                        \
    {                                                                                                        \
        cai_priv_type_##name function;                                                                       \
        memcpy(&function, &((cai_cuda_driver *)self)->entries[CAI_PRIV_CU_##name], sizeof function);         \
        return function;                                                                                     \
    }
CAI_PRIV_ENTRY_LIST(CAI_PRIV_TYPED)
#undef CAI_PRIV_TYPED

static inline void *cai_priv_cu_handle(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static inline uint64_t cai_priv_cu_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* Defines a slot that is one call of its function with these arguments. */
#define CAI_PRIV_SLOT(name, parameters, arguments)                                                           \
    static int32_t cai_priv_driver_##name parameters                                                         \
    {                                                                                                        \
        return cai_priv_cu_##name(self) arguments;                                                           \
    }

/* Defines a slot of a function that stores a handle in `made`. The slot stores the handle's number in *number.
 * It may be the first call of the process. */
#define CAI_PRIV_SLOT_OF_HANDLE(name, number, parameters, arguments)                                         \
    static int32_t cai_priv_driver_##name parameters                                                         \
    {                                                                                                        \
        void *made = NULL;                                                                                   \
        int32_t error = cai_priv_cu_##name(self) arguments;                                                  \
        if (cai_priv_driver_init(self, &error)) error = cai_priv_cu_##name(self) arguments;                  \
        *number = cai_priv_cu_number(made);                                                                  \
        return error;                                                                                        \
    }

/* Initializes the driver if the first call of the process needs that. Returns whether to try again. */
static int cai_priv_driver_init(void *self, int32_t *error)
{
    if (*error != 3) return 0;
    *error = cai_priv_cu_init(self)(0);
    return !*error;
}

CAI_PRIV_SLOT_OF_HANDLE(context_current, context, (void *self, uint64_t *context), (&made))
CAI_PRIV_SLOT(context_push, (void *self, uint64_t context), (cai_priv_cu_handle(context)))

static int32_t cai_priv_driver_context_pop(void *self)
{
    void *popped = NULL;
    return cai_priv_cu_context_pop(self)(&popped);
}

CAI_PRIV_SLOT(context_synchronize, (void *self), ())
CAI_PRIV_SLOT(context_device, (void *self, int32_t *device), (device))

CAI_PRIV_SLOT_OF_HANDLE(primary_retain, context, (void *self, int32_t device, uint64_t *context),
                        (&made, device))
CAI_PRIV_SLOT(primary_release, (void *self, int32_t device), (device))

/* Retaining an inactive primary context makes it, and releasing it destroys it ("The context is automatically
 * reset once the last reference to it is released"). So its state is queried first. */
static int32_t cai_priv_driver_device_context(void *self, int32_t device, uint64_t *context)
{
    unsigned int flags = 0;
    int active = 0;
    const cai_priv_type_device_context state = cai_priv_cu_device_context(self);
    int32_t error = state(device, &flags, &active);
    *context = 0;
    if (cai_priv_driver_init(self, &error)) error = state(device, &flags, &active);
    if (error || !active) return error;
    error = cai_priv_driver_primary_retain(self, device, context);
    return error ? error : cai_priv_driver_primary_release(self, device);
}

CAI_PRIV_SLOT_OF_HANDLE(stream_context, context, (void *self, uint64_t stream, uint64_t *context),
                        (cai_priv_cu_handle(stream), &made))

static int32_t cai_priv_driver_stream_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    memset(capture, 0, sizeof *capture);
    return cai_priv_cu_stream_capture(self)(cai_priv_cu_handle(stream), &capture->status, &capture->id);
}

/* The graph gets the only reference. If that fails, the object stays, because its release would call `gone`. */
static int32_t cai_priv_driver_capture_retain(void *self, uint64_t stream, void (*gone)(void *), void *user)
{
    enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 }; /* CU_USER_OBJECT_..., CU_GRAPH_USER_OBJECT_... */
    void *graph = NULL, *object = NULL;
    int status = 0;
    int32_t error = cai_priv_cu_capture_graph(self)(cai_priv_cu_handle(stream), &status, NULL, &graph, NULL,
                                                    NULL);
    if (!error && !graph) error = 401;
    if (!error) error = cai_priv_cu_user_object(self)(&object, user, gone, 1, NO_DESTRUCTOR_SYNC);
    return error ? error : cai_priv_cu_capture_retain(self)(graph, object, 1, MOVE);
}

CAI_PRIV_SLOT(stream_id, (void *self, uint64_t stream, uint64_t *id), (cai_priv_cu_handle(stream), id))
CAI_PRIV_SLOT(stream_flags, (void *self, uint64_t stream, uint32_t *flags),
              (cai_priv_cu_handle(stream), flags))
CAI_PRIV_SLOT(context_id, (void *self, uint64_t context, uint64_t *id), (cai_priv_cu_handle(context), id))
CAI_PRIV_SLOT(context_record, (void *self, uint64_t context, uint64_t event),
              (cai_priv_cu_handle(context), cai_priv_cu_handle(event)))
CAI_PRIV_SLOT(stream_wait_event, (void *self, uint64_t stream, uint64_t event),
              (cai_priv_cu_handle(stream), cai_priv_cu_handle(event), 0))
CAI_PRIV_SLOT(stream_synchronize, (void *self, uint64_t stream), (cai_priv_cu_handle(stream)))

CAI_PRIV_SLOT_OF_HANDLE(event_create, event, (void *self, uint64_t *event),
                        (&made, 2)) /* CU_EVENT_DISABLE_TIMING */
CAI_PRIV_SLOT(event_destroy, (void *self, uint64_t event), (cai_priv_cu_handle(event)))
CAI_PRIV_SLOT(event_record, (void *self, uint64_t event, uint64_t stream),
              (cai_priv_cu_handle(event), cai_priv_cu_handle(stream)))
CAI_PRIV_SLOT(event_query, (void *self, uint64_t event), (cai_priv_cu_handle(event)))
CAI_PRIV_SLOT(event_synchronize, (void *self, uint64_t event), (cai_priv_cu_handle(event)))
CAI_PRIV_SLOT(capture_mode, (void *self, int32_t *mode), (mode))

/* Finds host memory's address for devices. "If there is no current CUcontext then CUDA_ERROR_INVALID_CONTEXT
 * is returned"; "if there exists no device pointer value through which kernels running in the current
 * CUcontext may access ptr then CUDA_ERROR_INVALID_VALUE". A driver without a context may return 0. */
static int32_t cai_priv_driver_host_address(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    int attribute = 3; /* CU_POINTER_ATTRIBUTE_DEVICE_POINTER */
    uint64_t address = 0, current = 0;
    void *place = &address;
    int32_t error = cai_priv_cu_pointer_info(self)(1, &attribute, &place, pointer);
    if (error && error != 1 && error != 201) return error;
    if (!error) info->device_pointer = address;
    if (info->device_pointer) return 0;
    error = cai_priv_driver_context_current(self, &current);
    if (!current || current != info->context) info->flags |= CAI_POINTER_NO_CONTEXT;
    return error;
}

/* The plural form accepts any pointer, and returns zeros for an unknown one (R102). The address of device and
 * managed memory for devices is the pointer. The exceptions from unified addressing are "host memory
 * registered using cuMemHostRegister() and host memory allocated using the flag
 * CU_MEMHOSTALLOC_WRITECOMBINED". So only host memory is queried. No other attribute depends on the
 * context. */
static int32_t cai_priv_driver_pointer_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    enum { TYPE, DEVICE, CONTEXT, MANAGED, POOL, ATTRIBUTES };
    int attributes[ATTRIBUTES] = {2, 9, 1, 8, 17}; /* CU_POINTER_ATTRIBUTE_... */
    uint64_t answers[ATTRIBUTES] = {0, 0, 0, 0, 0}, current = 0;
    void *places[ATTRIBUTES];
    const cai_priv_type_pointer_info call = cai_priv_cu_pointer_info(self);
    int32_t error, i, type, device;
    for (i = 0; i < ATTRIBUTES; ++i) places[i] = &answers[i];
    error = call(ATTRIBUTES, attributes, places, pointer);
    if (cai_priv_driver_init(self, &error)) error = call(ATTRIBUTES, attributes, places, pointer);
    if (error == 1) error = call(POOL, attributes, places, pointer); /* CUDA 11.2 does not know the last */
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
    if (info->memory == CAI_MEMORY_PINNED) return cai_priv_driver_host_address(self, pointer, info);
    if (type) info->device_pointer = pointer;
    else error = cai_priv_driver_context_current(self, &current);
    if (!type && !current) info->flags |= CAI_POINTER_NO_CONTEXT;
    return error;
}

static int32_t cai_priv_driver_pointer_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    size_t bytes = 0;
    int32_t error = cai_priv_cu_pointer_range(self)(base, &bytes, pointer);
    *size = bytes;
    return error;
}

CAI_PRIV_SLOT(device_attribute, (void *self, int32_t device, int32_t attribute, int32_t *value),
              (value, attribute, device))

CAI_PRIV_SLOT(memory_alloc, (void *self, uint64_t *pointer, uint64_t size), (pointer, (size_t)size))
CAI_PRIV_SLOT(memory_free, (void *self, uint64_t pointer), (pointer))
CAI_PRIV_SLOT(memory_alloc_async, (void *self, uint64_t *pointer, uint64_t size, uint64_t stream),
              (pointer, (size_t)size, cai_priv_cu_handle(stream)))
CAI_PRIV_SLOT(memory_free_async, (void *self, uint64_t pointer, uint64_t stream),
              (pointer, cai_priv_cu_handle(stream)))
CAI_PRIV_SLOT(pool_destroy, (void *self, uint64_t pool), (cai_priv_cu_handle(pool)))
CAI_PRIV_SLOT(memory_alloc_from_pool,
              (void *self, uint64_t *pointer, uint64_t size, uint64_t pool, uint64_t stream),
              (pointer, (size_t)size, cai_priv_cu_handle(pool), cai_priv_cu_handle(stream)))

/* A new pool has all kinds of reuse, and gives memory back at synchronizations. This one keeps its memory. */
static int32_t cai_priv_driver_pool_create(void *self, int32_t device, uint32_t reuse, uint64_t *pool)
{
    enum { FOLLOW_EVENTS = 1, INTERNAL_DEPENDENCIES = 3, RELEASE_THRESHOLD = 4 }; /* CU_MEMPOOL_ATTR_... */
    struct cai_priv_pool_properties properties;
    uint64_t all = UINT64_MAX;
    void *made = NULL;
    int32_t error, i;
    *pool = 0;
    if (reuse > 7) return 1;
    memset(&properties, 0, sizeof properties);
    properties.allocation_type = 1; /* CU_MEM_ALLOCATION_TYPE_PINNED */
    properties.location_type = 1;   /* CU_MEM_LOCATION_TYPE_DEVICE */
    properties.device = device;
    error = cai_priv_cu_pool_create(self)(&made, &properties);
    if (cai_priv_driver_init(self, &error)) error = cai_priv_cu_pool_create(self)(&made, &properties);
    if (error) return error;
    for (i = FOLLOW_EVENTS; i <= INTERNAL_DEPENDENCIES && !error; ++i) {
        int yes = (int)(reuse >> (i - FOLLOW_EVENTS) & 1);
        error = cai_priv_cu_pool_set(self)(made, i, &yes);
    }
    if (!error) error = cai_priv_cu_pool_set(self)(made, RELEASE_THRESHOLD, &all);
    if (error) (void)cai_priv_cu_pool_destroy(self)(made);
    else *pool = cai_priv_cu_number(made);
    return error;
}

CAI_PRIV_SLOT_OF_HANDLE(host_alloc, pointer,
                        (void *self, uint64_t *pointer, uint64_t size, uint32_t flags),
                        (&made, (size_t)size, flags))
CAI_PRIV_SLOT(host_free, (void *self, uint64_t pointer), (cai_priv_cu_handle(pointer)))
CAI_PRIV_SLOT(host_register, (void *self, uint64_t pointer, uint64_t size, uint32_t flags),
              (cai_priv_cu_handle(pointer), (size_t)size, flags))
CAI_PRIV_SLOT(host_unregister, (void *self, uint64_t pointer), (cai_priv_cu_handle(pointer)))
CAI_PRIV_SLOT(managed_alloc, (void *self, uint64_t *pointer, uint64_t size, uint32_t flags),
              (pointer, (size_t)size, flags))
CAI_PRIV_SLOT(ipc_export, (void *self, uint64_t pointer, void *handle), (handle, pointer))
CAI_PRIV_SLOT(ipc_close, (void *self, uint64_t pointer), (pointer))

static int32_t cai_priv_driver_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    size_t available = 0, total = 0;
    int32_t error = cai_priv_cu_memory_info(self)(&available, &total);
    *free_bytes = available;
    *total_bytes = total;
    return error;
}

static int32_t cai_priv_driver_ipc_open(void *self, const void *handle, uint64_t *pointer)
{
    struct cai_priv_ipc_handle copy;
    memcpy(&copy, handle, sizeof copy);
    return cai_priv_cu_ipc_open(self)(pointer, copy, 1); /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
}

static int32_t cai_priv_driver_device_uuid(void *self, int32_t device, void *uuid)
{
    int32_t error = cai_priv_cu_device_uuid(self)(uuid, device);
    return cai_priv_driver_init(self, &error) ? cai_priv_cu_device_uuid(self)(uuid, device) : error;
}

CAI_PRIV_SLOT(copy_async, (void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream),
              (to, from, (size_t)size, cai_priv_cu_handle(stream)))
CAI_PRIV_SLOT(set_async, (void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream),
              (to, (unsigned char)value, (size_t)size, cai_priv_cu_handle(stream)))
CAI_PRIV_SLOT(set_2d_async,
              (void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width, uint64_t height,
               uint64_t stream),
              (to, (size_t)pitch, (unsigned char)value, (size_t)width, (size_t)height,
               cai_priv_cu_handle(stream)))

CAI_PRIV_SLOT(copy_peer_async,
              (void *self, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
               uint64_t size, uint64_t stream),
              (to, cai_priv_cu_handle(to_context), from, cai_priv_cu_handle(from_context), (size_t)size,
               cai_priv_cu_handle(stream)))

static struct cai_priv_copy_3d cai_priv_driver_rows(const cai_cuda_copy *copy, int memory_type)
{
    struct cai_priv_copy_3d rows;
    memset(&rows, 0, sizeof rows);
    rows.from.memory_type = rows.to.memory_type = memory_type;
    rows.from.device = copy->from;
    rows.from.pitch = (size_t)copy->from_pitch;
    rows.from.height = (size_t)copy->from_height;
    rows.to.device = copy->to;
    rows.to.pitch = (size_t)copy->to_pitch;
    rows.to.height = (size_t)copy->to_height;
    rows.width = (size_t)copy->width;
    rows.height = (size_t)copy->height;
    rows.depth = (size_t)copy->depth;
    return rows;
}

/* The driver finds the kind of memory from the address, as in cuMemcpyAsync. */
static int32_t cai_priv_driver_copy_3d_async(void *self, const cai_cuda_copy *copy, uint64_t stream)
{
    enum { UNIFIED = 4 }; /* CU_MEMORYTYPE_UNIFIED */
    const struct cai_priv_copy_3d rows = cai_priv_driver_rows(copy, UNIFIED);
    return cai_priv_cu_copy_3d_async(self)(&rows, cai_priv_cu_handle(stream));
}

/* CUDA_MEMCPY3D_PEER knows "host, device, array". */
static int32_t cai_priv_driver_copy_3d_peer_async(void *self, const cai_cuda_copy *copy, uint64_t to_context,
                                                  uint64_t from_context, uint64_t stream)
{
    enum { DEVICE = 2 }; /* CU_MEMORYTYPE_DEVICE */
    struct cai_priv_copy_3d rows = cai_priv_driver_rows(copy, DEVICE);
    rows.to.context = cai_priv_cu_handle(to_context);
    rows.from.context = cai_priv_cu_handle(from_context);
    return cai_priv_cu_copy_3d_peer_async(self)(&rows, cai_priv_cu_handle(stream));
}

#undef CAI_PRIV_SLOT
#undef CAI_PRIV_SLOT_OF_HANDLE

/* ------------------------------------------------------- >>finding the driver */
typedef struct cai_priv_wanted {
    const char *symbol, *in_library;
    int32_t version, needed;
} cai_priv_wanted;

/* Returns one function of the driver that `from` leads to, or NULL. */
typedef void *(*cai_priv_finder)(void *from, const cai_priv_wanted *wanted);

/* Finds all functions, fills the slots of those that are there, and stores the driver in *out, which does not
 * change on failure. */
static cai_status cai_priv_driver_find_all(cai_cuda_driver *driver, cai_priv_finder find, void *from,
                                           cai_cuda_driver *out, cai_error *err)
{
    static const cai_priv_wanted list[] = {
#define CAI_PRIV_ROW(name, types, symbol, suffix, version, needed) {symbol, symbol suffix, version, needed},
        CAI_PRIV_ENTRY_LIST(CAI_PRIV_ROW)
#undef CAI_PRIV_ROW
    };
    cai_cuda *cuda = &driver->cuda;
    int32_t i;
    for (i = 0; i < CAI_PRIV_CU_COUNT; ++i) {
        void *found = find(from, &list[i]);
        if (!found && list[i].needed)
            return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA driver has no %s (of CUDA %d.%d)",
                                  list[i].symbol, list[i].version / 1000, list[i].version % 1000 / 10);
        memcpy(&driver->entries[i], &found, sizeof found); /* ISO C has no cast between the two */
    }
    if (cai_priv_cu_driver_version(driver)(&driver->driver_version)) driver->driver_version = 0;
    cuda->struct_size = (uint32_t)sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->host_thread = cai_priv_host_thread;
#define CAI_PRIV_FILL(name, types, symbol, suffix, version, needed)                                          \
    if (driver->entries[CAI_PRIV_CU_##name]) cuda->name = cai_priv_driver_##name;
    CAI_PRIV_SLOT_LIST(CAI_PRIV_FILL)
#undef CAI_PRIV_FILL
    if (!driver->entries[CAI_PRIV_CU_pool_set]) cuda->pool_create = NULL;
    if (!driver->entries[CAI_PRIV_CU_capture_graph] || !driver->entries[CAI_PRIV_CU_user_object])
        cuda->capture_retain = NULL;
    *out = *driver;
    out->cuda.self = out;
    return CAI_OK;
}

#ifndef CAI_NO_CUDART
/* cuGetProcAddress returns the function whose signature is that of the version. */
static void *cai_priv_find_by_version(void *get_proc_address, const cai_priv_wanted *wanted)
{
    enum { LEGACY_STREAM = 1 }; /* plain functions, whatever the unit was compiled for */
    void *found = NULL;
    int error;
#if CUDART_VERSION >= 12000
    int(CAI_PRIV_CUDAAPI *find)(const char *, void **, int, uint64_t, int *);
    int query = 0;
    memcpy(&find, &get_proc_address, sizeof find);
    error = find(wanted->symbol, &found, wanted->version, LEGACY_STREAM, &query);
#else
    int(CAI_PRIV_CUDAAPI *find)(const char *, void **, int, uint64_t);
    memcpy(&find, &get_proc_address, sizeof find);
    error = find(wanted->symbol, &found, wanted->version, LEGACY_STREAM);
#endif
    return error ? NULL : found;
}

/* The linked runtime returns cuGetProcAddress, with the signature of its own major version. */
static cudaError_t cai_priv_linked_lookup(void **get_proc_address)
{
#if CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult query;
#endif
#if CUDART_VERSION >= 12050
    return cudaGetDriverEntryPointByVersion("cuGetProcAddress", get_proc_address, 12000, cudaEnableDefault,
                                            &query);
#elif CUDART_VERSION >= 12000
    return cudaGetDriverEntryPoint("cuGetProcAddress", get_proc_address, cudaEnableDefault, &query);
#elif CUDART_VERSION >= 11030
    return cudaGetDriverEntryPoint("cuGetProcAddress", get_proc_address, cudaEnableDefault);
#else
#error "cai_stream.h: cai_cuda_linked needs CUDA 11.3; define CAI_NO_CUDART and use cai_cuda_load"
#endif
}

CAI_API cai_status cai_cuda_linked(cai_cuda_driver *out, cai_error *err)
{
    cai_cuda_driver driver;
    void *lookup = NULL;
    cudaError_t pending, error;
    int version = 0;
    if (!out) return cai_priv_stream_misuse(err, "cai_cuda_linked: out is NULL");
    pending = cudaPeekAtLastError();
    error = cai_priv_linked_lookup(&lookup);
    if (error != cudaSuccess && pending == cudaSuccess) (void)cudaGetLastError();
    if (error != cudaSuccess)
        return cai_priv_cuda_failed(err, CAI_ERR_UNAVAILABLE, (int32_t)error, "looking for the CUDA driver",
                                    "");
    if (!lookup) return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA driver is older than 11.3");
    memset(&driver, 0, sizeof driver);
    if (cudaRuntimeGetVersion(&version) == cudaSuccess) driver.runtime_version = version;
    return cai_priv_driver_find_all(&driver, cai_priv_find_by_version, lookup, out, err);
}
#endif

#ifndef CAI_NO_LOADER
/* The driver's library exports every signature with a name of its own, as CUDA 11.2 also does. */
#if defined(_WIN32)
static const char cai_priv_driver_library[] = "nvcuda.dll";

/* The driver is a part of the system. A file with its name in another folder of the path is not the driver. */
static void *cai_priv_library_open(const char *path)
{
    if (path) return (void *)LoadLibraryA(path);
    return (void *)LoadLibraryExA(cai_priv_driver_library, NULL, 0x800); /* LOAD_LIBRARY_SEARCH_SYSTEM32 */
}

static void cai_priv_library_close(void *library) { (void)FreeLibrary((HMODULE)library); }

static void *cai_priv_find_by_name(void *library, const cai_priv_wanted *wanted)
{
    const FARPROC found = GetProcAddress((HMODULE)library, wanted->in_library);
    void *address = NULL;
    memcpy(&address, &found, sizeof address);
    return address;
}
#else
static const char cai_priv_driver_library[] = "libcuda.so.1";

static void *cai_priv_library_open(const char *path)
{
    return dlopen(path ? path : cai_priv_driver_library, RTLD_LAZY);
}

static void cai_priv_library_close(void *library) { (void)dlclose(library); }

static void *cai_priv_find_by_name(void *library, const cai_priv_wanted *wanted)
{
    return dlsym(library, wanted->in_library);
}
#endif

CAI_API cai_status cai_cuda_load(cai_cuda_driver *out, const char *path, cai_error *err)
{
    cai_cuda_driver driver;
    cai_status status;
    if (!out) return cai_priv_stream_misuse(err, "cai_cuda_load: out is NULL");
    memset(&driver, 0, sizeof driver);
    driver.library = cai_priv_library_open(path);
    if (!driver.library)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA driver, %s, cannot be loaded",
                              path ? path : cai_priv_driver_library);
    status = cai_priv_driver_find_all(&driver, cai_priv_find_by_name, driver.library, out, err);
    if (status) cai_priv_library_close(driver.library); /* nothing of it was used */
    return status;
}
#endif
#endif /* a backend */

CAI_PRIV_C_END

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
