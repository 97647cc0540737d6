/* cai_move.h - an array to another queue, on any device - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_MOVE_IMPLEMENTATION)
#define CAI_MOVE_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_EMM_H_INCLUDED) || !defined(CAI_PLACE_H_INCLUDED) ||                                        \
    !defined(CAI_PRIV_TRANSFER_WITH_STREAM) || defined(CAI_IMPLEMENTATION) ||                                \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_emm.h"
#include "cai_place.h"
#include "cai_transfer.h"
#endif

#if CAI_EMM_H_INCLUDED / 100 != 2
#error "cai_move.h: this is version 0.2, which needs cai_emm.h 0.2"
#endif
#if CAI_PLACE_H_INCLUDED / 100 != 2
#error "cai_move.h: this is version 0.2, which needs cai_place.h 0.2"
#endif
#if CAI_TRANSFER_H_INCLUDED / 100 != 2
#error "cai_move.h: this is version 0.2, which needs cai_transfer.h 0.2"
#endif
#if defined(CAI_MOVE_H_INCLUDED) && CAI_MOVE_H_INCLUDED != 200
#error "cai_move.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_MOVE_H_INCLUDED
#define CAI_MOVE_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_MOVE_IMPLEMENTATION for this header alone). All other configuration is
    that of the headers below it.

        #define CAI_IMPLEMENTATION
        #include "cai_move.h"

WHAT IT IS
    To work on another stream or device, move the data first. A move to another stream copies nothing. A move
    to a stream of another device makes a copy there. cai_move does both in one call:

        CAI_TRY(cai_move(&x, &pool, stream, &hooks, err)); // from now on the work on x is on `stream`

    cai_migrate of cai_place.h is the first half alone. It allocates nothing, and refuses another device.

THREADS
    The function keeps no state. Any number of threads may call it, each with an array of its own.
*/

#if defined(CAI_NAMESPACE)
#define cai_move CAI_PRIV_RENAMED(cai_move)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- >>moving */
/** Moves an array to `stream`. `stream` waits for all that is pending on the array, and becomes its stream.
 *  If the stream is of the device of the memory, or the memory belongs to no single device, this is
 *  cai_migrate, and nothing is copied. If not, the elements are copied on `stream` to new memory of `hooks`.
 *  The copy is in C order and writable, and the array owns it. The old memory is given back as
 *  cai_exchange_finish does. Call cai_keepalive_poll from time to time. The owner of a borrowed array keeps
 *  the old memory. If the array named a stream, that stream waits for the copy. If not, its owner must not
 *  touch the old memory before `stream` has passed. All this is so in any mode of the pool. A table with
 *  CAI_EMM_FREES_WAIT makes the host wait when the copy is released. No peer access is needed, also for
 *  memory of pools. Views and kernel views of the array are of the old memory. An array whose device is
 *  unknown is located (cai_locate). `hooks` and `pool` must outlive the array. If `hooks` is NULL, another
 *  device is an error. On failure only the array's location may have changed. If only context_pop fails, the
 *  move is done. Errors: CAI_ERR_PLACEMENT (another device, and no hooks), CAI_ERR_MEMORY (plain host memory,
 *  or hooks of it), CAI_ERR_EXPECT (to another device: an array with a mask, of bit fields, or owned and with
 *  fields), those of cai_locate, cai_migrate, cai_emm_hooks_check, cai_emm_array, cai_transfer_copy_peer,
 *  cai_exchange_finish. */
