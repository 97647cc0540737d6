/* code.c - modules, libraries, kernels, launches, occupancy, the linker
 * SPDX-License-Identifier: MIT
 *
 * Kernels do not run. Their images are read for names and parameters. A launch is an operation with the
 * accesses of the pointers in its arguments. They are not known if the image is opaque. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_MODULE = 0x434d4f44,   /* also a CUlibrary */
    CODE_FUNCTION = 0x4346554e, /* also a CUkernel */
    CODE_LINKER = 0x434c4e4b,
    CODE_INPUTS = 256,  /* of a linker */
    CODE_DOUBTS = 8,
    CODE_ACCESSES = 64 /* of a launch, without memory of its own */
};

typedef struct code_function {
    uint32_t magic;
    const char *name; /* never freed: calls have it */
    const cai_kernel *kernel; /* NULL: the image is opaque */
    struct code_module *module;
    struct code_function *next;
} code_function;

/* A variable of a module, in one context. */
typedef struct code_global {
    const cai_kernel_global *global;
    uint64_t context;
    uint64_t address;
    struct code_global *next;
} code_global;

typedef struct code_module {
    uint32_t magic;
    cai_kernel_image *image; /* kept: calls have the names */
    code_function *functions;
    code_global *globals;
} code_module;

typedef struct code_linker {
    uint32_t magic;
    int32_t count;
    void *inputs[CODE_INPUTS];
    size_t bytes[CODE_INPUTS];
    void *linked;
} code_linker;

/* What a cubin was made from. One cubin may have several. They are kept: a cubin may be loaded again. */
typedef struct code_source {
    uint64_t hash; /* of the cubin */
    size_t bytes;
    char *ptx;
    size_t ptx_bytes;
    struct code_source *next;
} code_source;

static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static code_source *code_sources;

static code_module *code_module_of(const void *handle)
{
    code_module *module = (code_module *)driver_handle(driver_number(handle));
    return module && module->magic == CODE_MODULE ? module : NULL;
}

static code_function *code_function_of(const void *handle)
{
    code_function *function = (code_function *)driver_handle(driver_number(handle));
    return function && function->magic == CODE_FUNCTION ? function : NULL;
}

/* ---------------------------------------------------------------------------- >>sources */
static uint64_t code_hash(const void *data, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)data;
    uint64_t hash = UINT64_C(14695981039346656037);
    size_t i;
    for (i = 0; i < bytes; ++i)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

int32_t cai_driver_source(const void *image, size_t bytes, const void *ptx, size_t ptx_bytes)
{
    code_source *made;
    const size_t measured = bytes ? cai_kernel_image_bytes(image, bytes) : 0;
    if (!measured || !ptx || !ptx_bytes)
        return 0;
    made = (code_source *)calloc(1, sizeof *made);
    if (made)
        made->ptx = (char *)malloc(ptx_bytes);
    if (!made || !made->ptx) {
        free(made);
        return 0;
    }
    memcpy(made->ptx, ptx, ptx_bytes);
    made->ptx_bytes = ptx_bytes;
    made->hash = code_hash(image, measured);
    made->bytes = measured;
    pthread_mutex_lock(&code_lock);
    made->next = code_sources;
    code_sources = made;
    pthread_mutex_unlock(&code_lock);
    return 1;
}

/* Tells an image what is known of the cubin that it was read from. `bytes` 0: not known. */
static void code_explain(cai_kernel_image *image, const void *data, size_t bytes)
{
    const code_source *one;
    uint64_t hash;
    size_t measured;
    pthread_mutex_lock(&code_lock);
    one = code_sources;
    pthread_mutex_unlock(&code_lock);
    measured = one ? cai_kernel_image_bytes(data, bytes) : 0;
    if (!measured)
        return;
    hash = code_hash(data, measured);
    for (; one; one = one->next)
        if (one->hash == hash && one->bytes == measured)
            cai_kernel_image_explain(image, one->ptx, one->ptx_bytes);
}

