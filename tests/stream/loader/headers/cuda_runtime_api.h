/* cuda_runtime_api.h - what cai_cuda_linked uses of the CUDA Runtime, as its versions declare it, for programs
 * that link with fake_cudart.c where there are no headers of CUDA.
 * SPDX-License-Identifier: MIT
 *
 * FAKE_RUNTIME: the version, 11030 to 13000. */
#ifndef FAKE_CUDA_RUNTIME_API_H
#define FAKE_CUDA_RUNTIME_API_H

#include "fake_types.h"

#define CUDART_VERSION FAKE_RUNTIME
enum { cudaEnableDefault = 0 };

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version);
cudaError_t CUDARTAPI cudaPeekAtLastError(void);
cudaError_t CUDARTAPI cudaGetLastError(void);
#if CUDART_VERSION < 12000
cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags);
#elif CUDART_VERSION < 13000
cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                              enum cudaDriverEntryPointQueryResult *status);
#endif
#if CUDART_VERSION >= 12050
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                       unsigned int version, unsigned long long flags,
                                                       enum cudaDriverEntryPointQueryResult *status);
#endif
#ifdef __cplusplus
}
#endif

#endif
