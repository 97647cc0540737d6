/* cai_storage.h - a field on host and device: which one is newer, and copies when they are needed - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_STORAGE_IMPLEMENTATION)
#define CAI_STORAGE_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_EMM_H_INCLUDED) || !defined(CAI_LAYOUT_H_INCLUDED) ||                                       \
    !defined(CAI_PRIV_TRANSFER_WITH_STREAM) || defined(CAI_IMPLEMENTATION) ||                                \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_emm.h"
#include "cai_layout.h"
#include "cai_transfer.h"
#endif

#if CAI_EMM_H_INCLUDED / 100 != 2
#error "cai_storage.h: this is version 0.2, which needs cai_emm.h 0.2"
#endif
#if CAI_LAYOUT_H_INCLUDED / 100 != 2
#error "cai_storage.h: this is version 0.2, which needs cai_layout.h 0.2"
#endif
#if CAI_TRANSFER_H_INCLUDED / 100 != 2
#error "cai_storage.h: this is version 0.2, which needs cai_transfer.h 0.2"
#endif
#if defined(CAI_STORAGE_H_INCLUDED) && CAI_STORAGE_H_INCLUDED != 200
#error "cai_storage.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_STORAGE_H_INCLUDED
#define CAI_STORAGE_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_STORAGE_IMPLEMENTATION for this header alone). All other configuration is
    that of the headers below it.

        #define CAI_IMPLEMENTATION
        #include "cai_storage.h"

WHAT IT IS
    A storage is a field with a buffer on the host, one on the device, or both. It stores which side is newer.
    You name the side where you work, and what you do there (read, write, overwrite). If the other side is
    newer, it is copied first. The storage has one stream, its home. All copies run there, and each access is
    an exchange with home. So "newer" means in the order of home, and no access reads a stale or a half copied
    buffer. Views of the arrays, and exports of a side, share the state.

        cai_storage_options options = {0};
        cai_storage field;                 // do not move it
        cai_storage_access a;              // on the stack, no init, no heap
        options.pool = &pool;              // of cai_event_pool_init
        options.hooks = &hooks;            // any table: cai_emm_hooks_cuda, _async, your application's
        options.kind = CAI_STORAGE_BOTH;
        options.home = CAI_STREAM(stream);
        CAI_TRY(cai_storage_init(&field, &options, &dtype, &layout, err));

        CAI_TRY(cai_storage_begin(&a, &field, CAI_SIDE_HOST, CAI_OVERWRITE, 0, err));
        fill((double *)(uintptr_t)a.array.data, a.array.strides);     // the host: nothing was copied
        CAI_TRY(cai_storage_end(&a, CAI_OK, err));

        CAI_TRY(cai_storage_begin(&a, &field, CAI_SIDE_DEVICE, CAI_WRITE, CAI_STREAM(s), err)); // copied now
        status = cai_cuda_status(launch(&a.array, s), "diffuse", err);
        CAI_TRY(cai_storage_end(&a, status, err));
        CAI_TRY(cai_storage_release(&field, err));

    The array of an access has the halo, too. This is the array without the halo:

        CAI_TRY(cai_view_domain(&a.array, field.layout.halo_low, field.layout.halo_high, &domain, err));

MEMORY
    The host buffer is pinned memory of hooks->host_alloc. A table without that hook, such as that of
    cai_emm_hooks_async, needs options.host: cai_emm_hooks_malloc or a table of your own.

STATES (of a storage with two buffers)
                         clean          host newer       device newer
    begin, host          -              -                copy to the host     (CAI_OVERWRITE copies nothing)
    begin, device        -              copy to device   -                    (CAI_OVERWRITE copies nothing)
    end of a write, host host newer     host newer       (clean at begin) host newer
    end of a write, dev. device newer   (clean at begin) device newer         device newer
    sync to a side       -              copy, clean      copy, clean          (force copies always)
    mark a side          side newer     CAI_ERR_CONFLICT if it is the other side, and not forced

THREADS
    One thread at a time uses a storage. An exported array may be released on any thread at any time.

CAPTURES
    A copy that is captured would run at each launch of the graph, but change the state once. So a begin that
    has to copy fails with CAI_ERR_CAPTURE while home captures. If a graph writes to a side, call
    cai_storage_mark after each launch. No function waits for a stream that captures. An access in such a
    stream stays open, and can be ended after the capture.
*/

#if defined(CAI_NAMESPACE)
#define cai_storage_assign CAI_PRIV_RENAMED(cai_storage_assign)
#define cai_storage_begin CAI_PRIV_RENAMED(cai_storage_begin)
#define cai_storage_end CAI_PRIV_RENAMED(cai_storage_end)
#define cai_storage_export CAI_PRIV_RENAMED(cai_storage_export)
#define cai_storage_init CAI_PRIV_RENAMED(cai_storage_init)
#define cai_storage_mark CAI_PRIV_RENAMED(cai_storage_mark)
#define cai_storage_place CAI_PRIV_RENAMED(cai_storage_place)
#define cai_storage_release CAI_PRIV_RENAMED(cai_storage_release)
#define cai_storage_sync CAI_PRIV_RENAMED(cai_storage_sync)
#define cai_storage_wrap CAI_PRIV_RENAMED(cai_storage_wrap)
#endif

CAI_PRIV_C_BEGIN

/* ------------------------------------------------------------------ >>storages */
/** The sides of a storage. */
enum { CAI_SIDE_HOST = 1, CAI_SIDE_DEVICE = 2 };

/** The buffers of a storage. */
enum {
    CAI_STORAGE_HOST = 1,   /* one on the host */
    CAI_STORAGE_DEVICE = 2, /* one on the device */
    CAI_STORAGE_BOTH = 3,   /* two, with a state */
    CAI_STORAGE_MANAGED = 4 /* one of managed memory, which is both sides. On devices without
                               concurrentManagedAccess the host waits for all work of the context */
};

/** Which side is newer. The number is that of the side. */
enum { CAI_STORAGE_CLEAN = 0, CAI_STORAGE_HOST_NEWER = 1, CAI_STORAGE_DEVICE_NEWER = 2 };

/** What an access does. */
enum {
    CAI_READ = 1,
    CAI_WRITE = 2,    /* reads and writes, or writes some elements */
    CAI_OVERWRITE = 4 /* writes all elements that matter, so nothing is copied. Elements that are not written
                         are undefined then, also in the halo. To keep a halo, use CAI_WRITE */
};

enum { CAI_STORAGE_ZEROS = 1 << 0 /* cai_storage_init fills the buffers with zero bytes */ };

/** How a storage gets its memory and its order. Zero it, then set what you need. */
typedef struct cai_storage_options {
    cai_event_pool *pool;       /* NULL: only for CAI_STORAGE_HOST */
    const cai_emm_hooks *hooks; /* of device, pinned and managed memory; NULL: only where nothing needs it */
    const cai_emm_hooks *host;  /* of plain host memory (cai_emm_hooks_malloc); NULL: pinned, by `hooks` */
    uint64_t home;              /* the stream of all copies: a handle, or 1 if all memory is of one context */
    int32_t kind;               /* CAI_STORAGE_HOST, _DEVICE, _BOTH, _MANAGED */
    uint32_t flags;             /* 0 or CAI_STORAGE_ZEROS */
} cai_storage_options;

/** A storage. It is the caller's, and allocates memory for its buffers and for exports. Do not move or copy
 *  it. Its fields may be read. The halo in `layout` may be changed. What is aligned stays aligned. */
