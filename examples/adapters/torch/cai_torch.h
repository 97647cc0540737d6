/* cai_torch.h - PyTorch's device memory from hooks of cai_emm.h: what the shared object cai_torch exports
 * SPDX-License-Identifier: MIT
 *
 *     from torch.cuda import memory
 *     table = memory.CUDAPluggableAllocator("build/libcai_torch.so", "cai_torch_alloc", "cai_torch_free")
 *     memory.change_current_allocator(table)                    # before anything is allocated
 *
 * PyTorch's functions have no pointer for the user, so the shared object has one table of hooks for each
 * device. docs/memory.md says what is lost. Any number of threads may call. The first allocation of a device
 * retains its primary context, and makes it if need be. PyTorch does not say when it is done, so the context
 * stays until the process ends. */
#ifndef CAI_TORCH_H
#define CAI_TORCH_H

#include "cai_emm.h"

#if defined(_WIN32)
#define CAI_TORCH_API __declspec(dllexport)
#else
#define CAI_TORCH_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { CAI_TORCH_DEVICES = 64 };

typedef struct cai_torch_count {
    uint64_t allocated, freed;       /* by hooks */
    uint64_t live_bytes, peak_bytes;
    uint64_t empty;                  /* of 0 bytes: no hook was called */
    uint64_t failed;                 /* allocations and frees */
    int32_t first_failure;           /* the cai_status of the first of those, */
    int32_t native;                  /* and CUDA's number */
} cai_torch_count;

/** For PyTorch. Sizes are in bytes. A NULL stream is the legacy stream. alloc returns NULL for 0 bytes, and if
 *  it failed. PyTorch does not check the pointer, so alloc writes the reason to stderr. free takes NULL. */
CAI_TORCH_API void *cai_torch_alloc(size_t size, int device, struct CUstream_st *stream);
CAI_TORCH_API void cai_torch_free(void *ptr, size_t size, int device, struct CUstream_st *stream);

/** Sets the hooks of a device, which are copied. The default is cudaMallocAsync, by a pool of the adapter.
 *  Errors: CAI_ERR_ARGUMENT (no such device), CAI_ERR_ABI, CAI_ERR_PENDING (the device was used before). */
CAI_TORCH_API cai_status cai_torch_set_hooks(int device, const cai_emm_hooks *hooks);

/** Sets another table of CUDA, which must live as long as the process: for tests, and other platforms. Errors:
 *  CAI_ERR_ARGUMENT (also without the operations of contexts), CAI_ERR_PENDING (there is one). */
CAI_TORCH_API cai_status cai_torch_set_cuda(const cai_cuda *cuda);

/** Gives the counts of a device, or with -1 those of calls that named no device. Errors: CAI_ERR_ARGUMENT. */
CAI_TORCH_API cai_status cai_torch_counts(int device, cai_torch_count *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
