/* cai_transfer.h - copies between arrays of any strides, as the fewest pieces - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header, allocation or stdio. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_TRANSFER_IMPLEMENTATION)
#define CAI_TRANSFER_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_transfer.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_TRANSFER_H_INCLUDED) && CAI_TRANSFER_H_INCLUDED != 200
#error "cai_transfer.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_TRANSFER_H_INCLUDED
#define CAI_TRANSFER_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_TRANSFER_IMPLEMENTATION for this header alone). All other configuration
    is that of cai.h. Include cai_stream.h before this header, also in the unit with the implementation, for
    cai_transfer_copy and cai_transfer_copy_peer.

        #define CAI_IMPLEMENTATION
        #include "cai_transfer.h"

WHAT IT IS
    An array with strides is not one line of bytes. A plan finds the lines. It joins axes that continue each
    other, also across padding that both sides have. What is left is a list of runs. Each run is contiguous on
    both sides. Up to two axes of runs make a piece, chosen so that there are the fewest pieces. One call of
    cudaMemcpy2DAsync or cudaMemcpy3DAsync copies a piece. Nothing is allocated, as piece and run number n are
    computed when they are needed.

        cai_transfer plan;
        CAI_TRY(cai_transfer_plan(&plan, &to, &from, err));           // two arrays, or one and a buffer:
        CAI_TRY(cai_transfer_pack(&plan, &halo, buffer, err));        // its elements in C order, for a send
        CAI_TRY(cai_transfer_copy(&plan, pool.cuda, stream, err));    // on a stream; with cai_stream.h
        cai_transfer_on_host(&plan);                                  // or by memcpy, at once
        n = cai_transfer_runs(&plan, 0, runs, 16);                    // or as a list, for UCX and libfabric

ORDER
    cai_transfer_copy and cai_transfer_copy_peer queue copies, and nothing else. Make them a part of an
    exchange (cai_stream.h).

THREADS
    The functions keep no state. Any number of threads may call them.
*/

#if defined(CAI_NAMESPACE)
#define cai_nccl_dtype CAI_PRIV_RENAMED(cai_nccl_dtype)
#define cai_transfer_copy CAI_PRIV_RENAMED(cai_transfer_copy)
#define cai_transfer_copy_peer CAI_PRIV_RENAMED(cai_transfer_copy_peer)
#define cai_transfer_on_host CAI_PRIV_RENAMED(cai_transfer_on_host)
#define cai_transfer_pack CAI_PRIV_RENAMED(cai_transfer_pack)
#define cai_transfer_piece CAI_PRIV_RENAMED(cai_transfer_piece)
#define cai_transfer_plan CAI_PRIV_RENAMED(cai_transfer_plan)
#define cai_transfer_runs CAI_PRIV_RENAMED(cai_transfer_runs)
#define cai_transfer_unpack CAI_PRIV_RENAMED(cai_transfer_unpack)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------- >>plans */
/** An axis of runs. The source may have any step, also 0. */
typedef struct cai_transfer_axis {
    int64_t extent;   /* 2 or more */
    int64_t to, from; /* bytes from one run to the next */
} cai_transfer_axis;

/** What is copied. Its fields may be read. */
typedef struct cai_transfer {
    uint64_t to, from; /* addresses of the first run */
    int64_t nbytes;    /* of all elements */
    int64_t run;       /* bytes that are contiguous on both sides */
    int64_t runs;      /* how many of these there are */
    int64_t pieces;    /* how many calls copy them */
    int32_t alignment; /* of all addresses and sizes, in bytes: a power of two, at most 256 */
    int32_t ndim;      /* axes of runs */
    int32_t row, plane; /* the axes that a piece takes; -1: none */
    int32_t backend;    /* CAI_BACKEND_HIP if an array has it: tables of CUDA do not copy it */
    int32_t reserved;   /* 0 */
    cai_transfer_axis axes[CAI_MAX_NDIM]; /* the largest step of `to` first */
} cai_transfer;

/** A part that one call copies: `depth` planes of `height` rows of `width` bytes. */
typedef struct cai_piece {
    uint64_t to, from;             /* addresses */
    int64_t width, height, depth;  /* height and depth are 1 in a line, depth is 1 in a plane */
    int64_t to_pitch, from_pitch;  /* bytes from row to row: at least the width, at most 2^31 - 1 */
    int64_t to_slice, from_slice;  /* bytes from plane to plane: whole rows, at least the height */
} cai_piece;