typedef struct cai_storage {
    cai_storage_options options;
    cai_layout layout;      /* planned; of given buffers as cai_layout_of reads it */
    cai_array array[2];     /* of the host and of the device, in the order of home; data 0: there is none.
                               Use the array of an access in their place */
    int32_t state;          /* CAI_STORAGE_... */
    int32_t guard;          /* held for a few instructions */
    int32_t open[2];        /* accesses of each side */
    int32_t open_writes;    /* of both sides */
    int32_t pending;        /* home may have work that the host did not wait for */
    int32_t sides;          /* CAI_SIDE_... that there are */
    int32_t read_only;      /* one given buffer, which cannot be written */
    int32_t alone;          /* managed memory, which the host may not use while any kernel runs */
    struct cai_storage_access *accesses; /* the open ones */
    uint64_t context;       /* of the device buffer and of home */
    void *block[2];         /* allocated by the hooks */
    cai_emm_hooks hooks, host;
    cai_exchange exchange;  /* with the owners of given buffers */
    cai_array given[2];
    int32_t given_count;
    int32_t device;         /* of the context */
} cai_storage;

/** Makes a storage whose buffers have a layout. `layout` need not be planned. The current context is that of
 *  the device buffer and of home. The state is clean. The content is undefined, or zero with
 *  CAI_STORAGE_ZEROS. To make a storage like another one, change parts of its options and layout, and pass
 *  these. The pool and what the hooks use must outlive the storage. Home must not capture.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_SHAPE, CAI_ERR_STREAM (home), CAI_ERR_CAPTURE, CAI_ERR_UNAVAILABLE (no
 *  context, no hook, no slot for copies), CAI_ERR_OUT_OF_MEMORY, CAI_ERR_MEMORY, CAI_ERR_CUDA. On failure
 *  nothing is left allocated, and `out` is zeroed. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_init(cai_storage *out, const cai_storage_options *options,
                                                   const cai_dtype *dtype, const cai_layout *layout,
                                                   cai_error *err);

/** Makes a storage of buffers that exist. `on_host` or `on_device` may be NULL. options->kind says which
 *  sides the storage has. A side that is not given is allocated, in the order of the axes of the other one.
 *  If both sides are given, `state` says which is newer. The arrays are moved into the storage.
 *  cai_storage_release releases owned arrays when the work of the storage has passed. Home waits for the
 *  pending work of the arrays. CAI_STORAGE_MANAGED takes one array, as `on_device`. If one array is given, it
 *  may be read-only, or have elements that share bytes. The storage is read-only then.
 *  Errors: those of cai_storage_init, CAI_ERR_EXPECT (dtype, shape, read-only, shared bytes, a mask,
 *  more than 8 axes), CAI_ERR_MEMORY (a side that is in the wrong kind of memory), and those of
 *  cai_exchange_begin. On failure the arrays stay the caller's, and `out` is zeroed. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_wrap(cai_storage *out, const cai_storage_options *options,
                                                   cai_array *on_host, cai_array *on_device, int32_t state,
                                                   cai_error *err);

/** Frees the buffers in the order of home, and releases given arrays. A zeroed storage is fine. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_PENDING (an access or an export is open, and nothing is done), CAI_ERR_CAPTURE,
 *  and those of the hooks and of cai_exchange_finish. The first error is returned, and the rest is freed. If
 *  an export was released while its stream captured, call cai_keepalive_drain. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_release(cai_storage *storage, cai_error *err);

/* ------------------------------------------------------------------ >>accesses */
/** An access between begin and end. It needs no initialization. Do not move it. */
typedef struct cai_storage_access {
    cai_array array;      /* work on this: borrowed, ordered into `stream`, read-only for CAI_READ */
    cai_storage *storage; /* NULL: ended */
    struct cai_storage_access *next; /* of the storage */
    uint64_t stream;
    uint64_t context, thread; /* of streams 1 and 2 */
    int32_t side;
    int32_t mode;         /* set CAI_READ before the end of a write that wrote nothing */
    int32_t ordered;      /* home comes after the work of the access */
    int32_t writes;       /* it was begun to write */
    cai_exchange exchange;
} cai_storage_access;

/** Begins to work on one side. If the other side is newer, it is copied first, on home, unless `mode` is
 *  CAI_OVERWRITE. Then `stream` waits for home. For the host side `stream` may be 0, and then the host waits.
 *  A clean side whose home is `stream` costs no CUDA call. Any number of accesses may read. Beside an access
 *  that writes, only accesses of the same side and stream may be open. While the other side is newer, only
 *  accesses that overwrite may be open beside one that overwrites.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_NO_BUFFER (the side), CAI_ERR_CONFLICT (an open access), CAI_ERR_EXPECT
 *  (a storage that is read-only), CAI_ERR_STREAM (also: home is 1, and the memory is of another context than
 *  the storage), CAI_ERR_CAPTURE, CAI_ERR_CUDA, and those of cai_exchange_begin. On failure
 *  the state is unchanged, or the copy was made and the sides are equal. There is nothing to end. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_begin(cai_storage_access *access, cai_storage *storage,
                                                    int32_t side, int32_t mode, uint64_t stream,
                                                    cai_error *err);

/** Ends an access: home waits for its work. After a write the side is newer. `status` is that of your work.
 *  If it is not CAI_OK, it is returned, and `err` stays as it is. After such a write the other side is newer
 *  if it was complete, so that a later access finds the old data.
 *  Errors: CAI_ERR_ARGUMENT (not begun, or ended). CAI_ERR_THREAD: as in cai_exchange_end. Others: neither
 *  home nor the host could wait. The access is still open then, and end can be called again. CAI_ERR_CAPTURE:
 *  after the capture of the stream. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_end(cai_storage_access *access, cai_status status,
                                                  cai_error *err);

/** Exports one side as an owned array, ready in `stream` as in cai_storage_begin. It is an access that stays
 *  open until the array is released, on any thread. Then home waits for the work that the array says is
 *  pending, and after a `mode` that writes the side is newer. If home captures, the host waits. If the stream
 *  of the array captures, the access stays open until a cai_keepalive_drain, which waits for all contexts.
 *  Errors: those of cai_storage_begin, CAI_ERR_OUT_OF_MEMORY. On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_export(cai_storage *storage, int32_t side, int32_t mode,
                                                     uint64_t stream, cai_array *out, cai_error *err);

/** Says that the work in `stream` (0: the host) changed one side without an access. That side is newer then.
 *  CAI_SIDE_HOST | CAI_SIDE_DEVICE says that both are equal. With `force` newer data of the other side is
 *  lost. Does nothing for a storage without two buffers.
 *  Errors: CAI_ERR_CONFLICT (the other side is newer, or an access is open), and those of begin and end. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_mark(cai_storage *storage, int32_t sides, int32_t force,
                                                   uint64_t stream, cai_error *err);

/** If the other side is newer, or with `force`, copies to side `to` on home. If `to` is 0, it copies to the
 *  side that is not newer. The host does not wait. So a copy can begin before its side is needed. Does
 *  nothing for a storage without two buffers. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CONFLICT, CAI_ERR_CAPTURE,
 *  CAI_ERR_CUDA. On failure the state is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_sync(cai_storage *storage, int32_t to, int32_t force,
                                                   cai_error *err);

/** Returns the side on which to change parts of `to` with elements of `from`. If the newest data of `from` is
 *  on the device, it is the device, else the host, and 0 if `to` has no such side. Then begin on both. */
CAI_API int32_t cai_storage_place(const cai_storage *to, cai_storage *from);

/** Copies all elements of `from` to `to`, in the order of both homes. Dtype and shape are equal, the layouts
 *  may differ. Each storage works on the side of cai_storage_place, or on its only side. That side of `to` is
 *  newer then. Errors: CAI_ERR_EXPECT, and those of begin and end. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_assign(cai_storage *to, cai_storage *from, cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_STORAGE_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>sharing  >>home  >>making  >>given  >>releasing  >>accessing  >>exporting  >>marking */

