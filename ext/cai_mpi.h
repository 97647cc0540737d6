/* cai_mpi.h - arrays as MPI messages, in order with their streams - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11. No CUDA header. MPI 3.0 or later, of your <mpi.h>. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_MPI_IMPLEMENTATION)
#define CAI_MPI_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_EMM_H_INCLUDED) || !defined(CAI_MPI_TYPE_H_INCLUDED) ||                                     \
    !defined(CAI_PRIV_TRANSFER_WITH_STREAM) || defined(CAI_IMPLEMENTATION) ||                                \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_emm.h"
#include "cai_mpi_type.h"
#endif

#if CAI_EMM_H_INCLUDED / 100 != 1
#error "cai_mpi.h: this is version 0.1, which needs cai_emm.h 0.1"
#endif
#if CAI_MPI_TYPE_H_INCLUDED / 100 != 1
#error "cai_mpi.h: this is version 0.1, which needs cai_mpi_type.h 0.1"
#endif
#if defined(CAI_MPI_H_INCLUDED) && CAI_MPI_H_INCLUDED != 100
#error "cai_mpi.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_MPI_H_INCLUDED
#define CAI_MPI_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c or .cpp file (CAI_MPI_IMPLEMENTATION for this header alone). All other configuration is that of
    the headers below it.

        #define CAI_IMPLEMENTATION
        #include "cai_mpi.h"

WHAT IT IS
    MPI knows no streams. It reads and writes when the host calls it. A batch does what is needed before and
    after that: it waits for the pending work, packs, sends and receives, unpacks, and gives the back edge.

        cai_mpi_message halo[2] = {{&inner, left, 7, 0, 0, 0, NULL, MPI_DATATYPE_NULL},   // array, peer, tag,
                                   {&ghost, right, 7, 1, 0, 0, NULL, MPI_DATATYPE_NULL}}; // receives
        cai_mpi_options options = {CAI_MPI_STAGED, 0, 60.0, &pool, &hooks, CAI_STREAM(s), comm};
        CAI_TRY(cai_mpi_open(&batch, &options, halo, 2, err));    // buffers, once
        for (step = 0; !status && step < steps; ++step) {
            status = cai_mpi_start(&batch, err);                  // packs, waits for that, starts messages
            if (!status) status = work_on_the_inside(s2);
            if (!status) status = cai_mpi_finish(&batch, err);    // waits for messages, queues the unpacks
        }
        closed = cai_mpi_close(&batch, status ? NULL : err);

ENGINES
                       sends and receives in         MPI must know CUDA     the host waits at start for
        CAI_MPI_STAGED pinned memory of the hooks    no                     the packs
        CAI_MPI_PACKED device memory of the hooks    yes                    the packs
        CAI_MPI_DIRECT the arrays, by a datatype     for memory of a device work on the arrays
    The engines of the two ends may differ. DIRECT is for memory of the host. On memory of a device, MPI may
    copy the runs of a datatype one by one (docs/communication.md).

ORDER
    Start waits for the pending work of what is sent. After start, the arrays that are sent may be written
    again and released. Until finish, nobody may use what is received. The stream of the batch unpacks, and
    the streams of the arrays wait for that. An array that names no stream names that of the batch then.
    DIRECT: until finish the arrays stay alive, nobody writes to what is sent, and start waits for the work on
    what is received, too.

ERRORS
    As in cai.h. If an MPI function fails, the status is CAI_ERR_MPI, and cai_error.native is MPI's number.
    MPI ends the program instead unless you call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) first. All
    elements of a message must arrive. A message of more or fewer of them is an error.

THREADS
    A batch belongs to one thread at a time. MPI's own rules (MPI_Init_thread) decide about several batches.
*/

