/* code.c - device code: what the compiler registers, libraries, functions and their attributes, launches.

   A binary is loaded, as a library of the driver, when one of its functions or variables is first used. The
   driver then loads it into each context that uses it. */
#include "runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct rt_binary {
    const void *image; /* the compiler's wrapper of a fatbin */
    CUlibrary library; /* NULL: not loaded yet */
    cudaError_t error; /* of the one try to load it */
} rt_binary;

typedef struct rt_entry {
    const void *host; /* the stub of a kernel or the shadow of a variable: what the program names */
    const char *name; /* in the device code */
    rt_binary *binary;
    size_t bytes;           /* of a variable, 0: a kernel */
    CUkernel kernel;        /* NULL: not asked for yet */
    void **managed;         /* of a managed variable: where the program has its address */
    CUdeviceptr *stand_ins; /* of a variable that the driver does not find: by device */
} rt_entry;

static struct {
    pthread_mutex_t lock;
    rt_entry *entries; /* sorted by `host` if `sorted` */
    size_t count;
    size_t capacity;
    int32_t sorted;
} rt_code = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0, 0};

/* ---- what the compiler's code registers. crt/host_runtime.h declares these functions. ---- */

RT_EXPORT void **CUDARTAPI __cudaRegisterFatBinary(void *fatCubin);
RT_EXPORT void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle);
RT_EXPORT void CUDARTAPI __cudaUnregisterFatBinary(void **handle);
RT_EXPORT void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
                                                const char *name, int limit, uint3 *tid, uint3 *bid,
                                                dim3 *block, dim3 *grid, int *warp);
RT_EXPORT void CUDARTAPI __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                           int external, size_t bytes, int constant, int global);
RT_EXPORT void CUDARTAPI __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                                  int external, size_t bytes, int constant, int global);
RT_EXPORT void CUDARTAPI __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes);
RT_EXPORT void CUDARTAPI __cudaRegisterUnifiedTable(void **handle, void *table);
RT_EXPORT char CUDARTAPI __cudaInitModule(void **handle);
RT_EXPORT unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                         struct CUstream_st *stream);
RT_EXPORT cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                           void *stream);
RT_EXPORT cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *host);
RT_EXPORT cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                   void **arguments, size_t shared, cudaStream_t stream);
RT_EXPORT cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                        void **arguments, size_t shared, cudaStream_t stream);

RT_EXPORT void **CUDARTAPI __cudaRegisterFatBinary(void *fatCubin)
{
    rt_binary *binary = (rt_binary *)calloc(1, sizeof *binary);
    if (binary) binary->image = fatCubin;
    return (void **)(void *)binary;
}

RT_EXPORT void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

static int32_t rt_has_room(void)
{
    size_t capacity = rt_code.capacity ? rt_code.capacity * 2 : 256;
    rt_entry *entries;
    if (rt_code.count < rt_code.capacity) return 1;
    entries = (rt_entry *)realloc(rt_code.entries, capacity * sizeof *entries);
    if (!entries) return 0;
    rt_code.entries = entries;
    rt_code.capacity = capacity;
    return 1;
}

static void rt_register(void **handle, const void *host, const char *name, size_t bytes, void **managed)
{
    if (!handle || !host || !name) return;
    pthread_mutex_lock(&rt_code.lock);
    if (rt_has_room()) {
        rt_entry *entry = &rt_code.entries[rt_code.count++];
        memset(entry, 0, sizeof *entry);
        entry->host = host;
        entry->name = name;
        entry->binary = (rt_binary *)(void *)handle;
        entry->bytes = bytes;
        entry->managed = managed;
        rt_code.sorted = 0;
    }
    pthread_mutex_unlock(&rt_code.lock);
}

RT_EXPORT void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host, char *device,
                                                const char *name, int limit, uint3 *tid, uint3 *bid,
                                                dim3 *block, dim3 *grid, int *warp)
{
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    rt_register(handle, host, name, 0, NULL);
}

RT_EXPORT void CUDARTAPI __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                           int external, size_t bytes, int constant, int global)
{
    (void)device, (void)external, (void)constant, (void)global;
    rt_register(handle, host, name, bytes, NULL);
}

RT_EXPORT void CUDARTAPI __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                                  int external, size_t bytes, int constant, int global)
{
    (void)device, (void)external, (void)constant, (void)global;
    rt_register(handle, host, name, bytes, host);
}