#if defined(CAI_STORAGE_IMPLEMENTATION) && !defined(CAI_STORAGE_IMPLEMENTED)
#define CAI_STORAGE_IMPLEMENTED

#include <stdlib.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#define CAI_PRIV_WANT_GUARD
#define CAI_PRIV_WANT_EMM
#include "cai.h"
#include "cai_stream.h"
#include "cai_emm.h"

CAI_PRIV_C_BEGIN

/* ------------------------------------------------------------------ >>sharing */
/* What the release of an export changes, on any thread. */
typedef struct cai_priv_open {
    int32_t count[2], writes, state;
} cai_priv_open;

static cai_priv_open cai_priv_storage_look(cai_storage *s)
{
    cai_priv_open seen;
    cai_priv_guard_take(&s->guard);
    seen.count[0] = s->open[0];
    seen.count[1] = s->open[1];
    seen.writes = s->open_writes;
    seen.state = s->state;
    cai_priv_guard_give(&s->guard);
    return seen;
}

/* Stores whether home has work that the host did not wait for, and returns the value of before. */
static int32_t cai_priv_storage_pending(cai_storage *s, int32_t pending)
{
    int32_t before;
    cai_priv_guard_take(&s->guard);
    before = s->pending;
    s->pending = pending;
    cai_priv_guard_give(&s->guard);
    return before;
}

/* -------------------------------------------------------------------- >>home */
static const char *cai_priv_side_name(int32_t side)
{
    return side == CAI_SIDE_HOST ? "host" : "device";
}

static const cai_cuda *cai_priv_storage_cuda(const cai_storage *s)
{
    return s->options.pool ? s->options.pool->cuda : NULL;
}

/* Returns the status of an error of CUDA, as a cai_exchange does. */
static cai_status cai_priv_home_status(int32_t error, const char *what, cai_error *err)
{
    const cai_status status = cai_cuda_status(error, what, err);
    if (error < 900 || error > 908) return status;
    if (err) err->code = CAI_ERR_CAPTURE;
    return CAI_ERR_CAPTURE;
}

/* Makes a context current for calls on a stream of it (0: the current one). Returns CUDA's error. */
static int32_t cai_priv_storage_push(const cai_cuda *cuda, uint64_t context, int *entered)
{
    uint64_t current = context;
    int32_t error = 0;
    *entered = 0;
    if (context) error = cuda->context_current(cuda->self, &current);
    if (error || current == context) return error;
    error = cai_priv_context_enter(cuda, context);
    *entered = !error;
    return error;
}

static int32_t cai_priv_home_push(const cai_storage *s, int *entered)
{
    return cai_priv_storage_push(cai_priv_storage_cuda(s), s->context, entered);
}

/* Returns 900 if the stream captures. This query is harmless. A wait would end the capture. */
static int32_t cai_priv_storage_captures(const cai_cuda *cuda, uint64_t stream)
{
    return cuda && cai_priv_is_stream(cuda, stream) ? cai_priv_captures(cuda, stream) : 0;
}

/* Makes the context of the storage current. Fails if home captures. */
static cai_status cai_priv_home_enter(const cai_storage *s, int *entered, cai_error *err)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    int32_t error = cai_priv_home_push(s, entered);
    if (!error) error = cai_priv_storage_captures(cuda, s->options.home);
    if (!error) return CAI_OK;
    if (*entered) (void)cai_priv_context_leave(cuda, s->context);
    if (error != 900) return cai_priv_home_status(error, "home", err);
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_CAPTURE, 103),
                          "home, stream 0x%llx, is capturing", (unsigned long long)s->options.home);
}

static int32_t cai_priv_home_leave(const cai_storage *s, int entered, int32_t error)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    const int32_t left = entered && cuda ? cai_priv_context_leave(cuda, s->context) : 0;
    return error ? error : left;
}

/* Lets the host wait for a stream of the current context (0: for the context), in the relaxed mode. */
static int32_t cai_priv_host_block(const cai_cuda *cuda, uint64_t stream)
{
    int32_t mode, error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    error = stream ? cuda->stream_synchronize(cuda->self, stream) : cuda->context_synchronize(cuda->self);
    return cai_priv_mode_restore(cuda, mode, error);
}

/* Lets the host wait for a stream of a context (0: the current one), unless the stream captures. */
static int32_t cai_priv_host_wait(const cai_cuda *cuda, uint64_t stream, uint64_t context)
{
    int entered;
    int32_t left = 0, error = cai_priv_storage_push(cuda, context, &entered);
    if (error) return error;
    error = cai_priv_storage_captures(cuda, stream);
    if (!error) error = cai_priv_host_block(cuda, stream);
    if (entered) left = cai_priv_context_leave(cuda, context);
    return error ? error : left;
}

/* Lets the host wait for home, or for the context if the host may not use the memory while any kernel runs. */
static cai_status cai_priv_home_wait(cai_storage *s, cai_error *err)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    int32_t error = 0;
    cai_status status;
    int entered;
    if (!cuda || (!cai_priv_storage_pending(s, 0) && !s->alone)) return CAI_OK;
    status = cai_priv_home_enter(s, &entered, err);
    if (status) (void)cai_priv_storage_pending(s, 1);
    if (status) return status;
    if (s->alone) error = cai_priv_storage_captures(cuda, CAI_STREAM_LEGACY); /* 906: one of all */
    if (!error) error = cai_priv_host_block(cuda, s->alone ? 0 : s->options.home);
    error = cai_priv_home_leave(s, entered, error);
    if (error) (void)cai_priv_storage_pending(s, 1);
    return cai_priv_home_status(error, "waiting for home", err);
}

/* Copies between two arrays on home, in either direction. `whole`: own blocks of one layout, which are copied
 * as one line with the padding. */
static cai_status cai_priv_home_copy(cai_storage *s, const cai_array *to, const cai_array *from, int whole,
                                     cai_error *err)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    cai_transfer plan;
    cai_status status = CAI_OK;
    int32_t error = 0;
    int entered;
    if (!whole) CAI_TRY(cai_transfer_plan(&plan, to, from, err));
    CAI_TRY(cai_priv_home_enter(s, &entered, err));
    if (!cuda) cai_transfer_on_host(&plan);
    else if (!whole) status = cai_transfer_copy(&plan, cuda, s->options.home, err);
    else error = cuda->copy_async(cuda->self, to->data, from->data, (uint64_t)to->hi, s->options.home);
    error = cai_priv_home_leave(s, entered, error);
    (void)cai_priv_storage_pending(s, cuda != NULL); /* after an error too: a part may be queued */
    return status ? status : cai_cuda_status(error, "copying", err);
}

/* Copies one side to the other. On failure the state is unchanged. */
static cai_status cai_priv_storage_copy(cai_storage *s, int32_t to, cai_error *err)
{
    const int whole = s->block[0] && s->block[1];
    CAI_TRY(cai_priv_home_copy(s, &s->array[to - 1], &s->array[2 - to], whole, err));
    s->state = CAI_STORAGE_CLEAN;
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>making */
static cai_status cai_priv_storage_hook(const cai_storage *s, int32_t error, const char *hook, cai_error *err)
{
    if (error != 2) return cai_priv_emm_hook_status(&s->hooks, hook, error, err);
    return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "%s of %s is out of memory for %lld bytes", hook,
                          cai_priv_emm_name(&s->hooks), (long long)s->layout.nbytes);
}

