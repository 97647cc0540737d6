/* cai_cupy.h - CuPy's device memory from hooks of cai_emm.h: what the shared object cai_cupy exports
 * SPDX-License-Identifier: MIT
 *
 * One for each device. docs/memory.md has the lines of Python. CuPy's functions have no stream: memory is
 * used and freed in the order of the one chosen here. Any number of threads. */
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

/** Makes one. hooks: copied; NULL: cudaMallocAsync, by a pool of its own. cuda: it outlives the memory; NULL: what
 *  cai_cuda_load finds, and with hooks of CAI_MEMORY_HOST none. With cuda the device's primary context is retained
 *  until close, so open may be the first call of CUDA. stream: a number, 0: the legacy stream; it outlives the
 *  memory. Returns NULL where it failed: err, which may be NULL, says why. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA, CAI_ERR_OUT_OF_MEMORY. */
CAI_CUPY_API cai_cupy *cai_cupy_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device,
                                     uint64_t stream, cai_error *err);

/** For CuPy. malloc gives NULL for 0 bytes, for another device than that of `param`, and where the hook
 *  fails: CuPy does not look, so it is counted and said on stderr. free takes NULL; what it does not know, or
 *  not any more, it counts, says, and does not give to the hook. */
CAI_CUPY_API void *cai_cupy_malloc(void *param, size_t size, int device);
CAI_CUPY_API void cai_cupy_free(void *param, void *ptr, int device);

/** What went through. */
CAI_CUPY_API void cai_cupy_counts(cai_cupy *cupy, cai_adapter_count *out);

/** Ends it, after CuPy is done with it. CAI_ERR_PENDING: something is allocated, nothing was done. */
CAI_CUPY_API cai_status cai_cupy_close(cai_cupy *cupy);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
