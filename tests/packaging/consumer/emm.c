/* The smallest consumer of cai_emm.h: memory by hooks over malloc, so that it runs without CUDA and links nothing.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_emm.h"

#include <stdio.h>
#include <string.h>

static cai_emm emm;

static cai_status use_memory(cai_error *error)
{
    const int64_t shape[2] = {2, 3};
    cai_emm_hooks hooks;
    cai_memory scratch;
    cai_array array;
    cai_emm_hooks_host(&hooks);
    CAI_TRY(cai_emm_init(&emm, NULL, &hooks, NULL, error));
    CAI_TRY(cai_emm_alloc(&scratch, &emm, 1000, 0, CAI_STREAM_LEGACY, error));
    memset(cai_emm_pointer(&emm, scratch), 1, 1000);
    CAI_TRY(cai_emm_array(&array, &emm, CAI_FLOAT32, 2, shape, CAI_STREAM_LEGACY, error));
    cai_array_release(&array);
    return cai_emm_free(&emm, scratch, CAI_STREAM_LEGACY, error);
}

int main(void)
{
    cai_emm_count count;
    cai_error error;
    cai_status status = use_memory(&error);
    cai_emm_counts(&emm, &count);
    if (!status) status = cai_emm_destroy(&emm, &error);
    if (status) {
        printf("%s\n", error.message);
        return 1;
    }
    printf("cai_emm %d: %d allocated, %d live\n", (int)CAI_EMM_H_INCLUDED, (int)count.allocated, (int)count.live);
    return count.allocated == 2 && !count.live ? 0 : 2;
}