CAI_API CAI_MUST_CHECK cai_status cai_move(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                           const cai_emm_hooks *hooks, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MOVE_H_INCLUDED */

/* ============================================================ >>implementation */

#if defined(CAI_MOVE_IMPLEMENTATION) && !defined(CAI_MOVE_IMPLEMENTED)
#define CAI_MOVE_IMPLEMENTED

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* Makes the context of a handle current. *pushed is 1 if it was not. 1 and 2 are of the current one. */
static cai_status cai_priv_move_enter(const cai_cuda *cuda, uint64_t stream, uint64_t *pushed, cai_error *err)
{
    uint64_t current = 0, context = 0;
    int32_t error;
    *pushed = 0;
    if (!cai_priv_is_handle(stream)) return CAI_OK;
    error = cuda->context_current(cuda->self, &current);
    if (!error) error = cuda->stream_context(cuda->self, stream, &context);
    if (error) return cai_cuda_status(error, "finding the context of the stream", err);
    if (current == context) return CAI_OK;
    CAI_TRY(cai_cuda_status(cai_priv_context_enter(cuda, context), "context_push", err));
    *pushed = context;
    return CAI_OK;
}

/* Finds the context of memory. Memory of a pool has none, and gets the primary context of its device. */
static cai_status cai_priv_move_context(const cai_cuda *cuda, const cai_array *array, uint64_t *context,
                                        cai_error *err)
{
    cai_cuda_pointer info;
    int32_t error;
    memset(&info, 0, sizeof info);
    error = cuda->pointer_info(cuda->self, array->data, &info);
    if (!error && !info.context)
        error = cuda->device_context(cuda->self, array->device, &info.context);
    *context = info.context;
    return error ? cai_cuda_status(error, "finding the context of memory", err) : CAI_OK;
}

/* Makes the array that gets the elements, in memory of the table, with the shape and the dtype of the other. */
static cai_status cai_priv_move_target(cai_array *out, const cai_array *array, cai_event_pool *pool,
                                       uint64_t stream, const cai_emm_hooks *hooks, cai_error *err)
{
    const int64_t nbytes = array->nbytes;
    const uint64_t aligned = 256; /* as the memory will be */
    cai_array memory;
    CAI_TRY(cai_array_init_dtype(out, &array->dtype, array->ndim, array->shape, NULL, aligned, err));
    CAI_TRY(cai_emm_array(&memory, pool, hooks, CAI_UINT8, 1, &nbytes, stream, err));
    out->data = memory.data;
    out->packed_axis = array->packed_axis;
    out->packed_extent = array->packed_extent;
    out->backend = array->backend;
    out->version = array->version;
    out->device = memory.device;
    out->memory = memory.memory;
    out->sync = memory.sync;
    out->stream = memory.stream;
    out->thread = memory.thread;
    out->fields = array->fields;
    out->field_count = array->field_count;
    out->flags |= memory.flags & (uint32_t)CAI_ORDERED_FREE;
    cai_array_own(out, memory.release, memory.owner);
    return CAI_OK;
}

/* Lets the host wait for `stream`. If that fails, nothing more can be done. */
static void cai_priv_move_settle(cai_event_pool *pool, uint64_t stream)
{
    const cai_exchange_options host = {CAI_MODE_HOST, CAI_UNKNOWN_SYNCHRONIZE, 0, 0, 0};
    cai_exchange ex;
    cai_status status = cai_exchange_begin_with(&ex, pool, NULL, 0, stream, &host, NULL);
    if (!status) status = cai_exchange_end(&ex, CAI_OK, NULL);
    (void)status;
}

/* Gives the old memory back, as cai_exchange_finish does. The exchange has ended before, because after an error
 * of its end the array stays the caller's. */
static cai_status cai_priv_move_give_back(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                          cai_error *err)
{
    const uint32_t order = array->flags & (uint32_t)(CAI_ORDERED_FREE | CAI_NO_BACK_EDGE);
    int32_t mode, kept;
    if (order != CAI_ORDERED_FREE || array->sync != CAI_SYNC_STREAM)
        return cai_keepalive_push(array, pool, stream, err);
    kept = cai_priv_mode_relax(pool->cuda, &mode); /* a failure to relax does not keep the array */
    cai_array_release(array);
    if (!kept) (void)cai_priv_mode_restore(pool->cuda, mode, 0);
    return CAI_OK;
}

/* Copies the elements after the work on them, and gives the old memory back. If that fails, the host waits for
 * the copy, because the array stays the caller's, who does not know the copy. */
static cai_status cai_priv_move_copy(cai_array *array, const cai_array *target, cai_event_pool *pool,
                                     uint64_t stream, cai_error *err)
{
    const cai_cuda *const cuda = pool->cuda;
    const cai_exchange_options kept = cai_priv_keep_mode();
    cai_transfer plan;
    cai_exchange ex;
    cai_status status;
    uint64_t to, from;
    CAI_TRY(cai_transfer_plan(&plan, target, array, err));
    CAI_TRY(cai_priv_move_context(cuda, target, &to, err));
    CAI_TRY(cai_priv_move_context(cuda, array, &from, err));
    CAI_TRY(cai_exchange_begin_with(&ex, pool, &array, 1, stream, &kept, err));
    if (to && from && cuda->copy_peer_async && cuda->copy_3d_peer_async)
        status = cai_transfer_copy_peer(&plan, cuda, to, from, stream, err);
    else
        status = cai_transfer_copy(&plan, cuda, stream, err); /* a table of before: CUDA needs access */
    status = cai_exchange_end(&ex, status, err);
    if (!status && array->release) status = cai_priv_move_give_back(array, pool, stream, err);
    else if (!status) status = cai_stream_drop_event(array, pool, err); /* of a borrowed one, if it has one */
    if (status) cai_priv_move_settle(pool, stream);
    return status;
}

static cai_status cai_priv_move_to_device(cai_array *array, cai_event_pool *pool, uint64_t stream,
                                          const cai_emm_hooks *hooks, cai_error *err)
{
    cai_array target;
    uint64_t pushed;
    int32_t error;
    cai_status status;
    CAI_TRY(cai_emm_hooks_check(hooks, err));
    if (hooks->kind == CAI_MEMORY_HOST)
        return cai_error_set(CAI_ERR_MEMORY, "hooks", "the table is of host memory, which no kernel can use",
                             err);
    if (array->mask) return cai_error_set(CAI_ERR_EXPECT, "the array", "a mask is not copied", err);
    if (array->release && array->field_count) /* their names are memory of the owner */
        return cai_error_set(CAI_ERR_EXPECT, "the array", "the fields of an owned array are not copied", err);
    CAI_TRY(cai_priv_move_enter(pool->cuda, stream, &pushed, err));
    status = cai_priv_move_target(&target, array, pool, stream, hooks, err);
    if (!status) {
        status = cai_priv_move_copy(array, &target, pool, stream, err);
        if (status) cai_array_release(&target);
        else *array = target;
    }
    error = pushed ? cai_priv_context_leave(pool->cuda, pushed) : 0;
    return status ? status : cai_cuda_status(error, "context_pop", err);
}

/* Locates an array of an import, which has neither device nor kind of memory. */
static cai_status cai_priv_move_check(cai_array *array, const cai_event_pool *pool, cai_error *err)
{
    const int known = array->memory && (array->memory != CAI_MEMORY_DEVICE || array->device >= 0);
    if (array->size && !known && pool && pool->cuda)
        CAI_TRY(cai_locate(array, "the array", pool->cuda, 0, NULL, err));
    if (array->size && array->memory == CAI_MEMORY_HOST)
        return cai_error_set(CAI_ERR_MEMORY, "the array", "plain host memory has no queue, call cai_storage",
                             err);
    return CAI_OK;
}

CAI_API cai_status cai_move(cai_array *array, cai_event_pool *pool, uint64_t stream,
                            const cai_emm_hooks *hooks, cai_error *err)
{
    cai_error why;
    cai_status status;
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_move_check(array, pool, err));
    status = cai_migrate(array, pool, stream, &why);
    if (status == CAI_ERR_PLACEMENT && hooks) return cai_priv_move_to_device(array, pool, stream, hooks, err);
    if (status && err) *err = why;
    return status;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MOVE_IMPLEMENTATION */

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
