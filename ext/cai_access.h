/* cai_access.h - several fields as arguments of one computation: ready on one side, all or none - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_ACCESS_IMPLEMENTATION)
#define CAI_ACCESS_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_STORAGE_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                       \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_storage.h"
#endif

#if CAI_STORAGE_H_INCLUDED / 100 != 2
#error "cai_access.h: this is version 0.2, which needs cai_storage.h 0.2"
#endif
#if defined(CAI_ACCESS_H_INCLUDED) && CAI_ACCESS_H_INCLUDED != 200
#error "cai_access.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_ACCESS_H_INCLUDED
#define CAI_ACCESS_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_ACCESS_IMPLEMENTATION for this header alone). All other configuration is
    that of the headers below it.

        #define CAI_IMPLEMENTATION
        #include "cai_access.h"

WHAT IT IS
    A computation has several fields as arguments. Each field has an array on the host, an array on the
    device, or both, and three functions that are called around the work. This is the data interface of
    GT4Py's GDP-3 in C. cai_access_begin gets all fields ready on one side, or none. A field without a buffer
    on that side gets a temporary buffer, which is copied back after success.

        cai_storage_field in, out;                     // two storages as fields
        cai_argument io[2] = {{&in.access, CAI_READ}, {&out.access, CAI_OVERWRITE}};
        CAI_TRY(cai_storage_as_field(&in, &storage_in, "IJK", err));
        CAI_TRY(cai_storage_as_field(&out, &storage_out, "IJK", err));
        CAI_TRY(cai_access_begin(io, 2, &options, cai_access_side(io, 2), CAI_STREAM(s), err));
        status = cai_cuda_status(launch(&io[0].array, &io[1].array, s), "diffuse", err);
        CAI_TRY(cai_access_end(io, 2, status, err));

THREADS
    One thread at a time may use an argument and the object of its field.
*/

#if defined(CAI_NAMESPACE)
#define cai_access_begin CAI_PRIV_RENAMED(cai_access_begin)
#define cai_access_end CAI_PRIV_RENAMED(cai_access_end)
#define cai_access_side CAI_PRIV_RENAMED(cai_access_side)
#define cai_storage_as_field CAI_PRIV_RENAMED(cai_storage_as_field)
#endif

CAI_PRIV_C_BEGIN

/* --------------------------------------------------------------------- >>fields */
/* The struct below is used across shared objects. cai.h explains the guard. */
#ifndef CAI_ACCESS_ABI_V0
#define CAI_ACCESS_ABI_V0

/** What a field has. Zero it, set struct_size and version, and one array or both. A function may be NULL.
 *  Then there is nothing to do, and the array itself describes its pending work. A function gets `ctx`, and
 *  returns a cai_status. If it fails, it fills `err`, which may be NULL. */
struct cai_access_v0 {
    uint32_t struct_size; /* sizeof of the maker's struct */
    uint32_t version;     /* CAI_ACCESS_VERSION */
    const struct cai_array_v0 *array[2]; /* on the host and on the device; NULL: there is none. They do not
                                            change between acquire and release */
    const char *dims;     /* one character for each axis, such as "IJK"; NULL: not known */
    const int64_t *halo_low, *halo_high; /* of each axis; NULL: none */
    const int32_t *newer; /* the side with the newest data, 0: both; NULL: not known. It counts for the choice
                             of a side */
    void *ctx;
    /* before the work: the array of `side` is ready in `stream` (0: for the host). `mode`: CAI_READ, ... */
    int32_t (*acquire)(void *ctx, int32_t side, int32_t mode, uint64_t stream, struct cai_error *err);
    /* after work with success that wrote, before release */
    int32_t (*touch)(void *ctx, struct cai_error *err);
    /* once after each acquire that succeeded. `status` is that of the work. CAI_OK without a touch: nothing
     * was written. The work is queued in the stream of acquire. */
    int32_t (*release)(void *ctx, int32_t status, struct cai_error *err);
};

#endif /* CAI_ACCESS_ABI_V0 */

typedef struct cai_access_v0 cai_access;

enum { CAI_ACCESS_VERSION = 1 };

/** A storage as a field. Do not move it while it is in use. */
typedef struct cai_storage_field {
    cai_access access;
    cai_storage *storage;
    cai_storage_access open; /* between acquire and release; a release that failed may leave it open */
    int32_t touched, reserved;
} cai_storage_field;

