/* cai_mpi.h - arrays as MPI messages, in order with their streams - v0.2.0
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

#if CAI_EMM_H_INCLUDED / 100 != 2
#error "cai_mpi.h: this is version 0.2, which needs cai_emm.h 0.2"
#endif
#if CAI_MPI_TYPE_H_INCLUDED / 100 != 2
#error "cai_mpi.h: this is version 0.2, which needs cai_mpi_type.h 0.2"
#endif
#if defined(CAI_MPI_H_INCLUDED) && CAI_MPI_H_INCLUDED != 200
#error "cai_mpi.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_MPI_H_INCLUDED
#define CAI_MPI_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c or .cpp file (CAI_MPI_IMPLEMENTATION for this header alone). The rest is as in cai_emm.h.

        #define CAI_IMPLEMENTATION
        #include "cai_mpi.h"

WHAT IT IS
    MPI knows no streams. It reads and writes when the host calls it. A batch does what is needed before and
    after that. It waits for the pending work, packs, sends and receives, unpacks, and gives the back edge.

        cai_mpi_options options = {CAI_MPI_STAGED, 60.0, &pool, &hooks, CAI_STREAM(s), comm};
        CAI_TRY(cai_mpi_halo(&field, &halo, list, parts, 52, &count, err));      // or a list of your own:
        CAI_TRY(cai_mpi_open(&batch, &options, list, count, err));               // array, peer, tag, receives
        status = cai_mpi_start(&batch, err);                                     // packs, starts messages
        if (!status) status = work_on_the_inside(s2);
        if (!status) status = cai_mpi_finish(&batch, err);                       // waits for them, unpacks
        closed = cai_mpi_close(&batch, status ? NULL : err);                     // after many steps

ENGINES
                       sends and receives in         MPI must know CUDA     the host waits at start for
        CAI_MPI_STAGED pinned memory of the hooks    no                     the packs
        CAI_MPI_PACKED device memory of the hooks    yes                    the packs
        CAI_MPI_DIRECT the arrays, by a datatype     for memory of a device work on the arrays
    The engines of the two ends may differ. DIRECT is for memory of the host (docs/communication.md).

ORDER
    Start waits for the pending work of what is sent, and of records that are received. After start, what is
    sent may be written again and released. Until finish, nobody may use or release what is received. The
    stream of the batch unpacks, and the streams of the arrays wait for that. If an array names no stream, it
    gets that of the batch. DIRECT: start waits for the pending work of all arrays. Until finish they stay
    alive, and nobody writes to what is sent. MPI matches messages of one peer and tag as they start.

WITHOUT CUDA
    On nodes without a GPU leave out pool, hooks and stream: {CAI_MPI_DIRECT, 60.0, NULL, NULL, 0, comm}. The
    arrays then have CAI_SYNC_NONE. Compile with CAI_NO_CUDART and CAI_NO_LOADER: no header of CUDA is read.

ERRORS AND THREADS
    As in cai_mpi_type.h. A message must have all elements of its array, and no more. After CAI_ERR_MPI a
    batch can only be closed. cai_error.index is the number of the message.
*/

#if defined(CAI_NAMESPACE)
#define cai_mpi_close CAI_PRIV_RENAMED(cai_mpi_close)
#define cai_mpi_finish CAI_PRIV_RENAMED(cai_mpi_finish)
#define cai_mpi_halo CAI_PRIV_RENAMED(cai_mpi_halo)
#define cai_mpi_open CAI_PRIV_RENAMED(cai_mpi_open)
#define cai_mpi_start CAI_PRIV_RENAMED(cai_mpi_start)
#endif

CAI_PRIV_C_BEGIN

/* -------------------------------------------------------------------- >>batches */
enum { CAI_MPI_STAGED = 0, CAI_MPI_PACKED = 1, CAI_MPI_DIRECT = 2 }; /* ENGINES */
enum { CAI_MPI_MESSAGES = 160 };                                     /* of a batch */

/** A message. Only peer, tag, data and pending work of the array may change, between finish and start. */
typedef struct cai_mpi_message {
    cai_array *array;
    int32_t peer, tag, receives; /* a rank, or MPI_PROC_NULL; receives: 1 into the array, 0 from it */
} cai_mpi_message;