/** Bytes that are contiguous on both sides. */
typedef struct cai_run {
    uint64_t to, from; /* addresses */
    int64_t nbytes;
} cai_run;

/** Plans the copy of all elements of `from` to `to`. The shapes and the sizes of an element are equal. The
 *  strides may be any, but the elements of `to` share no bytes, with each other or with `from`. Bytes are
 *  copied, whatever the dtypes are. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPECT (shapes, sizes,
 *  `to` read-only, bytes that are shared or may be, a mask, bit fields). On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_transfer_plan(cai_transfer *out, const cai_array *to,
                                                    const cai_array *from, cai_error *err);

/** Plans the copy of all elements to a contiguous buffer, in C order. `buffer` is its address, or 0 for
 *  offsets. It has array->nbytes bytes, none of them the array's. To list the bytes of an array for a send,
 *  take `from` of the runs of this plan, which are addresses in the array. For a receive take them, too, but
 *  first call cai_transfer_unpack as a check. The array must be writable, and its elements must share no
 *  bytes. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPECT (a mask, bit
 *  fields, a buffer that shares bytes with the array, or may). On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_transfer_pack(cai_transfer *out, const cai_array *array,
                                                    uint64_t buffer, cai_error *err);

/** Plans the copy from a contiguous buffer to all elements, in C order. Errors: those of cai_transfer_pack,
 *  CAI_ERR_EXPECT (read-only, elements that share bytes). */
CAI_API CAI_MUST_CHECK cai_status cai_transfer_unpack(cai_transfer *out, const cai_array *array,
                                                      uint64_t buffer, cai_error *err);

/* -------------------------------------------------------------------- >>pieces */
/** Stores piece `index`, from 0 to plan->pieces - 1. Returns 1, or 0 if there is no such piece or a pointer
 *  is NULL. Threads: any. */
CAI_API int32_t cai_transfer_piece(const cai_transfer *plan, int64_t index, cai_piece *out);

/** Stores up to `capacity` runs, beginning with run `first`. Returns their number, which is 0 if there are no
 *  more runs or a pointer is NULL. The runs of cai_transfer_pack are in the order of the buffer. Threads:
 *  any. */
CAI_API int32_t cai_transfer_runs(const cai_transfer *plan, int64_t first, cai_run *list, int32_t capacity);

/** Copies at once, on the host. All addresses must be the host's. NULL does nothing. Threads: any. */
CAI_API void cai_transfer_on_host(const cai_transfer *plan);

/** Stores the number of NCCL's datatype (ncclDataType_t), and how many of it an element has. A complex number
 *  has 2, which NCCL can send and add, but not multiply or compare. All others have 1. NCCL takes contiguous
 *  elements, so pack first. Errors: CAI_ERR_ARGUMENT, CAI_ERR_EXPORT (NCCL has none: bool, 16-bit integers,
 *  values below 8 bits, bytes in the other order). Elements that are only sent may be sent as bytes (0,
 *  ncclInt8). On failure nothing is stored. */
