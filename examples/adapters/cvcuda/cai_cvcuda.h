/* cai_cvcuda.h - memory of CV-CUDA from hooks of cai_emm.h
 * SPDX-License-Identifier: MIT
 *
 * Two of the three NVCVResourceAllocator that nvcvAllocatorConstructCustom takes, one set for each device:
 *
 *     NVCVResourceAllocator of[2] = {
 *         {memory, NVCV_RESOURCE_MEM_CUDA, {{cai_cvcuda_alloc, cai_cvcuda_free}}, NULL},
 *         {memory, NVCV_RESOURCE_MEM_HOST_PINNED,
 *          {{cai_cvcuda_pinned_alloc, cai_cvcuda_pinned_free}}, NULL}};
 *
 * They have no stream: memory is used and freed in the order of the one chosen here. Any number of threads.
 * One unit of the program has the implementation of cai_emm.h. */
#ifndef CAI_CVCUDA_H
#define CAI_CVCUDA_H

#include "../adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cai_cvcuda cai_cvcuda;

/** Makes one. hooks: copied. cuda: for the primary context of the device, which is retained until close, so
 *  open may be the first call of CUDA; it outlives the memory; NULL: CV-CUDA calls with the right one current.
 *  stream: a number, 0: the legacy stream; it outlives the memory.
 *  Returns NULL where it failed: err, which may be NULL, says why. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI,
 *  CAI_ERR_CUDA, CAI_ERR_OUT_OF_MEMORY. */
cai_cvcuda *cai_cvcuda_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device, uint64_t stream,
                            cai_error *err);

/** NVCVMemAllocFunc and NVCVMemFreeFunc of device memory. alloc gives NULL for 0 bytes, and where it failed:
 *  a hook, a negative size, an alignment that is no power of two. CV-CUDA does not look at a NULL, so it is
 *  counted, and said on stderr. free takes NULL; what it does not know, or not any more, it counts, says, and
 *  does not give to the hook. */
void *cai_cvcuda_alloc(void *ctx, int64_t size, int32_t align);
void cai_cvcuda_free(void *ctx, void *ptr, int64_t size, int32_t align);

/** The same of pinned host memory: NULL without host_alloc. Then leave them out, and CV-CUDA calls CUDA. */
void *cai_cvcuda_pinned_alloc(void *ctx, int64_t size, int32_t align);
void cai_cvcuda_pinned_free(void *ctx, void *ptr, int64_t size, int32_t align);

/** What went through, both kinds. */
void cai_cvcuda_counts(cai_cvcuda *memory, cai_adapter_count *out);

/** Ends it, after the allocator of CV-CUDA. CAI_ERR_PENDING: something is allocated, nothing was done. */
cai_status cai_cvcuda_close(cai_cvcuda *memory);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
