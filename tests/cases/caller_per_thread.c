/* caller_per_thread.c - a caller that is compiled as nvcc --default-stream per-thread does it (W41).
 * SPDX-License-Identifier: MIT
 *
 * The implementation is in run_cases.c, which is compiled for the legacy default stream. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "cai_stream.h"

#include "caller_per_thread.h"

uint64_t caller_per_thread_number(struct CUstream_st *stream)
{
    return CAI_STREAM(stream);
}
