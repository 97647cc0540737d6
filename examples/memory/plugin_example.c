/* plugin_example.c - the smallest plugin for plugin_loader.h: host memory
 * SPDX-License-Identifier: MIT
 * cc -shared -fPIC -I. examples/memory/plugin_example.c -o plugin_example.so: the declarations of cai_emm.h are
 * enough. */
#include "cai_emm.h"

#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define PLUGIN_API __declspec(dllexport)
#else
#define PLUGIN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif
PLUGIN_API const cai_emm_hooks *cai_emm_plugin(void);

/* Aligned to 256 bytes; what malloc gave stands before it. */
static int example_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    unsigned char *block = size < SIZE_MAX - 512 ? (unsigned char *)malloc(size + 512) : NULL, *given;
    (void)ctx;
    (void)stream;
    if (!block) return 2; /* CUDA's number for: out of memory */
    given = block + 512 - (uintptr_t)block % 256;
    memcpy(given - sizeof block, &block, sizeof block);
    *ptr = given;
    return 0;
}

static int example_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    unsigned char *block;
    (void)ctx;
    (void)size;
    (void)stream;
    memcpy(&block, (unsigned char *)ptr - sizeof block, sizeof block);
    free(block);
    return 0;
}

PLUGIN_API const cai_emm_hooks *cai_emm_plugin(void)
{
    static const cai_emm_hooks hooks = {sizeof hooks, CAI_EMM_VERSION, 0, CAI_MEMORY_HOST, NULL,
                                        example_alloc, example_free, "plugin_example", NULL, NULL, NULL,
                                        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                        NULL};
    return &hooks;
}

#ifdef __cplusplus
}
#endif
