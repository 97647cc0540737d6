/* stencil_plain.c - the steps of stencil.c on an array of C: what its results are compared with
 * SPDX-License-Identifier: MIT */

#include "stencil.h"

#include <string.h>

static double at(stencil_grid in, int i, int j, int k)
{
    return in[k][(j + NJ) % NJ][(i + NI) % NI];
}

static void find_laplacian(stencil_grid out, stencil_grid in)
{
    int i, j, k;
    for (k = 0; k < NK; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i)
                out[k][j][i] = at(in, i - 1, j, k) + at(in, i + 1, j, k) + at(in, i, j - 1, k) +
                               at(in, i, j + 1, k) - 4 * at(in, i, j, k);
}

/* The limited flux from (i, j) to its neighbour. */
static double limited(stencil_grid in, stencil_grid lap, int i, int j, int k, int di, int dj)
{
    const double amount = at(lap, i + di, j + dj, k) - at(lap, i, j, k);
    return amount * (at(in, i + di, j + dj, k) - at(in, i, j, k)) > 0 ? 0 : amount;
}

static void plain_step(stencil_grid out, stencil_grid in)
{
    static stencil_grid lap;
    int i, j, k;
    find_laplacian(lap, in);
    for (k = 0; k < NK; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i)
                out[k][j][i] = in[k][j][i] -
                               (limited(in, lap, i, j, k, 1, 0) - limited(in, lap, i - 1, j, k, 1, 0) +
                                limited(in, lap, i, j, k, 0, 1) - limited(in, lap, i, j - 1, k, 0, 1)) / 64;
}

void stencil_plain(stencil_grid values)
{
    static stencil_grid in;
    int n;
    for (n = 0; n < STEPS; ++n) {
        memcpy(in, values, sizeof in);
        plain_step(values, in);
    }
}
