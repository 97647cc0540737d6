/* cai_place.h - on which device and stream to work on several arrays - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_PLACE_IMPLEMENTATION)
#define CAI_PLACE_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_STREAM_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                        \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_stream.h"
#endif

#if CAI_STREAM_H_INCLUDED / 100 != 2
#error "cai_place.h: this is version 0.2, which needs cai_stream.h 0.2"
#endif
#if defined(CAI_PLACE_H_INCLUDED) && CAI_PLACE_H_INCLUDED != 200
#error "cai_place.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PLACE_H_INCLUDED
#define CAI_PLACE_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_PLACE_IMPLEMENTATION for this header alone). All other configuration is
    that of cai_stream.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_place.h"

WHAT IT IS
    A function has several arrays as arguments. cai_place chooses the device and the stream of its work with
    one of three policies. It also checks the array that the function writes to. Call cai_place after
    cai_locate of each array, and before cai_exchange_begin on the chosen stream:

        const cai_operand in[2] = {cai_operand_array(x, "x"), cai_operand_array(y, "y")};
        cai_placement where;
        CAI_TRY(cai_place(in, 2, out, CAI_PLACE_SAME_DEVICE, 0, 0, &where, err));
        CAI_TRY(cai_exchange_begin(&ex, pool, io, 3, where.stream, err)); // io: x, y, out

    If an operand does not fit the others, the message names both, with their devices and streams. Nothing is
    copied. cai_place chooses only a stream that an operand has or that the caller named. Make where.device
    current before your launch (cudaSetDevice). No function of cai leaves another device current.

    If a library has no stream of its own, it gets one from a cai_stream_cache. A cache keeps one stream for
    each context. If only a stream or an event of some work is known, cai_stream_depend adds the work to an
    exchange. cai_event_make returns an event for the work of an exchange:

        CAI_TRY(cai_stream_depend(pool, ex.stream, depends, 2, err)); // after begin, before the launch
        CAI_TRY(cai_event_make(pool, ex.stream, &done, err));         // after the launch

THREADS
    Any number of threads may call the functions, also with one cai_stream_cache.
*/

#if defined(CAI_NAMESPACE)
#define cai_device_access CAI_PRIV_RENAMED(cai_device_access)
#define cai_event_drop CAI_PRIV_RENAMED(cai_event_drop)
#define cai_event_make CAI_PRIV_RENAMED(cai_event_make)
#define cai_host_access CAI_PRIV_RENAMED(cai_host_access)
#define cai_kernel_view_at CAI_PRIV_RENAMED(cai_kernel_view_at)
#define cai_migrate CAI_PRIV_RENAMED(cai_migrate)
#define cai_place CAI_PRIV_RENAMED(cai_place)
#define cai_place_on CAI_PRIV_RENAMED(cai_place_on)
#define cai_result_memory CAI_PRIV_RENAMED(cai_result_memory)
#define cai_stream_cache_destroy CAI_PRIV_RENAMED(cai_stream_cache_destroy)
#define cai_stream_cache_forget CAI_PRIV_RENAMED(cai_stream_cache_forget)
#define cai_stream_cache_get CAI_PRIV_RENAMED(cai_stream_cache_get)
#define cai_stream_cache_init CAI_PRIV_RENAMED(cai_stream_cache_init)
#define cai_stream_depend CAI_PRIV_RENAMED(cai_stream_depend)
#endif

CAI_PRIV_C_BEGIN

/* --------------------------------------------------------------- >>placement */
/** The policy that chooses the stream of work on several arrays. No policy guesses a stream. */
enum {
    CAI_PLACE_IDENTICAL = 0,   /* all arrays that have a stream must have the same stream, else it is an error
                                  (as in dpctl) */
    CAI_PLACE_SAME_DEVICE = 1, /* the stream of the first input that has one and is bound to a device, else of
                                  the first that has one; an exchange joins the rest */
    CAI_PLACE_INTO = 2         /* the stream that is given; an exchange joins all */
};

enum {
    CAI_PLACE_ALLOW_OVERLAP = 1 << 0 /* out may share bytes with an input in any way; the caller checks
                                        placement.overlap, and then works with other memory */
};

/** What takes part in a call: an array, a stream with pending work, or a scalar (no array and no stream). */
typedef struct cai_operand {
    const cai_array *array;
    uint64_t stream;   /* if `array` is NULL; 0: none */
    int32_t device;    /* of that stream; CAI_DEVICE_UNKNOWN: not known */
    int32_t reserved;  /* 0 */
    const char *name;  /* in messages; NULL for "input 0" */
} cai_operand;

/** Returns the operand of an array. For NULL it is a scalar. */
static inline cai_operand cai_operand_array(const cai_array *array, const char *name)
{
    cai_operand operand;
    operand.array = array;
    operand.stream = 0;
    operand.device = CAI_DEVICE_UNKNOWN;
    operand.reserved = 0;
    operand.name = name;
    return operand;
}

/** Returns the operand of a stream without an array. `device` is its ordinal, or CAI_DEVICE_UNKNOWN. */
static inline cai_operand cai_operand_stream(uint64_t stream, int32_t device, const char *name)
{
    cai_operand operand = cai_operand_array(NULL, name);
    operand.stream = stream;
    operand.device = device;
    return operand;
}

typedef struct cai_placement {
    uint64_t stream; /* begin the exchange on it, and launch on it */
    int32_t device;  /* of the operands; CAI_DEVICE_UNKNOWN: none is bound to one device */
    int32_t memory;  /* CAI_MEMORY_..., the kind for a new result; unknown without inputs. Plain host memory
                        that a device can use counts as managed */
    int32_t decided; /* the input that decided the stream; -1: `stream` was used */
    int32_t overlap; /* the first input that shares bytes with out, not element by element, or -1 */
} cai_placement;

/** Returns the kind of memory for a result of two arrays. Device comes before managed, and managed before
 *  pinned. CAI_MEMORY_UNKNOWN means that no device can use one of the two. */
CAI_API int32_t cai_result_memory(int32_t a, int32_t b);