CAI_API CAI_MUST_CHECK cai_status cai_nccl_dtype(const cai_dtype *dtype, int32_t *type, int32_t *count,
                                                 cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TRANSFER_H_INCLUDED */

/* Declarations that need cai_stream.h. It may be included between two inclusions of this header. */
#if defined(CAI_TRANSFER_IMPLEMENTED) &&                                                                     \
    defined(CAI_STREAM_H_INCLUDED) != defined(CAI_PRIV_TRANSFER_WITH_STREAM)
#error "cai_transfer.h: cai_stream.h is to be included before its implementation"
#endif
#if defined(CAI_STREAM_H_INCLUDED) && !defined(CAI_PRIV_TRANSFER_WITH_STREAM)
#define CAI_PRIV_TRANSFER_WITH_STREAM
#ifdef __cplusplus
extern "C" {
#endif

/** Queues the copies of all pieces on `stream`, a line with copy_async, all others with copy_3d_async.
 *  Addresses are of the host or of one device. Between two devices call cai_transfer_copy_peer. `plan` and
 *  `cuda` are not NULL. The current context is that of `stream`. After an error some pieces may be queued.
 *  The message names the piece that failed. Errors: CAI_ERR_ARGUMENT, CAI_ERR_UNAVAILABLE (the table lacks a
 *  slot), CAI_ERR_STREAM (0, no stream, backend), CAI_ERR_CAPTURE (900 to 908), CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_transfer_copy(const cai_transfer *plan, const cai_cuda *cuda,
                                                    uint64_t stream, cai_error *err);

/** Does the same from memory of one device to memory of another device, with or without peer access. A line
 *  is copied with copy_peer_async, all others with copy_3d_peer_async. If the device of `stream` has no
 *  access to a pool, memory of the pool needs such a copy. The contexts are those of the memory, as
 *  pointer_info tells them. For memory without a context (pools, mapped memory) they are the primary contexts
 *  of the devices (device_context). Neither is 0. `plan` and `cuda` are not NULL. `stream` is of either
 *  device. Streams 1 and 2 are those of the current context. For a handle any context may be current. After
 *  an error some pieces may be queued. The message names the piece that failed. Errors: as
 *  cai_transfer_copy. */
CAI_API CAI_MUST_CHECK cai_status cai_transfer_copy_peer(const cai_transfer *plan, const cai_cuda *cuda,
                                                         uint64_t to_context, uint64_t from_context,
                                                         uint64_t stream, cai_error *err);

#ifdef __cplusplus
}
#endif
#endif /* CAI_PRIV_TRANSFER_WITH_STREAM */

/* ============================================================ >>implementation
 *   >>planning  >>pieces */

#if defined(CAI_TRANSFER_IMPLEMENTATION) && !defined(CAI_TRANSFER_IMPLEMENTED)
#define CAI_TRANSFER_IMPLEMENTED

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

/* ------------------------------------------------------------------ >>planning */
/* Adds an axis. If it goes backwards in `to`, it is counted from its other end. */
static void cai_priv_transfer_add(cai_transfer *plan, int64_t extent, int64_t to, int64_t from)
{
    cai_transfer_axis *axis = &plan->axes[plan->ndim];
    plan->runs *= extent;
    if (extent == 1) return;
    if (to < 0) {
        plan->to += (uint64_t)(extent - 1) * (uint64_t)to;
        plan->from += (uint64_t)(extent - 1) * (uint64_t)from;
    }
    axis->extent = extent;
    axis->to = to < 0 ? (int64_t)(0 - (uint64_t)to) : to;
    axis->from = to < 0 ? (int64_t)(0 - (uint64_t)from) : from;
    ++plan->ndim;
}

/* Returns whether the axis continues `extent` steps of `to` and `from` bytes. */
static int cai_priv_transfer_continues(const cai_transfer_axis *axis, int64_t extent, int64_t to,
                                       int64_t from)
{
    return (uint64_t)axis->to == (uint64_t)extent * (uint64_t)to &&
           (uint64_t)axis->from == (uint64_t)extent * (uint64_t)from;
}

/* Joins an axis with the axis that it continues, or with the run. Returns 0 if it continues nothing. */
static int cai_priv_transfer_join(cai_transfer *plan, int32_t outer)
{
    const cai_transfer_axis axis = plan->axes[outer];
    int32_t i;
    for (i = 0; i < plan->ndim; ++i) {
        const cai_transfer_axis *inner = &plan->axes[i];
        if (i != outer && cai_priv_transfer_continues(&axis, inner->extent, inner->to, inner->from)) break;
    }
    if (i < plan->ndim) {
        plan->axes[i].extent *= axis.extent;
    } else {
        if (!cai_priv_transfer_continues(&axis, 1, plan->run, plan->run)) return 0;
        plan->run *= axis.extent;
        plan->runs /= axis.extent;
    }
    plan->axes[outer] = plan->axes[--plan->ndim];
    return 1;
}

static void cai_priv_transfer_sort(cai_transfer *plan)
{
    int32_t i, at;
    for (i = 1; i < plan->ndim; ++i) {
        const cai_transfer_axis axis = plan->axes[i];
        for (at = i; at > 0 && plan->axes[at - 1].to < axis.to; --at) plan->axes[at] = plan->axes[at - 1];
        plan->axes[at] = axis;
    }
}

/* CUDA needs width <= pitch <= 2^31 - 1 (CU_DEVICE_ATTRIBUTE_MAX_PITCH). In `to` width <= pitch, because runs
 * share no bytes. */
static int cai_priv_transfer_rows(const cai_transfer *plan, const cai_transfer_axis *row)
{
    return row->from >= plan->run && row->to <= INT32_MAX && row->from <= INT32_MAX;
}

/* CUDA needs slice % pitch == 0 and slice >= height * pitch. In `to` the second follows: runs share no
 * bytes. */
static int cai_priv_transfer_planes(const cai_transfer_axis *row, const cai_transfer_axis *plane)
{
    return plane->to % row->to == 0 && plane->from % row->from == 0 && plane->from / row->from >= row->extent;
}

/* Chooses the axes that leave the fewest pieces. */
static void cai_priv_transfer_choose(cai_transfer *plan)
{
    int64_t most = 1;
    int32_t i, j;
    plan->row = plan->plane = -1;
    for (i = 0; i < plan->ndim; ++i) {
        const cai_transfer_axis *row = &plan->axes[i];
        if (!cai_priv_transfer_rows(plan, row)) continue;
        for (j = -1; j < plan->ndim; ++j) {
            const cai_transfer_axis *plane = j < 0 || j == i ? NULL : &plan->axes[j];
            const int64_t runs = row->extent * (plane ? plane->extent : 1);
            if (runs <= most || (plane && !cai_priv_transfer_planes(row, plane))) continue;
            most = runs;
            plan->row = i;
            plan->plane = j;
        }
    }
    plan->pieces = plan->runs / most;
}

/* Ends a plan that has all its axes. */
static void cai_priv_transfer_finish(cai_transfer *plan)
{
    uint64_t all;
    int32_t i;
    if (!plan->runs) plan->ndim = 0;
    for (i = 0; i < plan->ndim;) i = cai_priv_transfer_join(plan, i) ? 0 : i + 1;
    cai_priv_transfer_sort(plan);
    cai_priv_transfer_choose(plan);
    all = plan->to | plan->from | (uint64_t)plan->run | 256;
    for (i = 0; i < plan->ndim; ++i) all |= (uint64_t)plan->axes[i].to | (uint64_t)plan->axes[i].from;
    plan->alignment = (int32_t)(all & (0 - all));
}

static void cai_priv_transfer_open(cai_transfer *plan, const cai_array *array, uint64_t to, uint64_t from)
{
    plan->to = to;
    plan->from = from;
    plan->nbytes = array->nbytes;
    plan->run = array->dtype.itemsize;
    plan->runs = 1;
    plan->ndim = 0;
    plan->backend = array->backend;
    plan->reserved = 0;
}

static cai_status cai_priv_transfer_check(const cai_array *array, const char *name, int writes,
                                          cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (array->dtype.code == CAI_BITFIELD)
        return cai_priv_error(err, CAI_ERR_EXPECT, "%s is of bit fields, which share bytes", name);
    if (!array->mask && !writes) return CAI_OK;
    if (!array->mask && array->flags & CAI_WRITABLE && array->flags & CAI_NO_SELF_OVERLAP) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "%s %s", name,
                          array->mask                        ? "has a mask"
                          : !(array->flags & CAI_WRITABLE) ? "is read-only"
                                                             : "has elements that share bytes");
}