typedef struct cai_mpi_options {
    int32_t engine;             /* CAI_MPI_... */
    double seconds;             /* how long cai_mpi_finish and cai_mpi_close wait for messages; 0: for ever */
    cai_event_pool *pool;       /* it and the hooks must outlive the batch; NULL: WITHOUT CUDA */
    const cai_emm_hooks *hooks; /* host_alloc for STAGED, device_alloc for PACKED */
    uint64_t stream;            /* for packs and unpacks; start waits for all that is in it. Needs a pool */
    MPI_Comm comm;
} cai_mpi_options;

/** Messages that are sent and received together, by one thread at a time. Its fields may be read. */
typedef struct cai_mpi_batch {
    cai_mpi_options options;
    const cai_mpi_message *messages;
    int32_t count, state;
    int64_t nbytes[CAI_MPI_MESSAGES];
    void *buffers[CAI_MPI_MESSAGES];
    MPI_Datatype types[CAI_MPI_MESSAGES];
    MPI_Request requests[CAI_MPI_MESSAGES];
} cai_mpi_batch;

/** Opens a batch of `count` messages, and allocates their buffers. The messages belong to the caller and must
 *  not move. The current context is that of the stream, in all calls. On failure nothing stays allocated.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_CAPACITY, CAI_ERR_STREAM, CAI_ERR_UNAVAILABLE (no host_alloc),
 *  CAI_ERR_OUT_OF_MEMORY, CAI_ERR_CUDA, those of cai_transfer_unpack, cai_mpi_type, cai_emm_hooks_check. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_open(cai_mpi_batch *batch, const cai_mpi_options *options,
                                               const cai_mpi_message *list, int32_t count, cai_error *err);

/** Packs what is sent, waits on the host for that and for earlier unpacks, and starts all messages. If it
 *  fails before the first message, it may be called again. Errors: CAI_ERR_ARGUMENT (started already, or
 *  pending work without a pool), CAI_ERR_EXPECT (a layout changed), CAI_ERR_MPI, those of
 *  cai_exchange_begin_with and cai_transfer_copy. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_start(cai_mpi_batch *batch, cai_error *err);

/** Waits on the host until all messages have passed, and queues the unpacks. If a message failed, nothing is
 *  unpacked. If time runs out (CAI_ERR_PENDING), call it again, or close the batch. Errors: CAI_ERR_ARGUMENT
 *  (not started), CAI_ERR_PENDING and those of cai_mpi_start. Those of messages name message and peer. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_finish(cai_mpi_batch *batch, cai_error *err);

/** Frees what cai_mpi_open allocated. Receives that are still open are cancelled. If a message does not pass
 *  in time, nothing is freed (CAI_ERR_PENDING). Then call it again, or MPI_Abort. Does nothing for a batch
 *  that is closed or zero. Errors: CAI_ERR_ARGUMENT, CAI_ERR_PENDING, CAI_ERR_CUDA. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_close(cai_mpi_batch *batch, cai_error *err);

/* ----------------------------------------------------------------------- >>halo */
enum { CAI_MPI_HALO_DIMS = 9 }; /* of a communicator, so that 3^n tags fit MPI's smallest limit */

/** How fields are split over a Cartesian communicator. Widths, axes and tag are the same on all ranks. */
typedef struct cai_mpi_halo_options {
    MPI_Comm comm;            /* of MPI_Cart_create; also that of the batch */
    const int64_t *halo_low;  /* elements of the halo before the inside, of each axis of the field */
    const int64_t *halo_high; /* the same behind it */
    const int32_t *axes;      /* that of each dimension of comm; NULL: 0, 1, ... Others are sent in whole */
    int32_t faces;            /* 1: without edges and corners, for kernels that do not read them */
    int32_t tag;              /* the first of 3^n, for n dimensions */
} cai_mpi_halo_options;