/* -------------------------------------------------------------- >>modules, libraries */
/* `bytes` 0: the image says how long it is. */
static CUresult code_load(const void *data, size_t bytes, code_module **made)
{
    DRIVER_NEED(data);
    *made = (code_module *)calloc(1, sizeof **made);
    if (!*made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*made)->image = cai_kernel_image_read(data, bytes);
    if (!(*made)->image) {
        free(*made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    code_explain((*made)->image, data, bytes);
    (*made)->magic = CODE_MODULE;
    return CUDA_SUCCESS;
}

/* The bytes of a file, and a '\0' behind them. free() them. */
static CUresult code_read_file(const char *path, char **data, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    long end = -1;
    *data = NULL;
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (!fseek(file, 0, SEEK_END))
        end = ftell(file);
    if (end >= 0 && !fseek(file, 0, SEEK_SET))
        *data = (char *)calloc(1, (size_t)end + 1);
    if (*data)
        *bytes = fread(*data, 1, (size_t)end, file);
    fclose(file);
    return *data ? CUDA_SUCCESS : end < 0 ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Triton's cache has the PTX of k.cubin in k.ptx, and k.json beside both. PyTorch loads such files by path. */
static void code_explain_file(cai_kernel_image *image, const char *path)
{
    static const char *const endings[] = {".json", ".ptx"};
    const size_t length = strlen(path);
    char *data = NULL, *other = (char *)malloc(length + 1);
    size_t bytes = 0, i;
    int there = other && length > 6 && !strcmp(path + length - 6, ".cubin");
    for (i = 0; there && i < 2; ++i) {
        free(data);
        memcpy(other, path, length - 6);
        strcpy(other + length - 6, endings[i]);
        there = code_read_file(other, &data, &bytes) == CUDA_SUCCESS;
    }
    if (there)
        cai_kernel_image_explain(image, data, bytes);
    free(data);
    free(other);
}

static CUresult code_load_file(const char *path, code_module **made)
{
    char *data;
    size_t bytes = 0;
    CUresult result;
    DRIVER_NEED(path);
    DRIVER_TRY(code_read_file(path, &data, &bytes));
    result = bytes ? code_load(data, bytes, made) : CUDA_ERROR_INVALID_IMAGE;
    free(data);
    if (result == CUDA_SUCCESS)
        code_explain_file((*made)->image, path);
    return result;
}

/* Functions are kept: their late use is an error, and no crash. */
static CUresult code_unload(code_module *module)
{
    code_function *function;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&code_lock);
    for (function = module->functions; function; function = function->next)
        function->magic = 0;
    module->magic = 0;
    pthread_mutex_unlock(&code_lock);
    return CUDA_SUCCESS;
}

/* With the lock. NULL: no memory. */
static code_function *code_add_function(code_module *module, const char *name)
{
    code_function *made = (code_function *)calloc(1, sizeof *made);
    char *copy = strdup(name);
    if (!made || !copy) {
        free(made);
        free(copy);
        return NULL;
    }
    made->magic = CODE_FUNCTION;
    made->name = copy;
    made->kernel = cai_kernel_find(module->image, name);
    made->module = module;
    made->next = module->functions;
    module->functions = made;
    return made;
}

/* In an opaque image any name is that of a kernel. */
static CUresult code_function_named(code_module *module, const char *name, code_function **out)
{
    code_function *one;
    DRIVER_NEED(name);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!cai_kernel_image_is_opaque(module->image) && !cai_kernel_find(module->image, name))
        return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&code_lock);
    for (one = module->functions; one && strcmp(one->name, name); one = one->next)
        continue;
    *out = one ? one : code_add_function(module, name);
    pthread_mutex_unlock(&code_lock);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuModuleLoadData(CUmodule *module, const void *image)
{
    code_module *made;
    DRIVER_NEED(module && image);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(code_load(image, 0, &made));
    *module = (CUmodule)(void *)made;
    return CUDA_SUCCESS;
}

CUresult do_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                               void **values)
{
    DRIVER_NEED(!count || (options && values));
    return do_cuModuleLoadData(module, image);
}

CUresult do_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return do_cuModuleLoadData(module, image);
}

CUresult do_cuModuleLoad(CUmodule *module, const char *path)
{
    code_module *made = NULL;
    DRIVER_NEED(module && path);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(code_load_file(path, &made));
    *module = (CUmodule)(void *)made;
    return CUDA_SUCCESS;
}

CUresult do_cuModuleUnload(CUmodule module)
{
    DRIVER_TRY(driver_need_context());
    return code_unload(code_module_of(module));
}