/** Chooses where to work on `count` inputs, and checks `out`. Makes no CUDA call. Call cai_locate of each
 *  array first. Scalars, host arrays without axes and empty arrays do not influence the choice. Of a mask
 *  only the stream counts, and of an operand without an array its stream and its device. `inputs` may be NULL
 *  if `count` is 0. `out` is the array to write to, or NULL. `out` does not choose the stream, and chooses
 *  the device only if no input does. `out` must be on that device, and with CAI_PLACE_IDENTICAL on that
 *  stream. It must be writable. Its elements must not share bytes with each other, or with the mask of an
 *  input. It may share bytes with an input only element by element.
 *  Pass `out` to the exchange too, which joins work on several streams. Join operands without an array with
 *  cai_stream_depend. `policy` is CAI_PLACE_.... `flags` is 0 or CAI_PLACE_ALLOW_OVERLAP. CAI_PLACE_INTO uses
 *  `stream`, which must be of the operands' device, as nothing asks CUDA. If no input has a stream, the other
 *  policies use `stream`, and 0 means none. CAI_PLACE_IDENTICAL compares 1 and 2 also by device, and 2 also
 *  by host thread. It assumes primary contexts. Threads: any. Errors: CAI_ERR_PLACEMENT (device or stream),
 *  CAI_ERR_MEMORY (plain host memory, or not located), CAI_ERR_EXPECT (out), CAI_ERR_STREAM,
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI. They name the operand and its index, which is `count` for out.
 *  CAI_ERR_PLACEMENT names the other operand too, with its device and stream. Its index is -1 if no input has
 *  a stream. CAI_ERR_EXPECT names the input that out overlaps. On failure `placement` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_place(const cai_operand *inputs, int32_t count, const cai_array *out,
                                            int32_t policy, uint32_t flags, uint64_t stream,
                                            cai_placement *placement, cai_error *err);

/* ------------------------------------------------------------------- >>access */
/** Returns 1 if the host can read and write the data of an array that was located (cai_locate), else 0. The
 *  result is -1 if that is not known, or `array` is NULL. An empty array gives 1. The pending work must have
 *  passed before. For managed memory, some platforms need that all work of the device has passed
 *  (cudaDevAttrConcurrentManagedAccess). Makes no CUDA call. Threads: any. */
CAI_API int32_t cai_host_access(const cai_array *array);

/** Returns 1 if kernels on `device` can use the data of an array that was located. The result is 0 for memory
 *  of another device, which needs peer access, and for plain host memory. It is -1 if that is not known,
 *  `array` is NULL, or `device` is negative. Plain host memory gives 1 for the device that cai_locate stored
 *  (CAI_LOCATE_PAGEABLE), and then -1 for others. An empty array gives 1. Makes no CUDA call. Threads:
 *  any. */
CAI_API int32_t cai_device_access(const cai_array *array, int32_t device);

/** Makes a kernel view with the address that cai_locate found for devices. For registered host memory it may
 *  differ from the host's address (R7). Threads: any. Errors: CAI_ERR_ARGUMENT, CAI_ERR_MEMORY (the location
 *  has no address), those of cai_kernel_view_of. On failure `view` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_kernel_view_at(const cai_array *array, const cai_location *location,
                                                     cai_kernel_view *view, cai_error *err);

/* ------------------------------------------------------------------- >>events */
/** Work of other code: all that is in a stream at the time of the call, or an event. The other field is 0. */
typedef struct cai_work {
    uint64_t stream, event;
} cai_work;

/** Makes `stream` wait for `count` works. Call it after cai_exchange_begin with the stream of the exchange,
 *  before your launch. The works get no back edge. All works are checked before the first wait. If a wait
 *  fails, earlier waits stay. `stream` waits in every mode of the exchange and of the pool. The host never
 *  waits. `depends` may be NULL if `count` is 0. Threads: any. Errors: CAI_ERR_ARGUMENT (not exactly one of
 *  stream and event), CAI_ERR_STREAM (0, -1), CAI_ERR_CAPTURE (R103; also an event while `stream` captures,
 *  or an event of a capture), CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. cai_error.index is that of the work. An
 *  event of a capture pulls `stream` into that capture before the error is known. */
CAI_API CAI_MUST_CHECK cai_status cai_stream_depend(cai_event_pool *pool, uint64_t stream,
                                                    const cai_work *depends, int32_t count, cai_error *err);

/** Makes an event that is reached when the work that is in `stream` now has passed. Other libraries may wait
 *  for the event, on any thread. The event is yours. Give it back with cai_event_drop after the last call
 *  that waits for it. That wait may still be pending. The event has no timing. On failure `event` is
 *  unchanged. Threads: any. Errors: CAI_ERR_ARGUMENT, CAI_ERR_STREAM (0, -1), CAI_ERR_CAPTURE (the stream is
 *  capturing), CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_event_make(cai_event_pool *pool, uint64_t stream, uint64_t *event,
                                                 cai_error *err);

/** Destroys an event of cai_event_make. 0 is no error. While the process ends it does nothing (R105).
 *  Threads: any. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_event_drop(cai_event_pool *pool, uint64_t event, cai_error *err);

/** Moves an array to another stream. `stream` waits for all that is pending on the array and on its mask, and
 *  becomes their stream. Nothing is copied. An array in device memory stays on its device. For another
 *  device, cai_move (cai_move.h) makes a copy there. The old stream does not wait for work on `stream`, in
 *  any mode of the pool. If somebody may free the memory or write to it on the old stream, use an exchange
 *  instead. The owner of an owned array knows nothing of `stream`, so the array gets CAI_NO_BACK_EDGE.
 *  Release it with cai_exchange_finish or cai_keepalive_push.
 *  An event of cai_stream_detach is dropped. On failure the array is unchanged. Threads: any. Errors:
 *  CAI_ERR_PLACEMENT (`stream` is of another device than the memory), CAI_ERR_STREAM (also 1 or 2 of another
 *  context than the memory's, R83), those of cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_migrate(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                              cai_error *err);

/* -------------------------------------------------------------------- >>cache */
/** How a cache makes its streams. Both return 0 or CUDA's error number. They must not call the cache. */
typedef struct cai_stream_maker {
    void *self;
    int32_t (*create)(void *self, int32_t device, uint64_t *stream); /* in the current context, of `device` */
    int32_t (*destroy)(void *self, uint64_t stream);                 /* NULL: streams stay */
} cai_stream_maker;

/** A place in a cache. It is storage only. */
typedef struct cai_cached_stream {
    uint64_t context, stream; /* stream 0: a thread is making it */
} cai_cached_stream;

/** One stream for each context, for all threads. The cache is the caller's and allocates nothing. Do not move
 *  or copy it. Its fields may be read. `device` may be written while no other call uses the cache. */
typedef struct cai_stream_cache {
    const cai_cuda *cuda;
    cai_stream_maker maker;
    cai_cached_stream *streams;
    int32_t capacity, count;
    int32_t guard;  /* held for a few instructions */
    int32_t device; /* the default */
} cai_stream_cache;

/** Makes an empty cache, without a CUDA call. `cuda` must outlive it. `streams` is the caller's storage for
 *  `capacity` streams. `device` is the default device. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (the table),
 *  CAI_ERR_UNAVAILABLE (the table lacks an operation). */
CAI_API CAI_MUST_CHECK cai_status cai_stream_cache_init(cai_stream_cache *cache, const cai_cuda *cuda,
                                                        const cai_stream_maker *maker,
                                                        cai_cached_stream *streams, int32_t capacity,
                                                        int32_t device, cai_error *err);