#if defined(CAI_NAMESPACE)
#define cai_mpi_close CAI_PRIV_RENAMED(cai_mpi_close)
#define cai_mpi_finish CAI_PRIV_RENAMED(cai_mpi_finish)
#define cai_mpi_open CAI_PRIV_RENAMED(cai_mpi_open)
#define cai_mpi_start CAI_PRIV_RENAMED(cai_mpi_start)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>batches */
enum { CAI_MPI_STAGED = 0, CAI_MPI_PACKED = 1, CAI_MPI_DIRECT = 2 }; /* ENGINES */
enum { CAI_MPI_MESSAGES = 64 };                                      /* of a batch */

/** A message. All elements of an array are sent or received. */
typedef struct cai_mpi_message {
    cai_array *array;  /* its data and pending work may change between finish and start, its layout not */
    int32_t peer, tag; /* rank, or MPI_PROC_NULL */
    int32_t receives;  /* 1: into the array; 0: from it */
    int32_t reserved;  /* 0 */
    /* of cai_mpi_open */
    int64_t nbytes;
    void *buffer;
    MPI_Datatype type;
} cai_mpi_message;

typedef struct cai_mpi_options {
    int32_t engine;  /* CAI_MPI_... */
    int32_t reserved; /* 0 */
    double seconds;  /* how long cai_mpi_finish and cai_mpi_close wait for messages; 0: for ever */
    cai_event_pool *pool;       /* it and the hooks must outlive the batch */
    const cai_emm_hooks *hooks; /* host_alloc for STAGED, device_alloc for PACKED */
    uint64_t stream; /* for packs and unpacks; start waits for all that is in it */
    MPI_Comm comm;
} cai_mpi_options;

/** Messages that are sent and received together. Its fields may be read. */
typedef struct cai_mpi_batch {
    cai_mpi_options options;
    cai_mpi_message *messages;
    int32_t count, state;
    MPI_Request requests[CAI_MPI_MESSAGES];
} cai_mpi_batch;

/** Opens a batch of `count` messages, which are the caller's and stay where they are. Allocates their
 *  buffers. The current context is that of the stream, in all calls. On failure nothing stays allocated.
 *  cai_error.index is that of the message. Errors: CAI_ERR_ARGUMENT, CAI_ERR_CAPACITY, CAI_ERR_STREAM,
 *  CAI_ERR_UNAVAILABLE (no host_alloc), CAI_ERR_OUT_OF_MEMORY, those of cai_transfer_unpack, cai_mpi_type. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_open(cai_mpi_batch *batch, const cai_mpi_options *options,
                                               cai_mpi_message *messages, int32_t count, cai_error *err);

/** Packs what is sent, waits on the host for that and for earlier unpacks, and starts all messages. If it
 *  fails before the first message, it may be called again. Errors: CAI_ERR_ARGUMENT (started already),
 *  CAI_ERR_EXPECT (a layout changed), CAI_ERR_CUDA, CAI_ERR_MPI, those of cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_start(cai_mpi_batch *batch, cai_error *err);

/** Waits on the host until all messages have passed, and queues the unpacks. If a message failed, nothing is
 *  unpacked. If time runs out, the batch stays started: call it again, or close the batch. Errors:
 *  CAI_ERR_ARGUMENT (not started), CAI_ERR_MPI (it names message and peer), those of cai_exchange_begin. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_finish(cai_mpi_batch *batch, cai_error *err);

/** Frees what cai_mpi_open allocated. What is still to be received is cancelled. If a message that was sent
 *  does not pass in time, all stays as it is (CAI_ERR_PENDING): call it again, or MPI_Abort. Does nothing for
 *  a batch that is closed or zero. Errors: CAI_ERR_ARGUMENT, CAI_ERR_PENDING, CAI_ERR_CUDA, CAI_ERR_MPI. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_close(cai_mpi_batch *batch, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MPI_H_INCLUDED */

/* ============================================================ >>implementation */

#if defined(CAI_MPI_IMPLEMENTATION) && !defined(CAI_MPI_IMPLEMENTED)
#define CAI_MPI_IMPLEMENTED

#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#define CAI_PRIV_WANT_EMM
#include "cai.h"
#include "cai_emm.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

enum { CAI_PRIV_MPI_CLOSED = 0, CAI_PRIV_MPI_OPEN = 1, CAI_PRIV_MPI_STARTED = 2 };