CAI_API cai_status cai_transfer_plan(cai_transfer *out, const cai_array *to, const cai_array *from,
                                     cai_error *err)
{
    cai_transfer plan;
    int32_t i;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out is NULL");
    CAI_TRY(cai_priv_transfer_check(to, "to", 1, err));
    CAI_TRY(cai_priv_transfer_check(from, "from", 0, err));
    CAI_TRY(cai_expect_same_shape(to, "to", from, "from", err));
    if (to->dtype.itemsize != from->dtype.itemsize)
        return cai_priv_error(err, CAI_ERR_EXPECT, "an element of to has %ld bytes, one of from has %ld",
                              (long)to->dtype.itemsize, (long)from->dtype.itemsize);
    if (cai_overlap(to, from) != CAI_OVERLAP_NO)
        return cai_priv_error(err, CAI_ERR_EXPECT, "to and from share bytes");
    cai_priv_transfer_open(&plan, to, to->data, from->data);
    if (from->backend != CAI_BACKEND_CUDA) plan.backend = from->backend;
    for (i = 0; i < to->ndim; ++i)
        cai_priv_transfer_add(&plan, to->shape[i], to->strides[i], from->strides[i]);
    cai_priv_transfer_finish(&plan);
    *out = plan;
    return CAI_OK;
}