/** Stores the stream of a device. The first call makes it. CAI_DEVICE_UNKNOWN means the default device. The
 *  context is the current one if that is of the device, else the device's active primary one. The same device
 *  and context give the same stream, on all threads. The stream lives as long as the cache. On failure
 *  `stream` is unchanged. Threads: any. One makes the stream, others wait for it. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_CAPACITY, CAI_ERR_CUDA (201: no context; or that of `create`). */
CAI_API CAI_MUST_CHECK cai_status cai_stream_cache_get(cai_stream_cache *cache, int32_t device,
                                                       uint64_t *stream, cai_error *err);

/** Chooses device and stream for the caller of a function, who may name a device, an array that was located,
 *  or a stream. CAI_DEVICE_UNKNOWN, NULL and 0 mean not named. All that is named must be of one device.
 *  Device memory names a device, other memory does not. If nothing names a device, it is the default device.
 *  The stream is `stream`, else that of the array's pending work if it is of that device, else that of the
 *  cache. Stores device, stream and the array's memory in `placement`. There `decided` is 1 if the stream is
 *  not that of the cache. On failure `placement` is unchanged. Threads: any. Errors: CAI_ERR_PLACEMENT (it
 *  names both), CAI_ERR_STREAM, CAI_ERR_ABI, those of cai_stream_cache_get. */
CAI_API CAI_MUST_CHECK cai_status cai_place_on(cai_stream_cache *cache, int32_t device,
                                               const cai_array *array, uint64_t stream,
                                               cai_placement *placement, cai_error *err);

/** Forgets the stream of a context that was destroyed or reset, or of all contexts if `context` is 0. No
 *  other call may use the cache meanwhile. */
CAI_API void cai_stream_cache_forget(cai_stream_cache *cache, uint64_t context);

/** Destroys the streams. No other call may use the cache any more. While the process ends it destroys nothing
 *  (R105). Errors: CAI_ERR_ARGUMENT, CAI_ERR_CUDA (the first error; the cache is empty then). */
CAI_API CAI_MUST_CHECK cai_status cai_stream_cache_destroy(cai_stream_cache *cache, cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_PLACE_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>placing  >>working  >>events  >>migrating  >>caching */

#if defined(CAI_PLACE_IMPLEMENTATION) && !defined(CAI_PLACE_IMPLEMENTED)
#define CAI_PLACE_IMPLEMENTED

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#define CAI_PRIV_WANT_GUARD
#include "cai.h"
#include "cai_stream.h"

CAI_PRIV_C_BEGIN

/* ------------------------------------------------------------------ >>placing */
/* The results so far, and the operand that is checked now. */
typedef struct cai_priv_place {
    cai_placement at;
    uint64_t thread; /* of the stream, if that is 2 */
    int32_t device;  /* of the operand that decided the stream */
    int32_t loose;   /* that operand is memory of no one device, or a stream of an unknown one */
    const cai_operand *inputs;
    int32_t count, policy;
    int32_t item;    /* index of the input; `count`: out; -1: none */
    int32_t bound;   /* the input that decided the device */
    uint64_t bound_stream; /* its stream */
    cai_error *err;
} cai_priv_place;

/* Begins a message with the operand: "x", "input 2", "out". Returns the length. */
static size_t cai_priv_place_name(const cai_priv_place *place, int32_t item, char *out, size_t capacity)
{
    const char *name = item >= 0 && item < place->count ? place->inputs[item].name : NULL;
    if (item < 0) return 0;
    if (item == place->count) name = "out";
    if (name) (void)snprintf(out, capacity, "%.63s", name);
    else (void)snprintf(out, capacity, "input %ld", (long)item);
    return strlen(out);
}

CAI_PRIV_PRINTF(3, 4)
static cai_status cai_priv_place_say(const cai_priv_place *place, cai_status status, const char *format, ...)
{
    cai_error *err = place->err;
    va_list values;
    size_t length;
    if (!err) return CAI_PRIV_STATUS(status);
    length = cai_priv_place_name(place, place->item, err->message, sizeof err->message);
    va_start(values, format);
    status = cai_priv_error_values(err, status, length, format, values);
    va_end(values);
    err->index = place->item;
    return status;
}

CAI_API int32_t cai_host_access(const cai_array *array)
{
    if (!array) return -1;
    if (!array->size) return 1;
    if (array->memory == CAI_MEMORY_UNKNOWN) return -1;
    return array->memory != CAI_MEMORY_DEVICE;
}

CAI_API int32_t cai_device_access(const cai_array *array, int32_t device)
{
    if (!array || device < 0) return -1;
    if (!array->size) return 1;
    if (array->memory == CAI_MEMORY_UNKNOWN) return -1;
    if (array->memory == CAI_MEMORY_HOST) return array->device < 0 ? 0 : array->device == device ? 1 : -1;
    if (array->memory != CAI_MEMORY_DEVICE) return 1;
    return array->device == CAI_DEVICE_UNKNOWN ? -1 : array->device == device;
}

CAI_API cai_status cai_kernel_view_at(const cai_array *array, const cai_location *location,
                                      cai_kernel_view *view, cai_error *err)
{
    cai_kernel_view made;
    if (!location || !view) return cai_priv_error(err, CAI_ERR_ARGUMENT, "location or view is NULL");
    CAI_TRY(cai_kernel_view_of(array, &made, err));
    if (array->size && !location->data)
        return cai_priv_error(err, CAI_ERR_MEMORY, "the location has no address for devices");
    if (array->size) made.data = (char *)(uintptr_t)location->data;
    *view = made;
    return CAI_OK;
}

CAI_API int32_t cai_result_memory(int32_t a, int32_t b)
{
    const int32_t least = a < b ? a : b, most = a < b ? b : a;
    return least < CAI_MEMORY_PINNED || most > CAI_MEMORY_DEVICE ? CAI_MEMORY_UNKNOWN : most;
}

/* " is on device 1, stream 0x60" */
static void cai_priv_place_spot(char *out, size_t capacity, int32_t device, uint64_t stream)
{
    char where[32] = "", queue[48] = "";
    if (device >= 0) (void)snprintf(where, sizeof where, "device %ld", (long)device);
    if (stream) (void)snprintf(queue, sizeof queue, "stream 0x%llx", (unsigned long long)stream);
    (void)snprintf(out, capacity, " is on %s%s%s", where, *where && *queue ? ", " : "", queue);
}

/* Refuses an operand that does not fit `other` (-1: the stream that is given), which has this device and
 * stream. */
static cai_status cai_priv_place_differs(const cai_priv_place *place, int32_t device, uint64_t stream,
                                         int32_t other, int32_t other_device, uint64_t other_stream)
{
    char name[72], here[96], there[96];
    const char *before = other == place->item ? "its array" : "the work"; /* the first: this is the mask */
    if (other != place->item && cai_priv_place_name(place, other, name, sizeof name)) before = name;
    cai_priv_place_spot(here, sizeof here, device, stream);
    cai_priv_place_spot(there, sizeof there, other_device, other_stream);
    return cai_priv_place_say(place, CAI_ERR_PLACEMENT, "%s, but %s%s", here, before, there);
}

static cai_status cai_priv_place_device(cai_priv_place *place, int32_t device, uint64_t stream)
{
    if (place->at.device == CAI_DEVICE_UNKNOWN) {
        place->at.device = device;
        place->bound = place->item;
        place->bound_stream = stream;
    }
    if (place->at.device == device) return CAI_OK;
    return cai_priv_place_differs(place, device, stream, place->bound, place->at.device,
                                  place->bound_stream);
}

/* Returns the stream of an array's pending work, or 0. */
static uint64_t cai_priv_place_pending(const cai_array *array)
{
    return array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT ? array->stream : 0;
}

/* Device memory is bound to its device, and plain host memory to the device that can use it (cai_locate). */
static int cai_priv_place_bound(const cai_array *array)
{
    return array->memory == CAI_MEMORY_DEVICE || (array->memory == CAI_MEMORY_HOST && array->device >= 0);
}

static cai_status cai_priv_place_memory(cai_priv_place *place, const cai_array *array)
{
    const int bound = cai_priv_place_bound(array);
    if (array->memory == CAI_MEMORY_HOST && !bound)
        return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_MEMORY, 7),
                                  " is plain host memory, %lld bytes: no kernel can use it",
                                  (long long)array->nbytes);
    if (array->memory < CAI_MEMORY_HOST || array->memory > CAI_MEMORY_DEVICE || (bound && array->device < 0))
        return cai_priv_place_say(place, CAI_ERR_MEMORY,
                                  ": its kind of memory or its device is unknown, call cai_locate");
    return bound ? cai_priv_place_device(place, array->device, cai_priv_place_pending(array)) : CAI_OK;
}