/* Allocates the block of a side: plain, pinned, managed or of the device. */
static cai_status cai_priv_storage_block(cai_storage *s, int32_t side, cai_error *err)
{
    const size_t size = (size_t)s->layout.nbytes;
    const int managed = s->options.kind == CAI_STORAGE_MANAGED;
    const char *const hook = managed ? "managed_alloc" : "host_alloc";
    void **block = &s->block[side - 1];
    int32_t error;
    if (!size) return CAI_OK;
    if (side == CAI_SIDE_DEVICE && !managed)
        return cai_emm_alloc(block, &s->hooks, size, s->options.home, err);
    if (!managed && s->options.host) return cai_emm_alloc(block, &s->host, size, CAI_STREAM_LEGACY, err);
    if (!(managed ? s->hooks.managed_alloc : s->hooks.host_alloc))
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no hook %s%s", cai_priv_emm_name(&s->hooks),
                              hook, managed ? "" : ": set options.host");
    error = managed ? s->hooks.managed_alloc(s->hooks.ctx, block, size, CAI_MANAGED_GLOBAL)
                    : s->hooks.host_alloc(s->hooks.ctx, block, size, CAI_HOST_PORTABLE);
    if (error) *block = NULL;
    if (error) return cai_priv_storage_hook(s, error, hook, err);
    if (*block) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_MEMORY, "%s of %s succeeded and returned NULL for %lld bytes", hook,
                          cai_priv_emm_name(&s->hooks), (long long)size);
}

static int32_t cai_priv_storage_give_back(cai_storage *s, int32_t side)
{
    const size_t size = (size_t)s->layout.nbytes;
    const int managed = s->options.kind == CAI_STORAGE_MANAGED;
    struct CUstream_st *home = cai_stream_to_cuda(s->options.home);
    void *block = s->block[side - 1];
    s->block[side - 1] = NULL;
    if (!block) return 0;
    if (managed) return s->hooks.managed_free(s->hooks.ctx, block, size, home);
    if (side == CAI_SIDE_DEVICE) return s->hooks.device_free(s->hooks.ctx, block, size, home);
    if (s->options.host) return s->host.device_free(s->host.ctx, block, size, NULL);
    return s->hooks.host_free(s->hooks.ctx, block, size, home);
}

/* Fills a block with zeros: the device's on home, the host's at once. */
static int32_t cai_priv_storage_zero(cai_storage *s, int32_t side)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    void *block = s->block[side - 1];
    if (!block || !(s->options.flags & CAI_STORAGE_ZEROS)) return 0;
    if (side == CAI_SIDE_HOST) {
        memset(block, 0, (size_t)s->layout.nbytes);
        return 0;
    }
    s->pending = 1;
    return cuda->set_async(cuda->self, (uint64_t)(uintptr_t)block, 0, (uint64_t)s->layout.nbytes,
                           s->options.home);
}

/* Makes the array of a side that has a block. */
static cai_status cai_priv_storage_describe(cai_storage *s, int32_t side, const cai_dtype *dtype,
                                            cai_error *err)
{
    const int managed = s->options.kind == CAI_STORAGE_MANAGED;
    cai_array *array = &s->array[side - 1];
    uint64_t address = (uint64_t)(uintptr_t)s->block[managed ? 1 : side - 1];
    if (address) address += (uint64_t)cai_layout_offset(&s->layout, address);
    CAI_TRY(cai_array_init_dtype(array, dtype, s->layout.ndim, s->layout.shape, s->layout.strides, address,
                                 err));
    array->memory = managed                   ? CAI_MEMORY_MANAGED
                    : side == CAI_SIDE_DEVICE ? CAI_MEMORY_DEVICE
                    : s->options.host         ? CAI_MEMORY_HOST
                                              : CAI_MEMORY_PINNED;
    if (array->memory != CAI_MEMORY_HOST) array->device = s->device;
    return CAI_OK;
}

static cai_status cai_priv_storage_options(const cai_storage_options *o, cai_error *err)
{
    if (o->kind < CAI_STORAGE_HOST || o->kind > CAI_STORAGE_MANAGED || o->flags > CAI_STORAGE_ZEROS)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "kind = %ld or flags = 0x%lx is unknown", (long)o->kind,
                              (unsigned long)o->flags);
    if (o->hooks) CAI_TRY(cai_emm_hooks_check(o->hooks, err));
    if (o->host) CAI_TRY(cai_emm_hooks_check(o->host, err));
    if (o->host && o->host->kind != CAI_MEMORY_HOST)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "host: a table of CAI_MEMORY_HOST is needed");
    if (!o->pool && o->kind != CAI_STORAGE_HOST)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "pool is NULL, but there is a device side");
    if (!o->pool || (cai_priv_is_stream(o->pool->cuda, o->home) && o->home != CAI_STREAM_PER_THREAD))
        return CAI_OK;
    if (o->home == CAI_STREAM_PER_THREAD)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_STREAM, 84),
                              "home is the per-thread default stream, which other threads cannot use");
    return cai_priv_error(err, cai_priv_bad_stream(o->home), "home: %s", cai_priv_stream_fault(o->home));
}

/* Finds the context, and what the storage calls. */
static cai_status cai_priv_storage_connect(cai_storage *s, cai_error *err)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    int32_t error = 0, concurrent = 0;
    s->device = CAI_DEVICE_UNKNOWN;
    if (!cuda) return CAI_OK;
    if (!cuda->copy_async || !cuda->copy_3d_async || !cuda->set_async)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table lacks copy_async, copy_3d_async or set_async");
    CAI_TRY(cai_priv_emm_context(cuda, &s->context, err));
    CAI_TRY(cai_cuda_status(cuda->context_device(cuda->self, &s->device), "context_device", err));
    if (s->options.kind != CAI_STORAGE_MANAGED) return CAI_OK;
    if (cuda->device_attribute)
        error = cuda->device_attribute(cuda->self, s->device, CAI_ATTRIBUTE_CONCURRENT_MANAGED, &concurrent);
    s->alone = !concurrent;
    return cai_cuda_status(error, "device_attribute", err);
}

static cai_status cai_priv_storage_start(cai_storage *s, const cai_storage_options *options, cai_error *err)
{
    memset(s, 0, sizeof *s);
    CAI_TRY(cai_priv_storage_options(options, err));
    s->options = *options;
    s->sides = options->kind == CAI_STORAGE_MANAGED ? 3 : options->kind;
    if (options->hooks) cai_priv_emm_whole_hooks(&s->hooks, options->hooks);
    if (options->host) cai_priv_emm_whole_hooks(&s->host, options->host);
    return cai_priv_storage_connect(s, err);
}

/* Gives back what a failure left, and zeroes the storage. */
static cai_status cai_priv_storage_undo(cai_storage *s, cai_status status)
{
    if (!status) return status;
    (void)cai_priv_storage_give_back(s, CAI_SIDE_HOST);
    (void)cai_priv_storage_give_back(s, CAI_SIDE_DEVICE);
    memset(s, 0, sizeof *s);
    return status;
}

/* Allocates the sides in `wanted`. */
static cai_status cai_priv_storage_allocate(cai_storage *s, const cai_dtype *dtype, int32_t wanted,
                                            cai_error *err)
{
    const int managed = s->options.kind == CAI_STORAGE_MANAGED;
    int32_t side;
    if ((uint64_t)s->layout.nbytes > SIZE_MAX)
        return cai_priv_error(err, CAI_ERR_SHAPE, "%lld bytes exceed the address space",
                              (long long)s->layout.nbytes);
    for (side = CAI_SIDE_DEVICE; side >= CAI_SIDE_HOST; --side) {
        if (!(wanted & side)) continue;
        if (!s->options.hooks && !(side == CAI_SIDE_HOST && s->options.host))
            return cai_priv_error(err, CAI_ERR_ARGUMENT, "hooks is NULL: nothing allocates the %s side",
                                  cai_priv_side_name(side));
        if (side == CAI_SIDE_DEVICE || !managed) CAI_TRY(cai_priv_storage_block(s, side, err));
        CAI_TRY(cai_cuda_status(cai_priv_storage_zero(s, side), "set_async", err));
        CAI_TRY(cai_priv_storage_describe(s, side, dtype, err));
    }
    return CAI_OK;
}

