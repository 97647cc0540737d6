/* The smallest consumer of cai_emm.h: an array by hooks over malloc, so that it runs without CUDA and links nothing.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_emm.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    const int64_t shape[2] = {2, 3};
    cai_emm_hooks hooks;
    cai_array array;
    cai_error error;
    cai_emm_hooks_malloc(&hooks);
    if (cai_emm_array(&array, NULL, &hooks, CAI_FLOAT32, 2, shape, CAI_STREAM_LEGACY, &error)) {
        printf("%s\n", error.message);
        return 1;
    }
    memset((void *)(uintptr_t)array.data, 1, (size_t)array.nbytes);
    printf("cai_emm %d: %d elements of the %s\n", (int)CAI_EMM_H_INCLUDED, (int)array.size, hooks.name);
    cai_array_release(&array);
    return array.release ? 2 : 0;
}