/** Lists the messages that fill the halo of a field, those that send from the inside and those that receive.
 *  Each array in `parts` names the pending work that the field names now. List and parts stay where they are
 *  as long as the batch, so each batch needs its own. Both have `capacity` places. *count places are used,
 *  at most 2 * (3^n - 1), or 4 * n for faces. There is no message for a width of 0, or beyond an edge that
 *  is not periodic, and that halo is not touched. Edges and corners come from diagonal neighbours, in short
 *  messages, not from one dimension after another. So a field has one start and one finish. Open a batch of
 *  the list, of several lists in a row, or of parts of it that are all started before one is finished.
 *  Errors: CAI_ERR_ARGUMENT (axes; or comm is not Cartesian, or has more dimensions than the field has
 *  axes), CAI_ERR_SHAPE (a width exceeds the elements inside), CAI_ERR_CAPACITY (*count is what is needed),
 *  CAI_ERR_MPI, those of cai_view_slice. cai_error.index is that of the axis, or that in `axes`. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_halo(const cai_array *field, const cai_mpi_halo_options *options,
                                               cai_mpi_message *list, cai_array *parts, int32_t capacity,
                                               int32_t *count, cai_error *err);

CAI_PRIV_C_END

#endif /* CAI_MPI_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>halo */

#if defined(CAI_MPI_IMPLEMENTATION) && !defined(CAI_MPI_IMPLEMENTED)
#define CAI_MPI_IMPLEMENTED
#define CAI_PRIV_WANT_EMM
#include "cai_emm.h"

CAI_PRIV_C_BEGIN

enum { CAI_PRIV_MPI_CLOSED = 0, CAI_PRIV_MPI_OPEN = 1, CAI_PRIV_MPI_STARTED = 2, CAI_PRIV_MPI_BROKEN = 3 };

/* Makes the datatype of a message, as MPI sees it, and its buffer. */
static cai_status cai_priv_mpi_add(cai_mpi_batch *batch, int32_t i, cai_error *err)
{
    const cai_mpi_options *const options = &batch->options;
    const cai_array *const array = batch->messages[i].array;
    void **const buffer = &batch->buffers[i];
    cai_emm_hooks hooks;
    cai_transfer plan;
    int32_t error;
    if (batch->messages[i].receives) CAI_TRY(cai_transfer_unpack(&plan, array, 0, err));
    else CAI_TRY(cai_transfer_pack(&plan, array, 0, err));
    batch->nbytes[i] = plan.nbytes;
    if (options->engine == CAI_MPI_DIRECT) return cai_mpi_type(array, &batch->types[i], err);
    CAI_TRY(cai_mpi_type_packed(array, &batch->types[i], err));
    if (options->engine == CAI_MPI_PACKED)
        return cai_emm_alloc(buffer, options->hooks, (size_t)plan.nbytes, options->stream, err);
    cai_priv_emm_whole_hooks(&hooks, options->hooks);
    if (!hooks.host_alloc)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no host_alloc", cai_priv_emm_name(&hooks));
    if (!plan.nbytes) return CAI_OK;
    error = hooks.host_alloc(hooks.ctx, buffer, (size_t)plan.nbytes, CAI_HOST_PORTABLE);
    if (!error && *buffer) return CAI_OK;
    *buffer = NULL;
    if (error && error != 2) return cai_priv_emm_hook_status(&hooks, "host_alloc", error, err);
    return cai_priv_error(err, CAI_ERR_OUT_OF_MEMORY, "host_alloc of %s has no %lld bytes",
                          cai_priv_emm_name(&hooks), (long long)plan.nbytes);
}

static cai_status cai_priv_mpi_free(cai_mpi_batch *batch, cai_error *err)
{
    const int packed = batch->options.engine == CAI_MPI_PACKED;
    struct CUstream_st *const stream = cai_stream_to_cuda(batch->options.stream);
    cai_emm_hooks hooks;
    cai_status status = CAI_OK;
    int32_t i, error;
    for (i = 0; i < batch->count; ++i) {
        const size_t size = (size_t)batch->nbytes[i];
        if (batch->types[i] != MPI_DATATYPE_NULL) (void)MPI_Type_free(&batch->types[i]);
        if (!batch->buffers[i]) continue;
        cai_priv_emm_whole_hooks(&hooks, batch->options.hooks);
        error = (packed ? hooks.device_free : hooks.host_free)(hooks.ctx, batch->buffers[i], size, stream);
        if (!error) continue;
        status = cai_priv_emm_hook_status(&hooks, packed ? "device_free" : "host_free", error, err);
    }
    memset(batch, 0, sizeof *batch);
    return status;
}

