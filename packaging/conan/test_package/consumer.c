/* SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"

#include <stdio.h>

int main(void)
{
    cai_emm_hooks hooks;
    cai_emm_hooks_malloc(&hooks);
    printf("cai %d: memory of the %s\n", (int)cai_version(), hooks.name);
    return cai_version() == CAI_H_INCLUDED ? 0 : 1;
}
