/* recipes.h - what the documents say how to exchange arrays, as programs_recipes.c runs it
 * SPDX-License-Identifier: MIT
 *
 * Each part below stands in the document that it names, word for word: tests/docs/check_docs.py compares them.
 * What a recipe calls and does not show (kernels) is of programs_recipes.c. */

#define launch launch_one
/* ---- cai_stream.h */
cai_status scale(cai_event_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err);
cai_status scale(cai_event_pool *pool, cai_array *x, struct CUstream_st *s, cai_error *err)
{
    cai_array *io[1] = {x};
    cai_exchange ex;
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err));
    return cai_exchange_finish(&ex, cai_cuda_status(launch(x, s), "scale_kernel", err), io, 1, err);
}
/* ---- */
#undef launch

/* ---- docs/dlpack.md */
/* A consumer: what a capsule "dltensor_versioned" holds, made by __dlpack__(stream=stream). Doubles it on
 * `stream`, and gives it back when that has passed. *taken: the tensor is not the caller's any more. Then the
 * caller renames the capsule, also after an error. */
cai_status double_tensor(struct DLManagedTensorVersioned *managed, cai_event_pool *pool, uint64_t stream,
                         int *taken, cai_error *err);
cai_status double_tensor(struct DLManagedTensorVersioned *managed, cai_event_pool *pool, uint64_t stream,
                         int *taken, cai_error *err)
{
    cai_dlpack_options options;
    cai_array x;
    cai_array *io[1] = {&x};
    cai_exchange ex;
    cai_status status;
    memset(&options, 0, sizeof options);
    options.sync = CAI_SYNC_STREAM;
    options.stream = stream;
    status = cai_dlpack_import_versioned(managed, &options, &x, err);
    *taken = !status || status == CAI_ERR_VERSION;
    if (status) return status;
    status = cai_exchange_begin(&ex, pool, io, 1, stream, err);
    if (status) {
        cai_array_release(&x); /* nothing was launched */
        return status;
    }
    status = cai_cuda_status(launch_double(&x, stream), "launch_double", err);
    return cai_exchange_finish(&ex, status, io, 1, err); /* calls the deleter, when stream has passed */
}
/* ---- */

/* ---- docs/dlpack.md */
static void free_storage(cai_dlpack_storage *storage)
{
    free(storage);
}

/* A producer: y goes into a tensor for a consumer that works on `stream`. That stream waits for y's pending
 * work here. The deleter gives y back after that stream's work. After an error y is still the caller's. */
cai_status give_tensor(cai_array *y, cai_event_pool *pool, uint64_t stream,
                       struct DLManagedTensorVersioned **managed, cai_error *err);
cai_status give_tensor(cai_array *y, cai_event_pool *pool, uint64_t stream,
                       struct DLManagedTensorVersioned **managed, cai_error *err)
{
    cai_dlpack_ordered *storage = (cai_dlpack_ordered *)malloc(sizeof *storage);
    cai_status status;
    if (!storage) return CAI_ERR_OUT_OF_MEMORY;
    storage->storage.done = free_storage; /* when y was given back */
    status = cai_dlpack_export_ordered_versioned(y, pool, stream, 0, storage, managed, err);
    if (status) free(storage);
    return status;
}
/* ---- */

#define launch launch_pair
/* ---- docs/getting-started.md */
static cai_status consume(cai_event_pool *pool, cai_array *x, cai_array *y, struct CUstream_st *mine, cai_error *err)
{
    cai_array *io[2] = {x, y};
    cai_exchange ex;
    CAI_TRY(cai_locate(x, "x", pool->cuda, CAI_LOCATE_BOUNDS, NULL, err)); /* device memory, and all of it? */
    CAI_TRY(cai_locate(y, "y", pool->cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 2, CAI_STREAM(mine), err));
    return cai_exchange_finish(&ex, cai_cuda_status(launch(x, y, mine), "launch", err), io, 2, err);
}
/* ---- */
#undef launch

/* ---- docs/placing.md */
cai_status begin_after(cai_exchange *ex, cai_event_pool *pool, cai_array *x, uint64_t producers_stream,
                       struct CUstream_st *mine, cai_error *err);

/* producers_stream: what its library calls the current stream, asked where x was imported. */
cai_status begin_after(cai_exchange *ex, cai_event_pool *pool, cai_array *x, uint64_t producers_stream,
                       struct CUstream_st *mine, cai_error *err)
{
    cai_exchange_options options;
    memset(&options, 0, sizeof options); /* 0 is the default of every option */
    options.unknown = CAI_UNKNOWN_STREAM;
    options.unknown_stream = producers_stream;
    return cai_exchange_begin_with(ex, pool, &x, 1, CAI_STREAM(mine), &options, err);
}
/* ---- */

