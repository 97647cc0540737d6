/* cai_runtime.h - what the simulated libcudart.so.12 and .13 export beside CUDA's functions.

   The library serves the public runtime API over the public driver API of libcuda.so.1. A name that it does
   not serve writes one line to stderr, at its first call, and returns cudaErrorNotSupported. */
#ifndef CAI_RUNTIME_H
#define CAI_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cai_runtime_function {
    const char *name; /* "cudaMemcpyAsync": the calls of cudaMemcpyAsync_ptsz are counted with it */
    int64_t calls;    /* how often the program called it */
    int32_t served;   /* 0: it returns cudaErrorNotSupported */
    int32_t reserved;
} cai_runtime_function;

/** Reads the function with this index, of all names of the runtime API. Returns 1, or 0 if `index` is behind
    the last one or `out` is NULL. Any thread may call it at any time. */
int32_t cai_runtime_function_get(int32_t index, cai_runtime_function *out);

#ifdef __cplusplus
}
#endif

#endif
