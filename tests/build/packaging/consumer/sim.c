/* A test of somebody else's on the simulated CUDA: the smallest consumer of cai_sim.h.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_sim.h"

#include <stdio.h>

int main(void)
{
    cai_sim *sim = cai_sim_create(2);
    if (!sim || !cai_sim_primary(sim, 1)) return 1;
    printf("cai_sim %d: 2 devices\n", (int)cai_version());
    cai_sim_destroy(sim);
    return 0;
}