/* A stream without an array may be of any thread. */
#define CAI_PRIV_PLACE_ANY_THREAD UINT64_MAX

/* Both are on stream 1, or both on 2. Returns whether device and thread are the same. */
static cai_status cai_priv_place_default(cai_priv_place *place, uint64_t stream, int32_t device,
                                         uint64_t thread)
{
    char other[72] = "the work";
    cai_status status;
    if (device != place->device) {
        status = cai_priv_place_differs(place, device, stream, place->at.decided, place->device, stream);
        if (place->err) place->err->rule = 83;
        return status;
    }
    if (place->thread == CAI_PRIV_PLACE_ANY_THREAD) place->thread = thread;
    if (stream != CAI_STREAM_PER_THREAD || thread == CAI_PRIV_PLACE_ANY_THREAD || thread == place->thread)
        return CAI_OK;
    (void)cai_priv_place_name(place, place->at.decided, other, sizeof other);
    return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_PLACEMENT, 84),
                              " is on stream 2 of host thread 0x%llx, but %s is on that of 0x%llx",
                              (unsigned long long)thread, other, (unsigned long long)place->thread);
}

/* If `bound`, the operand is memory of a device, or a stream of a known device. CAI_PLACE_SAME_DEVICE prefers
 * its stream, because a stream of pinned memory may be of another device. */
static cai_status cai_priv_place_stream(cai_priv_place *place, uint64_t stream, int32_t device,
                                        uint64_t thread, int bound)
{
    const int better = place->policy == CAI_PLACE_SAME_DEVICE && place->loose && bound;
    if (!stream) return CAI_OK;
    if (!cai_priv_is_stream(NULL, stream))
        return cai_priv_place_say(place, cai_priv_bad_stream(stream), ": %s", cai_priv_stream_fault(stream));
    if (place->policy == CAI_PLACE_INTO) return CAI_OK;
    if (!place->at.stream || (better && place->item < place->count)) {
        place->at.stream = stream;
        place->at.decided = place->item;
        place->thread = thread;
        place->device = device;
        place->loose = !bound;
    }
    if (place->policy == CAI_PLACE_SAME_DEVICE) return CAI_OK;
    if (stream != place->at.stream)
        return cai_priv_place_differs(place, device, stream, place->at.decided, place->device,
                                      place->at.stream);
    if (cai_priv_is_handle(stream) || place->at.decided < 0) return CAI_OK;
    return cai_priv_place_default(place, stream, device, thread);
}

static cai_status cai_priv_place_check(const cai_priv_place *place, const cai_array *array)
{
    const cai_status status = cai_array_check(array, place->err);
    if (status && place->err) place->err->index = place->item;
    return status;
}

static cai_status cai_priv_place_pends(cai_priv_place *place, const cai_array *array, int bound)
{
    return cai_priv_place_stream(place, cai_priv_place_pending(array), array->device, array->thread, bound);
}

static cai_status cai_priv_place_array(cai_priv_place *place, const cai_array *array)
{
    const int bound = cai_priv_place_bound(array);
    CAI_TRY(cai_priv_place_memory(place, array));
    CAI_TRY(cai_priv_place_pends(place, array, bound));
    return array->mask ? cai_priv_place_pends(place, array->mask, bound) : CAI_OK;
}

/* Takes an operand without an array into account. */
static cai_status cai_priv_place_bare(cai_priv_place *place, const cai_operand *operand)
{
    if (!operand->stream) return CAI_OK;
    if (operand->device < CAI_DEVICE_UNKNOWN)
        return cai_priv_place_say(place, CAI_ERR_ARGUMENT, ": device = %ld", (long)operand->device);
    if (operand->device != CAI_DEVICE_UNKNOWN)
        CAI_TRY(cai_priv_place_device(place, operand->device, operand->stream));
    return cai_priv_place_stream(place, operand->stream, operand->device, CAI_PRIV_PLACE_ANY_THREAD,
                                 operand->device != CAI_DEVICE_UNKNOWN);
}

static cai_status cai_priv_place_inputs(cai_priv_place *place)
{
    for (place->item = 0; place->item < place->count; ++place->item) {
        const cai_operand *operand = &place->inputs[place->item];
        const cai_array *array = operand->array;
        int32_t memory;
        if (array && operand->stream)
            return cai_priv_place_say(place, CAI_ERR_ARGUMENT, ": both an array and a stream");
        if (!array) {
            CAI_TRY(cai_priv_place_bare(place, operand));
            continue;
        }
        CAI_TRY(cai_priv_place_check(place, array));
        if (!array->size || (!array->ndim && array->memory == CAI_MEMORY_HOST)) continue;
        CAI_TRY(cai_priv_place_array(place, array));
        memory = array->memory == CAI_MEMORY_HOST ? (int32_t)CAI_MEMORY_MANAGED : array->memory;
        place->at.memory = place->at.memory ? cai_result_memory(place->at.memory, memory) : memory;
    }
    return CAI_OK;
}

