// kernels.hip.cpp - the functions for kernels, called in a kernel of HIP, without HIP's headers.
// SPDX-License-Identifier: MIT
#include "cai_scaled.h"
#include "cai_small_view.h"

struct addresses {
    void *at[8];
    long long offset;
};

__attribute__((global)) void call_all(cai_kernel_view view, cai_small_view small, cai_scale_map map, addresses *out)
{
    out->at[0] = cai_kernel_at1(&view, 1);
    out->at[1] = cai_kernel_at2(&view, 1, 2);
    out->at[2] = cai_kernel_at3(&view, 1, 2, 3);
    out->at[3] = cai_kernel_element(&view, 4);
    out->at[4] = cai_small_at1(&small, 1);
    out->at[5] = cai_small_at2(&small, 1, 2);
    out->at[6] = cai_small_at3(&small, 1, 2, 3);
    out->at[7] = cai_small_element(&small, 4);
    out->offset = cai_scale_offset(&map, 1, 2);
}

void *on_the_host(const cai_kernel_view *view); // the host calls them, too
void *on_the_host(const cai_kernel_view *view)
{
    return cai_kernel_at1(view, 1);
}