/* ---- docs/placing.md */
cai_status export_sum(cai_array *sum, cai_event_pool *pool, const uint64_t working[3], struct CUstream_st *mine,
                      cai_error *err);

cai_status export_sum(cai_array *sum, cai_event_pool *pool, const uint64_t working[3], struct CUstream_st *mine,
                      cai_error *err)
{
    return cai_stream_export(sum, pool, CAI_STREAM(mine), working, 3, err); /* up to 3 records and waits */
}
/* ---- */

/* ---- docs/placing.md */
cai_status add(cai_event_pool *pool, cai_array *x, cai_array *y, cai_array *out,
               int32_t (*launch)(cai_array *const *, uint64_t), cai_error *err);

cai_status add(cai_event_pool *pool, cai_array *x, cai_array *y, cai_array *out,
               int32_t (*launch)(cai_array *const *, uint64_t), cai_error *err)
{
    const cai_operand inputs[2] = {cai_operand_array(x, "x"), cai_operand_array(y, "y")};
    cai_array *io[3] = {x, y, out};
    cai_placement where;
    cai_exchange ex;
    CAI_TRY(cai_place(inputs, 2, out, CAI_PLACE_SAME_DEVICE, 0, 0, &where, err));
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 3, where.stream, err)); /* joins the streams of all three */
    return cai_exchange_finish(&ex, cai_cuda_status(launch(io, where.stream), "add", err), io, 3, err);
}
/* ---- */

#define launch launch_pair
cai_status doubled(cai_array *y, cai_manager *manager, cai_array *x, struct CUstream_st *s, cai_error *err);
/* ---- docs/memory.md */
/* y: a new array, of the caller. x: given back once the exchange has begun. */
cai_status doubled(cai_array *y, cai_manager *manager, cai_array *x, struct CUstream_st *s, cai_error *err)
{
    cai_array *io[1] = {x};
    cai_exchange ex;
    cai_status status;
    CAI_TRY(cai_manager_array(y, manager, CAI_FLOAT32, x->ndim, x->shape, CAI_STREAM(s), err));
    status = cai_exchange_begin(&ex, manager->pool, io, 1, CAI_STREAM(s), err);
    if (!status)
        status = cai_exchange_finish(&ex, cai_cuda_status(launch(x, y, s), "launch", err), io, 1, err);
    if (status) cai_array_release(y);
    return status;
}
/* ---- */
#undef launch

cai_status tail_of(cai_array *tail, cai_manager *manager, struct CUstream_st *s, cai_error *err);
/* ---- docs/memory.md */
cai_status tail_of(cai_array *tail, cai_manager *manager, struct CUstream_st *s, cai_error *err)
{
    const int64_t extent = 1024;
    cai_memory_handle whole;
    cai_status status, freed;
    char *bytes;
    CAI_TRY(cai_manager_alloc(&whole, manager, 2048, 0, CAI_STREAM(s), err));
    bytes = (char *)cai_manager_pointer(manager, whole);
    status = cai_array_init(tail, CAI_UINT8, 1, &extent, NULL, bytes + 1024, err);
    if (!status) status = cai_manager_own(tail, manager, whole, err);
    freed = cai_manager_free(manager, whole, CAI_STREAM(s), status ? NULL : err); /* the array keeps it */
    if (!status && freed) cai_array_release(tail);
    return status ? status : freed;
}
/* ---- */

#define launch launch_saxpy
/* ---- docs/python.md */
static cai_status check_and_launch(float a, const cai_array *x, const cai_array *y, uint64_t stream,
                                   cai_error *err)
{
    cai_kernel_view vx, vy;
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, CAI_ANY_NDIM,
                       CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_expect_same_shape(x, "x", y, "y", err));
    CAI_TRY(cai_kernel_view_of(x, &vx, err));
    CAI_TRY(cai_kernel_view_of(y, &vy, err));
    return cai_cuda_status(launch(a, vx, vy, y->size, stream), "saxpy", err);
}

static cai_status exchange(module_state *state, float a, cai_array v[2], uint64_t stream, cai_error *err)
{
    cai_array *const io[2] = {&v[0], &v[1]};
    const cai_cuda *cuda = state->pool.cuda;
    cai_exchange ex;
    cai_status status;
    CAI_TRY(cai_exchange_begin(&ex, &state->pool, io, 2, stream, err));
    status = cai_exchange_finish(&ex, check_and_launch(a, &v[0], &v[1], stream, err), io, 2, err);
    if (v[0].release || v[1].release) /* a release failed; when the stream has passed, they may go all the same */
        (void)cuda->stream_synchronize(cuda->self, stream);
    return status;
}
/* ---- */
#undef launch