/* Returns whether the two are the same memory, element by element. Work in place is right then. */
static int cai_priv_place_same(const cai_array *a, const cai_array *b)
{
    int32_t axis;
    if (a->data != b->data || a->ndim != b->ndim || a->nbytes != b->nbytes) return 0;
    for (axis = 0; axis < a->ndim; ++axis) {
        if (a->shape[axis] != b->shape[axis]) return 0;
        if (a->shape[axis] > 1 && a->strides[axis] != b->strides[axis]) return 0;
    }
    return 1;
}

static cai_status cai_priv_place_out(cai_priv_place *place, const cai_array *out, uint32_t flags)
{
    int32_t i;
    CAI_TRY(cai_priv_place_check(place, out));
    if (!(out->flags & CAI_WRITABLE))
        return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_EXPECT, 6), " is read-only");
    if (!out->size) return CAI_OK;
    if (!(out->flags & CAI_NO_SELF_OVERLAP))
        return cai_priv_place_say(place, CAI_ERR_EXPECT, " has, or may have, elements that share bytes");
    for (i = 0; i < place->count && place->at.overlap < 0; ++i) {
        const cai_array *input = place->inputs[i].array;
        if (!input) continue;
        if (input->mask && cai_overlap(input->mask, out) != CAI_OVERLAP_NO) place->at.overlap = i;
        if (cai_overlap(input, out) == CAI_OVERLAP_NO) continue;
        if (!cai_priv_place_same(input, out)) place->at.overlap = i;
    }
    if (place->at.overlap >= 0 && !(flags & CAI_PLACE_ALLOW_OVERLAP)) {
        place->item = place->at.overlap; /* its name; the index is that of out */
        (void)cai_priv_place_say(place, CAI_ERR_EXPECT,
                                 " shares, or may share, bytes with out, and not element by element");
        if (place->err) place->err->index = place->count;
        return CAI_ERR_EXPECT;
    }
    return cai_priv_place_array(place, out);
}

static cai_status cai_priv_place_begin(const cai_priv_place *place, uint32_t flags, uint64_t stream,
                                       const cai_placement *placement)
{
    const int32_t policy = place->policy;
    if (!placement || place->count < 0 || (place->count && !place->inputs))
        return cai_priv_place_say(place, CAI_ERR_ARGUMENT,
                                  "cai_place: placement or inputs is NULL, or count is negative");
    if (policy < CAI_PLACE_IDENTICAL || policy > CAI_PLACE_INTO)
        return cai_priv_place_say(place, CAI_ERR_ARGUMENT, "cai_place: policy = %ld is unknown",
                                  (long)policy);
    if (flags & ~(uint32_t)CAI_PLACE_ALLOW_OVERLAP)
        return cai_priv_place_say(place, CAI_ERR_ARGUMENT, "cai_place: flags = 0x%lx has unknown bits",
                                  (unsigned long)flags);
    if (cai_priv_is_stream(NULL, stream) || (!stream && policy != CAI_PLACE_INTO)) return CAI_OK;
    return cai_priv_place_say(place, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
}

CAI_API cai_status cai_place(const cai_operand *inputs, int32_t count, const cai_array *out,
                             int32_t policy, uint32_t flags, uint64_t stream, cai_placement *placement,
                             cai_error *err)
{
    cai_priv_place place;
    memset(&place, 0, sizeof place);
    place.at.device = place.device = CAI_DEVICE_UNKNOWN;
    place.at.decided = place.at.overlap = -1;
    place.inputs = inputs;
    place.count = count;
    place.policy = policy;
    place.item = place.bound = -1;
    place.err = err;
    CAI_TRY(cai_priv_place_begin(&place, flags, stream, placement));
    CAI_TRY(cai_priv_place_inputs(&place));
    if (!place.at.stream) place.at.stream = stream;
    if (!place.at.stream) {
        place.item = -1;
        return cai_priv_place_say(&place, CAI_ERR_PLACEMENT,
                                  "none of %ld inputs has a stream, and stream is 0", (long)count);
    }
    place.item = count;
    if (out) CAI_TRY(cai_priv_place_out(&place, out, flags));
    *placement = place.at;
    return CAI_OK;
}

/* ------------------------------------------------------------------- >>working */
/* A table, and the context that a call made current. */
typedef struct cai_priv_work {
    const cai_cuda *cuda;
    cai_error *err;
    uint64_t inside; /* 0: none */
} cai_priv_work;

static cai_status cai_priv_work_did(const cai_priv_work *work, int32_t error, const char *what)
{
    cai_status status;
    if (!error) return CAI_OK;
    status = cai_cuda_status(error, what, work->err);
    if (error < 900 || error > 908) return status;
    if (work->err) work->err->code = CAI_ERR_CAPTURE;
    return CAI_ERR_CAPTURE;
}

static cai_status cai_priv_work_no_context(const cai_priv_work *work, int32_t device)
{
    cai_error *err = work->err;
    (void)cai_priv_error(err, CAI_ERR_CUDA,
                         "no context of device %ld is current on this host thread, and its primary context "
                         "is not active: choose a device (cudaSetDevice)",
                         (long)device);
    if (err) err->native = 201;
    return CAI_ERR_CUDA;
}

static cai_status cai_priv_work_primary(const cai_priv_work *work, int32_t device, uint64_t *context)
{
    const cai_cuda *cuda = work->cuda;
    *context = 0;
    CAI_TRY(cai_priv_work_did(work, cuda->device_context(cuda->self, device, context), "device_context"));
    return *context ? CAI_OK : cai_priv_work_no_context(work, device);
}

/* Makes `context` current if it is not. */
static cai_status cai_priv_work_enter(cai_priv_work *work, uint64_t current, uint64_t context)
{
    work->inside = 0;
    if (current == context) return CAI_OK;
    CAI_TRY(cai_priv_work_did(work, cai_priv_context_enter(work->cuda, context), "context_push"));
    work->inside = context;
    return CAI_OK;
}

static cai_status cai_priv_work_leave(cai_priv_work *work, cai_status status)
{
    int32_t error;
    if (!work->inside) return status;
    error = cai_priv_context_leave(work->cuda, work->inside);
    work->inside = 0;
    return status ? status : cai_priv_work_did(work, error, "context_pop");
}

/* Makes the context of a stream current. 1 and 2 are of the current one. */
static cai_status cai_priv_work_enter_stream(cai_priv_work *work, uint64_t stream)
{
    const cai_cuda *cuda = work->cuda;
    uint64_t current = 0, context;
    work->inside = 0;
    CAI_TRY(cai_priv_work_did(work, cuda->context_current(cuda->self, &current), "context_current"));
    context = current;
    if (cai_priv_is_handle(stream))
        CAI_TRY(cai_priv_work_did(work, cuda->stream_context(cuda->self, stream, &context),
                                  "stream_context"));
    if (!context) CAI_TRY(cai_priv_work_primary(work, 0, &context));
    return cai_priv_work_enter(work, current, context);
}

static cai_status cai_priv_work_begin(cai_priv_work *work, const cai_event_pool *pool, uint64_t stream,
                                      const char *function, cai_error *err)
{
    work->cuda = pool ? pool->cuda : NULL;
    work->err = err;
    work->inside = 0;
    if (!work->cuda)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: pool is NULL or not made", function);
    if (cai_priv_is_stream(work->cuda, stream)) return CAI_OK;
    return cai_priv_error(err, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
}

/* Refuses a stream that captures. Events may neither enter nor leave a capture (R103). */
static cai_status cai_priv_work_no_capture(const cai_priv_work *work, uint64_t stream)
{
    const cai_cuda *cuda = work->cuda;
    cai_cuda_capture capture;
    memset(&capture, 0, sizeof capture);
    CAI_TRY(cai_priv_work_did(work, cuda->stream_capture(cuda->self, stream, &capture), "stream_capture"));
    if (!capture.status) return CAI_OK;
    return cai_priv_error(work->err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103),
                          "stream 0x%llx is capturing: it neither takes nor makes events of others",
                          (unsigned long long)stream);
}

static cai_status cai_priv_work_ask_capture(cai_priv_work *work, uint64_t stream)
{
    CAI_TRY(cai_priv_work_enter_stream(work, stream));
    return cai_priv_work_leave(work, cai_priv_work_no_capture(work, stream));
}

static cai_status cai_priv_work_wait(cai_priv_work *work, uint64_t stream, uint64_t event)
{
    const cai_cuda *cuda = work->cuda;
    int32_t error;
    CAI_TRY(cai_priv_work_enter_stream(work, stream));
    error = cuda->stream_wait_event(cuda->self, stream, event);
    return cai_priv_work_leave(work, cai_priv_work_did(work, error, "stream_wait_event"));
}

/* ------------------------------------------------------------------- >>events */
static cai_status cai_priv_work_check(const cai_priv_work *work, const cai_work *depends, int32_t count,
                                      int32_t *events)
{
    int32_t i;
    cai_status status = CAI_OK;
    *events = 0;
    for (i = 0; i < count && !status; ++i) {
        const cai_work *one = &depends[i];
        *events += one->event != 0;
        if (!one->stream == !one->event)
            status = cai_priv_error(work->err, CAI_ERR_ARGUMENT, "depends[%ld]: %s", (long)i,
                                    one->stream ? "both a stream and an event"
                                                : "neither a stream nor an event");
        else if (one->stream && !cai_priv_is_stream(work->cuda, one->stream))
            status = cai_priv_error(work->err, cai_priv_bad_stream(one->stream), "depends[%ld]: %s", (long)i,
                                    cai_priv_stream_fault(one->stream));
        if (status && work->err) work->err->index = i;
    }
    return status;
}

CAI_API cai_status cai_stream_depend(cai_event_pool *pool, uint64_t stream, const cai_work *depends,
                                     int32_t count, cai_error *err)
{
    cai_priv_work work;
    cai_status status = CAI_OK;
    int32_t i, events;
    CAI_TRY(cai_priv_work_begin(&work, pool, stream, "cai_stream_depend", err));
    if (count < 0 || (count && !depends))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "depends is NULL, or count is negative");
    CAI_TRY(cai_priv_work_check(&work, depends, count, &events));
    if (!count) return CAI_OK;
    if (events) CAI_TRY(cai_priv_work_ask_capture(&work, stream));
    for (i = 0; i < count && !status; ++i) {
        const cai_work *one = &depends[i];
        status = one->stream ? cai_stream_order(pool, one->stream, stream, err)
                             : cai_priv_work_wait(&work, stream, one->event);
        if (status && err) err->index = i;
    }
    if (events && !status) /* an event of a capture pulls the stream in */
        status = cai_priv_work_ask_capture(&work, stream);
    return status;
}

