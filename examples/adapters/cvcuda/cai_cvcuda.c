/* cai_cvcuda.c - hooks of cai_emm.h as custom allocators of CV-CUDA (NVCV)
 * SPDX-License-Identifier: MIT */

#include "cai_cvcuda.h"

struct cai_cvcuda {
    adapter memory;
};

static void cvcuda_drop(cai_cvcuda *memory)
{
    adapter_drop(&memory->memory);
    free(memory);
}

cai_cvcuda *cai_cvcuda_open(const cai_emm_hooks *hooks, const cai_cuda *cuda, int device, uint64_t stream,
                            cai_error *err)
{
    cai_cvcuda *memory = (cai_cvcuda *)calloc(1, sizeof *memory);
    if (!memory) (void)adapter_say(err, CAI_ERR_OUT_OF_MEMORY, "cai_cvcuda_open: no host memory");
    else if (cai_emm_hooks_check(hooks, err) ||
             adapter_hold(&memory->memory, "cai_cvcuda", cuda, device, stream, err) ||
             adapter_open(&memory->memory, hooks, err)) {
        cvcuda_drop(memory);
        memory = NULL;
    }
    return memory;
}

static void *cvcuda_refuse(adapter *a, int64_t size, const char *why)
{
    cai_error err;
    (void)adapter_say(&err, CAI_ERR_ARGUMENT, why);
    adapter_failed(a, "allocation", size < 0 ? 0 : (size_t)size, &err);
    return NULL;
}

/* promised: what the hook aligns to. */
static void *cvcuda_alloc(adapter *a, int64_t size, int32_t align, size_t promised, int32_t host)
{
    if (size < 0) return cvcuda_refuse(a, size, "the size is negative");
    if ((uint64_t)size > SIZE_MAX) return cvcuda_refuse(a, 0, "the size is beyond size_t");
    if (align < 1 || align & (align - 1)) return cvcuda_refuse(a, size, "the alignment is no power of two");
    return adapter_alloc(a, (size_t)size, (size_t)align, promised, host);
}

void *cai_cvcuda_alloc(void *ctx, int64_t size, int32_t align)
{
    return cvcuda_alloc(&((cai_cvcuda *)ctx)->memory, size, align, 256, 0);
}

void cai_cvcuda_free(void *ctx, void *ptr, int64_t size, int32_t align)
{
    (void)size;
    (void)align;
    adapter_free(&((cai_cvcuda *)ctx)->memory, ptr, 0);
}

/* host_alloc promises nothing beyond what any object needs. */
void *cai_cvcuda_pinned_alloc(void *ctx, int64_t size, int32_t align)
{
    adapter *a = &((cai_cvcuda *)ctx)->memory;
    if (!a->hooks.host_alloc) return cvcuda_refuse(a, size, "the hooks have no host_alloc");
    return cvcuda_alloc(a, size, align, 2 * sizeof(void *), 1);
}

void cai_cvcuda_pinned_free(void *ctx, void *ptr, int64_t size, int32_t align)
{
    (void)size;
    (void)align;
    adapter_free(&((cai_cvcuda *)ctx)->memory, ptr, 1);
}

void cai_cvcuda_counts(cai_cvcuda *memory, cai_adapter_count *out)
{
    *out = adapter_counts(&memory->memory);
}

cai_status cai_cvcuda_close(cai_cvcuda *memory)
{
    if (!memory) return CAI_OK;
    CAI_TRY(adapter_close(&memory->memory));
    cvcuda_drop(memory);
    return CAI_OK;
}