CAI_API cai_status cai_mpi_open(cai_mpi_batch *batch, const cai_mpi_options *options,
                                const cai_mpi_message *list, int32_t count, cai_error *err)
{
    cai_status status = CAI_OK;
    int32_t i;
    if (!batch || !options || count < 0 || (count && !list))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "batch, options or list is NULL, or count is negative");
    if (count > CAI_MPI_MESSAGES)
        return cai_priv_error(err, CAI_ERR_CAPACITY, "count = %d is above %d", (int)count, CAI_MPI_MESSAGES);
    if (options->engine < CAI_MPI_STAGED || options->engine > CAI_MPI_DIRECT || !(options->seconds >= 0))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "engine = %d, or seconds < 0", (int)options->engine);
    if (options->pool ? !options->pool->cuda : options->engine != CAI_MPI_DIRECT)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_mpi_open: options.pool is %s",
                              options->pool ? "not made" : "NULL");
    if (options->pool)
        CAI_TRY(cai_stream_order(options->pool, options->stream, options->stream, err)); /* checks it */
    if (options->engine != CAI_MPI_DIRECT) CAI_TRY(cai_emm_hooks_check(options->hooks, err));
    memset(batch, 0, sizeof *batch);
    batch->options = *options;
    batch->messages = list;
    batch->state = CAI_PRIV_MPI_OPEN;
    for (i = 0; !status && i < count; i = ++batch->count) {
        batch->types[i] = MPI_DATATYPE_NULL;
        batch->requests[i] = MPI_REQUEST_NULL;
        status = cai_priv_mpi_add(batch, i, err);
        if (status && err) err->index = i;
    }
    if (status) (void)cai_priv_mpi_free(batch, NULL);
    return status;
}

/* Names a stream in an array that names none, or an older event, so that others wait for the unpack. */
static cai_status cai_priv_mpi_name_stream(cai_array *array, const cai_mpi_options *options, cai_error *err)
{
    const uint64_t own = array->sync == CAI_SYNC_EVENT ? array->stream : 0;
    if (array->sync == CAI_SYNC_STREAM) return CAI_OK;
    CAI_TRY(cai_stream_drop_event(array, options->pool, err));
    array->sync = CAI_SYNC_STREAM;
    array->stream = own ? own : options->stream;
    return cai_stream_remember_thread(array, options->pool, err);
}

/* Refuses pending work if there is no pool to wait with. */
static cai_status cai_priv_mpi_idle(const cai_array *array, int32_t i, cai_error *err)
{
    if (array->sync == CAI_SYNC_NONE || !array->size) return CAI_OK;
    if (array->sync == CAI_SYNC_UNKNOWN)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cai_mpi_start: message %ld: work may be pending (CAI_SYNC_UNKNOWN), and "
                              "options.pool is NULL",
                              (long)i);
    return cai_priv_error(
        err, CAI_ERR_ARGUMENT,
        "cai_mpi_start: message %ld: %s %llu has pending work, and options.pool is NULL", (long)i,
        array->sync == CAI_SYNC_STREAM ? "stream" : "event",
        (unsigned long long)(array->sync == CAI_SYNC_STREAM ? array->stream : array->event));
}

/* Queues all packs or unpacks as one exchange, with `none` for other messages, so that the numbers agree. */
static cai_status cai_priv_mpi_exchange(const cai_mpi_batch *batch, int unpacks, cai_error *err)
{
    const cai_exchange_options kept = cai_priv_keep_mode();
    const cai_mpi_options *const options = &batch->options;
    const int64_t shape = 0;
    cai_event_pool *const pool = options->pool;
    cai_array *arrays[CAI_MPI_MESSAGES], none;
    cai_exchange ex;
    cai_transfer plan;
    cai_status status = cai_array_init(&none, CAI_INT8, 1, &shape, NULL, NULL, err);
    int32_t i;
    for (i = 0; i < batch->count; ++i) {
        const cai_mpi_message *const message = &batch->messages[i];
        /* a record may have padding, which MPI leaves out, and the unpack copies */
        const int packs = !batch->buffers[i] || !message->receives || message->array->fields;
        const int takes_part = unpacks ? batch->buffers[i] && message->receives : packs;
        arrays[i] = takes_part && message->peer != MPI_PROC_NULL ? message->array : &none;
    }
    if (pool) CAI_TRY(cai_exchange_begin_with(&ex, pool, arrays, batch->count, options->stream, &kept, err));
    for (i = 0; !status && i < batch->count; ++i) {
        const uint64_t buffer = (uint64_t)(uintptr_t)batch->buffers[i];
        if (arrays[i] == &none) continue;
        status = unpacks ? cai_transfer_unpack(&plan, arrays[i], buffer, err)
                         : cai_transfer_pack(&plan, arrays[i], buffer, err);
        if (!status && !pool) status = cai_priv_mpi_idle(arrays[i], i, err);
        if (!status && plan.nbytes != batch->nbytes[i])
            status = cai_priv_error(err, CAI_ERR_EXPECT, "the array has %lld bytes, and had %lld before",
                                    (long long)plan.nbytes, (long long)batch->nbytes[i]);
        if (!status && buffer) status = cai_transfer_copy(&plan, options->pool->cuda, options->stream, err);
        if (!status && unpacks) status = cai_priv_mpi_name_stream(arrays[i], options, err);
        if (status && err) err->index = i;
    }
    return pool ? cai_exchange_end(&ex, status, err) : status;
}

