/* cai_numba.h - Numba's memory from hooks of cai_emm.h: what the shared object cai_numba exports
 * SPDX-License-Identifier: MIT
 *
 * cai_numba.py is the plugin that calls it. One cai_numba for each context: a manager (ext/cai_manager.h)
 * over one table. Numba's functions have no stream, so the adapter allocates and frees on stream 1. If the
 * table is the caller's, it records an event there after each allocation. All streams of numba.cuda.stream()
 * wait for this event, which comes after their earlier work. A non-blocking stream waits for nothing. Any
 * number of threads may call. `err` may be NULL. */
#ifndef CAI_NUMBA_H
#define CAI_NUMBA_H

#include "cai_manager.h"

#if defined(_WIN32)
#define CAI_NUMBA_API __declspec(dllexport)
#else
#define CAI_NUMBA_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cai_numba cai_numba;

enum { CAI_NUMBA_CUDA, CAI_NUMBA_ASYNC }; /* the tables over cudaMalloc and cudaMallocAsync */

/** Kinds of memory. */
enum { CAI_NUMBA_DEVICE, CAI_NUMBA_HOST, CAI_NUMBA_MANAGED, CAI_NUMBA_PIN };

/** Makes one for the context that is current. If that is a primary one, it is retained until close. hooks: copied;
 *  NULL: the table `standard`. CUDA is what cai_cuda_load finds. Returns NULL where it failed. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA, CAI_ERR_OUT_OF_MEMORY. */
CAI_NUMBA_API cai_numba *cai_numba_open(const cai_emm_hooks *hooks, int32_t standard, cai_error *err);

/** Ends it. CAI_ERR_PENDING: something is allocated, nothing was done. */
CAI_NUMBA_API cai_status cai_numba_close(cai_numba *numba, cai_error *err);

/** Allocates memory of a kind, or pins the `size` bytes at *ptr. Errors: those of cai_manager_alloc. While a
 *  blocking stream captures, device memory is refused (CAI_ERR_CAPTURE). */
CAI_NUMBA_API cai_status cai_numba_alloc(cai_numba *numba, int32_t kind, size_t size, uint32_t flags,
                                         cai_memory_handle *memory, void **ptr, cai_error *err);

/** Frees it, after the work that is in the legacy stream. While a blocking stream captures, the memory is kept, and
 *  freed in a later alloc, free, flush or close. Errors: those of cai_manager_free. */
CAI_NUMBA_API cai_status cai_numba_free(cai_numba *numba, cai_memory_handle memory, cai_error *err);

/** These are the functions of cai_manager with this name. */
CAI_NUMBA_API cai_status cai_numba_reset(cai_numba *numba, cai_error *err);
CAI_NUMBA_API cai_status cai_numba_memory(cai_numba *numba, size_t *free_bytes, size_t *total, cai_error *err);
CAI_NUMBA_API cai_status cai_numba_ipc(cai_numba *numba, cai_memory_handle memory, cai_memory_ipc *out,
                                       cai_error *err);
CAI_NUMBA_API cai_status cai_numba_defer(cai_numba *numba, int32_t on, cai_error *err);
CAI_NUMBA_API cai_status cai_numba_flush(cai_numba *numba, cai_error *err);
CAI_NUMBA_API int64_t cai_numba_list(cai_numba *numba, cai_memory_object *out, int64_t capacity);
CAI_NUMBA_API void cai_numba_counts(cai_numba *numba, cai_manager_count *out);

/** The name of the table. */
CAI_NUMBA_API const char *cai_numba_table(cai_numba *numba);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
