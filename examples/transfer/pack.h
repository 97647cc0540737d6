/* pack.h - what the kernel of pack.cu does, for a device or the host
 * SPDX-License-Identifier: MIT */
#ifndef PACK_H
#define PACK_H

#include "cai_transfer.h"

/* What a thread copies at once: the alignment of the plan, at most 8 bytes. It divides each run. */
static inline int32_t pack_unit(const cai_transfer *plan)
{
    return plan->alignment < 8 ? plan->alignment : 8;
}

/* Copies unit number `index` of a plan: finds its run, and its place in the run. */
CAI_HOST_DEVICE static inline void pack_one(const cai_transfer *plan, int32_t unit, int64_t index)
{
    const int64_t units = plan->run / unit; /* of a run */
    const uint64_t within = (uint64_t)(index % units * unit);
    uint64_t to = plan->to + within, from = plan->from + within;
    int64_t run = index / units;
    int32_t i;
    for (i = plan->ndim - 1; i >= 0; --i) {
        const cai_transfer_axis *axis = &plan->axes[i];
        to += (uint64_t)(run % axis->extent) * (uint64_t)axis->to;
        from += (uint64_t)(run % axis->extent) * (uint64_t)axis->from;
        run /= axis->extent;
    }
    switch (unit) { /* each a single access of the device */
    case 8: *(uint64_t *)(uintptr_t)to = *(const uint64_t *)(uintptr_t)from; break;
    case 4: *(uint32_t *)(uintptr_t)to = *(const uint32_t *)(uintptr_t)from; break;
    case 2: *(uint16_t *)(uintptr_t)to = *(const uint16_t *)(uintptr_t)from; break;
    default: *(uint8_t *)(uintptr_t)to = *(const uint8_t *)(uintptr_t)from; break;
    }
}

#endif
