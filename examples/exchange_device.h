/* exchange_device.h - what exchange.c needs of a device: a real one (exchange_gpu.cu), or none
 * (exchange_simulated.c).
 * SPDX-License-Identifier: MIT */
#ifndef EXCHANGE_DEVICE_H
#define EXCHANGE_DEVICE_H

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct exchange_device {
    char name[256];       /* what is running this */
    const cai_cuda *cuda; /* the table that cai_stream.h calls */
    uint64_t (*new_stream)(void);                                   /* 0 if that failed */
    void *(*allocate)(size_t bytes);                                /* NULL if that failed */
    int32_t (*deallocate)(void *memory);
    /* Kernels; they are only enqueued. All return 0 or CUDA's error. */
    int32_t (*ramp)(float *x, int64_t size, uint64_t stream);       /* x[i] = i, slowly */
    int32_t (*scale)(cai_kernel_view x, int64_t size, float a, uint64_t stream); /* x *= a */
    int32_t (*increment)(float *x, int64_t size, uint64_t stream);  /* x += 1 */
    /* Waits for `stream`, then copies to the host. */
    int32_t (*read)(float *to, const float *from, int64_t size, uint64_t stream);
    /* The calls of the table since the last time, one a line; "" where they are not recorded. */
    const char *(*calls)(void);
} exchange_device;

/** Fills `out` and returns 1 if a GPU answers, else 0 with a reason in out->name. */
int exchange_gpu(exchange_device *out);

/** Fills `out` with the simulated runtime; 1, or 0 if memory ran out. */
int exchange_simulated(exchange_device *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