/* -------------------------------------------------------------------- >>opening */
static int cai_priv_mpi_has_buffer(const cai_mpi_batch *batch, const cai_mpi_message *message)
{
    return batch->options.engine != CAI_MPI_DIRECT && message->nbytes && message->peer != MPI_PROC_NULL;
}

static cai_status cai_priv_mpi_alloc(const cai_mpi_batch *batch, cai_mpi_message *message, cai_error *err)
{
    const size_t size = (size_t)message->nbytes;
    cai_emm_hooks hooks;
    int32_t error;
    if (!cai_priv_mpi_has_buffer(batch, message)) return CAI_OK;
    if (batch->options.engine == CAI_MPI_PACKED)
        return cai_emm_alloc(&message->buffer, batch->options.hooks, size, batch->options.stream, err);
    cai_priv_emm_whole_hooks(&hooks, batch->options.hooks);
    if (!hooks.host_alloc)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no host_alloc", cai_priv_emm_name(&hooks));
    error = hooks.host_alloc(hooks.ctx, &message->buffer, size, CAI_HOST_PORTABLE);
    if (!error && message->buffer) return CAI_OK;
    message->buffer = NULL;
    if (error && error != 2) return cai_priv_emm_hook_status(&hooks, "host_alloc", error, err);
    return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "host_alloc of %s has no %ld bytes",
                          cai_priv_emm_name(&hooks), (long)message->nbytes);
}

static cai_status cai_priv_mpi_free(const cai_mpi_batch *batch, cai_mpi_message *message, cai_error *err)
{
    const size_t size = (size_t)message->nbytes;
    void *const buffer = message->buffer;
    cai_emm_hooks hooks;
    int32_t error;
    cai_status status = CAI_OK;
    if (message->type != MPI_DATATYPE_NULL)
        status = cai_mpi_status(MPI_Type_free(&message->type), "MPI_Type_free", err);
    message->buffer = NULL;
    if (!buffer) return status;
    if (batch->options.engine == CAI_MPI_PACKED)
        return cai_emm_free(batch->options.hooks, buffer, size, batch->options.stream, err);
    cai_priv_emm_whole_hooks(&hooks, batch->options.hooks);
    error = hooks.host_free(hooks.ctx, buffer, size, cai_stream_to_cuda(batch->options.stream));
    return error ? cai_priv_emm_hook_status(&hooks, "host_free", error, err) : status;
}

/* Returns the first error. */
static cai_status cai_priv_mpi_free_all(cai_mpi_batch *batch, cai_error *err)
{
    cai_status first = CAI_OK, status;
    int32_t i;
    for (i = 0; i < batch->count; ++i) {
        status = cai_priv_mpi_free(batch, &batch->messages[i], first ? NULL : err);
        if (!first) first = status;
    }
    batch->state = CAI_PRIV_MPI_CLOSED;
    batch->count = 0;
    return first;
}

/* The plan between an array and its buffer. */
static cai_status cai_priv_mpi_plan(cai_transfer *plan, const cai_mpi_message *message, cai_error *err)
{
    const uint64_t buffer = (uint64_t)(uintptr_t)message->buffer;
    if (message->receives) return cai_transfer_unpack(plan, message->array, buffer, err);
    return cai_transfer_pack(plan, message->array, buffer, err);
}

/* The datatype of the message where MPI sees it. */
static cai_status cai_priv_mpi_prepare(const cai_mpi_batch *batch, cai_mpi_message *message, cai_error *err)
{
    cai_transfer plan;
    cai_array dense;
    CAI_TRY(cai_priv_mpi_plan(&plan, message, err));
    message->nbytes = plan.nbytes;
    if (batch->options.engine == CAI_MPI_DIRECT)
        return cai_mpi_type(message->array, &message->type, err);
    dense = *message->array;
    dense.ndim = 1;
    dense.shape[0] = dense.size;
    dense.strides[0] = dense.dtype.itemsize;
    CAI_TRY(cai_mpi_type(&dense, &message->type, err));
    return cai_priv_mpi_alloc(batch, message, err);
}

