/* SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_sim.h"

int main(void)
{
    cai_sim *sim = cai_sim_create(2);
    if (!sim) return 1;
    cai_sim_destroy(sim);
    return 0;
}
