/* The smallest consumer of cai_manager.h: memory by hooks over malloc, so that it runs without CUDA and links nothing.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"

#include <stdio.h>
#include <string.h>

static cai_manager manager;

static cai_status use_memory(cai_error *error)
{
    const int64_t shape[2] = {2, 3};
    cai_emm_hooks hooks;
    cai_memory_handle scratch;
    cai_array array;
    cai_emm_hooks_malloc(&hooks);
    CAI_TRY(cai_manager_init(&manager, NULL, &hooks, NULL, error));
    CAI_TRY(cai_manager_alloc(&scratch, &manager, 1000, 0, CAI_STREAM_LEGACY, error));
    memset(cai_manager_pointer(&manager, scratch), 1, 1000);
    CAI_TRY(cai_manager_array(&array, &manager, CAI_FLOAT32, 2, shape, CAI_STREAM_LEGACY, error));
    cai_array_release(&array);
    return cai_manager_free(&manager, scratch, CAI_STREAM_LEGACY, error);
}

int main(void)
{
    cai_manager_count count;
    cai_error error;
    cai_status status = use_memory(&error);
    cai_manager_counts(&manager, &count);
    if (!status) status = cai_manager_destroy(&manager, &error);
    if (status) {
        printf("%s\n", error.message);
        return 1;
    }
    printf("cai_manager %d: %d allocated, %d live\n", (int)CAI_MANAGER_H_INCLUDED, (int)count.allocated, (int)count.live);
    return count.allocated == 2 && !count.live ? 0 : 2;
}