/** Makes the field of a storage. `dims` may be NULL, and is not copied. One storage may be several arguments,
 *  each with a field of its own. Errors: CAI_ERR_ARGUMENT. */
CAI_API CAI_MUST_CHECK cai_status cai_storage_as_field(cai_storage_field *out, cai_storage *storage,
                                                       const char *dims, cai_error *err);

/* ------------------------------------------------------------------ >>arguments */
/** An argument of a computation. Set the first two, zero the rest. */
typedef struct cai_argument {
    const cai_access *access;
    int32_t mode;        /* CAI_READ, CAI_WRITE, CAI_OVERWRITE */
    int32_t state;       /* of cai_access_begin */
    cai_array array;     /* by cai_access_begin: work on this */
    cai_storage buffers; /* the array of the field if it has no functions, and a temporary one */
    cai_storage_access open;
} cai_argument;

/** Returns the side on which the fewest bytes are copied, to and from temporary buffers and to stale sides.
 *  If both cost the same, it is the device. For bad arguments it is 0. */
CAI_API int32_t cai_access_side(const cai_argument *arguments, int32_t count);

/** Gets all arguments ready to work on `side`, in `stream` (0: the host works, on CAI_SIDE_HOST). A field
 *  with functions is acquired. A field without functions is ordered by its array. A field without an array of
 *  this side gets a temporary array. Its pool, hooks, host and home, which orders the copies, are those of
 *  `options`. kind and flags do not count. `options` may be NULL if all fields have this side and functions.
 *  All are ready, or none. On failure what was acquired is released again, without a touch, in reverse order.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (a field of another version), those of acquire, of cai_storage_wrap
 *  and of cai_storage_begin. cai_error.index is that of the argument. */
CAI_API CAI_MUST_CHECK cai_status cai_access_begin(cai_argument *arguments, int32_t count,
                                                   const cai_storage_options *options, int32_t side,
                                                   uint64_t stream, cai_error *err);

/** Ends all arguments. `status` is that of your work, and is returned if it is not CAI_OK. After success what
 *  was written to a temporary buffer is copied back, and the field is touched. Then each field is released.
 *  All are ended, whatever fails. If a temporary buffer could not be freed (home captures), or its work could
 *  not be waited for (the stream captures), argument.state is not 0. A second call does the rest. Errors: the
 *  first one, with the index of the argument. */