/* Orders the arrays of the sides on home. */
static void cai_priv_storage_order(cai_storage *s)
{
    int32_t i;
    for (i = 0; i < 2; ++i) {
        s->array[i].sync = s->options.pool ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
        s->array[i].stream = s->options.pool ? s->options.home : 0;
    }
}

static cai_status cai_priv_storage_make(cai_storage *s, const cai_storage_options *options,
                                        const cai_dtype *dtype, const cai_layout *layout, cai_error *err)
{
    int entered;
    CAI_TRY(cai_priv_storage_start(s, options, err));
    s->layout = *layout;
    CAI_TRY(cai_layout_plan(&s->layout, dtype, err));
    CAI_TRY(cai_priv_home_enter(s, &entered, err)); /* the capture is checked; the context is current */
    CAI_TRY(cai_priv_storage_allocate(s, dtype, s->sides, err));
    cai_priv_storage_order(s);
    return CAI_OK;
}

CAI_API cai_status cai_storage_init(cai_storage *out, const cai_storage_options *options,
                                    const cai_dtype *dtype, const cai_layout *layout, cai_error *err)
{
    if (!out || !options || !dtype || !layout)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "out, options, dtype or layout is NULL");
    return cai_priv_storage_undo(out, cai_priv_storage_make(out, options, dtype, layout, err));
}

/* ------------------------------------------------------------------- >>given */
/* Returns whether nothing can be written or copied to the array. */
static int cai_priv_given_read_only(const cai_array *array)
{
    return !(array->flags & CAI_WRITABLE) || !(array->flags & CAI_NO_SELF_OVERLAP);
}

static cai_status cai_priv_given_check(const cai_array *array, int32_t side, int alone, cai_error *err)
{
    const char *const name = cai_priv_side_name(side);
    CAI_TRY(cai_array_check(array, err));
    if (array->mask || (alone ? 0 : cai_priv_given_read_only(array)))
        return cai_priv_error(err, CAI_ERR_EXPECT, "on_%s %s", name,
                              array->mask                   ? "has a mask"
                              : array->flags & CAI_WRITABLE ? "has elements that share bytes"
                                                            : "is read-only");
    if (side == CAI_SIDE_HOST ? array->memory == CAI_MEMORY_DEVICE
                              : array->memory == CAI_MEMORY_HOST || array->memory == CAI_MEMORY_UNKNOWN)
        return cai_priv_error(err, CAI_ERR_MEMORY, "on_%s is in memory of kind %ld%s", name,
                              (long)array->memory, array->memory ? "" : ": call cai_locate");
    return CAI_OK;
}

static int cai_priv_same_dtype(const cai_dtype *a, const cai_dtype *b)
{
    return a->code == b->code && a->itemsize == b->itemsize && a->unit == b->unit &&
           a->unit_count == b->unit_count;
}

static cai_status cai_priv_same_form(const cai_array *a, const char *a_name, const cai_array *b,
                                     const char *b_name, cai_error *err)
{
    CAI_TRY(cai_expect_same_shape(a, a_name, b, b_name, err));
    if (cai_priv_same_dtype(&a->dtype, &b->dtype)) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "%s and %s have different dtypes", a_name, b_name);
}

/* Copies the description of what is given, and plans what is missing. */
static cai_status cai_priv_given_fill(cai_storage *s, const cai_array *const given[2], cai_error *err)
{
    const cai_array *const one = given[1] ? given[1] : given[0];
    int32_t i, missing = s->sides;
    CAI_TRY(cai_layout_of(one, &s->layout, err));
    if (!given[0] || !given[1]) CAI_TRY(cai_layout_plan(&s->layout, &one->dtype, err));
    for (i = 0; i < 2; ++i) {
        if (!given[i]) continue;
        cai_array_borrow(&s->array[i], given[i]);
        missing &= ~(i + 1);
    }
    if (s->options.kind == CAI_STORAGE_MANAGED) cai_array_borrow(&s->array[0], given[1]);
    else CAI_TRY(cai_priv_storage_allocate(s, &one->dtype, missing, err));
    for (i = 0; i < 2; ++i) {
        if (!(missing & (i + 1))) continue;
        s->array[i].packed_axis = one->packed_axis;
        s->array[i].packed_extent = one->packed_extent;
        s->array[i].backend = one->backend;
    }
    return CAI_OK;
}

/* Makes home wait for the owners' work. */
static cai_status cai_priv_given_begin(cai_storage *s, cai_array *on_host, cai_array *on_device,
                                       cai_error *err)
{
    const cai_exchange_options kept = cai_priv_keep_mode();
    cai_array *list[2];
    int32_t count = 0;
    if (on_host) list[count++] = on_host;
    if (on_device) list[count++] = on_device;
    if (s->options.pool)
        CAI_TRY(cai_exchange_begin_with(&s->exchange, s->options.pool, list, count, s->options.home, &kept,
                                        err));
    s->pending = s->options.pool != NULL;
    for (; s->given_count < count; ++s->given_count)
        cai_array_move(&s->given[s->given_count], list[s->given_count]);
    return CAI_OK;
}

static cai_status cai_priv_given_fit(const cai_storage_options *options, const cai_array *on_host,
                                     const cai_array *on_device, int32_t state, cai_error *err)
{
    const int host = (options->kind & CAI_SIDE_HOST) != 0, device = options->kind != CAI_STORAGE_HOST;
    if ((on_host && !host) || (on_device && !device) || (!on_host && !on_device))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the arrays do not fit kind = %ld", (long)options->kind);
    if (state < CAI_STORAGE_CLEAN || state > CAI_STORAGE_DEVICE_NEWER)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "state = %ld is unknown", (long)state);
    if (on_host) CAI_TRY(cai_priv_given_check(on_host, CAI_SIDE_HOST, !on_device, err));
    if (on_device) CAI_TRY(cai_priv_given_check(on_device, CAI_SIDE_DEVICE, !on_host, err));
    if (options->kind == CAI_STORAGE_MANAGED && on_device->memory != CAI_MEMORY_MANAGED)
        return cai_priv_error(err, CAI_ERR_MEMORY, "on_device is no managed memory");
    if (!on_host || !on_device) return CAI_OK;
    if (cai_overlap(on_host, on_device) != CAI_OVERLAP_NO)
        return cai_priv_error(err, CAI_ERR_EXPECT, "on_host and on_device share bytes");
    return cai_priv_same_form(on_host, "on_host", on_device, "on_device", err);
}

static cai_status cai_priv_given_make(cai_storage *s, const cai_storage_options *options, cai_array *on_host,
                                      cai_array *on_device, int32_t state, cai_error *err)
{
    const cai_array *const given[2] = {on_host, on_device};
    int entered, i;
    CAI_TRY(cai_priv_storage_start(s, options, err));
    CAI_TRY(cai_priv_given_fit(options, on_host, on_device, state, err));
    CAI_TRY(cai_priv_home_enter(s, &entered, err));
    CAI_TRY(cai_priv_given_fill(s, given, err));
    CAI_TRY(cai_priv_given_begin(s, on_host, on_device, err));
    cai_priv_storage_order(s);
    for (i = 0; i < s->given_count; ++i) s->read_only |= cai_priv_given_read_only(&s->given[i]);
    if (options->kind == CAI_STORAGE_BOTH)
        s->state = !on_device ? CAI_STORAGE_HOST_NEWER : !on_host ? CAI_STORAGE_DEVICE_NEWER : state;
    return CAI_OK;
}

CAI_API cai_status cai_storage_wrap(cai_storage *out, const cai_storage_options *options, cai_array *on_host,
                                    cai_array *on_device, int32_t state, cai_error *err)
{
    if (!out || !options) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out or options is NULL");
    return cai_priv_storage_undo(out, cai_priv_given_make(out, options, on_host, on_device, state, err));
}