/* Checks that the buffer shares no bytes with the array. */
static cai_status cai_priv_transfer_apart(const cai_array *array, uint64_t buffer, cai_error *err)
{
    const cai_dtype byte = {CAI_UINT8, 1, 0, 0, 0, 1};
    const int64_t nbytes = array->nbytes;
    cai_array bytes;
    CAI_TRY(cai_array_init_dtype(&bytes, &byte, 1, &nbytes, NULL, buffer, err));
    if (cai_overlap(array, &bytes) == CAI_OVERLAP_NO) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "the buffer and the array share, or may share, bytes");
}

/* Plans a copy between an array and a buffer in C order, in either direction. */
static cai_status cai_priv_transfer_buffer(cai_transfer *out, const cai_array *array, uint64_t buffer,
                                           int unpacks, cai_error *err)
{
    cai_transfer plan;
    int64_t step;
    int32_t i;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out is NULL");
    CAI_TRY(cai_priv_transfer_check(array, "the array", unpacks, err));
    if (buffer && array->nbytes) CAI_TRY(cai_priv_transfer_apart(array, buffer, err));
    cai_priv_transfer_open(&plan, array, unpacks ? array->data : buffer, unpacks ? buffer : array->data);
    step = array->dtype.itemsize;
    for (i = array->ndim - 1; i >= 0; --i) {
        const int64_t stride = array->strides[i];
        cai_priv_transfer_add(&plan, array->shape[i], unpacks ? stride : step, unpacks ? step : stride);
        step *= array->shape[i];
    }
    cai_priv_transfer_finish(&plan);
    *out = plan;
    return CAI_OK;
}

CAI_API cai_status cai_transfer_pack(cai_transfer *out, const cai_array *array, uint64_t buffer,
                                     cai_error *err)
{
    return cai_priv_transfer_buffer(out, array, buffer, 0, err);
}

CAI_API cai_status cai_transfer_unpack(cai_transfer *out, const cai_array *array, uint64_t buffer,
                                       cai_error *err)
{
    return cai_priv_transfer_buffer(out, array, buffer, 1, err);
}

/* -------------------------------------------------------------------- >>pieces */
/* Moves both addresses to number `index` of the axes that are left, the last one first. */
static void cai_priv_transfer_at(const cai_transfer *plan, int64_t index, int32_t row, int32_t plane,
                                 uint64_t *to, uint64_t *from)
{
    int32_t i;
    *to = plan->to;
    *from = plan->from;
    for (i = plan->ndim - 1; i >= 0; --i) {
        const cai_transfer_axis *axis = &plan->axes[i];
        if (i == row || i == plane) continue;
        *to += (uint64_t)(index % axis->extent) * (uint64_t)axis->to;
        *from += (uint64_t)(index % axis->extent) * (uint64_t)axis->from;
        index /= axis->extent;
    }
}

CAI_API int32_t cai_transfer_piece(const cai_transfer *plan, int64_t index, cai_piece *out)
{
    const cai_transfer_axis *row, *plane;
    if (!plan || !out || index < 0 || index >= plan->pieces) return 0;
    cai_priv_transfer_at(plan, index, plan->row, plan->plane, &out->to, &out->from);
    row = plan->row < 0 ? NULL : &plan->axes[plan->row];
    plane = plan->plane < 0 ? NULL : &plan->axes[plan->plane];
    out->width = plan->run;
    out->height = row ? row->extent : 1;
    out->depth = plane ? plane->extent : 1;
    out->to_pitch = row ? row->to : out->width;
    out->from_pitch = row ? row->from : out->width;
    out->to_slice = plane ? plane->to : out->to_pitch * out->height;
    out->from_slice = plane ? plane->from : out->from_pitch * out->height;
    return 1;
}