CAI_API cai_status cai_event_make(cai_event_pool *pool, uint64_t stream, uint64_t *event, cai_error *err)
{
    cai_priv_work work;
    cai_status status;
    uint64_t made = 0;
    CAI_TRY(cai_priv_work_begin(&work, pool, stream, "cai_event_make", err));
    if (!event) return cai_priv_error(err, CAI_ERR_ARGUMENT, "event is NULL");
    CAI_TRY(cai_priv_work_enter_stream(&work, stream));
    status = cai_priv_work_no_capture(&work, stream);
    if (!status) {
        status = cai_priv_work_did(&work, work.cuda->event_create(work.cuda->self, &made), "event_create");
        if (status) made = 0;
    }
    if (!status)
        status = cai_priv_work_did(&work, work.cuda->event_record(work.cuda->self, made, stream),
                                   "event_record");
    status = cai_priv_work_leave(&work, status);
    if (!status) *event = made;
    else if (made) (void)work.cuda->event_destroy(work.cuda->self, made);
    return status;
}

CAI_API cai_status cai_event_drop(cai_event_pool *pool, uint64_t event, cai_error *err)
{
    int32_t error;
    if (!pool || !pool->cuda)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_event_drop: pool is NULL or not made");
    if (!event) return CAI_OK;
    error = pool->cuda->event_destroy(pool->cuda->self, event);
    return cai_cuda_status(error == 4 ? 0 : error, "event_destroy", err);
}

/* ------------------------------------------------------------------ >>migrating */
static cai_status cai_priv_stream_device(cai_priv_work *work, uint64_t stream, int32_t *device)
{
    cai_status status = CAI_OK;
    *device = CAI_DEVICE_UNKNOWN;
    CAI_TRY(cai_priv_work_enter_stream(work, stream));
    status = cai_priv_work_did(work, work->cuda->context_device(work->cuda->self, device), "context_device");
    return cai_priv_work_leave(work, status);
}

/* Asks CUDA about the memory if the array does not tell, or if `stream` is 1 or 2. */
static cai_status cai_priv_migrate_ask(const cai_priv_work *work, const cai_array *array, uint64_t stream,
                                       cai_cuda_pointer *info)
{
    const cai_cuda *cuda = work->cuda;
    const int named = !cai_priv_is_handle(stream);
    cai_status status;
    memset(info, 0, sizeof *info);
    info->memory = array->memory;
    info->device = array->device;
    if (!array->size) return CAI_OK;
    if (!named && array->memory != CAI_MEMORY_UNKNOWN &&
        (array->memory != CAI_MEMORY_DEVICE || array->device >= 0))
        return CAI_OK;
    status = cai_priv_work_did(work, cuda->pointer_info(cuda->self, array->data, info), "pointer_info");
    if (array->memory != CAI_MEMORY_UNKNOWN) info->memory = array->memory;
    return status;
}

