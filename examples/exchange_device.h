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
    const cai_cuda *cuda; /* the table that cai_stream.h and cai_emm.h call */
    uint64_t (*new_stream)(void);                             /* 0 if that failed */
    /* Kernels; they are only enqueued. All return 0 or CUDA's error. */
    int32_t (*ramp)(float *x, int64_t size, uint64_t stream); /* x[i] = i, slowly */
    int32_t (*scale)(cai_kernel_view y, cai_kernel_view x, int64_t size, float a, float b,
                     uint64_t stream);                        /* y = a x + b */
    /* Waits for `stream`, then copies to the host. */
    int32_t (*read)(float *to, const float *from, int64_t size, uint64_t stream);
    /* The calls of the table since the last time that order, allocate or free, one a line; "" where they are
     * not recorded. */
    const char *(*calls)(void);
    /* The end: 0, or not where there was an error or, if that is known, a leak. */
    int32_t (*close)(void);
} exchange_device;

/** Fills `out` and returns 1 if a GPU answers, else 0 with a reason in out->name. */
int exchange_gpu(exchange_device *out);

/** Fills `out` with the simulated runtime; 1, or 0 if memory ran out. */
int exchange_simulated(exchange_device *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