static cai_status cai_priv_mpi_check(const cai_mpi_batch *batch, const cai_mpi_options *options,
                                     const cai_mpi_message *messages, int32_t count, cai_error *err)
{
    if (!batch || !options || !options->pool || count < 0 || (count && !messages))
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "batch, options, pool or messages is NULL, or count is negative");
    if (count > CAI_MPI_MESSAGES)
        return cai_priv_error(err, CAI_ERR_CAPACITY, "%ld messages, and a batch has at most %d", (long)count,
                              CAI_MPI_MESSAGES);
    if (options->engine < CAI_MPI_STAGED || options->engine > CAI_MPI_DIRECT || !(options->seconds >= 0))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "engine is %ld, or seconds is negative",
                              (long)options->engine);
    if (!cai_priv_is_stream(options->pool->cuda, options->stream))
        return cai_priv_error(err, CAI_ERR_STREAM, "options: 0 and -1 are no streams");
    return options->engine == CAI_MPI_DIRECT ? CAI_OK : cai_emm_hooks_check(options->hooks, err);
}

CAI_API cai_status cai_mpi_open(cai_mpi_batch *batch, const cai_mpi_options *options,
                                cai_mpi_message *messages, int32_t count, cai_error *err)
{
    cai_status status = CAI_OK;
    int32_t i;
    CAI_TRY(cai_priv_mpi_check(batch, options, messages, count, err));
    memset(batch, 0, sizeof *batch);
    batch->options = *options;
    batch->messages = messages;
    for (i = 0; !status && i < count; ++i) {
        messages[i].buffer = NULL;
        messages[i].type = MPI_DATATYPE_NULL;
        batch->requests[i] = MPI_REQUEST_NULL;
        status = cai_priv_mpi_prepare(batch, &messages[i], err);
        if (status && err) err->index = i;
    }
    batch->count = i;
    batch->state = CAI_PRIV_MPI_OPEN;
    if (!status) return CAI_OK;
    (void)cai_priv_mpi_free_all(batch, NULL);
    return status;
}

/* ------------------------------------------------------------------- >>starting */
static int32_t cai_priv_mpi_arrays(const cai_mpi_batch *batch, int sends, int receives, cai_array **arrays)
{
    int32_t i, count = 0;
    for (i = 0; i < batch->count; ++i) {
        const cai_mpi_message *message = &batch->messages[i];
        if (message->peer != MPI_PROC_NULL && (message->receives ? receives : sends))
            arrays[count++] = message->array;
    }
    return count;
}

/* Queues all packs, or all unpacks, as one exchange. */
static cai_status cai_priv_mpi_copy(const cai_mpi_batch *batch, int receives, cai_error *err)
{
    cai_event_pool *const pool = batch->options.pool;
    const uint64_t stream = batch->options.stream;
    const cai_exchange_options kept = {CAI_MODE_EVENT, CAI_UNKNOWN_SYNCHRONIZE, 0, CAI_EXCHANGE_KEEP_MODE, 0};
    cai_array *arrays[CAI_MPI_MESSAGES];
    const int32_t count = cai_priv_mpi_arrays(batch, !receives, receives, arrays);
    cai_exchange ex;
    cai_transfer plan;
    cai_status status = CAI_OK;
    int32_t i;
    if (!count) return CAI_OK;
    CAI_TRY(cai_exchange_begin_with(&ex, pool, arrays, count, stream, &kept, err));
    for (i = 0; !status && i < batch->count; ++i) {
        const cai_mpi_message *message = &batch->messages[i];
        if (!message->buffer || !message->receives != !receives) continue;
        status = cai_priv_mpi_plan(&plan, message, err);
        if (!status && plan.nbytes != message->nbytes)
            status = cai_priv_error(err, CAI_ERR_EXPECT, "the array has %ld bytes, and had %ld before",
                                    (long)plan.nbytes, (long)message->nbytes);
        if (!status) status = cai_transfer_copy(&plan, pool->cuda, stream, err);
        if (status && err) err->index = i;
    }
    return cai_exchange_end(&ex, status, err);
}

