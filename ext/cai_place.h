/* cai_place.h - on which device and stream to work on several arrays - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA call, no allocation. */

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

#if CAI_STREAM_H_INCLUDED / 100 != 1
#error "cai_place.h: this is version 0.1, which needs cai_stream.h 0.1"
#endif
#if defined(CAI_PLACE_H_INCLUDED) && CAI_PLACE_H_INCLUDED != 100
#error "cai_place.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_PLACE_H_INCLUDED
#define CAI_PLACE_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_PLACE_IMPLEMENTATION for this header alone). All other configuration is
    that of cai_stream.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_place.h"

WHAT IT IS
    A function has several arrays as arguments. cai_place chooses the device and the stream on which it works,
    by one of three policies. It also checks the array that the function writes to. Call it after cai_locate
    of each array, and before cai_exchange_begin on the stream that it chose:

        cai_placement where;
        CAI_TRY(cai_place(io, names, 2, out, CAI_PLACE_SAME_DEVICE, 0, 0, &where, err));
        CAI_TRY(cai_exchange_begin(&ex, pool, io, 3, where.stream, err)); // out is io[2]

    If an operand does not fit the others, the message names it. Nothing is copied. cai_place chooses only a
    stream that an operand has or that the caller named.

THREADS
    The functions keep no state. Any number of threads may call them.
*/

#if defined(CAI_NAMESPACE)
#define cai_place CAI_PRIV_RENAMED(cai_place)
#define cai_result_memory CAI_PRIV_RENAMED(cai_result_memory)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- >>placement */
/** The policy that chooses the stream of work on several arrays. No policy guesses a stream. */
enum {
    CAI_PLACE_IDENTICAL = 0,   /* all arrays that have a stream must have the same one, else it is an error
                                  (as in dpctl) */
    CAI_PLACE_SAME_DEVICE = 1, /* the stream of the first input that has one; an exchange joins the rest */
    CAI_PLACE_INTO = 2         /* the stream that is given; an exchange joins all */
};

enum {
    CAI_PLACE_ALLOW_OVERLAP = 1 << 0 /* out may share bytes with an input in any way; the caller checks
                                        placement.overlap, and then works with other memory */
};

typedef struct cai_placement {
    uint64_t stream; /* begin the exchange on it, and launch on it */
    int32_t device;  /* of the operands; CAI_DEVICE_UNKNOWN: none is bound to one device */
    int32_t memory;  /* CAI_MEMORY_..., the kind for a new result; unknown without inputs */
    int32_t decided; /* the input that decided the stream; -1: `stream` was used */
    int32_t overlap; /* the first input that shares bytes with out, not element by element, or -1 */
} cai_placement;

/** Returns the kind of memory for a result of two arrays. Device comes before managed, and managed before
 *  pinned. CAI_MEMORY_UNKNOWN means that no device can use one of the two. */
CAI_API int32_t cai_result_memory(int32_t a, int32_t b);

/** Chooses where to work on `count` inputs, and checks `out`. Makes no CUDA call. Call cai_locate of each
 *  array first. NULL in `inputs` stands for a scalar. Scalars, host arrays without axes and empty arrays do
 *  not influence the choice. Of a mask only the stream counts. `names` are those of the inputs in messages,
 *  or NULL for "input 0". `out` is the array to write to, or NULL. It does not choose the stream, and it
 *  chooses the device only if no input does. It must be on that device, and with CAI_PLACE_IDENTICAL on that
 *  stream. It must be writable, and must not overlap itself or, other than element by element, an input. Pass
 *  it to the exchange too, which joins work on several streams.
 *  `policy` is CAI_PLACE_.... `flags` is 0 or CAI_PLACE_ALLOW_OVERLAP. CAI_PLACE_INTO uses `stream`, on the
 *  device of the operands. The others use it if no input has a stream, and 0 means none. CAI_PLACE_IDENTICAL
 *  compares 1 and 2 also by device, and 2 also by host thread. It assumes primary contexts. Threads: any.
 *  Errors: CAI_ERR_PLACEMENT (device or stream), CAI_ERR_MEMORY (plain host memory, or not located),
 *  CAI_ERR_EXPECT (out), CAI_ERR_STREAM, CAI_ERR_ARGUMENT, CAI_ERR_ABI. They name the operand and its index,
 *  which is `count` for out. Index -1 of CAI_ERR_PLACEMENT means that no input has a stream. CAI_ERR_EXPECT
 *  names the input that out overlaps. On failure `placement` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_place(const cai_array *const *inputs, const char *const *names,
                                            int32_t count, const cai_array *out, int32_t policy,
                                            uint32_t flags, uint64_t stream, cai_placement *placement,
                                            cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PLACE_H_INCLUDED */

/* ============================================================ >>implementation */

#if defined(CAI_PLACE_IMPLEMENTATION) && !defined(CAI_PLACE_IMPLEMENTED)
#define CAI_PLACE_IMPLEMENTED

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* ------------------------------------------------------------------ >>placing */
/* The results so far, and the operand that is checked. */
typedef struct cai_priv_place {
    cai_placement at;
    uint64_t thread; /* of the stream, if that is 2 */
    int32_t device;  /* of the operand that decided it, if it is 1 or 2 */
    const char *const *names;
    int32_t count, policy;
    int32_t item;    /* index of the input; `count`: out; -1: none */
    cai_error *err;
} cai_priv_place;