CUresult do_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    code_function *found = NULL;
    DRIVER_NEED(function && name);
    DRIVER_TRY(code_function_named(code_module_of(module), name, &found));
    *function = (CUfunction)(void *)found;
    return CUDA_SUCCESS;
}

CUresult do_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    DRIVER_NEED(mode);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult do_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                              unsigned int count, CUlibraryOption *library_options, void **library_values,
                              unsigned int library_count)
{
    code_module *made;
    DRIVER_NEED(library && code && (!count || (options && values)));
    DRIVER_NEED(!library_count || library_options);
    (void)library_values;
    DRIVER_TRY(code_load(code, 0, &made));
    *library = (CUlibrary)(void *)made;
    return CUDA_SUCCESS;
}

CUresult do_cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options, void **values,
                                  unsigned int count, CUlibraryOption *library_options, void **library_values,
                                  unsigned int library_count)
{
    code_module *made = NULL;
    DRIVER_NEED(library && path && (!count || (options && values)));
    DRIVER_NEED(!library_count || library_options);
    (void)library_values;
    DRIVER_TRY(code_load_file(path, &made));
    *library = (CUlibrary)(void *)made;
    return CUDA_SUCCESS;
}

CUresult do_cuLibraryUnload(CUlibrary library)
{
    return code_unload(code_module_of(library));
}

CUresult do_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    code_function *found = NULL;
    DRIVER_NEED(kernel && name);
    DRIVER_TRY(code_function_named(code_module_of(library), name, &found));
    *kernel = (CUkernel)(void *)found;
    return CUDA_SUCCESS;
}

/* A library and its module are one here. */
CUresult do_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    DRIVER_NEED(module);
    if (!code_module_of(library))
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_TRY(driver_need_context());
    *module = (CUmodule)(void *)library;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------- >>functions, kernels */
CUresult do_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    DRIVER_NEED(function);
    if (!code_function_of(kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_TRY(driver_need_context());
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

static CUresult code_name(const char **name, const void *handle)
{
    code_function *function = code_function_of(handle);
    DRIVER_NEED(name);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetName(const char **name, CUfunction function)
{
    return code_name(name, function);
}

CUresult do_cuKernelGetName(const char **name, CUkernel kernel)
{
    return code_name(name, kernel);
}

static CUresult code_parent(void **parent, const void *handle)
{
    code_function *function = code_function_of(handle);
    DRIVER_NEED(parent);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    *parent = function->module;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetModule(CUmodule *module, CUfunction function)
{
    void *parent = NULL;
    DRIVER_NEED(module);
    DRIVER_TRY(code_parent(&parent, function));
    *module = (CUmodule)parent;
    return CUDA_SUCCESS;
}

CUresult do_cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    void *parent = NULL;
    DRIVER_NEED(library);
    DRIVER_TRY(code_parent(&parent, kernel));
    *library = (CUlibrary)parent;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncLoad(CUfunction function)
{
    return code_function_of(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    DRIVER_NEED(state && code_function_of(function));
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

static CUresult code_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
    const code_function *function = code_function_of(handle);
    DRIVER_NEED(value && (int)attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = function->kernel && function->kernel->architecture ? function->kernel->architecture : 90;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = 49152;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    return code_attribute(value, attribute, function);
}

CUresult do_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    DRIVER_TRY(driver_need_device(device));
    return code_attribute(value, attribute, kernel);
}

CUresult do_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)value;
    DRIVER_NEED((int)attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    return do_cuFuncLoad(function);
}

CUresult do_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    DRIVER_TRY(driver_need_device(device));
    return do_cuFuncSetAttribute((CUfunction)(void *)kernel, attribute, value);
}

CUresult do_cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    (void)config;
    return do_cuFuncLoad(function);
}

CUresult do_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    (void)config;
    DRIVER_TRY(driver_need_device(device));
    return code_function_of(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* 801: the image is opaque. */
static CUresult code_parameter(const void *handle, size_t index, size_t *offset, size_t *bytes)
{
    const code_function *function = code_function_of(handle);
    DRIVER_NEED(offset);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!function->kernel || function->kernel->opaque)
        return CUDA_ERROR_NOT_SUPPORTED;
    DRIVER_NEED(index < (size_t)function->kernel->parameter_count);
    *offset = function->kernel->parameters[index].offset;
    if (bytes)
        *bytes = function->kernel->parameters[index].bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    return code_parameter(function, index, offset, bytes);
}

CUresult do_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return code_parameter(kernel, index, offset, bytes);
}

static CUresult code_count(unsigned int *count, const void *handle)
{
    const code_module *module = code_module_of(handle);
    DRIVER_NEED(count);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (cai_kernel_image_is_opaque(module->image))
        return CUDA_ERROR_NOT_SUPPORTED;
    *count = (unsigned int)cai_kernel_count(module->image);
    return CUDA_SUCCESS;
}

/* Stores at most `capacity` handles. */
static CUresult code_enumerate(void *handles, unsigned int capacity, void *handle)
{
    code_module *module = code_module_of(handle);
    unsigned int i, count = 0;
    DRIVER_NEED(handles);
    DRIVER_TRY(code_count(&count, handle));
    for (i = 0; i < count && i < capacity; ++i) {
        code_function *function = NULL;
        const cai_kernel *kernel = cai_kernel_at(module->image, (int32_t)i);
        DRIVER_TRY(code_function_named(module, kernel->name, &function));
        memcpy((char *)handles + i * sizeof function, &function, sizeof function);
    }
    return CUDA_SUCCESS;
}

CUresult do_cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    return code_count(count, module);
}

