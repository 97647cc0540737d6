/* libraries.h - what the stand-ins of cuBLAS, cuBLASLt, cuRAND, cuFFT and cuDNN share
 * SPDX-License-Identifier: MIT
 *
 * libcai_libraries.so has a function cai_lib_NAME for each function NAME that is served. The package cai_sim makes
 * libcublas.so.13 and the others at the start of a program, with all names that the installed library has: each one jumps
 * to cai_lib_NAME, or to cai_lib_missing. A function that computes queues one launch with what it accesses, by the
 * documentation of the library. Nothing is computed. */
#ifndef CAI_LIBRARIES_H_INCLUDED
#define CAI_LIBRARIES_H_INCLUDED

#include <cuda.h>
#include <library_types.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cai_driver.h"
#include "cai_sim.h"

#define LIB_EXPORT __attribute__((visibility("default")))
#define LIB_CALLER __builtin_return_address(0)

enum { LIB_MOST = 4096 /* ranges of one launch */, LIB_HOST = 0, LIB_DEVICE = 1 /* pointer modes */ };
enum { LIB_READ = 0, LIB_WRITE = 1, LIB_MAY_WRITE = CAI_SIM_MAY_WRITE };
enum { LIB_CUBLAS, LIB_CURAND, LIB_CUFFT, LIB_CUDNN, LIB_KINDS };

/* What a library's handle stands for: cublasHandle_t, cublasLtHandle_t, curandGenerator_t, cudnnHandle_t. */
typedef struct lib_handle {
    uint64_t magic;
    const void *stream;
    void *workspace;
    size_t workspace_bytes;
    int32_t pointer_mode, math_mode, atomics_mode, sm_target;
} lib_handle;

/* One launch that is being described. */
typedef struct lib_work {
    const char *name;
    const void *caller, *stream;
    int32_t count, opaque;
    cai_sim_access list[LIB_MOST];
} lib_work;

/* Makes a handle. NULL: no memory, or no device. */
lib_handle *lib_handle_make(void);
int32_t lib_handle_is(const lib_handle *handle);
void lib_handle_free(lib_handle *handle);

/* The version of an installed library, as major * 1000000 + minor * 1000 + patch; or `otherwise`. */
int32_t lib_version(int32_t kind, int32_t otherwise);
int32_t lib_bits(int32_t type); /* of an element of a cudaDataType; 0: not known */

void lib_begin(lib_work *work, const char *name, const void *caller, const void *stream);
void lib_range(lib_work *work, const void *address, int64_t bytes, int32_t write);
/* `columns` of `rows` elements each, the first elements `ld` apart. */
void lib_matrix(lib_work *work, const void *address, int64_t rows, int64_t columns, int64_t ld, int32_t bits,
                int32_t write);
/* A number of alpha or beta, which is in device memory in that pointer mode. */
void lib_scalar(lib_work *work, const lib_handle *handle, const void *address, int32_t type);
int32_t lib_end(const lib_work *work); /* queues it: a CUresult */

/* The function was called, and is not served. */
void lib_note_missing(const char *name);

#endif /* CAI_LIBRARIES_H_INCLUDED */
