/* hooks.c - hooks that do nothing, in an object of their own: what a manager itself costs. */

#include "hooks.h"

#include <string.h>

static int no_op_alloc(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx;
    (void)size;
    (void)stream;
    *ptr = (void *)(uintptr_t)4096;
    return 0;
}

static int no_op_free(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx;
    (void)ptr;
    (void)size;
    (void)stream;
    return 0;
}

void no_op_hooks(cai_emm_hooks *hooks)
{
    memset(hooks, 0, sizeof *hooks);
    hooks->struct_size = (uint32_t)sizeof *hooks;
    hooks->version = CAI_EMM_VERSION;
    hooks->kind = CAI_MEMORY_DEVICE;
    hooks->device_alloc = no_op_alloc;
    hooks->device_free = no_op_free;
    memcpy(hooks->name, "no_op", 6);
}
