/* driver.c - ext/cai_dlpack.h as a shared library for numpy_dlpack.py, which calls it by ctypes.
 * SPDX-License-Identifier: MIT */
#define CAI_STATIC
#define CAI_IMPLEMENTATION
#include <dlpack/dlpack.h>

#include "cai_dlpack.h"
#include <stdio.h>
#include <stdlib.h>

#if !defined(DLPACK_MAJOR_VERSION)
#error "driver.c: NumPy's DLPack is 1.0, this dlpack.h is older"
#endif

#if defined(_WIN32)
#define DRIVER __declspec(dllexport)
#else
#define DRIVER __attribute__((visibility("default")))
#endif

DRIVER cai_array *driver_take(void *managed, int32_t versioned);
DRIVER const char *driver_error(void);
DRIVER int32_t driver_describe(const cai_array *array, char *text, int32_t capacity);
DRIVER void driver_gather(const cai_array *array, char *to);
DRIVER void driver_drop(cai_array *array);
DRIVER void *driver_give(const char *dtype, int32_t ndim, const int64_t *shape, const int64_t *strides,
                         uint64_t data, int32_t read_only, int32_t versioned);
DRIVER void driver_delete(void *managed, int32_t versioned);
DRIVER void driver_set_major(void *managed, uint32_t major);
DRIVER int64_t driver_count(int32_t what);

static cai_error error;
static int64_t deleted, released, finished; /* by NumPy's deleters; arrays; storages */
static void (*their_deleter)(struct DLManagedTensor *self);
static void (*their_versioned)(struct DLManagedTensorVersioned *self);

static void count_deleter(struct DLManagedTensor *self)
{
    deleted++;
    their_deleter(self);
}

static void count_versioned(struct DLManagedTensorVersioned *self)
{
    deleted++;
    their_versioned(self);
}

/* Imports what a capsule holds; NULL: refused, and the tensor is as it was. */
cai_array *driver_take(void *managed, int32_t versioned)
{
    struct DLManagedTensorVersioned *with = (struct DLManagedTensorVersioned *)managed;
    struct DLManagedTensor *without = (struct DLManagedTensor *)managed;
    cai_array *array = (cai_array *)malloc(sizeof *array);
    cai_status status;
    if (!array) return NULL;
    if (versioned) status = cai_dlpack_import_versioned(with, NULL, array, &error);
    else status = cai_dlpack_import(without, NULL, array, &error);
    if (status) {
        free(array);
        return NULL;
    }
    if (versioned) { /* all tensors of NumPy have the same one */
        their_versioned = with->deleter;
        with->deleter = count_versioned;
    } else {
        their_deleter = without->deleter;
        without->deleter = count_deleter;
    }
    return array;
}

const char *driver_error(void) { return error.message; }

/* "dtype writable memory device sync data size ndim shape... strides..." */
int32_t driver_describe(const cai_array *array, char *text, int32_t capacity)
{
    const size_t size = (size_t)capacity;
    int32_t i, at = 0;
    at += snprintf(text, size, "%s %d %d %d %d %llu %lld %d", cai_dtype_name(array->dtype.code),
                   (int)(array->flags & CAI_WRITABLE), (int)array->memory, (int)array->device,
                   (int)array->sync, (unsigned long long)array->data, (long long)array->size,
                   (int)array->ndim);
    for (i = 0; i < array->ndim && at < capacity; i++)
        at += snprintf(text + at, size - (size_t)at, " %lld", (long long)array->shape[i]);
    for (i = 0; i < array->ndim && at < capacity; i++)
        at += snprintf(text + at, size - (size_t)at, " %lld", (long long)array->strides[i]);
    return at;
}

/* The elements in C order. */
void driver_gather(const cai_array *array, char *to)
{
    cai_kernel_view view;
    int64_t n;
    memset(&view, 0, sizeof view);
    if (cai_kernel_view_of(array, &view, &error)) return;
    for (n = 0; n < array->size; n++)
        memcpy(to + n * view.itemsize, cai_kernel_element(&view, n), (size_t)view.itemsize);
}

void driver_drop(cai_array *array)
{
    cai_array_release(array);
    free(array);
}

static void count_release(cai_array *self)
{
    self->release = NULL;
    released++;
}

static void count_done(cai_dlpack_storage *self)
{
    finished++;
    free(self);
}

/* Exports an array of memory that Python looks after; NULL: refused. */
void *driver_give(const char *dtype, int32_t ndim, const int64_t *shape, const int64_t *strides,
                  uint64_t data, int32_t read_only, int32_t versioned)
{
    cai_dlpack_storage *storage = (cai_dlpack_storage *)malloc(sizeof *storage);
    struct DLManagedTensorVersioned *with = NULL;
    DLManagedTensor *without = NULL;
    int32_t code = 0;
    cai_array array;
    cai_status status;
#define CAI_EACH(name, kind, bytes, format, text) if (!strcmp(dtype, text)) code = name;
    CAI_DTYPE_LIST(CAI_EACH)
#undef CAI_EACH
    if (!storage) return NULL;
    storage->done = count_done;
    status = cai_array_init(&array, code, ndim, shape, strides, (void *)(uintptr_t)data, &error);
    if (!status) {
        array.memory = CAI_MEMORY_HOST;
        array.sync = CAI_SYNC_NONE;
        if (read_only) array.flags &= ~(uint32_t)CAI_WRITABLE;
        cai_array_own(&array, count_release, NULL);
        if (versioned) status = cai_dlpack_export_versioned(&array, 0, storage, &with, &error);
        else status = cai_dlpack_export(&array, 0, storage, &without, &error);
    }
    if (status) free(storage);
    return versioned ? (void *)with : (void *)without;
}

/* What the destructor of a capsule does that nobody took. */
void driver_delete(void *managed, int32_t versioned)
{
    struct DLManagedTensorVersioned *with = (struct DLManagedTensorVersioned *)managed;
    struct DLManagedTensor *without = (struct DLManagedTensor *)managed;
    if (versioned) with->deleter(with);
    else without->deleter(without);
}

void driver_set_major(void *managed, uint32_t major)
{
    ((struct DLManagedTensorVersioned *)managed)->version.major = major;
}

int64_t driver_count(int32_t what) { return what == 0 ? deleted : what == 1 ? released : finished; }
