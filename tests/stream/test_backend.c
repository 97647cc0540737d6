/* test_backend.c - arrays of HIP and tables of CUDA, arrays of other versions: who refuses them.
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

static cai_array array_at(uint64_t data, int32_t sync, uint64_t stream)
{
    static const int64_t shape[1] = {8};
    cai_array x;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, (void *)(uintptr_t)data, &err), CAI_OK);
    x.sync = sync;
    x.stream = stream;
    return x;
}

static cai_status begin(cai_array *x, uint64_t stream)
{
    cai_array *list[1];
    cai_exchange ex;
    cai_status status;
    list[0] = x;
    status = cai_exchange_begin(&ex, &pool, list, 1, stream, &err);
    if (!status) CHECK_INT(cai_exchange_end(&ex, CAI_OK, NULL), CAI_OK);
    return status;
}

/* A refusal: not a call of CUDA, and the array is as before. */
static void refused(cai_status status, const cai_array *x, const cai_array *before, const char *who)
{
    CHECK_INT(status, CAI_ERR_STREAM);
    CHECK(strstr(err.message, who) == err.message);
    CHECK(strstr(err.message, "backend = 1 (HIP), but the table is of CUDA (0)") != NULL);
    CHECK(x->sync == before->sync && x->stream == before->stream && x->event == before->event);
    CHECK(x->backend == before->backend && x->release == before->release);
    CHECK_STR(cai_sim_log(sim), "");
}

/* An array of HIP is passed to no function of CUDA, whatever its sync is: the second of two, and in every mode. */
static void check_sync(int32_t sync, uint64_t stream, uint64_t consumer)
{
    cai_array x = array_at(m1, sync, stream), other = array_at(m1 + 64, CAI_SYNC_NONE, 0), before;
    cai_array *list[2];
    cai_exchange ex;
    cai_exchange_options options = options_of(CAI_MODE_HOST, CAI_UNKNOWN_ASSUME_IDLE);
    if (sync == CAI_SYNC_EVENT) x.event = 0x7f0020;
    x.backend = CAI_BACKEND_HIP;
    own(&x);
    before = x;
    list[0] = &other;
    list[1] = &x;
    cai_sim_log_clear(sim);
    refused(begin(&x, consumer), &x, &before, "arrays[0]: ");
    refused(cai_exchange_begin(&ex, &pool, list, 2, consumer, &err), &x, &before, "arrays[1]: ");
    refused(cai_exchange_begin_with(&ex, &pool, list, 2, consumer, &options, &err), &x, &before, "arrays[1]: ");
    refused(cai_keepalive_push(&x, &pool, consumer, &err), &x, &before, "");
    options.mode = CAI_MODE_IGNORE; /* nothing of the array is used */
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, 2, consumer, &options, &err), CAI_OK);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    cai_sim_log_clear(sim);
    if (sync == CAI_SYNC_EVENT) refused(cai_stream_drop_event(&x, &pool, &err), &x, &before, "");
    if (sync == CAI_SYNC_STREAM) refused(cai_stream_detach(&x, &pool, &err), &x, &before, "");
    CHECK_INT(released, 0);
}

/* An export says which streams the array has, in each mode of exports. */
static void check_export(uint64_t s, int32_t mode)
{
    cai_array x = array_at(m1, CAI_SYNC_NONE, 0), before;
    const uint64_t pending = s;
    CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_EVENT, mode, &err), CAI_OK);
    x.backend = CAI_BACKEND_HIP;
    before = x;
    cai_sim_log_clear(sim);
    refused(cai_stream_export(&x, &pool, s, &pending, 1, &err), &x, &before, "");
    cuda.flags |= (uint32_t)CAI_CUDA_HIP;
    x.backend = CAI_BACKEND_CUDA; /* of a dictionary */
    CHECK_INT(cai_stream_export(&x, &pool, s, &pending, 1, &err), CAI_OK);
    CHECK_INT(x.backend, CAI_BACKEND_HIP);
    cuda.flags &= ~(uint32_t)CAI_CUDA_HIP;
    CHECK_INT(cai_event_pool_set_modes(&pool, CAI_MODE_EVENT, CAI_MODE_EVENT, &err), CAI_OK);
}