/* Orders MPI after the work on everything that it reads or writes. */
static cai_status cai_priv_mpi_wait_for_device(const cai_mpi_batch *batch, cai_error *err)
{
    const cai_exchange_options on_host = {CAI_MODE_HOST, 0, 0, 0, 0};
    cai_array *arrays[CAI_MPI_MESSAGES];
    cai_exchange ex;
    int32_t count = 0; /* the end of an exchange in this mode waits for the stream, also without arrays */
    if (batch->options.engine == CAI_MPI_DIRECT) count = cai_priv_mpi_arrays(batch, 1, 1, arrays);
    else CAI_TRY(cai_priv_mpi_copy(batch, 0, err));
    CAI_TRY(cai_exchange_begin_with(&ex, batch->options.pool, arrays, count, batch->options.stream, &on_host,
                                    err));
    return cai_exchange_end(&ex, CAI_OK, err);
}

static int cai_priv_mpi_post(cai_mpi_batch *batch, int32_t i)
{
    const cai_mpi_message *message = &batch->messages[i];
    const int count = message->nbytes ? 1 : 0; /* MPI takes no NULL for one of an empty datatype */
    void *const at = message->buffer ? message->buffer : (void *)(uintptr_t)message->array->data;
    if (message->receives)
        return MPI_Irecv(at, count, message->type, message->peer, message->tag, batch->options.comm,
                         &batch->requests[i]);
    return MPI_Isend(at, count, message->type, message->peer, message->tag, batch->options.comm,
                     &batch->requests[i]);
}

CAI_API cai_status cai_mpi_start(cai_mpi_batch *batch, cai_error *err)
{
    int code = MPI_SUCCESS, sends;
    int32_t i;
    cai_status status;
    if (!batch || batch->state != CAI_PRIV_MPI_OPEN)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the batch is not open, or started already");
    CAI_TRY(cai_priv_mpi_wait_for_device(batch, err));
    batch->state = CAI_PRIV_MPI_STARTED;
    for (sends = 0; sends < 2; ++sends) {
        for (i = 0; i < batch->count; ++i) {
            if (sends == (batch->messages[i].receives != 0)) continue;
            code = cai_priv_mpi_post(batch, i);
            if (code == MPI_SUCCESS) continue;
            batch->requests[i] = MPI_REQUEST_NULL;
            status = cai_mpi_status(code, sends ? "MPI_Isend" : "MPI_Irecv", err);
            if (err) err->index = i;
            return status;
        }
    }
    return CAI_OK;
}

/* ------------------------------------------------------------------ >>finishing */
/* Waits for all requests. MPI_ERR_PENDING: time ran out, and all requests are as they were. */
static int cai_priv_mpi_wait(cai_mpi_batch *batch, MPI_Status *states)
{
    const double limit = batch->options.seconds, begin = MPI_Wtime();
    int32_t i = 0;
    int code, done;
    while (limit > 0 && i < batch->count) {
        code = MPI_Request_get_status(batch->requests[i], &done, MPI_STATUS_IGNORE);
        if (!code && !done && MPI_Wtime() - begin > limit) return MPI_ERR_PENDING;
        if (code || done) ++i; /* MPI_Waitall returns the error */
    }
    return MPI_Waitall(batch->count, batch->requests, states);
}

static cai_status cai_priv_mpi_say(const cai_mpi_batch *batch, int32_t i, const char *what, cai_error *err)
{
    const cai_mpi_message *message = &batch->messages[i];
    const cai_status status =
        cai_priv_error(err, CAI_ERR_MPI, "message %ld %s rank %ld, tag %ld, %s", (long)i,
                       message->receives ? "from" : "to", (long)message->peer, (long)message->tag, what);
    if (err) err->index = i;
    return status;
}