CAI_API int32_t cai_transfer_runs(const cai_transfer *plan, int64_t first, cai_run *list, int32_t capacity)
{
    const cai_transfer_axis *inner;
    int64_t left = 0; /* runs in this row of the innermost axis */
    int32_t count = 0;
    if (!plan || !list || first < 0) return 0;
    inner = plan->ndim ? &plan->axes[plan->ndim - 1] : NULL;
    for (; count < capacity && first < plan->runs; ++count, ++first, --left) {
        cai_run *run = &list[count];
        if (left) {
            run->to = run[-1].to + (uint64_t)inner->to;
            run->from = run[-1].from + (uint64_t)inner->from;
        } else {
            cai_priv_transfer_at(plan, first, -1, -1, &run->to, &run->from);
            left = inner ? inner->extent - first % inner->extent : 1;
        }
        run->nbytes = plan->run;
    }
    return count;
}

/* Copies a run. If compilers know the size, they call no function. */
static void cai_priv_transfer_bytes(const cai_run *run)
{
    void *const to = (void *)(uintptr_t)run->to;
    const void *const from = (const void *)(uintptr_t)run->from;
    switch (run->nbytes) {
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 16: memcpy(to, from, 16); break;
    default: memcpy(to, from, (size_t)run->nbytes);
    }
}

CAI_API void cai_transfer_on_host(const cai_transfer *plan)
{
    cai_run runs[32];
    int64_t first = 0;
    int32_t i, count;
    while ((count = cai_transfer_runs(plan, first, runs, 32)) > 0) {
        for (i = 0; i < count; ++i) cai_priv_transfer_bytes(&runs[i]);
        first += count;
    }
}

CAI_API cai_status cai_nccl_dtype(const cai_dtype *dtype, int32_t *type, int32_t *count, cai_error *err)
{
    static const struct {
        int32_t code, type, count;
    } rows[] = {{CAI_INT8, 0, 1},         {CAI_UINT8, 1, 1},           {CAI_INT32, 2, 1},
                {CAI_UINT32, 3, 1},       {CAI_INT64, 4, 1},           {CAI_UINT64, 5, 1},
                {CAI_FLOAT16, 6, 1},      {CAI_FLOAT32, 7, 1},         {CAI_FLOAT64, 8, 1},
                {CAI_BFLOAT16, 9, 1},     {CAI_FLOAT8_E4M3FN, 10, 1},  {CAI_FLOAT8_E5M2, 11, 1},
                {CAI_COMPLEX32, 6, 2},    {CAI_COMPLEX64, 7, 2},       {CAI_COMPLEX128, 8, 2},
                {CAI_TIMEDELTA64, 4, 1},  {CAI_DATETIME64, 4, 1}};
    size_t i;
    if (!dtype || !type || !count)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "dtype, type or count is NULL");
    for (i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (rows[i].code != dtype->code) continue;
        *type = rows[i].type;
        *count = rows[i].count;
        return CAI_OK;
    }
    return cai_priv_error(err, CAI_ERR_EXPORT, "NCCL has no datatype for %s%s", cai_dtype_name(dtype->code),
                          dtype->code == CAI_SWAPPED(dtype->code) ? " in the other byte order" : "");
}

#if defined(CAI_PRIV_TRANSFER_WITH_STREAM)
typedef struct cai_priv_transfer_way { /* how pieces are queued */
    const cai_cuda *cuda;
    uint64_t stream;
    int peer; /* by the slots that name contexts */
    uint64_t to_context, from_context;
} cai_priv_transfer_way;

static int32_t cai_priv_transfer_line(const cai_priv_transfer_way *way, const cai_piece *piece)
{
    const cai_cuda *cuda = way->cuda;
    const uint64_t size = (uint64_t)piece->width;
    if (!way->peer) return cuda->copy_async(cuda->self, piece->to, piece->from, size, way->stream);
    return cuda->copy_peer_async(cuda->self, piece->to, way->to_context, piece->from, way->from_context, size,
                                 way->stream);
}