CUresult do_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int capacity, CUmodule module)
{
    return code_enumerate(functions, capacity, module);
}

CUresult do_cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
    return code_count(count, library);
}

CUresult do_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int capacity, CUlibrary library)
{
    return code_enumerate(kernels, capacity, library);
}

/* ------------------------------------------------------------------------ >>globals */
/* With the lock. Memory of a variable, with what the image says is in it. */
static CUresult code_make_global(code_module *module, const cai_kernel_global *global, uint64_t context,
                                 code_global **out)
{
    cai_sim *sim = cai_driver_sim();
    code_global *made = (code_global *)calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->address = cai_sim_alloc(sim, global->managed ? CAI_SIM_MEM_MANAGED : CAI_SIM_MEM_DEVICE,
                                  global->bytes);
    if (!made->address) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (global->data && cai_sim_bytes(sim, made->address))
        memcpy(cai_sim_bytes(sim, made->address), global->data, (size_t)global->bytes);
    made->global = global;
    made->context = context;
    made->next = module->globals;
    module->globals = made;
    *out = made;
    return CUDA_SUCCESS;
}

/* Each context has its own. Managed variables are one for all. The memory is made when it is asked for. */
static CUresult code_global_of(CUdeviceptr_v2 *address, size_t *bytes, const void *handle, const char *name,
                               int managed)
{
    code_module *module = code_module_of(handle);
    const cai_kernel_global *global;
    code_global *one;
    uint64_t context;
    CUresult result = CUDA_SUCCESS;
    DRIVER_NEED(name && (address || bytes));
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_TRY(driver_need_context());
    global = cai_kernel_global_find(module->image, name);
    if (!global && cai_kernel_image_is_opaque(module->image))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!global || (managed && !global->managed))
        return CUDA_ERROR_NOT_FOUND;
    context = global->managed ? 0 : cai_sim_current(cai_driver_sim());
    pthread_mutex_lock(&code_lock);
    for (one = module->globals; one && (one->global != global || one->context != context); one = one->next)
        continue;
    if (!one)
        result = code_make_global(module, global, context, &one);
    pthread_mutex_unlock(&code_lock);
    DRIVER_TRY(result);
    if (address)
        *address = (CUdeviceptr)one->address;
    if (bytes)
        *bytes = (size_t)global->bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuModuleGetGlobal_v2(CUdeviceptr_v2 *address, size_t *bytes, CUmodule module, const char *name)
{
    return code_global_of(address, bytes, module, name, 0);
}

CUresult do_cuLibraryGetGlobal(CUdeviceptr_v2 *address, size_t *bytes, CUlibrary library, const char *name)
{
    return code_global_of(address, bytes, library, name, 0);
}