CAI_API CAI_MUST_CHECK cai_status cai_access_end(cai_argument *arguments, int32_t count, cai_status status,
                                                 cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_ACCESS_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>storages  >>arguments */

#if defined(CAI_ACCESS_IMPLEMENTATION) && !defined(CAI_ACCESS_IMPLEMENTED)
#define CAI_ACCESS_IMPLEMENTED

#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

CAI_PRIV_C_BEGIN

typedef char cai_priv_assert_access[sizeof(struct cai_access_v0) == (sizeof(void *) == 8 ? 88 : 48) ? 1 : -1];

/* ------------------------------------------------------------------- >>storages */
static int32_t cai_priv_field_acquire(void *ctx, int32_t side, int32_t mode, uint64_t stream,
                                      struct cai_error *err)
{
    cai_storage_field *field = (cai_storage_field *)ctx;
    field->touched = 0;
    return cai_storage_begin(&field->open, field->storage, side, mode, stream, err);
}

static int32_t cai_priv_field_touch(void *ctx, struct cai_error *err)
{
    ((cai_storage_field *)ctx)->touched = 1;
    (void)err;
    return CAI_OK;
}

static int32_t cai_priv_field_release(void *ctx, int32_t status, struct cai_error *err)
{
    cai_storage_field *field = (cai_storage_field *)ctx;
    cai_status ended;
    if (!status && !field->touched) field->open.mode = CAI_READ;
    ended = cai_storage_end(&field->open, status, err);
    return ended == status ? CAI_OK : ended;
}

CAI_API cai_status cai_storage_as_field(cai_storage_field *out, cai_storage *storage, const char *dims,
                                        cai_error *err)
{
    if (!out || !storage) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out or storage is NULL");
    memset(out, 0, sizeof *out);
    out->storage = storage;
    out->access.struct_size = (uint32_t)sizeof out->access;
    out->access.version = CAI_ACCESS_VERSION;
    if (storage->sides & CAI_SIDE_HOST) out->access.array[0] = &storage->array[0];
    if (storage->sides & CAI_SIDE_DEVICE) out->access.array[1] = &storage->array[1];
    out->access.dims = dims;
    out->access.halo_low = storage->layout.halo_low;
    out->access.halo_high = storage->layout.halo_high;
    out->access.newer = &storage->state;
    out->access.ctx = out;
    out->access.acquire = cai_priv_field_acquire;
    out->access.touch = cai_priv_field_touch;
    out->access.release = cai_priv_field_release;
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>arguments */
enum { CAI_PRIV_ARGUMENT_ACQUIRED = 1, CAI_PRIV_ARGUMENT_WRAPPED = 2, CAI_PRIV_ARGUMENT_OPEN = 4 };

/* Returns the bytes that are copied to work on `side`. */
static int64_t cai_priv_argument_cost(const cai_argument *argument, int32_t side)
{
    const cai_array *here = argument->access->array[side - 1], *there = argument->access->array[2 - side];
    const int in = argument->mode != CAI_OVERWRITE, back = argument->mode != CAI_READ;
    if (here) return in && argument->access->newer && *argument->access->newer == 3 - side ? here->nbytes : 0;
    return there ? there->nbytes * (in + back) : 0;
}

CAI_API int32_t cai_access_side(const cai_argument *arguments, int32_t count)
{
    int64_t host = 0, device = 0;
    int32_t i;
    if (!arguments || count <= 0) return 0;
    for (i = 0; i < count; ++i) {
        if (!arguments[i].access) return 0;
        host += cai_priv_argument_cost(&arguments[i], CAI_SIDE_HOST);
        device += cai_priv_argument_cost(&arguments[i], CAI_SIDE_DEVICE);
    }
    return host < device ? CAI_SIDE_HOST : CAI_SIDE_DEVICE;
}

static cai_status cai_priv_argument_check(const cai_argument *argument, cai_error *err)
{
    const cai_access *access = argument->access;
    if (!access) return cai_priv_error(err, CAI_ERR_ARGUMENT, "access is NULL");
    if (access->struct_size < sizeof *access || access->version != CAI_ACCESS_VERSION)
        return cai_priv_error(err, CAI_ERR_ABI, "the field has %lu bytes and version %lu",
                              (unsigned long)access->struct_size, (unsigned long)access->version);
    if (!access->array[0] && !access->array[1])
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the field has no array");
    if (argument->mode == CAI_READ || argument->mode == CAI_WRITE || argument->mode == CAI_OVERWRITE)
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "mode = %ld is no mode of an access", (long)argument->mode);
}

/* Makes a storage of the array of the field, with a temporary buffer if `side` has none. If the field was
 * acquired, the storage is in the order of `stream`. */
static cai_status cai_priv_argument_wrap(cai_argument *argument, const cai_storage_options *options,
                                         int32_t side, int32_t has, uint64_t stream, cai_error *err)
{
    cai_storage_options o;
    cai_array given;
    cai_status status;
    if (!options) return cai_priv_error(err, CAI_ERR_ARGUMENT, "options is NULL, but a buffer is to be made");
    o = *options;
    o.flags = 0;
    o.kind = has == side ? side : CAI_STORAGE_BOTH;
    cai_array_borrow(&given, argument->access->array[has - 1]);
    if (argument->access->acquire) {
        given.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
        given.stream = stream;
    }
    status = cai_storage_wrap(&argument->buffers, &o, has == CAI_SIDE_HOST ? &given : NULL,
                              has == CAI_SIDE_DEVICE ? &given : NULL, CAI_STORAGE_CLEAN, err);
    if (status) argument->buffers.options.kind = 0;
    return status;
}

static cai_status cai_priv_argument_open(cai_argument *argument, const cai_storage_options *options,
                                         int32_t side, uint64_t stream, cai_error *err)
{
    const cai_access *access = argument->access;
    const int32_t has = access->array[side - 1] ? side : 3 - side;
    const uint64_t at = has == side ? stream : options && options->pool ? options->home : 0;
    argument->state = 0;
    argument->buffers.options.kind = 0; /* none yet */
    if (access->acquire) {
        CAI_TRY(access->acquire(access->ctx, has, argument->mode, at, err));
        argument->state |= CAI_PRIV_ARGUMENT_ACQUIRED;
        cai_array_borrow(&argument->array, access->array[has - 1]);
        argument->array.sync = at ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
        argument->array.stream = at;
        if (argument->mode == CAI_READ) argument->array.flags &= ~(uint32_t)CAI_WRITABLE;
        if (has == side) return CAI_OK;
    }
    CAI_TRY(cai_priv_argument_wrap(argument, options, side, has, at, err));
    argument->state |= CAI_PRIV_ARGUMENT_WRAPPED;
    CAI_TRY(cai_storage_begin(&argument->open, &argument->buffers, side, argument->mode, stream, err));
    argument->state |= CAI_PRIV_ARGUMENT_OPEN;
    argument->array = argument->open.array;
    return CAI_OK;
}

/* Keeps the first error, with the index of its argument. */
static cai_status cai_priv_argument_first(cai_status first, cai_status next, const cai_error *why, int32_t i,
                                          cai_error *err)
{
    if (first || !next) return first;
    if (err) {
        *err = *why;
        err->index = i;
    }
    return next;
}

/* Ends one argument in any state. `ran` is 1 if the work was begun. */
static cai_status cai_priv_argument_close(cai_argument *argument, int ran, cai_status work, int32_t i,
                                          cai_error *err)
{
    const cai_access *access = argument->access;
    const int wrote = ran && !work && argument->mode != CAI_READ;
    cai_status status = CAI_OK, ended;
    cai_error why;
    if (argument->state & CAI_PRIV_ARGUMENT_OPEN) {
        if (!ran) argument->open.mode = CAI_READ;
        ended = cai_storage_end(&argument->open, work, &why);
        if (argument->open.storage) return cai_priv_argument_first(CAI_OK, ended, &why, i, err); /* again */
        if (ended != work) status = cai_priv_argument_first(status, ended, &why, i, err);
        if (wrote && !status) /* back to where the field has its array; nothing for one buffer */
            status = cai_priv_argument_first(CAI_OK, cai_storage_sync(&argument->buffers, 0, 0, &why), &why,
                                             i, err);
    }
    if (argument->state & CAI_PRIV_ARGUMENT_WRAPPED)
        status = cai_priv_argument_first(status, cai_storage_release(&argument->buffers, &why), &why, i, err);
    if (argument->state & CAI_PRIV_ARGUMENT_ACQUIRED) {
        if (wrote && !status && access->touch)
            status = cai_priv_argument_first(status, access->touch(access->ctx, &why), &why, i, err);
        if (access->release)
            status = cai_priv_argument_first(status, access->release(access->ctx, work ? work : status, &why),
                                             &why, i, err);
    }
    argument->state = argument->buffers.options.kind ? CAI_PRIV_ARGUMENT_WRAPPED : 0; /* not freed: again */
    return status;
}

CAI_API cai_status cai_access_begin(cai_argument *arguments, int32_t count,
                                    const cai_storage_options *options, int32_t side, uint64_t stream,
                                    cai_error *err)
{
    cai_status status = CAI_OK;
    int32_t i;
    if (!arguments || count < 0 || (side != CAI_SIDE_HOST && side != CAI_SIDE_DEVICE))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "arguments is NULL, count = %ld or side = %ld",
                              (long)count, (long)side);
    for (i = 0; i < count && !status; ++i) {
        status = cai_priv_argument_check(&arguments[i], err);
        if (!status) status = cai_priv_argument_open(&arguments[i], options, side, stream, err);
    }
    if (!status) return CAI_OK;
    if (err) err->index = i - 1;
    while (--i >= 0)
        if (arguments[i].access) (void)cai_priv_argument_close(&arguments[i], 0, CAI_OK, i, NULL);
    return status;
}

CAI_API cai_status cai_access_end(cai_argument *arguments, int32_t count, cai_status status, cai_error *err)
{
    cai_status first = status;
    int32_t i;
    if (!arguments || count < 0)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "arguments is NULL, or count = %ld", (long)count);
    for (i = 0; i < count; ++i) {
        const cai_status ended = cai_priv_argument_close(&arguments[i], 1, status, i, first ? NULL : err);
        if (!first) first = ended;
    }
    return first;
}

CAI_PRIV_C_END

#endif /* CAI_ACCESS_IMPLEMENTATION */

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