/* Finds what became of the messages. */
static cai_status cai_priv_mpi_results(cai_mpi_batch *batch, int code, MPI_Status *states, cai_error *err)
{
    int32_t i;
    int elements, done;
    char text[MPI_MAX_ERROR_STRING];
    for (i = 0; i < batch->count; ++i) {
        const cai_mpi_message *message = &batch->messages[i];
        done = 1;
        if (code == MPI_ERR_PENDING)
            (void)MPI_Request_get_status(batch->requests[i], &done, MPI_STATUS_IGNORE);
        if (!done) return cai_priv_mpi_say(batch, i, "did not pass in time", err);
        if (code == MPI_ERR_IN_STATUS && states[i].MPI_ERROR != MPI_SUCCESS &&
            states[i].MPI_ERROR != MPI_ERR_PENDING) {
            (void)MPI_Error_string(states[i].MPI_ERROR, text, &elements);
            return cai_priv_mpi_say(batch, i, text, err);
        }
        if (!message->receives || message->peer == MPI_PROC_NULL || !message->nbytes || code) continue;
        (void)MPI_Get_count(&states[i], message->type, &elements);
        if (elements != 1) return cai_priv_mpi_say(batch, i, "has fewer elements than the array", err);
    }
    return cai_mpi_status(code, "waiting for messages", err);
}

/* Nobody would know of the unpack into an array that names no stream, or an event from before it. */
static cai_status cai_priv_mpi_name_stream(const cai_mpi_batch *batch, cai_error *err)
{
    cai_array *arrays[CAI_MPI_MESSAGES];
    const int32_t count = cai_priv_mpi_arrays(batch, 0, 1, arrays);
    int32_t i;
    for (i = 0; i < count; ++i) {
        const uint64_t own = arrays[i]->sync == CAI_SYNC_EVENT ? arrays[i]->stream : 0;
        if (arrays[i]->sync == CAI_SYNC_STREAM) continue;
        CAI_TRY(cai_stream_drop_event(arrays[i], batch->options.pool, err));
        arrays[i]->sync = CAI_SYNC_STREAM;
        arrays[i]->stream = own ? own : batch->options.stream;
        CAI_TRY(cai_stream_remember_thread(arrays[i], batch->options.pool, err));
    }
    return CAI_OK;
}

CAI_API cai_status cai_mpi_finish(cai_mpi_batch *batch, cai_error *err)
{
    MPI_Status states[CAI_MPI_MESSAGES];
    int32_t i;
    int code;
    if (!batch || batch->state != CAI_PRIV_MPI_STARTED)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the batch is not started");
    code = cai_priv_mpi_wait(batch, states);
    batch->state = CAI_PRIV_MPI_OPEN;
    for (i = 0; i < batch->count; ++i) {
        if (batch->requests[i] != MPI_REQUEST_NULL) batch->state = CAI_PRIV_MPI_STARTED;
    }
    CAI_TRY(cai_priv_mpi_results(batch, code, states, err));
    if (batch->options.engine == CAI_MPI_DIRECT) return CAI_OK;
    CAI_TRY(cai_priv_mpi_copy(batch, 1, err));
    return cai_priv_mpi_name_stream(batch, err);
}

CAI_API cai_status cai_mpi_close(cai_mpi_batch *batch, cai_error *err)
{
    MPI_Status states[CAI_MPI_MESSAGES];
    int32_t i;
    if (!batch) return cai_priv_error(err, CAI_ERR_ARGUMENT, "batch is NULL");
    if (batch->state == CAI_PRIV_MPI_STARTED) {
        for (i = 0; i < batch->count; ++i) {
            if (batch->requests[i] == MPI_REQUEST_NULL || !batch->messages[i].receives) continue;
            (void)MPI_Cancel(&batch->requests[i]);
        }
        if (cai_priv_mpi_wait(batch, states) == MPI_ERR_PENDING)
            return cai_priv_error(err, CAI_ERR_PENDING, "a message that was sent did not pass in time");
    }
    return cai_priv_mpi_free_all(batch, err);
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MPI_IMPLEMENTATION */

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