CUresult do_cuLibraryGetManaged(CUdeviceptr_v2 *address, size_t *bytes, CUlibrary library, const char *name)
{
    return code_global_of(address, bytes, library, name, 1);
}

/* ----------------------------------------------------------------------- >>launches */
/* Addresses in the arguments of a launch whose memory is freed, or which its device cannot access. */
typedef struct code_doubts {
    uint64_t addresses[CODE_DOUBTS];
    int32_t count;
} code_doubts;

static int code_is_doubted(const code_doubts *doubts, uint64_t address)
{
    int32_t i = 0;
    while (i < doubts->count && doubts->addresses[i] != address)
        ++i;
    return i < doubts->count;
}

static void code_doubt(code_doubts *doubts, uint64_t address)
{
    if (doubts->count < CODE_DOUBTS && !code_is_doubted(doubts, address))
        doubts->addresses[doubts->count++] = address;
}

/* The parameters that are such an address. A struct may hold old ones that the kernel does not use: they count if its
 * PTX says that it does. */
static void code_tell_doubts(const code_doubts *doubts, const cai_kernel *kernel, void **arguments, const void *buffer,
                             size_t bytes)
{
    uint64_t word;
    int32_t i;
    for (i = 0; doubts->count && i < kernel->parameter_count; ++i) {
        const cai_kernel_parameter *p = &kernel->parameters[i];
        uint32_t at;
        for (at = p->offset % 8 ? 8 - p->offset % 8 : 0; at + 8 <= p->bytes; at += 8) {
            const int does = kernel->words ? kernel->words[(p->offset + at) / 8] : CAI_KERNEL_UNKNOWN;
            if (!does || (does == CAI_KERNEL_UNKNOWN && p->bytes != 8) || (!arguments && p->offset + at + 8 > bytes))
                continue;
            memcpy(&word, (arguments ? (const char *)arguments[i] : (const char *)buffer + p->offset) + at, 8);
            if (code_is_doubted(doubts, word))
                driver_dead_argument(word, i + 1);
        }
    }
}

static int code_is_memory(uint64_t address)
{
    cai_sim_access access = cai_sim_reads(address, 1);
    uint64_t offset = 0;
    return cai_sim_access_memory(cai_driver_sim(), &access, &offset) != 0;
}

/* CAI_KERNEL_ELSEWHERE: a parameter that the kernel uses as an address is of no memory of CUDA: pageable memory, or an
 * address before the first element, to which the kernel adds. What is as small as an index is none. One behind the last
 * element may be that of an empty array. */
static int32_t code_elsewhere(const cai_kernel *kernel, void **arguments, const void *buffer, size_t bytes)
{
    uint64_t word;
    int32_t i;
    for (i = 0; kernel->words && i < kernel->parameter_count; ++i) {
        const cai_kernel_parameter *p = &kernel->parameters[i];
        if (p->bytes != 8 || p->offset % 8 || (!arguments && p->offset + 8 > bytes))
            continue;
        if (!(kernel->words[p->offset / 8] & (CAI_KERNEL_READS | CAI_KERNEL_WRITES)))
            continue;
        memcpy(&word, arguments ? (const char *)arguments[i] : (const char *)buffer + p->offset, 8);
        if (word >> 32 && !(word >> 48) && !code_is_memory(word) && !code_is_memory(word - 1))
            return CAI_KERNEL_ELSEWHERE;
    }
    return 0;
}

/* Of virtual memory the mapping, else the allocation. Memory whose free is still queued counts. The first
 * question leaves no error behind, the second one would. */
static int code_range(void *context, uint64_t address, uint64_t *first, uint64_t *bytes)
{
    cai_sim *sim = cai_driver_sim();
    code_doubts *doubts = (code_doubts *)context;
    cai_sim_access access = cai_sim_reads(address, 1);
    cai_sim_pointer pointer;
    uint64_t offset = 0, freed;
    if (!cai_sim_access_memory(sim, &access, &offset))
        return 0;
    if (cai_sim_pointer_get(sim, address, &pointer)) {
        code_doubt(doubts, address);
        return 0;
    }
    if (pointer.ending || (pointer.access == CAI_SIM_ACCESS_NONE && pointer.mapped) || driver_graph_freed(address, &freed))
        code_doubt(doubts, address);
    *first = pointer.mapping_bytes ? pointer.mapping : pointer.first;
    *bytes = pointer.mapping_bytes ? pointer.mapping_bytes : pointer.bytes;
    return pointer.kind != CAI_SIM_MEM_NONE && (pointer.kind != CAI_SIM_MEM_VIRTUAL || pointer.mapped);
}