/* Finds the device of a stream, and the context of streams 1 and 2: the current one, else the primary one of
 * the data's device. */
static cai_status cai_priv_migrate_to(cai_priv_work *work, uint64_t stream, int32_t data_device,
                                      uint64_t *context, int32_t *device)
{
    const cai_cuda *cuda = work->cuda;
    *context = 0;
    if (cai_priv_is_handle(stream)) return cai_priv_stream_device(work, stream, device);
    CAI_TRY(cai_priv_work_did(work, cuda->context_current(cuda->self, context), "context_current"));
    if (*context) return cai_priv_stream_device(work, stream, device);
    *device = data_device >= 0 ? data_device : 0;
    return cai_priv_work_primary(work, *device, context);
}

/* Checks stream 1 or 2. In an array it is of the memory's context, as an argument of the current one (R83). */
static cai_status cai_priv_migrate_default(const cai_priv_work *work, const cai_cuda_pointer *info,
                                           uint64_t stream, uint64_t context, int32_t device)
{
    if (!context || (info->context ? info->context == context : info->device == device))
        return CAI_OK;
    return cai_priv_error(work->err, CAI_PRIV_RULE(CAI_ERR_STREAM, 83),
                          "a consumer would use stream %d of the memory's context, not of the current "
                          "context: pass a handle",
                          (int)stream);
}

static cai_status cai_priv_migrate_check(const cai_array *array, cai_event_pool *pool, uint64_t stream,
                                         uint64_t *thread, cai_error *err)
{
    cai_priv_work work;
    cai_cuda_pointer info;
    uint64_t context;
    int32_t device;
    char here[96], there[96];
    CAI_TRY(cai_priv_work_begin(&work, pool, stream, "cai_migrate", err));
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_migrate_ask(&work, array, stream, &info));
    device = array->device >= 0 ? array->device : info.device;
    CAI_TRY(cai_priv_migrate_to(&work, stream, device, &context, &device));
    if (array->size && info.memory == CAI_MEMORY_DEVICE && info.device >= 0 && device != info.device) {
        cai_priv_place_spot(here, sizeof here, info.device, cai_priv_place_pending(array));
        cai_priv_place_spot(there, sizeof there, device, stream);
        return cai_priv_error(err, CAI_ERR_PLACEMENT, "the array%s, but the work%s: copy it (cai_move)", here,
                              there);
    }
    if (array->size) CAI_TRY(cai_priv_migrate_default(&work, &info, stream, context, device));
    if (stream != CAI_STREAM_PER_THREAD) return CAI_OK;
    return cai_priv_work_did(&work, work.cuda->host_thread(work.cuda->self, thread), "host_thread");
}

static void cai_priv_migrate_store(cai_array *array, cai_event_pool *pool, uint64_t stream, uint64_t thread)
{
    if (cai_stream_drop_event(array, pool, NULL)) array->event = 0; /* it is not waited for again */
    array->flags &= ~(uint32_t)(CAI_OWN_EVENT | CAI_ORDERED_FREE); /* the owner frees behind the old stream */
    if (array->release) array->flags |= CAI_NO_BACK_EDGE; /* its owner does not know of `stream` */
    array->sync = CAI_SYNC_STREAM;
    array->stream = stream;
    array->thread = thread;
}

CAI_API cai_status cai_migrate(cai_array *array, cai_event_pool *pool, uint64_t stream, cai_error *err)
{
    const cai_exchange_options options = {CAI_MODE_EVENT, CAI_UNKNOWN_SYNCHRONIZE, 0,
                                          (uint32_t)CAI_PRIV_KEEP_MODE | (uint32_t)CAI_PRIV_ONE_WAY, 0};
    cai_exchange ex;
    uint64_t thread = 0;
    CAI_TRY(cai_priv_migrate_check(array, pool, stream, &thread, err));
    CAI_TRY(cai_exchange_begin_with(&ex, pool, &array, 1, stream, &options, err));
    CAI_TRY(cai_exchange_end(&ex, CAI_OK, err));
    cai_priv_migrate_store(array, pool, stream, thread);
    if (array->mask) cai_priv_migrate_store(array->mask, pool, stream, thread);
    return CAI_OK;
}

/* ------------------------------------------------------------------- >>caching */
CAI_API cai_status cai_stream_cache_init(cai_stream_cache *cache, const cai_cuda *cuda,
                                         const cai_stream_maker *maker, cai_cached_stream *streams,
                                         int32_t capacity, int32_t device, cai_error *err)
{
    if (!cache || !cuda || !maker || !maker->create || !streams)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cache, cuda, maker, its create or streams is NULL");
    if (capacity < 1 || device < 0)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "capacity = %ld or device = %ld is too small",
                              (long)capacity, (long)device);
    if (!cai_priv_knows_cuda(cuda))
        return cai_priv_error(err, CAI_ERR_ABI, "the CUDA table is not of version %d", (int)CAI_CUDA_VERSION);
    if (cuda->struct_size < offsetof(cai_cuda, stream_capture) || !cuda->context_current ||
        !cuda->context_push || !cuda->context_pop || !cuda->context_device || !cuda->device_context)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA table lacks an operation on contexts");
    memset(cache, 0, sizeof *cache);
    cache->cuda = cuda;
    cache->maker = *maker;
    cache->streams = streams;
    cache->capacity = capacity;
    cache->device = device;
    return CAI_OK;
}

/* Finds the current context if it is of the device, else the primary one. */
static cai_status cai_priv_cache_context(const cai_priv_work *work, int32_t device, uint64_t *current,
                                         uint64_t *context)
{
    const cai_cuda *cuda = work->cuda;
    int32_t here = CAI_DEVICE_UNKNOWN;
    *current = 0;
    CAI_TRY(cai_priv_work_did(work, cuda->context_current(cuda->self, current), "context_current"));
    if (*current)
        CAI_TRY(cai_priv_work_did(work, cuda->context_device(cuda->self, &here), "context_device"));
    *context = *current;
    return here == device ? CAI_OK : cai_priv_work_primary(work, device, context);
}

/* Returns the place of a context, or NULL if there is none. Under the guard. *mine: this thread makes it. */
static cai_cached_stream *cai_priv_cache_find(cai_stream_cache *cache, uint64_t context, int *mine)
{
    cai_cached_stream *found;
    int32_t i;
    *mine = 0;
    for (i = 0; i < cache->count; ++i) {
        if (cache->streams[i].context == context) return &cache->streams[i];
    }
    if (cache->count == cache->capacity) return NULL;
    found = &cache->streams[cache->count++];
    found->context = context;
    found->stream = 0;
    *mine = 1;
    return found;
}

