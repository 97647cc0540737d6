/* caller_per_thread.h - what CAI_STREAM gives in a unit with CUDA_API_PER_THREAD_DEFAULT_STREAM.
 * SPDX-License-Identifier: MIT */
#ifndef CALLER_PER_THREAD_H
#define CALLER_PER_THREAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
uint64_t caller_per_thread_number(struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