/* --------------------------------------------------------------- >>releasing */
/* Frees what the hooks gave, in the order of home. Plain memory is freed at once, so the host waits for the
 * copies. What belongs to a context that was destroyed is gone. */
static cai_status cai_priv_storage_free(cai_storage *s, cai_error *err)
{
    cai_error why;
    cai_status status = CAI_OK;
    int32_t error, other;
    int entered = 0;
    memset(&why, 0, sizeof why);
    if (s->block[0] && s->options.host) status = cai_priv_home_wait(s, &why);
    if (!status) status = cai_priv_home_enter(s, &entered, &why);
    if (status && err) *err = why;
    if (status && !cai_priv_is_dead(why.native)) return status;
    if (status) {
        error = cai_priv_home_push(s, &entered);
        if (error) s->block[0] = s->options.host ? s->block[0] : NULL;
        if (error) s->block[1] = NULL;
    }
    error = cai_priv_storage_give_back(s, CAI_SIDE_HOST);
    other = cai_priv_storage_give_back(s, CAI_SIDE_DEVICE);
    if (!error) error = other;
    (void)cai_priv_home_leave(s, entered, 0);
    if (status) return why.native == 4 ? CAI_OK : status;
    return error ? cai_priv_emm_hook_status(&s->hooks, "a free", error, err) : CAI_OK;
}

CAI_API cai_status cai_storage_release(cai_storage *storage, cai_error *err)
{
    cai_array *given[2];
    cai_status status = CAI_OK, finished = CAI_OK;
    cai_event_pool *pool = storage ? storage->options.pool : NULL;
    cai_priv_open now;
    int32_t waiting = 0;
    if (!storage) return cai_priv_error(err, CAI_ERR_ARGUMENT, "storage is NULL");
    now = cai_priv_storage_look(storage);
    if ((now.count[0] || now.count[1]) && pool) {
        if (cai_keepalive_poll(pool, &waiting, NULL)) {} /* a released export may wait there */
        now = cai_priv_storage_look(storage);
    }
    if (now.count[0] || now.count[1])
        return cai_priv_error(err, CAI_ERR_PENDING,
                              "%ld accesses of the host side and %ld of the device side are open%s",
                              (long)now.count[0], (long)now.count[1],
                              waiting ? ": after the release of an export call cai_keepalive_drain" : "");
    given[0] = &storage->given[0];
    given[1] = &storage->given[1];
    if (storage->block[0] || storage->block[1]) status = cai_priv_storage_free(storage, err);
    if (storage->block[0] || storage->block[1]) return status; /* home captures, or could not be waited for */
    if (storage->given_count && pool)
        finished = cai_exchange_finish(&storage->exchange, CAI_OK, given, storage->given_count,
                                       status ? NULL : err);
    else
        for (; storage->given_count > 0; --storage->given_count)
            cai_array_release(given[storage->given_count - 1]);
    memset(storage, 0, sizeof *storage);
    return status ? status : finished;
}

/* --------------------------------------------------------------- >>accessing */
static cai_status cai_priv_storage_read_only(cai_error *err)
{
    return cai_priv_error(err, CAI_ERR_EXPECT,
                          "the storage is read-only: its given buffer is, or has elements that share bytes");
}

/* Stream 2 belongs to one thread. Streams 1 and 2 belong to a context. */
static cai_status cai_priv_access_name(cai_storage_access *access, cai_error *err)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(access->storage);
    int32_t error;
    access->context = access->thread = 0;
    if (!access->stream || cai_priv_is_handle(access->stream)) return CAI_OK;
    error = cuda->context_current(cuda->self, &access->context);
    if (!error && access->stream == CAI_STREAM_PER_THREAD)
        error = cuda->host_thread(cuda->self, &access->thread);
    return cai_cuda_status(error, "stream", err);
}

/* Returns whether two accesses may be open together. A side that is being overwritten cannot get the newer data
 * of the other side meanwhile. */
static int cai_priv_access_fits(const cai_storage_access *a, const cai_storage_access *open)
{
    if (!a->writes && !open->writes) return 1;
    if (a->side != open->side || a->stream != open->stream || a->context != open->context ||
        a->thread != open->thread)
        return 0;
    return !open->writes || a->mode == CAI_OVERWRITE || a->storage->state != 3 - a->side;
}

/* Refuses an access if another open access may not be open beside it. */
static cai_status cai_priv_storage_conflict(const cai_storage_access *a, cai_error *err)
{
    const cai_storage_access *open = a->storage->accesses;
    const char *const side = cai_priv_side_name(a->side), *const verb = a->writes ? "written" : "read";
    const char *doing;
    while (open && cai_priv_access_fits(a, open)) open = open->next;
    if (!open) return CAI_OK;
    doing = open->writes ? "writing" : "reading";
    if (a->side != open->side)
        return cai_priv_error(err, CAI_ERR_CONFLICT, "the %s side cannot be %s: the %s side is open for %s",
                              side, verb, cai_priv_side_name(open->side), doing);
    if (open->writes && a->mode != CAI_OVERWRITE && a->storage->state == 3 - a->side)
        return cai_priv_error(err, CAI_ERR_CONFLICT,
                              "the %s side cannot be %s: it is being overwritten, and the %s side is newer",
                              side, verb, cai_priv_side_name(3 - a->side));
    return cai_priv_error(err, CAI_ERR_CONFLICT,
                          "the %s side cannot be %s on stream 0x%llx: it is open for %s on another stream",
                          side, verb, (unsigned long long)a->stream, doing);
}

static cai_status cai_priv_storage_side(const cai_storage *s, int32_t side, cai_error *err)
{
    if (side != CAI_SIDE_HOST && side != CAI_SIDE_DEVICE)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "side = %ld is no side", (long)side);
    if (s->sides & side) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_NO_BUFFER, "the storage has no %s side", cai_priv_side_name(side));
}

/* Counts an access, if it may be open beside the others. *stale: the other side is newer. */
static cai_status cai_priv_access_count(cai_storage_access *access, int *stale, cai_error *err)
{
    cai_storage *s = access->storage;
    const int32_t i = access->side - 1;
    cai_status status;
    CAI_TRY(cai_priv_access_name(access, err));
    cai_priv_guard_take(&s->guard);
    status = cai_priv_storage_conflict(access, err);
    *stale = s->state == 3 - access->side && access->mode != CAI_OVERWRITE;
    if (!status) {
        access->next = s->accesses;
        s->accesses = access;
        ++s->open[i];
        s->open_writes += access->writes;
    }
    cai_priv_guard_give(&s->guard);
    return status;
}

/* After a write: state = side. After a failed write: state = 3 - side, unless it was side before. */
static void cai_priv_access_close(cai_storage_access *access, int failed, int began)
{
    cai_storage *s = access->storage;
    const int wrote = began && access->mode != CAI_READ;
    cai_storage_access **link = &s->accesses;
    cai_priv_guard_take(&s->guard);
    while (*link != access) link = &(*link)->next;
    *link = access->next;
    --s->open[access->side - 1];
    s->open_writes -= access->writes;
    if (began && s->options.pool && access->stream) s->pending = 1;
    if (wrote && s->options.kind == CAI_STORAGE_BOTH && !(failed && s->state == access->side))
        s->state = failed ? 3 - access->side : access->side;
    cai_priv_guard_give(&s->guard);
    access->storage = NULL;
}

/* Home 1 is stream 1 of the storage's context, where the copies run. In an exchange it is stream 1 of the
 * memory's context. If these differ, the exchange ends, and no number names home. */
