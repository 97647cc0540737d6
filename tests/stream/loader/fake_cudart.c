/* fake_cudart.c - a CUDA Runtime that only reaches the driver: what it exports, with which signatures,
 * depends on the version as it does in the real ones. The driver is what it finds as libcuda.so.1 or
 * nvcuda.dll, which must be fake_libcuda.c.
 * SPDX-License-Identifier: MIT
 *
 * FAKE_RUNTIME: the version, 11020 to 13000. */
#include "fake_cuda.h"
#include "fake_types.h"

#include <stdio.h>
#include <string.h>
#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifndef FAKE_RUNTIME
#define FAKE_RUNTIME 13000
#endif

static cudaError_t last_error;

/* The driver, or NULL where there is none that this runtime can use. */
static const struct fake_control *driver(void)
{
    fake_control_function get = NULL;
    const struct fake_control *control;
#if defined(_WIN32)
    HMODULE library = LoadLibraryA("nvcuda.dll");
    FARPROC address = library ? GetProcAddress(library, FAKE_CONTROL_NAME) : NULL;
#else
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *address = library ? dlsym(library, FAKE_CONTROL_NAME) : NULL;
#endif
    if (!address) return NULL;
    memcpy(&get, &address, sizeof get);
    control = get();
    return control->driver() / 1000 >= FAKE_RUNTIME / 1000 ? control : NULL;
}

static cudaError_t finish(cudaError_t error)
{
    if (error) last_error = error;
    return error;
}

#ifndef FAKE_REAL_HEADERS
FAKE_EXPORT cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version);
FAKE_EXPORT cudaError_t CUDARTAPI cudaDriverGetVersion(int *version);
FAKE_EXPORT cudaError_t CUDARTAPI cudaPeekAtLastError(void);
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetLastError(void);
#endif

FAKE_EXPORT cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
    if (!version) return finish(cudaErrorInvalidValue);
    *version = 0;
    if (FAKE_RUNTIME < 12000 && !driver()) return finish(cudaErrorInsufficientDriver); /* as the real 11.8 */
    *version = FAKE_RUNTIME;
    return cudaSuccess;
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
    const struct fake_control *control = driver();
    if (!version) return finish(cudaErrorInvalidValue);
    *version = control ? control->driver() : 0;
    return cudaSuccess;
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
    return last_error;
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

#if FAKE_RUNTIME >= 11030
static void note(const char *what, const char *symbol, int version, unsigned long long flags)
{
    const struct fake_control *control = driver();
    char line[200];
    snprintf(line, sizeof line, "%s %s %d %llu", what, symbol, version, flags);
    if (control) control->note(line);
}

/* What all versions of the lookup do; *found says how it went. As in the real ones nothing is stored where
 * the driver or a device is missing. */
static cudaError_t look_up(const char *symbol, void **function, unsigned int version,
                           unsigned long long flags, int32_t per_thread, int32_t *found)
{
    const struct fake_control *control = driver();
    void (*address)(void);
    *found = FAKE_NOT_FOUND;
    if (!symbol || !function || flags > 2) return finish(cudaErrorInvalidValue);
    if (!control) return finish(cudaErrorInsufficientDriver);
    if (control->failing("cuInit")) return finish((cudaError_t)control->failing("cuInit"));
    if ((int32_t)version > control->driver() && version != FAKE_RUNTIME) return finish(cudaErrorInvalidValue);
    *found = control->find(symbol, (int32_t)version, flags == 2 || (flags == 0 && per_thread), &address);
    memcpy(function, &address, sizeof *function);
    return cudaSuccess;
}
#endif

#if FAKE_RUNTIME >= 11030 && FAKE_RUNTIME < 12000
/* CUDA 11: three parameters, and an error where the symbol is missing. */
static cudaError_t entry_point(const char *name, const char *symbol, void **function,
                               unsigned long long flags, int32_t per_thread)
{
    int32_t found;
    cudaError_t error;
    note(name, symbol, 0, flags);
    error = look_up(symbol, function, FAKE_RUNTIME, flags, per_thread, &found);
    return error || found == FAKE_FOUND ? error : finish(cudaErrorSymbolNotFound);
}

#ifndef FAKE_REAL_HEADERS
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function,
                                                          unsigned long long flags);
#endif
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                                               unsigned long long flags);

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function,
                                                          unsigned long long flags)
{
    return entry_point("cudaGetDriverEntryPoint", symbol, function, flags, 0);
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                                               unsigned long long flags)
{
    return entry_point("cudaGetDriverEntryPoint_ptsz", symbol, function, flags, 1);
}
#endif

#if FAKE_RUNTIME >= 12000
/* From CUDA 12 on: four parameters or, with the version, five; what is missing is no error but a status. */
typedef enum cudaDriverEntryPointQueryResult query_result;

static cudaError_t entry_point(const char *name, const char *symbol, void **function, unsigned int version,
                               unsigned long long flags, int32_t per_thread, query_result *status)
{
    int32_t found;
    cudaError_t error;
    note(name, symbol, (int)version, flags);
    error = look_up(symbol, function, version ? version : FAKE_RUNTIME, flags, per_thread, &found);
    if (!error && status) *status = (query_result)found;
    return error;
}

#ifndef FAKE_REAL_HEADERS
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function,
                                                          unsigned long long flags, query_result *status);
#endif
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                                               unsigned long long flags,
                                                               query_result *status);

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint(const char *symbol, void **function,
                                                          unsigned long long flags, query_result *status)
{
    return entry_point("cudaGetDriverEntryPoint", symbol, function, 0, flags, 0, status);
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                                               unsigned long long flags, query_result *status)
{
    return entry_point("cudaGetDriverEntryPoint_ptsz", symbol, function, 0, flags, 1, status);
}
#endif

#if FAKE_RUNTIME >= 12050
#ifndef FAKE_REAL_HEADERS
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                                   unsigned int version,
                                                                   unsigned long long flags,
                                                                   query_result *status);
#endif
FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                                        unsigned int version,
                                                                        unsigned long long flags,
                                                                        query_result *status);

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                                                   unsigned int version,
                                                                   unsigned long long flags,
                                                                   query_result *status)
{
    return entry_point("cudaGetDriverEntryPointByVersion", symbol, function, version, flags, 0, status);
}

FAKE_EXPORT cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                                        unsigned int version,
                                                                        unsigned long long flags,
                                                                        query_result *status)
{
    return entry_point("cudaGetDriverEntryPointByVersion_ptsz", symbol, function, version, flags, 1, status);
}
#endif
