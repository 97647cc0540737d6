/* The smallest consumer: also what a user writes who copies one header.
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai.h"

#include <stdio.h>

int main(void)
{
    float values[6] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[2] = {2, 3};
    cai_array array;
    cai_error error;
    char line[200];
    if (cai_array_init(&array, CAI_FLOAT32, 2, shape, NULL, values, &error) ||
        cai_expect(&array, "array", CAI_FLOAT32, 2, CAI_WRITABLE | CAI_C_CONTIGUOUS, &error)) {
        printf("%s\n", error.message);
        return 1;
    }
    cai_array_text(&array, line, sizeof line);
    printf("cai %d: %s\n", (int)cai_version(), line);
    return cai_version() == CAI_H_INCLUDED && array.size == 6 ? 0 : 1;
}
