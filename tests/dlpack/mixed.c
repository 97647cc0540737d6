/* mixed.c - a library of two units: one includes dlpack.h (MIXED_WITH), the other has the structs of cai_dlpack.h alone
 * SPDX-License-Identifier: MIT
 *
 * check_mixed.py links them at -O3 -flto. Both units reach one tensor, each through its own types. If the compiler
 * believes that these types never share memory, a unit reads what was there before the other wrote. */
#if defined(MIXED_WITH)
#include <dlpack/dlpack.h>
#else
#define CAI_IMPLEMENTATION
#endif
#include "cai_dlpack.h"
#include <stdio.h>
#include <stdlib.h>

#if defined(MIXED_WITH)
typedef DLManagedTensor plain;
typedef struct DLManagedTensorVersioned versioned;
#define NAME(name) with_##name
#else
typedef cai_dl_managed plain;
typedef cai_dl_managed_versioned versioned;
#define NAME(name) without_##name
#endif
/* `other` is `tensor`, and the compiler cannot know that. */
#define LOOK __attribute__((noinline)) int

#ifdef __cplusplus
extern "C" {
#endif
void with_change(void *tensor);
void without_change(void *tensor);
void with_change_plain(void *tensor);
void without_change_plain(void *tensor);
int with_look(void *tensor, void *other);
int without_look(void *tensor, void *other);
int with_look_plain(void *tensor, void *other);
int without_look_plain(void *tensor, void *other);
struct DLManagedTensorVersioned *with_make(float *values, int64_t *shape_and_strides);
int with_read(struct DLManagedTensorVersioned *tensor);
int with_deleted(void);

void NAME(change)(void *tensor)
{
    versioned *managed = (versioned *)tensor;
    managed->version.minor = 9;
    managed->flags = 8;
    managed->dl_tensor.ndim = 7;
    managed->dl_tensor.device.device_id = 6;
    managed->dl_tensor.shape = NULL;
}

void NAME(change_plain)(void *tensor)
{
    plain *managed = (plain *)tensor;
    managed->manager_ctx = NULL;
    managed->dl_tensor.dtype.bits = 5;
    managed->dl_tensor.byte_offset = 4;
}

#if defined(MIXED_WITH)
#define CHANGE without_change
#define CHANGE_PLAIN without_change_plain
#else
#define CHANGE with_change
#define CHANGE_PLAIN with_change_plain
#endif
LOOK NAME(look)(void *tensor, void *other)
{
    versioned *managed = (versioned *)tensor;
    managed->version.minor = 1;
    managed->flags = 1;
    managed->dl_tensor.ndim = 1;
    managed->dl_tensor.device.device_id = 1;
    managed->dl_tensor.shape = (int64_t *)tensor;
    CHANGE(other);
    return managed->version.minor == 9 && managed->flags == 8 && managed->dl_tensor.ndim == 7 &&
           managed->dl_tensor.device.device_id == 6 && !managed->dl_tensor.shape;
}

LOOK NAME(look_plain)(void *tensor, void *other)
{
    plain *managed = (plain *)tensor;
    managed->manager_ctx = tensor;
    managed->dl_tensor.dtype.bits = 1;
    managed->dl_tensor.byte_offset = 1;
    CHANGE_PLAIN(other);
    return !managed->manager_ctx && managed->dl_tensor.dtype.bits == 5 && managed->dl_tensor.byte_offset == 4;
}

#if defined(MIXED_WITH)
static int deleted;

static void drop(struct DLManagedTensorVersioned *tensor)
{
    deleted += tensor->dl_tensor.ndim;
    free(tensor);
}

int with_deleted(void)
{
    return deleted;
}

struct DLManagedTensorVersioned *with_make(float *values, int64_t *shape_and_strides)
{
    versioned *made = (versioned *)calloc(1, sizeof *made);
    if (!made) abort();
    made->version.major = DLPACK_MAJOR_VERSION;
    made->version.minor = DLPACK_MINOR_VERSION;
    made->deleter = drop;
    made->dl_tensor.data = values;
    made->dl_tensor.device.device_type = kDLCPU;
    made->dl_tensor.ndim = 2;
    made->dl_tensor.dtype.code = kDLFloat;
    made->dl_tensor.dtype.bits = 32;
    made->dl_tensor.dtype.lanes = 1;
    made->dl_tensor.shape = shape_and_strides;
    made->dl_tensor.strides = shape_and_strides + 2;
    return made;
}

int with_read(struct DLManagedTensorVersioned *tensor)
{
    const int64_t *shape = tensor->dl_tensor.shape;
    const int read = tensor->dl_tensor.ndim * 100 + (int)(shape[0] * 10 + shape[1]);
    tensor->deleter(tensor);
    return read;
}
#else
static int failed, ended;

#define CHECK(what) ((what) ? (void)0 : (void)(failed = 1, printf("line %d: %s\n", __LINE__, #what)))

static void *hidden(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}

static void end(cai_dlpack_storage *self)
{
    (void)self;
    ended++;
}

static void check_exchange(void)
{
    static float values[6];
    static cai_dlpack_storage storage;
    int64_t shape_and_strides[4] = {2, 3, 3, 1};
    struct DLManagedTensorVersioned *tensor = with_make(values, shape_and_strides);
    cai_array array;
    CHECK(!cai_dlpack_import_versioned(tensor, NULL, &array, NULL));
    CHECK(array.ndim == 2 && array.shape[1] == 3 && array.flags & CAI_WRITABLE);
    cai_array_release(&array);
    CHECK(with_deleted() == 2);
    CHECK(!cai_array_init(&array, CAI_FLOAT32, 2, shape_and_strides, NULL, values, NULL));
    array.memory = CAI_MEMORY_HOST;
    array.sync = CAI_SYNC_NONE;
    storage.done = end;
    CHECK(!cai_dlpack_export_versioned(&array, 0, &storage, &tensor, NULL));
    CHECK(with_read(tensor) == 223 && ended == 1);
}

int main(void)
{
    versioned tensor;
    plain before;
    CHECK(without_look(&tensor, hidden(&tensor)));
    CHECK(with_look(&tensor, hidden(&tensor)));
    CHECK(without_look_plain(&before, hidden(&before)));
    CHECK(with_look_plain(&before, hidden(&before)));
    check_exchange();
    return failed;
}
#endif

#ifdef __cplusplus
}
#endif