static int32_t cai_priv_transfer_call(const cai_priv_transfer_way *way, const cai_piece *piece)
{
    const cai_cuda *cuda = way->cuda;
    cai_cuda_copy copy;
    if (piece->height == 1) return cai_priv_transfer_line(way, piece);
    copy.to = piece->to;
    copy.from = piece->from;
    copy.to_pitch = (uint64_t)piece->to_pitch;
    copy.from_pitch = (uint64_t)piece->from_pitch;
    copy.to_height = (uint64_t)(piece->to_slice / piece->to_pitch);
    copy.from_height = (uint64_t)(piece->from_slice / piece->from_pitch);
    copy.width = (uint64_t)piece->width;
    copy.height = (uint64_t)piece->height;
    copy.depth = (uint64_t)piece->depth;
    if (!way->peer) return cuda->copy_3d_async(cuda->self, &copy, way->stream);
    return cuda->copy_3d_peer_async(cuda->self, &copy, way->to_context, way->from_context, way->stream);
}

/* If a stream that captures refuses a copy, the error is about the capture. */
static cai_status cai_priv_transfer_failed(const cai_transfer *plan, int64_t piece, int32_t error,
                                           cai_error *err)
{
    cai_error what;
    cai_status status;
    (void)cai_priv_error(&what, CAI_ERR_CUDA, "copying piece %lld of %lld", (long long)piece,
                         (long long)plan->pieces);
    status = cai_cuda_status(error, what.message, err);
    if (error < 900 || error > 908) return status;
    if (err) err->code = CAI_ERR_CAPTURE;
    return CAI_ERR_CAPTURE;
}

static cai_status cai_priv_transfer_queue(const cai_transfer *plan, const cai_priv_transfer_way *way,
                                          cai_error *err)
{
    const uint64_t stream = way->stream;
    int64_t index;
    cai_piece piece;
    if (cai_priv_is_foreign(way->cuda, plan->backend))
        return cai_priv_error(err, CAI_ERR_STREAM, "backend = %ld, but the table is of backend %ld",
                              (long)plan->backend, (long)cai_priv_backend(way->cuda));
    if (!cai_priv_is_stream(way->cuda, stream))
        return cai_priv_error(err, cai_priv_bad_stream(stream), "%s", cai_priv_stream_fault(stream));
    for (index = 0; cai_transfer_piece(plan, index, &piece); ++index) {
        const int32_t error = cai_priv_transfer_call(way, &piece);
        if (error) return cai_priv_transfer_failed(plan, index + 1, error, err);
    }
    return CAI_OK;
}

CAI_API cai_status cai_transfer_copy(const cai_transfer *plan, const cai_cuda *cuda, uint64_t stream,
                                     cai_error *err)
{
    cai_priv_transfer_way way;
    if (!plan || !cuda) return cai_priv_error(err, CAI_ERR_ARGUMENT, "plan or cuda is NULL");
    if (cuda->struct_size < offsetof(cai_cuda, set_async) || !cuda->copy_async || !cuda->copy_3d_async)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no copy_async or no copy_3d_async");
    memset(&way, 0, sizeof way);
    way.cuda = cuda;
    way.stream = stream;
    return cai_priv_transfer_queue(plan, &way, err);
}

CAI_API cai_status cai_transfer_copy_peer(const cai_transfer *plan, const cai_cuda *cuda, uint64_t to_context,
                                          uint64_t from_context, uint64_t stream, cai_error *err)
{
    const size_t needed = offsetof(cai_cuda, copy_3d_peer_async) + sizeof cuda->copy_3d_peer_async;
    cai_priv_transfer_way way;
    if (!plan || !cuda) return cai_priv_error(err, CAI_ERR_ARGUMENT, "plan or cuda is NULL");
    if (!to_context || !from_context)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s is 0, which is no context: device_context returns "
                              "the primary one", to_context ? "from_context" : "to_context");
    if (cuda->struct_size < needed || !cuda->copy_peer_async || !cuda->copy_3d_peer_async)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no copy_peer_async or no copy_3d_peer_async");
    way.cuda = cuda;
    way.stream = stream;
    way.peer = 1;
    way.to_context = to_context;
    way.from_context = from_context;
    return cai_priv_transfer_queue(plan, &way, err);
}
#endif /* CAI_PRIV_TRANSFER_WITH_STREAM */

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TRANSFER_IMPLEMENTATION */

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