/* The block of arguments that `extra` names. Returns 1 (invalid value) if it is no list. */
static CUresult code_buffer(void **extra, const void **buffer, size_t *bytes)
{
    int i;
    for (i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        DRIVER_NEED(i < 8 && extra[i + 1]);
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            memcpy(bytes, extra[i + 1], sizeof *bytes);
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* The accesses of a launch, in `*list` if they are not too many, else in memory that replaces it. Returns how
 * many there are, or -1: no memory. */
static int32_t code_accesses(const cai_kernel *kernel, void **arguments, const void *buffer, size_t bytes,
                             cai_sim_access **list)
{
    code_doubts doubts = {{0}, 0};
    int32_t room = CODE_ACCESSES, count;
    for (;; room = count) {
        count = cai_kernel_accesses(kernel, (const void *const *)arguments, buffer, bytes, code_range,
                                    &doubts, *list, room);
        if (count <= room) {
            code_tell_doubts(&doubts, kernel, arguments, buffer, bytes);
            return count;
        }
        if (room > CODE_ACCESSES)
            free(*list);
        *list = (cai_sim_access *)calloc((size_t)count, sizeof **list);
        if (!*list)
            return -1;
    }
}

/* What the attributes of a launch say of its order. *early: it may begin before the work in front of it has ended.
 * 801: it would record an event. */
static CUresult code_order(const CUlaunchConfig *config, int32_t *early)
{
    unsigned i;
    for (i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute *one = &config->attrs[i];
        if (one->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION && one->value.programmaticStreamSerializationAllowed)
            *early = CAI_KERNEL_EARLY;
        if (one->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || one->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            return driver_refuse(CUDA_ERROR_NOT_SUPPORTED, "a launch does not record an event");
    }
    return CUDA_SUCCESS;
}

/* Queues a launch with what it accesses, if its parameters are known, and with what runs in its place. */
static CUresult code_launch(const CUlaunchConfig *config, const code_function *function, void **arguments,
                            void **extra)
{
    const int known = function->kernel && !function->kernel->opaque;
    cai_sim_access some[CODE_ACCESSES], *accesses = some;
    const void *buffer = NULL;
    void *replaced = NULL;
    size_t bytes = 0;
    int32_t count = 0, beyond = 0;
    CUresult result;
    DRIVER_TRY(code_order(config, &beyond));
    if (extra)
        DRIVER_TRY(code_buffer(extra, &buffer, &bytes));
    DRIVER_NEED(!known || arguments || buffer || !function->kernel->parameter_count);
    DRIVER_TRY(driver_replaced(function->name, config, function->kernel, arguments, buffer, bytes,
                               &replaced));
    if (known)
        count = code_accesses(function->kernel, arguments, buffer, bytes, &accesses);
    if (count < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (known)
        beyond |= function->kernel->follows | code_elsewhere(function->kernel, arguments, buffer, bytes);
    driver_call_launches(function->name, !known, beyond);
    result = (CUresult)cai_sim_launch(cai_driver_sim(), driver_stream(config->hStream), function->name,
                                      replaced ? driver_replaced_run : NULL, replaced, accesses, count);
    if (accesses != some)
        free(accesses);
    return result;
}

CUresult do_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **arguments, void **extra)
{
    const code_function *function = code_function_of(handle);
    uint64_t threads;
    DRIVER_NEED(config && (!config->numAttrs || config->attrs) && !(arguments && extra));
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
    DRIVER_NEED(threads && threads <= 1024 && config->gridDimX && config->gridDimY && config->gridDimZ);
    DRIVER_NEED(config->sharedMemBytes <= 232448);
    DRIVER_TRY(driver_need_context());
    return code_launch(config, function, arguments, extra);
}

CUresult do_cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                           unsigned int bx,
                           unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                           void **arguments, void **extra)
{
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = gx;
    config.gridDimY = gy;
    config.gridDimZ = gz;
    config.blockDimX = bx;
    config.blockDimY = by;
    config.blockDimZ = bz;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    return do_cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult do_cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                                      unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                      CUstream stream, void **arguments)
{
    return do_cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, NULL);
}

/* ---------------------------------------------------------------------- >>occupancy */
CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int size,
                                                                 size_t shared, unsigned int flags)
{
    DRIVER_NEED(blocks && size > 0 && size <= 1024 && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    if (!code_function_of(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *blocks = 2048 / size < 32 ? 2048 / size : 32;
    if (shared && (size_t)*blocks > (size_t)233472 / shared)
        *blocks = (int)((size_t)233472 / shared);
    return CUDA_SUCCESS;
}

CUresult do_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int size,
                                                        size_t shared)
{
    return do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, size, shared, 0);
}

CUresult do_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                      CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                      unsigned int flags)
{
    int blocks = 0;
    DRIVER_NEED(grid && block && limit >= 0);
    *block = limit && limit < 1024 ? limit : 1024;
    if (shared_of)
        shared = shared_of(*block);
    DRIVER_TRY(do_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, *block, shared,
                                                                       flags));
    *grid = 16 * (blocks ? blocks : 1);
    return CUDA_SUCCESS;
}