/* Functions and variables of the host that device code uses: no kernel runs here to use them. */
RT_EXPORT void CUDARTAPI __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
    (void)handle, (void)name, (void)host, (void)bytes;
}

RT_EXPORT void CUDARTAPI __cudaRegisterUnifiedTable(void **handle, void *table)
{
    (void)handle, (void)table;
}

RT_EXPORT void CUDARTAPI __cudaUnregisterFatBinary(void **handle)
{
    rt_binary *binary = (rt_binary *)(void *)handle;
    size_t kept = 0;
    size_t i;
    if (!binary) return;
    pthread_mutex_lock(&rt_code.lock);
    for (i = 0; i < rt_code.count; ++i) {
        if (rt_code.entries[i].binary != binary) rt_code.entries[kept++] = rt_code.entries[i];
        else free(rt_code.entries[i].stand_ins);
    }
    rt_code.count = kept;
    pthread_mutex_unlock(&rt_code.lock);
    if (binary->library) (void)cuLibraryUnload(binary->library);
    free(binary);
}

/* ---- from the host's names to the driver's handles. The lock is held. ---- */

static int rt_by_host(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const rt_entry *)a)->host;
    uintptr_t y = (uintptr_t)((const rt_entry *)b)->host;
    return (x > y) - (x < y);
}

static rt_entry *rt_find_entry(const void *host)
{
    rt_entry key;
    if (!rt_code.count) return NULL;
    if (!rt_code.sorted) qsort(rt_code.entries, rt_code.count, sizeof *rt_code.entries, rt_by_host);
    rt_code.sorted = 1;
    memset(&key, 0, sizeof key);
    key.host = host;
    return (rt_entry *)bsearch(&key, rt_code.entries, rt_code.count, sizeof key, rt_by_host);
}

static cudaError_t rt_load(rt_binary *binary)
{
    if (binary->library || binary->error) return binary->error;
    RT_TRY(rt_start());
    binary->error =
        rt_error(cuLibraryLoadData(&binary->library, binary->image, NULL, NULL, 0, NULL, NULL, 0));
    return binary->error;
}

static cudaError_t rt_kernel_of_entry(rt_entry *entry, CUkernel *out)
{
    RT_NEED(!entry->bytes, cudaErrorInvalidDeviceFunction);
    RT_TRY(rt_load(entry->binary));
    if (!entry->kernel && cuLibraryGetKernel(&entry->kernel, entry->binary->library, entry->name)) {
        entry->kernel = NULL;
        return cudaErrorInvalidDeviceFunction;
    }
    *out = entry->kernel;
    return cudaSuccess;
}

/* `*out` NULL: nothing is registered under that address. */
static cudaError_t rt_registered_kernel(const void *host, CUkernel *out)
{
    rt_entry *entry;
    cudaError_t error = cudaSuccess;
    *out = NULL;
    pthread_mutex_lock(&rt_code.lock);
    entry = rt_find_entry(host);
    if (entry) error = rt_kernel_of_entry(entry, out);
    pthread_mutex_unlock(&rt_code.lock);
    return error;
}

/* A function is the host's stub of a kernel, a cudaKernel_t or a cudaFunction_t. */
cudaError_t rt_function_of(const void *function, CUfunction *out)
{
    CUkernel kernel = NULL;
    int registers = 0;
    RT_NEED(function, cudaErrorInvalidDeviceFunction);
    RT_TRY(rt_registered_kernel(function, &kernel));
    if (kernel) return rt_error(cuKernelGetFunction(out, kernel));
    memcpy(&kernel, &function, sizeof kernel);
    if (cuKernelGetFunction(out, kernel) == CUDA_SUCCESS) return cudaSuccess;
    memcpy(out, &function, sizeof *out);
    if (cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, *out))
        return cudaErrorInvalidDeviceFunction;
    return cudaSuccess;
}

/* Memory for a variable that the driver cannot find: an image of compressed code cannot be read. Its first
   value is not known either, so it begins with zeros. */
static cudaError_t rt_stand_in(rt_entry *entry, CUdeviceptr *address)
{
    CUdevice device = 0;
    CUdeviceptr made = 0;
    RT_TRY(rt_error(cuCtxGetDevice(&device)));
    RT_NEED(device >= 0 && device < RT_DEVICES, cudaErrorInvalidDevice);
    if (!entry->stand_ins) entry->stand_ins = (CUdeviceptr *)calloc(RT_DEVICES, sizeof *entry->stand_ins);
    RT_NEED(entry->stand_ins, cudaErrorMemoryAllocation);
    *address = entry->stand_ins[device];
    if (*address) return cudaSuccess;
    RT_TRY(rt_error(cuMemAlloc(&made, entry->bytes)));
    RT_TRY(rt_error(cuMemsetD8(made, 0, entry->bytes)));
    RT_TRY(rt_error(cuCtxSynchronize()));
    *address = entry->stand_ins[device] = made;
    return cudaSuccess;
}

