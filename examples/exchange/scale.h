/* scale.h - the consumer of README.md, word for word; scale_test.c tests it
 * SPDX-License-Identifier: MIT */
#ifndef SCALE_H_INCLUDED
#define SCALE_H_INCLUDED

/* ---- README.md */
#include "cai_stream.h"

int32_t launch_scale(cai_kernel_view y, int64_t size, float a, struct CUstream_st *s); /* cudaGetLastError() */

/* Scales y on the caller's stream s. y may have pending work on another stream. */
static cai_status scale(cai_event_pool *pool, float a, cai_array *y, struct CUstream_st *s, cai_error *err)
{
    cai_array *io[1] = {y};
    cai_exchange ex; /* on the stack, no heap */
    cai_kernel_view v;
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, 2, CAI_WRITABLE | CAI_NO_SELF_OVERLAP | CAI_ON_DEVICE, err));
    CAI_TRY(cai_kernel_view_of(y, &v, err));
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err)); /* s waits for the producer */
    return cai_exchange_finish(&ex, cai_cuda_status(launch_scale(v, y->size, a, s), "scale_kernel", err),
                               io, 1, err); /* the producer waits for s; y is released now or when s has passed */
}
/* ---- */

#endif