/* Makes the error of a message. If `code` is an error of MPI, its text replaces `what`. */
static cai_status cai_priv_mpi_say(const cai_mpi_batch *batch, int32_t i, cai_status status, int code,
                                   const char *what, cai_error *err)
{
    const cai_mpi_message *const message = &batch->messages[i];
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code) (void)MPI_Error_string(code, text, &length);
    status = cai_priv_error(err, status, "message %ld %s rank %ld, tag %ld, %s", (long)i,
                            message->receives ? "from" : "to", (long)message->peer, (long)message->tag,
                            code ? text : what);
    if (err) err->index = i;
    if (err) err->native = code;
    return status;
}

static cai_status cai_priv_mpi_post(cai_mpi_batch *batch, int32_t i, cai_error *err)
{
    const cai_mpi_message *const message = &batch->messages[i];
    const int count = batch->nbytes[i] ? 1 : 0; /* MPI takes no NULL for one of an empty datatype */
    void *const at = batch->buffers[i] ? batch->buffers[i] : (void *)(uintptr_t)message->array->data;
    const MPI_Comm comm = batch->options.comm;
    MPI_Request *const request = &batch->requests[i];
    const int code =
        message->receives ? MPI_Irecv(at, count, batch->types[i], message->peer, message->tag, comm, request)
                          : MPI_Isend(at, count, batch->types[i], message->peer, message->tag, comm, request);
    if (code == MPI_SUCCESS) return CAI_OK;
    *request = MPI_REQUEST_NULL;
    return cai_priv_mpi_say(batch, i, CAI_ERR_MPI, code, "", err);
}

CAI_API cai_status cai_mpi_start(cai_mpi_batch *batch, cai_error *err)
{
    const cai_exchange_options on_host = {CAI_MODE_HOST, 0, 0, 0, 0};
    cai_exchange ex;
    cai_event_pool *pool;
    int32_t i, receives;
    if (!batch || batch->state != CAI_PRIV_MPI_OPEN)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the batch is not open, or started already");
    pool = batch->options.pool;
    CAI_TRY(cai_priv_mpi_exchange(batch, 0, err));
    if (pool) {
        CAI_TRY(cai_exchange_begin_with(&ex, pool, NULL, 0, batch->options.stream, &on_host, err));
        CAI_TRY(cai_exchange_end(&ex, CAI_OK, err));
    }
    batch->state = CAI_PRIV_MPI_BROKEN;
    for (receives = 1; receives >= 0; --receives) /* first, so that messages find their place */
        for (i = 0; i < batch->count; ++i)
            if (receives == (batch->messages[i].receives != 0)) CAI_TRY(cai_priv_mpi_post(batch, i, err));
    batch->state = CAI_PRIV_MPI_STARTED;
    return CAI_OK;
}

/* Ends the messages one by one. A later call continues with the next one. */
static cai_status cai_priv_mpi_wait(cai_mpi_batch *batch, int cancels, cai_error *err)
{
    const double limit = batch->options.seconds, begin = MPI_Wtime();
    MPI_Status state;
    int32_t i;
    for (i = 0; i < batch->count; ++i) {
        const cai_mpi_message *const message = &batch->messages[i];
        int code = MPI_SUCCESS, done = 0, count = 1;
        if (batch->requests[i] == MPI_REQUEST_NULL) continue;
        if (cancels && message->receives) (void)MPI_Cancel(&batch->requests[i]);
        while (!code && !done) {
            code = MPI_Test(&batch->requests[i], &done, &state);
            if (!code && !done && limit > 0 && MPI_Wtime() - begin > limit)
                return cai_priv_mpi_say(batch, i, CAI_ERR_PENDING, MPI_SUCCESS, "did not pass in time", err);
        }
        if (!code && message->receives && message->peer != MPI_PROC_NULL && batch->nbytes[i])
            (void)MPI_Get_count(&state, batch->types[i], &count);
        if (cancels || (!code && count == 1)) continue;
        batch->state = CAI_PRIV_MPI_BROKEN;
        return cai_priv_mpi_say(batch, i, CAI_ERR_MPI, code, "has fewer elements than the array", err);
    }
    return CAI_OK;
}

