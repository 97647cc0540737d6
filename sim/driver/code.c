/* code.c - modules, libraries, kernels, launches, occupancy, the linker
 * SPDX-License-Identifier: MIT
 *
 * Kernels do not run, and their images are not read. A launch is an operation whose accesses are not
 * known. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_MODULE = 0x434d4f44,   /* also a CUlibrary */
    CODE_FUNCTION = 0x4346554e, /* also a CUkernel */
    CODE_LINKER = 0x434c4e4b
};

typedef struct code_function {
    uint32_t magic;
    const char *name; /* never freed: calls have it */
    struct code_module *module;
    struct code_function *next;
} code_function;

typedef struct code_module {
    uint32_t magic;
    code_function *functions;
} code_module;

typedef struct code_linker {
    uint32_t magic;
    void *data; /* the last input that was added */
    size_t bytes;
} code_linker;

static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;

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

/* -------------------------------------------------------------- >>modules, libraries */
/* Images are not read: any name is that of a kernel, and what it accesses is not known. */
static CUresult code_load(const void *data, code_module **made)
{
    DRIVER_NEED(data);
    *made = (code_module *)calloc(1, sizeof **made);
    if (!*made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*made)->magic = CODE_MODULE;
    return CUDA_SUCCESS;
}

static CUresult code_load_file(const char *path, code_module **made)
{
    FILE *file;
    DRIVER_NEED(path);
    file = fopen(path, "rb");
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    fclose(file);
    return code_load(path, made);
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
    made->module = module;
    made->next = module->functions;
    module->functions = made;
    return made;
}

static CUresult code_function_named(code_module *module, const char *name, code_function **out)
{
    code_function *one;
    DRIVER_NEED(name);
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
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
    DRIVER_TRY(code_load(image, &made));
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
    DRIVER_TRY(code_load(code, &made));
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
    DRIVER_NEED(value && (int)attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    if (!code_function_of(handle))
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
        *value = 90;
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

/* ----------------------------------------------------------------------- >>launches */
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
    driver_call_launches(function->name, 1);
    return (CUresult)cai_sim_launch(cai_driver_sim(), driver_stream(config->hStream), function->name, NULL,
                                    NULL, NULL, 0);
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

/* Nothing is linked: the image is the last input. */
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
    copy = (char *)calloc(1, bytes + 1);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    free(linker->data);
    linker->data = copy;
    linker->bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
    code_linker *linker = code_linker_of(state);
    DRIVER_NEED(image);
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!linker->data)
        return CUDA_ERROR_INVALID_IMAGE;
    *image = linker->data;
    if (bytes)
        *bytes = linker->bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuLinkDestroy(CUlinkState state)
{
    code_linker *linker = code_linker_of(state);
    if (!linker)
        return CUDA_ERROR_INVALID_HANDLE;
    linker->magic = 0;
    free(linker->data);
    free(linker);
    return CUDA_SUCCESS;
}