void rt_forget_symbols(int device)
{
    size_t i;
    pthread_mutex_lock(&rt_code.lock);
    for (i = 0; i < rt_code.count; ++i) {
        if (rt_code.entries[i].stand_ins) rt_code.entries[i].stand_ins[device] = 0;
    }
    pthread_mutex_unlock(&rt_code.lock);
}

/* The compiler registered the size of the variable. */
static cudaError_t rt_symbol_of_entry(rt_entry *entry, CUdeviceptr *address, size_t *bytes)
{
    CUlibrary library;
    CUresult result;
    RT_TRY(rt_load(entry->binary));
    library = entry->binary->library;
    *bytes = entry->bytes;
    if (entry->managed) return rt_error(cuLibraryGetManaged(address, NULL, library, entry->name));
    result = cuLibraryGetGlobal(address, NULL, library, entry->name);
    if (result != CUDA_ERROR_NOT_FOUND && result != CUDA_ERROR_NOT_SUPPORTED) return rt_error(result);
    return rt_stand_in(entry, address);
}

cudaError_t rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
    rt_entry *entry;
    cudaError_t error = cudaErrorInvalidSymbol;
    pthread_mutex_lock(&rt_code.lock);
    entry = rt_find_entry(symbol);
    if (entry && entry->bytes) error = rt_symbol_of_entry(entry, address, bytes);
    pthread_mutex_unlock(&rt_code.lock);
    return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

/* The compiler's code calls this before it reads a managed variable. */
RT_EXPORT char CUDARTAPI __cudaInitModule(void **handle)
{
    size_t i;
    if (rt_ready()) return 0;
    pthread_mutex_lock(&rt_code.lock);
    for (i = 0; i < rt_code.count; ++i) {
        rt_entry *entry = &rt_code.entries[i];
        CUdeviceptr address = 0;
        size_t bytes = 0;
        if (entry->binary != (rt_binary *)(void *)handle || !entry->managed) continue;
        if (rt_symbol_of_entry(entry, &address, &bytes)) continue;
        *entry->managed = (void *)(uintptr_t)address;
    }
    pthread_mutex_unlock(&rt_code.lock);
    return 1;
}

cudaError_t rt_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    RT_NEED_VALUE(functionPtr);
    RT_NEED_CONTEXT();
    return rt_function_of(symbolPtr, functionPtr);
}

cudaError_t rt_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    CUkernel kernel = NULL;
    RT_NEED_VALUE(kernelPtr);
    RT_TRY(rt_start());
    RT_TRY(rt_registered_kernel(entryFuncAddr, &kernel));
    RT_NEED(kernel, cudaErrorInvalidDeviceFunction);
    *kernelPtr = kernel;
    return cudaSuccess;
}

RT_EXPORT cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    return cudaGetKernel(kernel, host);
}

/* ---- launches ---- */

#define RT_CONFIGURATIONS 16

static __thread struct {
    int32_t count;
    struct {
        dim3 grid;
        dim3 block;
        size_t shared;
        CUstream stream;
    } at[RT_CONFIGURATIONS];
} rt_configurations;

RT_EXPORT unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                         struct CUstream_st *stream)
{
    int32_t top = rt_configurations.count;
    if (top == RT_CONFIGURATIONS) return 1;
    rt_configurations.at[top].grid = grid;
    rt_configurations.at[top].block = block;
    rt_configurations.at[top].shared = shared;
    rt_configurations.at[top].stream = stream;
    rt_configurations.count = top + 1;
    return 0;
}

RT_EXPORT cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                           void *stream)
{
    int32_t top = rt_configurations.count - 1;
    if (top < 0) return cudaErrorMissingConfiguration;
    *grid = rt_configurations.at[top].grid;
    *block = rt_configurations.at[top].block;
    *shared = rt_configurations.at[top].shared;
    memcpy(stream, &rt_configurations.at[top].stream, sizeof rt_configurations.at[top].stream);
    rt_configurations.count = top;
    return cudaSuccess;
}