static cai_status cai_priv_access_check_home(cai_storage_access *access, cai_error *err)
{
    const cai_storage *s = access->storage;
    const cai_exchange *ex = &access->exchange;
    if (cai_priv_is_handle(s->options.home) || !access->array.size) return CAI_OK;
    if ((ex->edge_count ? ex->edges[0].context : ex->context) == s->context) return CAI_OK;
    if (cai_exchange_end(&access->exchange, CAI_OK, NULL)) {} /* nothing was done in its order */
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_STREAM, 83),
                          "home is stream 1 of the storage's context, and the memory is of another context: "
                          "choose a handle as home");
}

/* Orders `stream`, or the host, after home. */
static cai_status cai_priv_access_order(cai_storage_access *access, cai_error *err)
{
    const cai_exchange_options kept = cai_priv_keep_mode();
    cai_storage *s = access->storage;
    cai_array *const list[1] = {&s->array[access->side - 1]};
    cai_array_borrow(&access->array, list[0]);
    access->array.sync = CAI_SYNC_NONE;
    access->array.stream = 0;
    if (access->mode == CAI_READ) access->array.flags &= ~(uint32_t)CAI_WRITABLE;
    if (!access->stream) return cai_priv_home_wait(s, err);
    CAI_TRY(cai_exchange_begin_with(&access->exchange, s->options.pool, list, 1, access->stream, &kept, err));
    CAI_TRY(cai_priv_access_check_home(access, err));
    access->array.sync = CAI_SYNC_STREAM;
    access->array.stream = access->stream;
    access->array.thread = access->exchange.thread;
    if (!cai_priv_is_handle(access->stream) && access->exchange.context != s->context)
        access->array.sync = CAI_SYNC_UNKNOWN; /* 1 and 2 of another context than that of the memory */
    return CAI_OK;
}

CAI_API cai_status cai_storage_begin(cai_storage_access *access, cai_storage *storage, int32_t side,
                                     int32_t mode, uint64_t stream, cai_error *err)
{
    cai_status status;
    int stale;
    if (!access || !storage) return cai_priv_error(err, CAI_ERR_ARGUMENT, "access or storage is NULL");
    access->storage = NULL;
    CAI_TRY(cai_priv_storage_side(storage, side, err));
    if (mode != CAI_READ && mode != CAI_WRITE && mode != CAI_OVERWRITE)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "mode = %ld is no mode of an access", (long)mode);
    if (mode != CAI_READ && storage->read_only) return cai_priv_storage_read_only(err);
    if (stream ? !storage->options.pool : side == CAI_SIDE_DEVICE)
        return cai_priv_error(err, stream ? CAI_ERR_ARGUMENT : CAI_PRIV_RULE(CAI_ERR_STREAM, 71),
                              stream ? "a storage without a pool has no streams"
                                     : "the device side needs a stream: 0 is the host");
    access->storage = storage;
    access->side = side;
    access->mode = mode;
    access->writes = mode != CAI_READ;
    access->stream = stream;
    access->ordered = !stream;
    status = cai_priv_access_count(access, &stale, err);
    if (status) access->storage = NULL;
    if (status) return status;
    if (stale) status = cai_priv_storage_copy(storage, side, err);
    if (!status) status = cai_priv_access_order(access, err);
    if (status) cai_priv_access_close(access, 0, 0);
    return status;
}

/* Makes home wait for the stream. If this fails, the host waits, unless the stream captures. */
static cai_status cai_priv_access_join(cai_storage_access *access, cai_error *err)
{
    const uint64_t context = cai_priv_is_handle(access->stream) ? 0 : access->exchange.context;
    int32_t error;
    cai_status status;
    if (access->ordered) return CAI_OK;
    status = cai_exchange_end(&access->exchange, CAI_OK, err);
    access->ordered = !status || cai_priv_is_dead(err->native);
    if (access->ordered || status == CAI_ERR_THREAD) return status;
    error = cai_priv_host_wait(cai_priv_storage_cuda(access->storage), access->stream, context);
    access->ordered = !error || cai_priv_is_dead(error);
    return cai_priv_home_status(error, "waiting for the stream of an access", err);
}

CAI_API cai_status cai_storage_end(cai_storage_access *access, cai_status status, cai_error *err)
{
    cai_error why;
    cai_status joined;
    if (!access || !access->storage)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the access was not begun, or was ended");
    joined = cai_priv_access_join(access, &why);
    if (joined && err && !(status && access->ordered)) *err = why;
    if (!access->ordered) return joined;
    cai_priv_access_close(access, status != CAI_OK, 1);
    return status ? status : joined;
}

/* --------------------------------------------------------------- >>exporting */
/* The owner of an export. Its access has the array, with what the released one said of its work. It waits in
 * the event pool if its work cannot be ordered when it is released. */
typedef struct cai_priv_export {
    cai_priv_parked parked; /* first */
    cai_storage_access access;
} cai_priv_export;

/* Finds the pending work of a released array. A stream that may be gone is not used. A stream 2 of another
 * thread may be gone, and stream 1 comes after it. */
static void cai_priv_export_take(cai_array *work, const cai_array *array, const cai_cuda *cuda)
{
    uint64_t now = array->thread;
    work->sync = array->sync;
    work->stream = array->stream;
    work->event = array->event;
    work->thread = array->thread;
    if (array->sync != CAI_SYNC_STREAM || !cuda) return;
    if (!cai_priv_is_stream(cuda, array->stream)) work->sync = CAI_SYNC_UNKNOWN;
    if (array->stream != CAI_STREAM_PER_THREAD) return;
    if (cuda->host_thread(cuda->self, &now) || now != array->thread) work->stream = CAI_STREAM_LEGACY;
}

/* Makes home wait for the work. Returns CUDA's error, or -1 for a failure without one. */
static int32_t cai_priv_export_order(const cai_storage *s, cai_array *work)
{
    cai_exchange_options kept = cai_priv_keep_mode();
    cai_array *const list[1] = {work};
    cai_exchange ex;
    cai_error why;
    cai_status status;
    int entered;
    const int32_t error = cai_priv_home_push(s, &entered);
    if (error) return error;
    memset(&why, 0, sizeof why);
    kept.flags |= CAI_PRIV_ONE_WAY;
    status = cai_exchange_begin_with(&ex, s->options.pool, list, 1, s->options.home, &kept, &why);
    if (!status) status = cai_exchange_end(&ex, CAI_OK, &why);
    (void)cai_priv_home_leave(s, entered, 0);
    return !status ? 0 : why.native ? why.native : -1;
}

/* If home cannot wait, the host waits for the stream of the work, unless it captures, or for the event. Work of
 * an unknown stream is left. */
static int32_t cai_priv_export_block(const cai_storage *s, cai_array *work)
{
    const cai_cuda *cuda = cai_priv_storage_cuda(s);
    const int32_t sync = work->sync;
    int32_t mode, error = -1;
    work->sync = CAI_SYNC_UNKNOWN;
    if (sync == CAI_SYNC_STREAM)
        return cai_priv_host_wait(cuda, work->stream, cai_priv_is_handle(work->stream) ? 0 : s->context);
    if (sync != CAI_SYNC_EVENT || cai_priv_mode_relax(cuda, &mode)) return error;
    error = cuda->event_synchronize(cuda->self, work->event);
    return cai_priv_mode_restore(cuda, mode, error);
}

/* If home or the host has waited, ends the access. Returns whether it did. */
static int cai_priv_export_end(cai_priv_export *owner, int named)
{
    const cai_storage *s = owner->access.storage;
    cai_array *work = &owner->access.array;
    int32_t error = 0;
    if (s->options.pool && work->sync != CAI_SYNC_NONE &&
        !(work->sync == CAI_SYNC_STREAM && work->stream == s->options.home))
        error = cai_priv_export_order(s, work);
    if (error && !cai_priv_is_dead(error) && named) error = cai_priv_export_block(s, work);
    if (error && !cai_priv_is_dead(error)) return 0;
    cai_priv_access_close(&owner->access, 0, 1);
    free(owner);
    return 1;
}