CAI_API cai_status cai_mpi_finish(cai_mpi_batch *batch, cai_error *err)
{
    if (!batch || batch->state != CAI_PRIV_MPI_STARTED)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "the batch is not started");
    CAI_TRY(cai_priv_mpi_wait(batch, 0, err));
    batch->state = CAI_PRIV_MPI_OPEN;
    return cai_priv_mpi_exchange(batch, 1, err);
}

CAI_API cai_status cai_mpi_close(cai_mpi_batch *batch, cai_error *err)
{
    if (!batch) return cai_priv_error(err, CAI_ERR_ARGUMENT, "batch is NULL");
    if (batch->state == CAI_PRIV_MPI_CLOSED) return CAI_OK;
    batch->state = CAI_PRIV_MPI_BROKEN;
    CAI_TRY(cai_priv_mpi_wait(batch, 1, err));
    return cai_priv_mpi_free(batch, err);
}

/* ----------------------------------------------------------------------- >>halo */
typedef struct cai_priv_mpi_cart {
    int count, dims[CAI_MPI_HALO_DIMS], periods[CAI_MPI_HALO_DIMS], at[CAI_MPI_HALO_DIMS];
    int32_t axes[CAI_MPI_HALO_DIMS];
    int32_t directions; /* 3^count. The digits of a direction are 0 before, 1 along, 2 behind */
} cai_priv_mpi_cart;

CAI_PRIV_COLD cai_status cai_priv_mpi_item(cai_error *err, cai_status status, const char *name, int32_t index,
                                           int64_t value, const char *limit_name, int64_t limit)
{
    status = cai_priv_error(err, status, "cai_mpi_halo: %s[%ld] = %lld: %s %lld", name, (long)index,
                            (long long)value, limit_name, (long long)limit);
    if (err) err->index = index;
    return status;
}

static cai_status cai_priv_mpi_widths(int64_t extent, int64_t low, int64_t high, int32_t axis, cai_error *err)
{
    const int fits = low >= 0 && high >= 0 && low <= extent && high <= extent;
    const int64_t inside = fits ? extent - low - high : extent, limit = inside > 0 ? inside : 0;
    if (low < 0 || low > limit)
        return cai_priv_mpi_item(err, CAI_ERR_SHAPE, "halo_low", axis, low, "elements inside:", limit);
    if (high >= 0 && high <= limit) return CAI_OK;
    return cai_priv_mpi_item(err, CAI_ERR_SHAPE, "halo_high", axis, high, "elements inside:", limit);
}

static cai_status cai_priv_mpi_axes(const cai_array *field, const cai_mpi_halo_options *options,
                                    cai_priv_mpi_cart *cart, cai_error *err)
{
    int32_t i, before, axis;
    cart->directions = 1;
    for (i = 0; i < cart->count; ++i, cart->directions *= 3) {
        axis = cart->axes[i] = options->axes ? options->axes[i] : i;
        if (axis < 0 || axis >= field->ndim)
            return cai_priv_mpi_item(err, CAI_ERR_ARGUMENT, "axes", i, axis,
                                     "axes of the field:", field->ndim);
        for (before = 0; before < i; ++before)
            if (axis == cart->axes[before])
                return cai_priv_mpi_item(err, CAI_ERR_ARGUMENT, "axes", i, axis, "so is axis", before);
        CAI_TRY(cai_priv_mpi_widths(field->shape[axis], options->halo_low[axis], options->halo_high[axis],
                                    axis, err));
    }
    return CAI_OK;
}