static cudaError_t rt_launch(const cudaLaunchConfig_t *config, const void *function, void **arguments,
                             CUlaunchAttribute *attributes, unsigned int count)
{
    CUlaunchConfig launch;
    CUfunction code = NULL;
    CUresult result;
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(function, &code));
    RT_NEED(config->gridDim.x && config->gridDim.y && config->gridDim.z, cudaErrorInvalidConfiguration);
    RT_NEED(config->blockDim.x && config->blockDim.y && config->blockDim.z, cudaErrorInvalidConfiguration);
    memset(&launch, 0, sizeof launch);
    launch.gridDimX = config->gridDim.x;
    launch.gridDimY = config->gridDim.y;
    launch.gridDimZ = config->gridDim.z;
    launch.blockDimX = config->blockDim.x;
    launch.blockDimY = config->blockDim.y;
    launch.blockDimZ = config->blockDim.z;
    launch.sharedMemBytes = (unsigned int)config->dynamicSmemBytes;
    launch.hStream = rt_stream(config->stream);
    launch.attrs = attributes;
    launch.numAttrs = count;
    if (count) {
        result = cuLaunchKernelEx(&launch, code, arguments, NULL);
    } else {
        result = cuLaunchKernel(code, launch.gridDimX, launch.gridDimY, launch.gridDimZ, launch.blockDimX,
                                launch.blockDimY, launch.blockDimZ, launch.sharedMemBytes, launch.hStream,
                                arguments, NULL);
    }
    return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : rt_error(result);
}

static cudaLaunchConfig_t rt_configuration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    cudaLaunchConfig_t config;
    memset(&config, 0, sizeof config);
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return config;
}

cudaError_t rt_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                cudaStream_t stream)
{
    cudaLaunchConfig_t config = rt_configuration(gridDim, blockDim, sharedMem, stream);
    return rt_launch(&config, func, args, NULL, 0);
}

cudaError_t rt_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                           size_t sharedMem, cudaStream_t stream)
{
    cudaLaunchConfig_t config = rt_configuration(gridDim, blockDim, sharedMem, stream);
    CUlaunchAttribute cooperative;
    memset(&cooperative, 0, sizeof cooperative);
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    return rt_launch(&config, func, args, &cooperative, 1);
}

cudaError_t rt_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    RT_NEED_VALUE(config && (config->attrs || !config->numAttrs));
    return rt_launch(config, func, args, (CUlaunchAttribute *)(void *)config->attrs, config->numAttrs);
}

/* The compiler's code of CUDA 12 and later launches with these. */
static cudaError_t rt_launch_named(cudaKernel_t kernel, const cudaLaunchConfig_t *config, void **arguments,
                                   const void *caller, int32_t per_thread)
{
    static rt_function launch = {"cudaLaunchKernel", 0, NULL};
    int32_t outer = rt_enter(&launch, caller, per_thread);
    return rt_leave(outer, rt_launch(config, kernel, arguments, NULL, 0));
}

RT_EXPORT cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                   void **arguments, size_t shared, cudaStream_t stream)
{
    cudaLaunchConfig_t config = rt_configuration(grid, block, shared, stream);
    return rt_launch_named(kernel, &config, arguments, RT_CALLER, 0);
}

RT_EXPORT cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                        void **arguments, size_t shared, cudaStream_t stream)
{
    cudaLaunchConfig_t config = rt_configuration(grid, block, shared, stream);
    return rt_launch_named(kernel, &config, arguments, RT_CALLER, 1);
}

/* ---- attributes of functions ---- */

static int rt_attribute(CUfunction function, CUfunction_attribute attribute)
{
    int value = 0;
    return cuFuncGetAttribute(&value, attribute, function) ? 0 : value;
}

cudaError_t rt_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    CUfunction function = NULL;
    RT_NEED_VALUE(attr);
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    memset(attr, 0, sizeof *attr);
    attr->sharedSizeBytes = (size_t)rt_attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attr->constSizeBytes = (size_t)rt_attribute(function, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attr->localSizeBytes = (size_t)rt_attribute(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attr->maxThreadsPerBlock = rt_attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attr->numRegs = rt_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    attr->ptxVersion = rt_attribute(function, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attr->binaryVersion = rt_attribute(function, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attr->cacheModeCA = rt_attribute(function, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attr->maxDynamicSharedSizeBytes = rt_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attr->preferredShmemCarveout = rt_attribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return cudaSuccess;
}

cudaError_t rt_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    CUfunction function = NULL;
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuFuncSetAttribute(function, (CUfunction_attribute)(int)attr, value));
}

cudaError_t rt_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    CUfunction function = NULL;
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuFuncSetCacheConfig(function, (CUfunc_cache)(int)cacheConfig));
}

