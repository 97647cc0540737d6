/* cai_cupy.h - CuPy's device memory from hooks of cai_emm.h: what the shared object cai_cupy exports
 * SPDX-License-Identifier: MIT
 *
 * Make one adapter for each device. docs/memory.md has the lines of Python. CuPy's functions have no stream:
 * memory is used and freed in the order of the stream of cai_cupy_open. If this is stream 1, all blocking streams
 * may use the memory: the adapter records an event in stream 1 after each allocation. While a blocking stream
 * captures, such an allocation fails (906). Any number of threads may call. */
#ifndef CAI_CUPY_H
#define CAI_CUPY_H

#include "../adapter.h"

#if defined(_WIN32)
#define CAI_CUPY_API __declspec(dllexport)
#else
#define CAI_CUPY_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cai_cupy cai_cupy; /* the `param` of cupy.cuda.memory.CFunctionAllocator */

/** Makes an adapter. `hooks` is copied. NULL is cudaMallocAsync, by a pool of the adapter. `cuda` must outlive
 *  the memory. NULL is what cai_cuda_load finds, or with hooks of CAI_MEMORY_HOST no CUDA. With CUDA the primary
 *  context of the device is retained until close, so open may be the first call of CUDA. `stream` is a number,
 *  0 for the legacy stream, and must outlive the memory. Returns NULL if it fails. `err` may be NULL. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA, CAI_ERR_OUT_OF_MEMORY. */
CAI_CUPY_API cai_cupy *cai_cupy_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device,
                                     uint64_t stream, cai_error *err);

/** For CuPy. malloc returns NULL for 0 bytes, for another device than that of `param`, and if the hook fails.
 *  CuPy does not check the pointer, so a failure is counted and written to stderr. free takes NULL. An address
 *  that is not allocated is counted and written to stderr, and the hook is not called. */
CAI_CUPY_API void *cai_cupy_malloc(void *param, size_t size, int device);
CAI_CUPY_API void cai_cupy_free(void *param, void *ptr, int device);

/** Gives the counts of allocations, frees and failures. */
CAI_CUPY_API void cai_cupy_counts(cai_cupy *cupy, cai_adapter_count *out);

/** Ends the adapter, after all arrays. CAI_ERR_PENDING: something is allocated, and nothing was done. */
CAI_CUPY_API cai_status cai_cupy_close(cai_cupy *cupy);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