/* Begins a message with the operand: "x", "input 2", "out". Returns the length. */
static size_t cai_priv_place_name(const cai_priv_place *place, char *out, size_t capacity)
{
    const int32_t item = place->item;
    const char *name = item >= 0 && item < place->count && place->names ? place->names[item] : NULL;
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
    if (!err) return CAI_PRIV_STATUS(status);
    va_start(values, format);
    status = cai_priv_error_values(err, status, cai_priv_place_name(place, err->message, sizeof err->message),
                                   format, values);
    va_end(values);
    err->index = place->item;
    return status;
}

CAI_API int32_t cai_result_memory(int32_t a, int32_t b)
{
    const int32_t least = a < b ? a : b, most = a < b ? b : a;
    return least < CAI_MEMORY_PINNED || most > CAI_MEMORY_DEVICE ? CAI_MEMORY_UNKNOWN : most;
}

/* Only an array in device memory is bound to the device. */
static cai_status cai_priv_place_memory(cai_priv_place *place, const cai_array *array)
{
    const int on_device = array->memory == CAI_MEMORY_DEVICE;
    if (array->memory == CAI_MEMORY_HOST)
        return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_MEMORY, 7),
                                  " is plain host memory, %lld bytes: no kernel can use it",
                                  (long long)array->nbytes);
    if (!cai_result_memory(array->memory, array->memory) || (on_device && array->device < 0))
        return cai_priv_place_say(place, CAI_ERR_MEMORY,
                                  ": its kind of memory or its device is unknown, call cai_locate");
    if (!on_device) return CAI_OK;
    if (place->at.device == CAI_DEVICE_UNKNOWN) place->at.device = array->device;
    if (place->at.device == array->device) return CAI_OK;
    return cai_priv_place_say(place, CAI_ERR_PLACEMENT,
                              " is on device %ld, but operands before it are on device %ld",
                              (long)array->device, (long)place->at.device);
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
        return cai_priv_place_say(place, CAI_ERR_PLACEMENT,
                                  " is on stream 0x%llx, but the work is on stream 0x%llx",
                                  (unsigned long long)array->stream, (unsigned long long)place->at.stream);
    if (cai_priv_is_handle(array->stream) || place->at.decided < 0) return CAI_OK;
    if (array->device != place->device)
        return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_PLACEMENT, 83),
                                  " is on stream %d of another device than the work", (int)array->stream);
    if (array->stream != CAI_STREAM_PER_THREAD || array->thread == place->thread) return CAI_OK;
    return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_PLACEMENT, 84),
                              " is on stream 2 of another host thread than the work");
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
            place->at.memory ? cai_result_memory(place->at.memory, array->memory) : array->memory;
    }
    return CAI_OK;
}

/* The same memory, element by element. Work in place is right then. */
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

static cai_status cai_priv_place_out(cai_priv_place *place, const cai_array *const *inputs,
                                     const cai_array *out, uint32_t flags)
{
    int32_t i;
    CAI_TRY(cai_priv_place_check(place, out));
    if (!(out->flags & CAI_WRITABLE))
        return cai_priv_place_say(place, CAI_PRIV_RULE(CAI_ERR_EXPECT, 6), " is read-only");
    if (!out->size) return CAI_OK;
    if (!(out->flags & CAI_NO_SELF_OVERLAP))
        return cai_priv_place_say(place, CAI_ERR_EXPECT, " has, or may have, elements that share bytes");
    for (i = 0; i < place->count && place->at.overlap < 0; ++i) {
        if (!inputs[i] || cai_overlap(inputs[i], out) == CAI_OVERLAP_NO) continue;
        if (!cai_priv_place_same(inputs[i], out)) place->at.overlap = i;
    }
    if (place->at.overlap >= 0 && !(flags & CAI_PLACE_ALLOW_OVERLAP)) {
        place->item = place->at.overlap; /* its name; the index is that of out */
        (void)cai_priv_place_say(place, CAI_ERR_EXPECT,
                                 " shares, or may share, bytes with out, and not element by element");
        if (place->err) place->err->index = place->count;
        return CAI_ERR_EXPECT;
    }
    return cai_priv_place_operand(place, out);
}

static cai_status cai_priv_place_begin(const cai_priv_place *place, const cai_array *const *inputs,
                                       uint32_t flags, uint64_t stream, const cai_placement *placement)
{
    const int32_t policy = place->policy;
    if (!placement || place->count < 0 || (place->count && !inputs))
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

CAI_API cai_status cai_place(const cai_array *const *inputs, const char *const *names, int32_t count,
                             const cai_array *out, int32_t policy, uint32_t flags, uint64_t stream,
                             cai_placement *placement, cai_error *err)
{
    cai_priv_place place;
    memset(&place, 0, sizeof place);
    place.at.device = CAI_DEVICE_UNKNOWN;
    place.at.decided = place.at.overlap = -1;
    place.names = names;
    place.count = count;
    place.policy = policy;
    place.item = -1;
    place.err = err;
    CAI_TRY(cai_priv_place_begin(&place, inputs, flags, stream, placement));
    CAI_TRY(cai_priv_place_inputs(&place, inputs));
    if (!place.at.stream) place.at.stream = stream;
    if (!place.at.stream) {
        place.item = -1;
        return cai_priv_place_say(&place, CAI_ERR_PLACEMENT,
                                  "none of %ld inputs has a stream, and stream is 0", (long)count);
    }
    if (out) CAI_TRY(cai_priv_place_out(&place, inputs, out, flags));
    *placement = place.at;
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

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
