/* scale_test.c - scale.h tested without a GPU: in every order that streams and events allow
 * SPDX-License-Identifier: MIT
 *
 * Prints "in order". `scale_test stream_wait_event 1` leaves out the first wait, and prints the race. */

/* ---- sim/docs/testing-without-a-gpu.md */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_check.h"
#include "scale.h"
#include <stdio.h>
#include <stdlib.h>

static cai_sim *now; /* the simulation of this run */

int32_t launch_scale(cai_kernel_view y, int64_t size, float a, struct CUstream_st *s) /* in place of the kernel */
{
    (void)size, (void)a;
    return cai_sim_touch_views(now, CAI_STREAM(s), "scale", &y, 1, 1); /* reads and writes y */
}

static void exchange(cai_sim *sim, void *failed)
{
    const int64_t shape[2] = {8, 8};
    const uint64_t theirs = cai_sim_stream_create(sim, 1), mine = cai_sim_stream_create(sim, 1);
    const uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 256);
    const cai_sim_access whole = cai_sim_writes(memory, 256);
    cai_event_pool pool;
    cai_array y;
    int bad = cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL) ||
              cai_array_init(&y, CAI_FLOAT32, 2, shape, NULL, cai_sim_bytes(sim, memory), NULL);
    now = sim;
    cai_sim_touch(sim, theirs, "fill", &whole, 1); /* the producer's work before the exchange */
    bad = bad || cai_stream_export(&y, &pool, theirs, NULL, 0, NULL) ||
          scale(&pool, 2, &y, cai_stream_to_cuda(mine), NULL);
    if (bad) cai_sim_context_synchronize(sim); /* a call may have failed behind the launch */
    cai_sim_touch(sim, theirs, "overwrite", &whole, 1); /* the producer's work after it */
    cai_sim_context_synchronize(sim);
    *(int *)failed |= cai_event_pool_destroy(&pool, NULL) || bad;
    cai_sim_free(sim, memory);
    cai_sim_stream_destroy(sim, theirs);
    cai_sim_stream_destroy(sim, mine);
}

int main(int argc, char **argv)
{
    int failed = 0, wrong;
    cai_check_options options = {0};
    cai_check_result result;
    if (argc == 3) options.omit = argv[1], options.omit_call = atoi(argv[2]); /* a call to leave out */
    wrong = cai_check(exchange, &failed, &options, &result);
    if (argc == 3 && !result.omitted) return puts("no such call") < 0;
    puts(wrong ? result.text : failed ? "a call failed" : "in order");
    return wrong || failed;
}
/* ---- */
