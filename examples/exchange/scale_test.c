/* scale_test.c - scale.h tested without a GPU: in every order that streams and events allow
 * SPDX-License-Identifier: MIT
 *
 * Prints "in order". Compiled with -DWITHOUT_BEGIN, where begin gets no array and so waits for none, it prints
 * the race, and exits with 1. */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_check.h"

#if defined(WITHOUT_BEGIN)
#define cai_exchange_begin(ex, pool, io, count, stream, err) cai_exchange_begin(ex, pool, io, 0, stream, err)
#endif
#include "scale.h"

#include <stdio.h>

static cai_sim *now; /* the simulation of this run */

int32_t launch_scale(cai_kernel_view y, int64_t size, float a, struct CUstream_st *s)
{
    (void)size, (void)a;
    return cai_sim_touch_views(now, CAI_STREAM(s), "scale", &y, 1, 1); /* reads and writes y */
}

static void exchange(cai_sim *sim, void *unused)
{
    const int64_t shape[2] = {8, 8}, strides[2] = {64, 8}; /* every second column */
    const uint64_t theirs = cai_sim_stream_create(sim, 1), mine = cai_sim_stream_create(sim, 1);
    const uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 8 * 64);
    cai_event_pool pool;
    cai_kernel_view v;
    cai_array y;
    (void)unused;
    now = sim;
    if (cai_array_init(&y, CAI_FLOAT32, 2, shape, strides, cai_sim_bytes(sim, memory), NULL) ||
        cai_kernel_view_of(&y, &v, NULL) || cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL) ||
        cai_sim_touch_views(sim, theirs, "fill", &v, 1, 1) || /* the producer's work, before and after */
        cai_stream_export(&y, &pool, theirs, NULL, 0, NULL) ||
        scale(&pool, 2, &y, cai_stream_to_cuda(mine), NULL) ||
        cai_sim_touch_views(sim, theirs, "overwrite", &v, 1, 1) || cai_sim_context_synchronize(sim) ||
        cai_event_pool_destroy(&pool, NULL) || cai_sim_free(sim, memory) ||
        cai_sim_stream_destroy(sim, theirs) || cai_sim_stream_destroy(sim, mine))
        cai_check_fail(sim, "a call failed");
}

int main(void)
{
    cai_check_result result;
    const int wrong = cai_check(exchange, NULL, NULL, &result);
    return puts(wrong ? result.text : "in order") < 0 || wrong;
}