/* The memory, the streams and the events of HIP are not passed to CUDA. */
static void check_cuda(void)
{
    cai_array x;
    uint64_t s;
    int32_t mode;
    open_pool(4, 0);
    s = stream_in(c1);
    check_sync(CAI_SYNC_NONE, 0, s);
    check_sync(CAI_SYNC_NONE, 0, CAI_STREAM_LEGACY);
    check_sync(CAI_SYNC_STREAM, s, s); /* the same number */
    check_sync(CAI_SYNC_STREAM, CAI_STREAM_LEGACY, CAI_STREAM_LEGACY);
    check_sync(CAI_SYNC_STREAM, 0x7f0010, s);
    check_sync(CAI_SYNC_UNKNOWN, 0, s);
    check_sync(CAI_SYNC_EVENT, 0, s);
    for (mode = CAI_MODE_EVENT; mode <= CAI_MODE_IGNORE; ++mode) check_export(s, mode);
    x = array_at(m1, CAI_SYNC_STREAM, s); /* a backend of a later version */
    x.backend = 2;
    CHECK_INT(begin(&x, s), CAI_ERR_STREAM);
    CHECK(strstr(err.message, "backend = 2, but the table is of CUDA (0)") != NULL);
    x.backend = INT32_MIN;
    CHECK_INT(begin(&x, s), CAI_ERR_STREAM);
    x.backend = CAI_BACKEND_HIP;
    CHECK_INT(cai_locate(&x, "x", &cuda, 0, NULL, &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "x: backend = 1 (HIP), but the table is of CUDA (0)");
    CHECK_INT(x.memory, CAI_MEMORY_UNKNOWN);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

/* A table of HIP says so, and takes arrays that do not say it: a dictionary cannot. */
static void check_hip(void)
{
    cai_array x, mask;
    uint64_t s, t;
    open_pool(4, 0);
    cuda.flags |= (uint32_t)CAI_CUDA_HIP;
    CHECK_INT(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(pool.backend, CAI_BACKEND_HIP); /* for exchanges in order */
    s = stream_in(c1);
    t = stream_in(c1);
    x = array_at(m1, CAI_SYNC_STREAM, s);
    CHECK_INT(begin(&x, t), CAI_OK);
    mask = array_at(m1 + 64, CAI_SYNC_NONE, 0);
    x.mask = &mask;
    CHECK_INT(cai_locate(&x, "x", &cuda, 0, NULL, &err), CAI_OK);
    CHECK_INT(x.backend, CAI_BACKEND_HIP);
    CHECK_INT(mask.backend, CAI_BACKEND_HIP);
    x.mask = NULL;
    CHECK_INT(begin(&x, t), CAI_OK);
    cai_sim_log_clear(sim);
    CHECK_INT(begin(&x, s), CAI_OK);
    CHECK_STR(cai_sim_log(sim), ""); /* in order: no call */
    x.backend = 2;
    CHECK_INT(begin(&x, s), CAI_ERR_STREAM);
    CHECK_STR(err.message, "arrays[0]: backend = 2, but the table is of HIP (1)");
    x = array_at(m1, CAI_SYNC_NONE, 0);
    CHECK_INT(cai_stream_export(&x, &pool, t, NULL, 0, &err), CAI_OK);
    CHECK_INT(x.backend, CAI_BACKEND_HIP);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

/* An array of another version is refused, also where the consumer's stream needs no query. */
static void check_versions(void)
{
    cai_array x;
    uint64_t s;
    open_pool(4, 0);
    s = stream_in(c1);
    x = array_at(m1, CAI_SYNC_STREAM, s);
    CHECK_INT(begin(&x, s), CAI_OK);
    x.abi = 0x43414930; /* version 0.1 */
    CHECK_INT(begin(&x, s), CAI_ERR_ABI);
    x.abi = CAI_ABI;
    x.must_understand = 2;
    CHECK_INT(begin(&x, s), CAI_ERR_ABI);
    CHECK_STR(err.message, "arrays[0]: must_understand = 0x2 has bits of a later version");
    CHECK_INT(cai_locate(&x, "x", &cuda, 0, NULL, &err), CAI_ERR_ABI);
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static void run(void)
{
    check_versions();
    check_cuda();
    check_hip();
}

CAI_TEST_MAIN(run)
