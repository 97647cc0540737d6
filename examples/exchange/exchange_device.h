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
    int32_t simulated;    /* 1: no GPU; exchange_races can follow */
    int32_t quiet;        /* 1: the exchange prints nothing */
    const cai_cuda *cuda; /* the table that cai_stream.h and cai_emm.h call */
    uint64_t (*new_stream)(void);                             /* 0 if that failed */
    /* Kernels; they are only enqueued. All return 0 or CUDA's error. */
    int32_t (*ramp)(float *x, int64_t size, uint64_t stream); /* x[i] = i, slowly */
    int32_t (*scale)(cai_kernel_view y, cai_kernel_view x, int64_t size, float a, float b,
                     uint64_t stream);                        /* y = a x + b */
    /* Waits for `stream`, then copies to the host. */
    int32_t (*read)(float *to, const float *from, int64_t size, uint64_t stream);
    /* What was queued since the last time, an operation a line; "" where that is not recorded. */
    const char *(*calls)(void);
    /* The end: 0, or not where there was an error or, if that is known, a leak. */
    int32_t (*close)(void);
} exchange_device;

/** Fills `out` and returns 1 if a GPU answers, else 0 with a reason in out->name. */
int exchange_gpu(exchange_device *out);

/** Fills `out` with the simulated runtime; 1, or 0 if memory ran out. */
int exchange_simulated(exchange_device *out);

/** Of exchange_simulated.c, for exchange_races.c: the simulation. newest_first: 1 (as at first) runs the
 *  newest of all work that may run, 0 runs it in the order of the calls. */
struct cai_sim *exchange_simulation(int32_t newest_first);

/** The operations of the simulation after *seen, one a line by its number, which *seen gets. */
const char *exchange_operations(uint64_t *seen);

/** The whole program on a device, which it closes: 0 if all was as it should be. */
typedef int (*exchange_program)(const exchange_device *device);

/** Runs the program on the simulated runtime, as it is and with one wait left out, and says what goes wrong.
 *  folder: where to draw it, or NULL. 0: it went wrong as it should. */
int exchange_races(exchange_program program, const char *folder);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