CUresult do_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                             CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
    return do_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

/* ------------------------------------------------------------------------- >>linker */
static code_linker *code_linker_of(CUlinkState handle)
{
    code_linker *linker = (code_linker *)(void *)handle;
    return linker && linker->magic == CODE_LINKER ? linker : NULL;
}

CUresult do_cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
    code_linker *made;
    DRIVER_NEED(state && (!count || (options && values)));
    DRIVER_TRY(driver_need_context());
    made = (code_linker *)calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->magic = CODE_LINKER;
    *state = (CUlinkState)(void *)made;
    return CUDA_SUCCESS;
}

/* The linker owns the data. */
static CUresult code_link_add(code_linker *linker, void *data, size_t bytes)
{
    if (linker->count == CODE_INPUTS) {
        free(data);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    linker->inputs[linker->count] = data;
    linker->bytes[linker->count++] = bytes;
    return CUDA_SUCCESS;
}

/* Libraries of device functions have no kernels: they are left out. */
CUresult do_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                             const char *name, unsigned int count, CUjit_option *options, void **values)
{
    code_linker *linker = code_linker_of(state);
    char *copy;
    (void)name;
    DRIVER_NEED(data && bytes && (int)type >= 0 && type < CU_JIT_NUM_INPUT_TYPES);
    DRIVER_NEED(!count || (options && values));
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    if (type == CU_JIT_INPUT_LIBRARY)
        return CUDA_SUCCESS;
    copy = (char *)calloc(1, bytes + 1);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    return code_link_add(linker, copy, bytes);
}

CUresult do_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int count,
                             CUjit_option *options, void **values)
{
    code_linker *linker = code_linker_of(state);
    char *data;
    size_t bytes = 0;
    DRIVER_NEED(path && (int)type >= 0 && type < CU_JIT_NUM_INPUT_TYPES && (!count || (options && values)));
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    DRIVER_TRY(code_read_file(path, &data, &bytes));
    if (type != CU_JIT_INPUT_LIBRARY && bytes)
        return code_link_add(linker, data, bytes);
    free(data);
    return type == CU_JIT_INPUT_LIBRARY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* One input is the image as it is. More are joined, so that each of their kernels is found. */
CUresult do_cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
    code_linker *linker = code_linker_of(state);
    size_t size = 0;
    DRIVER_NEED(image);
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!linker->count)
        return CUDA_ERROR_INVALID_IMAGE;
    *image = linker->inputs[0];
    size = linker->bytes[0];
    if (linker->count > 1) {
        free(linker->linked);
        linker->linked = cai_kernel_link((const void *const *)linker->inputs, linker->bytes, linker->count,
                                         &size);
        if (!linker->linked)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *image = linker->linked;
    }
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkDestroy(CUlinkState state)
{
    code_linker *linker = code_linker_of(state);
    int32_t i;
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    linker->magic = 0;
    for (i = 0; i < linker->count; ++i)
        free(linker->inputs[i]);
    free(linker->linked);
    free(linker);
    return CUDA_SUCCESS;
}