/* Stores a new stream. 0 means that it could not be made, and the next call tries again. */
static void cai_priv_cache_store(cai_stream_cache *cache, uint64_t context, uint64_t stream)
{
    int32_t i;
    cai_priv_guard_take(&cache->guard);
    for (i = 0; cache->streams[i].context != context;) ++i;
    if (stream) cache->streams[i].stream = stream;
    else cache->streams[i] = cache->streams[--cache->count];
    cai_priv_guard_give(&cache->guard);
}

static cai_status cai_priv_cache_make(cai_stream_cache *cache, cai_priv_work *work, int32_t device,
                                      uint64_t current, uint64_t context, uint64_t *stream)
{
    uint64_t made = 0;
    cai_status status = cai_priv_work_enter(work, current, context);
    if (!status)
        status = cai_priv_work_did(work, cache->maker.create(cache->maker.self, device, &made),
                                   "create, of the cache's maker");
    if (!status && !cai_priv_is_handle(made))
        status = cai_priv_error(work->err, CAI_ERR_STREAM, "create made stream %ld, which is no handle",
                                (long)made);
    if (status) made = 0;
    cai_priv_cache_store(cache, context, made);
    status = cai_priv_work_leave(work, status);
    if (!status) *stream = made;
    return status;
}

CAI_API cai_status cai_stream_cache_get(cai_stream_cache *cache, int32_t device, uint64_t *stream,
                                        cai_error *err)
{
    cai_priv_work work;
    uint64_t current, context, found = 0;
    uint32_t looks = 0;
    int mine;
    if (!cache || !cache->cuda || !stream || device < CAI_DEVICE_UNKNOWN)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cache is NULL or not made, stream is NULL, or device is negative");
    if (device == CAI_DEVICE_UNKNOWN) device = cache->device;
    work.cuda = cache->cuda;
    work.err = err;
    work.inside = 0;
    CAI_TRY(cai_priv_cache_context(&work, device, &current, &context));
    while (!found) {
        const cai_cached_stream *place;
        cai_priv_guard_take(&cache->guard);
        place = cai_priv_cache_find(cache, context, &mine);
        if (place) found = place->stream;
        cai_priv_guard_give(&cache->guard);
        if (!place)
            return cai_priv_error(err, CAI_ERR_CAPACITY, "the cache has room for %ld streams",
                                  (long)cache->capacity);
        if (mine) return cai_priv_cache_make(cache, &work, device, current, context, stream);
        if (!found) cai_priv_back_off(looks++);
    }
    *stream = found;
    return CAI_OK;
}

/* Checks that a device is the one that was named before, if any. */
static cai_status cai_priv_place_agree(int32_t *device, const char **who, int32_t named, const char *name,
                                       cai_error *err)
{
    if (named == *device) return CAI_OK;
    if (*device >= 0)
        return cai_priv_error(err, CAI_ERR_PLACEMENT, "%s is on device %ld, but %s is on device %ld", name,
                              (long)named, *who, (long)*device);
    *device = named;
    *who = name;
    return CAI_OK;
}

CAI_API cai_status cai_place_on(cai_stream_cache *cache, int32_t device, const cai_array *array,
                                uint64_t stream, cai_placement *placement, cai_error *err)
{
    cai_placement at;
    cai_priv_work work;
    char of_array[64], of_stream[48];
    const char *who = "the device that is named";
    int32_t named;
    memset(&at, 0, sizeof at);
    at.device = device;
    at.overlap = -1;
    if (!cache || !cache->cuda || !placement || device < CAI_DEVICE_UNKNOWN)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cache is NULL or not made, placement is NULL, or device is negative");
    work.cuda = cache->cuda;
    work.err = err;
    if (array) CAI_TRY(cai_array_check(array, err));
    if (array && !array->size) array = NULL; /* it is nowhere */
    if (array) at.memory = array->memory;
    if (array && array->memory == CAI_MEMORY_DEVICE && array->device < 0)
        return cai_priv_error(err, CAI_ERR_MEMORY, "the array's device is unknown, call cai_locate");
    at.stream = stream;
    if (!stream && array) at.stream = cai_priv_place_pending(array);
    (void)snprintf(of_stream, sizeof of_stream, "stream 0x%llx", (unsigned long long)at.stream);
    (void)snprintf(of_array, sizeof of_array, "the array (stream 0x%llx)",
                   (unsigned long long)(array ? cai_priv_place_pending(array) : 0));
    if (array && array->memory == CAI_MEMORY_DEVICE)
        CAI_TRY(cai_priv_place_agree(&at.device, &who, array->device, of_array, err));
    if (at.stream && !cai_priv_is_stream(cache->cuda, at.stream))
        return cai_priv_error(err, cai_priv_bad_stream(at.stream), "%s", cai_priv_stream_fault(at.stream));
    if (at.stream) {
        CAI_TRY(cai_priv_stream_device(&work, at.stream, &named));
        if (stream) CAI_TRY(cai_priv_place_agree(&at.device, &who, named, of_stream, err));
        else if (!cai_priv_is_handle(at.stream) && named != array->device)
            at.stream = 0; /* another's 1 or 2 */
        else if (at.device < 0) at.device = named;
        if (named != at.device) at.stream = 0; /* of an array in memory of no device */
    }
    at.decided = at.stream != 0;
    if (at.device < 0) at.device = cache->device;
    if (!at.stream) CAI_TRY(cai_stream_cache_get(cache, at.device, &at.stream, err));
    *placement = at;
    return CAI_OK;
}

CAI_API void cai_stream_cache_forget(cai_stream_cache *cache, uint64_t context)
{
    int32_t i, kept = 0;
    if (!cache) return;
    for (i = 0; i < cache->count; ++i) {
        if (context && cache->streams[i].context != context) cache->streams[kept++] = cache->streams[i];
    }
    cache->count = kept;
}

CAI_API cai_status cai_stream_cache_destroy(cai_stream_cache *cache, cai_error *err)
{
    cai_status first = CAI_OK;
    if (!cache || !cache->cuda)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cache is NULL or not made");
    while (cache->count) {
        const uint64_t stream = cache->streams[--cache->count].stream;
        int32_t error = 0;
        if (cache->maker.destroy) error = cache->maker.destroy(cache->maker.self, stream);
        if (error && error != 4 && !first)
            first = cai_cuda_status(error, "destroy, of the cache's maker", err);
    }
    cache->cuda = NULL;
    return first;
}

CAI_PRIV_C_END

#endif /* CAI_PLACE_IMPLEMENTATION */

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
