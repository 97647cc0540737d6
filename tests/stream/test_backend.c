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

static void refused(cai_status status, const char *who)
{
    CHECK_INT(status, CAI_ERR_STREAM);
    CHECK(strstr(err.message, who) == err.message);
    CHECK(strstr(err.message, "backend = 1 (HIP): its stream and event are no numbers of this table") != NULL);
}

/* The numbers of HIP are not passed to CUDA, and nothing of CUDA is called for them. */
static void check_cuda(void)
{
    cai_array x;
    uint64_t s;
    open_pool(4, 0);
    s = stream_in(c1);
    x = array_at(m1, CAI_SYNC_STREAM, 0x7f0010);
    x.backend = CAI_BACKEND_HIP;
    cai_sim_log_clear(sim);
    refused(begin(&x, s), "arrays[0]: ");
    refused(cai_stream_detach(&x, &pool, &err), "");
    x.sync = CAI_SYNC_UNKNOWN;
    x.stream = 0;
    refused(begin(&x, s), "arrays[0]: ");
    x.sync = CAI_SYNC_EVENT;
    x.event = 0x7f0020;
    refused(begin(&x, s), "arrays[0]: ");
    refused(cai_stream_drop_event(&x, &pool, &err), "");
    CHECK_UINT(x.event, 0x7f0020);
    CHECK_STR(cai_sim_log(sim), "");
    x = array_at(m1, CAI_SYNC_NONE, 0); /* no number is used */
    x.backend = CAI_BACKEND_HIP;
    CHECK_INT(begin(&x, s), CAI_OK);
    x.sync = CAI_SYNC_STREAM; /* a backend of a later version */
    x.stream = 0x7f0010;
    x.backend = 2;
    CHECK_INT(begin(&x, s), CAI_ERR_STREAM);
    CHECK(strstr(err.message, "backend = 2: ") != NULL);
    CHECK_INT(cai_stream_export(&x, &pool, s, NULL, 0, &err), CAI_OK); /* says where it now is */
    CHECK_INT(x.backend, CAI_BACKEND_CUDA);
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
