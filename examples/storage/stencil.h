/* stencil.h - the arithmetic of stencil.c, and what it needs of a device: a real one (stencil.cu), or none
 * (stencil_simulated.c)
 * SPDX-License-Identifier: MIT */
#ifndef STENCIL_H
#define STENCIL_H

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NI = 32, NJ = 24, NK = 8, HALO = 2, STEPS = 6 };

/* ------------------------------------------------------------------ the arithmetic */
/* Index 0 is the first point of the domain. The halo has the indices below 0, and from NI and NJ on. */

CAI_HOST_DEVICE static inline double *point(const cai_kernel_view *field, int64_t i, int64_t j, int64_t k)
{
    return (double *)cai_kernel_at3(field, i, j, k);
}

/* The domain is periodic: a point of the halo is a copy of one at the other end. */
CAI_HOST_DEVICE static inline void fill_halo_at(const cai_kernel_view *in, int64_t i, int64_t j, int64_t k)
{
    if (i >= 0 && i < NI && j >= 0 && j < NJ) return;
    *point(in, i, j, k) = *point(in, (i + NI) % NI, (j + NJ) % NJ, k);
}

CAI_HOST_DEVICE static inline double laplacian(const cai_kernel_view *in, int64_t i, int64_t j, int64_t k)
{
    return *point(in, i - 1, j, k) + *point(in, i + 1, j, k) + *point(in, i, j - 1, k) +
           *point(in, i, j + 1, k) - 4 * *point(in, i, j, k);
}

/* From a point to the next one in I (1, 0) or J (0, 1). A flux that would make a slope steeper is none. */
CAI_HOST_DEVICE static inline double flux(const cai_kernel_view *in, int64_t i, int64_t j, int64_t k, int di,
                                          int dj)
{
    const double amount = laplacian(in, i + di, j + dj, k) - laplacian(in, i, j, k);
    const double slope = *point(in, i + di, j + dj, k) - *point(in, i, j, k);
    return amount * slope > 0 ? 0 : amount;
}

/* The initial data are whole numbers, so that after six steps all are multiples of 2^-36. Nothing is rounded,
 * and the bits are the same if a compiler fuses a product with a sum. */
CAI_HOST_DEVICE static inline void diffuse_at(const cai_kernel_view *out, const cai_kernel_view *in,
                                              int64_t i, int64_t j, int64_t k)
{
    const double divergence = flux(in, i, j, k, 1, 0) - flux(in, i - 1, j, k, 1, 0) +
                              flux(in, i, j, k, 0, 1) - flux(in, i, j - 1, k, 0, 1);
    *point(out, i, j, k) = *point(in, i, j, k) - divergence / 64;
}

/* The loops of the host. The simulated kernels run them, too. */
static inline void fill_halo(const cai_kernel_view *in)
{
    int64_t i, j, k;
    for (k = 0; k < NK; ++k)
        for (j = -HALO; j < NJ + HALO; ++j)
            for (i = -HALO; i < NI + HALO; ++i) fill_halo_at(in, i, j, k);
}

static inline void diffuse(const cai_kernel_view *out, const cai_kernel_view *in)
{
    int64_t i, j, k;
    for (k = 0; k < NK; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i) diffuse_at(out, in, i, j, k);
}

/* ------------------------------------------------------------------ what to compare with */
typedef double stencil_grid[NK][NJ][NI];

/** All steps, on an array of C: no layout, no halo, no storage (stencil_plain.c). */
void stencil_plain(stencil_grid values);

/* ------------------------------------------------------------------ the device */
typedef struct stencil_device {
    char name[256];        /* what it is; or why there is none */
    const cai_cuda *cuda;  /* the table that cai_storage.h calls */
    uint64_t home, stream; /* for copies; for kernels */
} stencil_device;

/** Fills `out`. Returns 1; 0: there is no such device, and out->name says why. */
int stencil_open(stencil_device *out);

/** Enqueues a step: the halo of `in`, then the domain of `out`. Both are views of domains. Returns 0 or
 *  CUDA's error. */
int32_t stencil_launch(const stencil_device *device, cai_kernel_view out, cai_kernel_view in);

/** The host works on a field now. The simulation looks for races with that. A GPU cannot. */
void stencil_host_works(const cai_kernel_view *field, int writes);

/** The end. Prints what the device found out. Returns 0 if nothing is wrong. */
int stencil_close(stencil_device *device);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