static cai_status cai_priv_mpi_cart_of(const cai_array *field, const cai_mpi_halo_options *options,
                                       cai_priv_mpi_cart *cart, cai_error *err)
{
    const int32_t limit = field->ndim < CAI_MPI_HALO_DIMS ? field->ndim : CAI_MPI_HALO_DIMS;
    int kind = MPI_UNDEFINED, code = MPI_SUCCESS;
    if (options->comm != MPI_COMM_NULL) code = MPI_Topo_test(options->comm, &kind);
    if (!code && kind != MPI_CART)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_mpi_halo: options.comm is not of MPI_Cart_create");
    if (!code) code = MPI_Cartdim_get(options->comm, &cart->count);
    if (!code && cart->count > limit)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_mpi_halo: options.comm has %d dimensions: %s %ld",
                              cart->count,
                              limit < field->ndim ? "at most" : "axes of the field:", (long)limit);
    if (!code) code = MPI_Cart_get(options->comm, cart->count, cart->dims, cart->periods, cart->at);
    CAI_TRY(cai_mpi_status(code, "cai_mpi_halo", err));
    return cai_priv_mpi_axes(field, options, cart, err);
}

/* Makes one message. Its peer is MPI_PROC_NULL if there is none. What goes in a direction arrives from the
 * opposite one: so is the tag, for a rank may be a neighbour on several sides. */
static cai_status cai_priv_mpi_part(const cai_array *field, const cai_mpi_halo_options *options,
                                    const cai_priv_mpi_cart *cart, int32_t direction,
                                    cai_mpi_message *message, cai_array *part, cai_error *err)
{
    const int receives = message->receives;
    int at[CAI_MPI_HALO_DIMS], sides = 0, peer = MPI_PROC_NULL, outside = 0, i;
    int32_t rest = direction;
    cai_array_borrow(part, field);
    for (i = 0; i < cart->count; ++i, rest /= 3) {
        const int32_t axis = cart->axes[i], side = rest % 3 - 1;
        const int64_t low = options->halo_low[axis], high = options->halo_high[axis];
        const int64_t end = field->shape[axis] - high; /* of the inside */
        int64_t start = low, length = end - low;
        if (side < 0) length = receives ? low : high;
        if (side > 0) length = receives ? high : low;
        if (side < 0 && receives) start = 0;
        if (side > 0) start = receives ? end : end - length;
        CAI_TRY(cai_view_slice(part, axis, start, length, 1, part, err));
        at[i] = cart->at[i] + side;
        sides += side != 0;
        if (!cart->periods[i] && (at[i] < 0 || at[i] >= cart->dims[i])) outside = 1;
    }
    message->tag = options->tag + (receives ? cart->directions - 1 - direction : direction);
    if (!outside && sides && (sides == 1 || !options->faces))
        CAI_TRY(cai_mpi_status(MPI_Cart_rank(options->comm, at, &peer), "cai_mpi_halo", err));
    message->peer = peer;
    return CAI_OK;
}

CAI_API cai_status cai_mpi_halo(const cai_array *field, const cai_mpi_halo_options *options,
                                cai_mpi_message *list, cai_array *parts, int32_t capacity, int32_t *count,
                                cai_error *err)
{
    cai_priv_mpi_cart cart;
    cai_array part;
    int32_t direction, receives, n = 0;
    CAI_TRY(cai_array_check(field, err));
    if (!options || !options->halo_low || !options->halo_high || !count ||
        (capacity > 0 && (!list || !parts)))
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cai_mpi_halo: options, a width, list, parts or count is NULL");
    if (options->tag < 0 || options->tag > INT32_MAX - 19683) /* 3^9 */
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_mpi_halo: options.tag = %ld", (long)options->tag);
    CAI_TRY(cai_priv_mpi_cart_of(field, options, &cart, err));
    for (direction = 0; direction < cart.directions; ++direction) {
        for (receives = 0; receives < 2; ++receives) {
            cai_mpi_message message = {NULL, 0, 0, 0};
            message.receives = receives;
            CAI_TRY(cai_priv_mpi_part(field, options, &cart, direction, &message, &part, err));
            if (message.peer == MPI_PROC_NULL || !part.size) continue;
            if (n++ >= capacity) continue;
            parts[n - 1] = part;
            message.array = &parts[n - 1];
            list[n - 1] = message;
        }
    }
    *count = n;
    if (n <= capacity) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_CAPACITY, "cai_mpi_halo: capacity = %ld: messages needed: %ld",
                          (long)capacity, (long)n);
}

CAI_PRIV_C_END

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
