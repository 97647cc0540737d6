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
 * They have no stream: memory is used and freed in the order of the stream of cai_cvcuda_open. If this is stream 1
 * and there is `cuda`, all blocking streams may use the memory, as with cai_cupy.h. Any number of threads may call.
 * One unit of the program has the implementation of cai_emm.h. */
#ifndef CAI_CVCUDA_H
#define CAI_CVCUDA_H

#include "../adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cai_cvcuda cai_cvcuda;

/** Makes an adapter. `hooks` is copied. With `cuda` the primary context of the device is retained until close, so
 *  open may be the first call of CUDA. `cuda` must outlive the memory. If it is NULL, CV-CUDA must call with the
 *  right context current. `stream` is a number, 0 for the legacy stream, and must outlive the memory.
 *  Returns NULL if it fails. `err` may be NULL. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_CUDA,
 *  CAI_ERR_OUT_OF_MEMORY. */
cai_cvcuda *cai_cvcuda_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device, uint64_t stream,
                            cai_error *err);

/** NVCVMemAllocFunc and NVCVMemFreeFunc of device memory. alloc returns NULL for 0 bytes, and for a failure: of a
 *  hook, a negative size, an alignment that is no power of two. CV-CUDA does not check for NULL, so a failure is
 *  counted and written to stderr. free takes NULL. An address that is not allocated is counted and written to
 *  stderr, and the hook is not called. */
void *cai_cvcuda_alloc(void *ctx, int64_t size, int32_t align);
void cai_cvcuda_free(void *ctx, void *ptr, int64_t size, int32_t align);

/** The same for pinned host memory. If the table has no host_alloc, leave them out, and CV-CUDA calls CUDA. */
void *cai_cvcuda_pinned_alloc(void *ctx, int64_t size, int32_t align);
void cai_cvcuda_pinned_free(void *ctx, void *ptr, int64_t size, int32_t align);

/** Gives the counts of both kinds of memory. */
void cai_cvcuda_counts(cai_cvcuda *memory, cai_adapter_count *out);

/** Ends the adapter, after the allocator of CV-CUDA. CAI_ERR_PENDING: something is allocated, and nothing was
 *  done. */
cai_status cai_cvcuda_close(cai_cvcuda *memory);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
