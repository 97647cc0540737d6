/* work.c - handles, launches, and the functions that are not served
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/cai_runtime.h"

enum { LIB_NAMES = 1024 };

static const uint64_t lib_magic = 0x6361695f6c696273u;
static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static cai_runtime_function lib_missing[LIB_NAMES]; /* and those that are served in part */
static int32_t lib_missing_count;
static int32_t lib_versions[LIB_KINDS];

/* ------------------------------------------------------------------------ >>handles */
/* A library makes the primary context current if there is none, as the runtime does. */
static CUresult lib_ready(void)
{
    CUcontext context = NULL;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) result = cuCtxGetCurrent(&context);
    if (result != CUDA_SUCCESS || context) return result;
    result = cuDevicePrimaryCtxRetain(&context, 0);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

lib_handle *lib_handle_make(void)
{
    lib_handle *made = lib_ready() == CUDA_SUCCESS ? (lib_handle *)calloc(1, sizeof *made) : NULL;
    if (made) made->magic = lib_magic;
    return made;
}

int32_t lib_handle_is(const lib_handle *handle)
{
    return handle && handle->magic == lib_magic;
}

void lib_handle_free(lib_handle *handle)
{
    handle->magic = 0;
    free(handle);
}

/* Of the package: the version of the library that a stand-in is for. */
LIB_EXPORT void cai_libraries_version(int32_t kind, int32_t version);
void cai_libraries_version(int32_t kind, int32_t version)
{
    if (kind >= 0 && kind < LIB_KINDS) lib_versions[kind] = version;
}

int32_t lib_version(int32_t kind, int32_t otherwise)
{
    return lib_versions[kind] ? lib_versions[kind] : otherwise;
}

/* ----------------------------------------------------------------------- >>launches */
int32_t lib_bits(int32_t type)
{
    /* In the order of cudaDataType: half, float and double, real and complex; then integers; then small floats. */
    static const uint8_t bits[] = {32, 64, 16, 8,  64, 128, 32, 16, 8,   16, 32,  64, 32, 64, 16, 32, 4,
                                   8,  4,  8,  16, 32, 16,  32, 64, 128, 64, 128, 8,  8,  8,  8,  8,  4};
    return type >= 0 && type < (int32_t)sizeof bits ? bits[type] : 0;
}

void lib_begin(lib_work *work, const char *name, const void *caller, const void *stream)
{
    work->name = name;
    work->caller = caller;
    work->stream = stream;
    work->count = work->opaque = 0;
}

void lib_range(lib_work *work, const void *address, int64_t bytes, int32_t write)
{
    cai_sim_access *access;
    if (!address || bytes <= 0) return;
    if (work->count == LIB_MOST) {
        work->opaque = 1;
        return;
    }
    access = &work->list[work->count++];
    *access = cai_sim_reads((uint64_t)(uintptr_t)address, (uint64_t)bytes);
    access->write = write;
}

void lib_matrix(lib_work *work, const void *address, int64_t rows, int64_t columns, int64_t ld, int32_t bits,
                int32_t write)
{
    int64_t column;
    if (!bits || rows <= 0 || columns <= 0) {
        work->opaque |= !bits;
        return;
    }
    if (ld == rows || columns == 1) {
        lib_range(work, address, (rows * columns * bits + 7) / 8, write);
        return;
    }
    for (column = 0; column < columns && !work->opaque; ++column)
        lib_range(work, (const uint8_t *)address + column * ld * bits / 8, (rows * bits + 7) / 8, write);
}

void lib_scalar(lib_work *work, const lib_handle *handle, const void *address, int32_t type)
{
    if (handle->pointer_mode == LIB_DEVICE) lib_range(work, address, lib_bits(type) / 8, LIB_READ);
}

int32_t lib_end(const lib_work *work)
{
    return cai_driver_work(work->name, work->caller, work->stream, work->list, work->count, work->opaque);
}

/* ---------------------------------------------------------------------- >>not served */
void lib_note_missing(const char *name)
{
    int32_t i;
    pthread_mutex_lock(&lib_lock);
    for (i = 0; i < lib_missing_count && strcmp(lib_missing[i].name, name); ++i) {
    }
    if (i == lib_missing_count && i < LIB_NAMES) {
        lib_missing[i].name = name;
        ++lib_missing_count;
        fprintf(stderr, "cai_sim: %s is not served\n", name);
    }
    if (i < LIB_NAMES) ++lib_missing[i].calls;
    pthread_mutex_unlock(&lib_lock);
}

/* The same name as of the runtimes, so that the package reads all in the same way. */
LIB_EXPORT int32_t cai_runtime_function_get(int32_t index, cai_runtime_function *out)
{
    int32_t found;
    pthread_mutex_lock(&lib_lock);
    found = index >= 0 && index < lib_missing_count && out;
    if (found) *out = lib_missing[index];
    pthread_mutex_unlock(&lib_lock);
    return found;
}

/* NOT_SUPPORTED of a library, or what comes next to it. */
static int32_t lib_not_supported(const char *name)
{
    static const struct {
        const char *start;
        int32_t status;
    } all[] = {{"cublas", 15}, {"cudnn", 3000}, {"cufft", 16}, {"curand", 999}, {"cupti", 27}};
    size_t i;
    for (i = 0; i < sizeof all / sizeof all[0]; ++i)
        if (!strncmp(name, all[i].start, strlen(all[i].start))) return all[i].status;
    return 801;
}

/* Where a name goes that is not served. `first` is the first argument of the call, whatever it is. */
LIB_EXPORT int32_t cai_lib_missing(const void *first, const char *name);
int32_t cai_lib_missing(const void *first, const char *name)
{
    (void)first;
    lib_note_missing(name);
    return lib_not_supported(name);
}

/* Where a name goes that computes, if what it accesses is not known: a launch that is not judged. */
LIB_EXPORT int32_t cai_lib_opaque(const lib_handle *first, const char *name);
int32_t cai_lib_opaque(const lib_handle *first, const char *name)
{
    if (!lib_handle_is(first)) return cai_lib_missing(first, name);
    return cai_driver_work(name, LIB_CALLER, first->stream, NULL, 0, 1) ? lib_not_supported(name) : 0;
}