cudaError_t rt_cudaFuncGetName(const char **name, const void *func)
{
    CUfunction function = NULL;
    RT_NEED_VALUE(name);
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuFuncGetName(name, function));
}

cudaError_t rt_cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize)
{
    CUfunction function = NULL;
    RT_NEED_VALUE(paramOffset);
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuFuncGetParamInfo(function, paramIndex, paramOffset, paramSize));
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func,
                                                                      int blockSize, size_t dynamicSMemSize,
                                                                      unsigned int flags)
{
    CUfunction function = NULL;
    RT_NEED_VALUE(numBlocks);
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function, blockSize,
                                                                         dynamicSMemSize, flags));
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize,
                                                             size_t dynamicSMemSize)
{
    return rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                     dynamicSMemSize, cudaOccupancyDefault);
}

cudaError_t rt_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func,
                                                         int numBlocks, int blockSize)
{
    CUfunction function = NULL;
    RT_NEED_VALUE(dynamicSmemSize);
    RT_NEED_CONTEXT();
    RT_TRY(rt_function_of(func, &function));
    return rt_error(cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function, numBlocks, blockSize));
}

/* ---- libraries ---- */

cudaError_t rt_cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jitOptions,
                                   void **jitOptionsValues, unsigned int numJitOptions,
                                   enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
                                   unsigned int numLibraryOptions)
{
    RT_NEED_VALUE(library && code);
    RT_TRY(rt_start());
    return rt_error(cuLibraryLoadData(library, code, (CUjit_option *)(void *)jitOptions, jitOptionsValues,
                                      numJitOptions, (CUlibraryOption *)(void *)libraryOptions,
                                      libraryOptionValues, numLibraryOptions));
}

cudaError_t rt_cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                       enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions, enum cudaLibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    RT_NEED_VALUE(library && fileName);
    RT_TRY(rt_start());
    return rt_error(cuLibraryLoadFromFile(
        library, fileName, (CUjit_option *)(void *)jitOptions, jitOptionsValues, numJitOptions,
        (CUlibraryOption *)(void *)libraryOptions, libraryOptionValues, numLibraryOptions));
}

cudaError_t rt_cudaLibraryUnload(cudaLibrary_t library)
{
    RT_NEED(library, cudaErrorInvalidResourceHandle);
    return rt_error(cuLibraryUnload(library));
}

cudaError_t rt_cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
    RT_NEED_VALUE(pKernel && name);
    RT_NEED(library, cudaErrorInvalidResourceHandle);
    return rt_error(cuLibraryGetKernel(pKernel, library, name));
}

cudaError_t rt_cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
    RT_NEED_VALUE(count);
    RT_NEED(lib, cudaErrorInvalidResourceHandle);
    return rt_error(cuLibraryGetKernelCount(count, lib));
}

cudaError_t rt_cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels, cudaLibrary_t lib)
{
    RT_NEED_VALUE(kernels || !numKernels);
    RT_NEED(lib, cudaErrorInvalidResourceHandle);
    return rt_error(cuLibraryEnumerateKernels(kernels, numKernels, lib));
}

cudaError_t rt_cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE((dptr || bytes) && name);
    RT_NEED(library, cudaErrorInvalidResourceHandle);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuLibraryGetGlobal(&address, bytes, library, name)));
    if (dptr) *dptr = (void *)(uintptr_t)address;
    return cudaSuccess;
}

cudaError_t rt_cudaLibraryGetManaged(void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
    CUdeviceptr address = 0;
    RT_NEED_VALUE((dptr || bytes) && name);
    RT_NEED(library, cudaErrorInvalidResourceHandle);
    RT_NEED_CONTEXT();
    RT_TRY(rt_error(cuLibraryGetManaged(&address, bytes, library, name)));
    if (dptr) *dptr = (void *)(uintptr_t)address;
    return cudaSuccess;
}

cudaError_t rt_cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value,
                                               int device)
{
    CUdevice handle = 0;
    RT_NEED(kernel, cudaErrorInvalidDeviceFunction);
    RT_TRY(rt_device(device, &handle));
    return rt_error(cuKernelSetAttribute((CUfunction_attribute)(int)attr, value, kernel, handle));
}