/* The stream of the work is unknown. A wait for all work may end captures. */
static int cai_priv_export_again(cai_priv_parked *node, int wait)
{
    return wait && cai_priv_export_end((cai_priv_export *)(void *)node, 0);
}

static void cai_priv_export_release(cai_array *array)
{
    cai_priv_export *owner = (cai_priv_export *)array->owner;
    cai_event_pool *pool = owner->access.storage->options.pool;
    array->release = NULL;
    cai_priv_export_take(&owner->access.array, array, pool ? pool->cuda : NULL);
    if (!cai_priv_export_end(owner, 1)) cai_priv_park(pool, &owner->parked);
}

CAI_API cai_status cai_storage_export(cai_storage *storage, int32_t side, int32_t mode, uint64_t stream,
                                      cai_array *out, cai_error *err)
{
    cai_priv_export *owner;
    cai_storage_access *access;
    cai_status status;
    if (!storage || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "storage or out is NULL");
    owner = (cai_priv_export *)malloc(sizeof *owner);
    if (!owner)
        return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "malloc returned NULL for %lu bytes",
                              (unsigned long)sizeof *owner);
    owner->parked.again = cai_priv_export_again;
    access = &owner->access;
    status = cai_storage_begin(access, storage, side, mode, stream, err);
    if (!status && stream) status = cai_exchange_end(&access->exchange, CAI_OK, err);
    if (status) {
        if (access->storage) cai_priv_access_close(access, 0, 0);
        free(owner);
        return status;
    }
    *out = access->array;
    out->flags |= CAI_ORDERED_FREE; /* home waits for the stream that the array names */
    cai_array_own(out, cai_priv_export_release, owner);
    return CAI_OK;
}

/* ----------------------------------------------------------------- >>marking */
/* Refuses to change a side beside an open access of that side, or an open access that writes. */
static cai_status cai_priv_storage_idle(const cai_priv_open *now, int32_t sides, const char *verb,
                                        cai_error *err)
{
    const int32_t side = sides & CAI_SIDE_DEVICE ? CAI_SIDE_DEVICE : CAI_SIDE_HOST;
    const int32_t open = now->count[side - 1] ? side : 3 - side;
    if (!now->writes && !(sides & CAI_SIDE_HOST && now->count[0]) &&
        !(sides & CAI_SIDE_DEVICE && now->count[1]))
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_CONFLICT, "the %s side cannot be %s: the %s side is open for %s",
                          cai_priv_side_name(side), verb, cai_priv_side_name(open),
                          now->writes ? "writing" : "reading");
}

CAI_API cai_status cai_storage_mark(cai_storage *storage, int32_t sides, int32_t force, uint64_t stream,
                                    cai_error *err)
{
    cai_storage_access access;
    cai_priv_open now;
    cai_status status;
    const int both = sides == (CAI_SIDE_HOST | CAI_SIDE_DEVICE);
    if (!storage) return cai_priv_error(err, CAI_ERR_ARGUMENT, "storage is NULL");
    if (sides < CAI_SIDE_HOST || sides > 3)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "sides = %ld are no sides", (long)sides);
    if (storage->options.kind != CAI_STORAGE_BOTH) return CAI_OK;
    if (storage->read_only) return cai_priv_storage_read_only(err);
    now = cai_priv_storage_look(storage);
    CAI_TRY(cai_priv_storage_idle(&now, 3, "marked", err));
    if (!both && !force && now.state == 3 - sides)
        return cai_priv_error(err, CAI_ERR_CONFLICT,
                              "the %s side cannot be marked: the %s side is newer, and would be lost",
                              cai_priv_side_name(sides), cai_priv_side_name(3 - sides));
    if (stream) {
        CAI_TRY(cai_storage_begin(&access, storage, CAI_SIDE_DEVICE, CAI_OVERWRITE, stream, err));
        status = cai_storage_end(&access, CAI_OK, err);
        if (access.storage) cai_priv_access_close(&access, 0, 0); /* it has no work of its own */
        if (status) return status;
    }
    storage->state = both ? CAI_STORAGE_CLEAN : sides;
    return CAI_OK;
}

CAI_API cai_status cai_storage_sync(cai_storage *storage, int32_t to, int32_t force, cai_error *err)
{
    cai_priv_open now;
    if (!storage) return cai_priv_error(err, CAI_ERR_ARGUMENT, "storage is NULL");
    if (to < 0 || to > CAI_SIDE_DEVICE)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "to = %ld is no side", (long)to);
    if (storage->options.kind != CAI_STORAGE_BOTH) return CAI_OK;
    now = cai_priv_storage_look(storage);
    if (!to) to = now.state ? 3 - now.state : CAI_SIDE_DEVICE;
    if (now.state != 3 - to && !force) return CAI_OK;
    if (storage->read_only && !storage->block[to - 1]) return cai_priv_storage_read_only(err);
    CAI_TRY(cai_priv_storage_idle(&now, to, "copied to", err));
    return cai_priv_storage_copy(storage, to, err);
}

CAI_API int32_t cai_storage_place(const cai_storage *to, cai_storage *from)
{
    const int on_device = from && from->sides & CAI_SIDE_DEVICE &&
                          cai_priv_storage_look(from).state != CAI_STORAGE_HOST_NEWER;
    const int32_t side = on_device ? CAI_SIDE_DEVICE : CAI_SIDE_HOST;
    return to && to->sides & side ? side : 0;
}

/* Copies on the home of `copier`, whose context is current. The source is an export: if its home cannot wait
 * for the copy now, it does later. */
static cai_status cai_priv_assign(cai_storage *to, int32_t target, cai_storage *from, int32_t source,
                                  cai_error *err)
{
    cai_storage *copier = to->options.pool ? to : from;
    const uint64_t stream = copier->options.pool ? copier->options.home : 0;
    cai_storage_access writing;
    cai_array reading;
    cai_status status, ended;
    CAI_TRY(cai_storage_export(from, source, CAI_READ, from->options.pool ? stream : 0, &reading, err));
    status = cai_storage_begin(&writing, to, target, CAI_OVERWRITE, to->options.pool ? stream : 0, err);
    if (!status) {
        status = cai_priv_home_copy(copier, &writing.array, &reading, 0, err);
        if (!status && !(to->options.pool && from->options.pool)) status = cai_priv_home_wait(copier, err);
        ended = cai_storage_end(&writing, status, err); /* on home itself: it does not stay open */
        if (!status) status = ended;
    }
    cai_array_release(&reading);
    return status;
}

CAI_API cai_status cai_storage_assign(cai_storage *to, cai_storage *from, cai_error *err)
{
    const cai_storage *copier;
    int32_t source = CAI_SIDE_DEVICE, target, error;
    cai_status status;
    int entered;
    if (!to || !from || to == from)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "to or from is NULL, or both are the same");
    if (cai_priv_storage_look(from).state == CAI_STORAGE_HOST_NEWER || !(from->sides & source))
        source = CAI_SIDE_HOST;
    target = to->sides & source ? source : 3 - source;
    CAI_TRY(cai_priv_same_form(&to->array[target - 1], "to", &from->array[source - 1], "from", err));
    copier = to->options.pool ? to : from;
    error = cai_priv_home_push(copier, &entered); /* home may be 1 of its context */
    if (error) return cai_cuda_status(error, "home", err);
    status = cai_priv_assign(to, target, from, source, err);
    error = cai_priv_home_leave(copier, entered, 0);
    return status ? status : cai_cuda_status(error, "home", err);
}

CAI_PRIV_C_END

#endif /* CAI_STORAGE_IMPLEMENTATION */

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
