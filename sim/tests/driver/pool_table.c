/* pool_table.c - examples/memory/pool_plugin.h over cudaMalloc, as a shared object that exports cai_emm_plugin
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "examples/memory/pool_plugin.h"

#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
const cai_emm_hooks *cai_emm_plugin(void);

const cai_emm_hooks *cai_emm_plugin(void)
{
    static cai_cuda_driver driver;
    static pool_plugin pool;
    static cai_emm_hooks upstream, hooks;
    if (hooks.struct_size) return &hooks;
    if (cai_cuda_load(&driver, NULL, NULL) || cai_emm_hooks_cuda(&upstream, &driver.cuda, NULL)) return NULL;
    pool_plugin_open(&pool, &upstream, &hooks);
    return &hooks;
}
