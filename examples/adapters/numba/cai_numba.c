/* cai_numba.c - hooks of cai_emm.h as a plugin for Numba's external memory management
 * SPDX-License-Identifier: MIT
 *
 * As a shared object, with nothing of Numba or Python: cc -shared -fPIC -I. -Iext
 * examples/adapters/numba/cai_numba.c -o libcai_numba.so */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* loaded: the CUDA that Numba has in the process */
#include "../adapter.h"
#include "cai_numba.h"

#include <stdlib.h>
#include <string.h>

struct cai_numba {
    cai_cuda_driver driver;
    cai_event_pool pool;
    cai_emm_pool own; /* CAI_NUMBA_ASYNC */
    cai_manager manager;
    int32_t device, retained; /* is its primary context retained? */
    int32_t orders;           /* the hooks are the caller's: they need not queue anything in stream 1 */
    adapter_mutex mutex;      /* of what follows; never held across a call */
    cai_memory_handle *late;  /* could not be freed while a blocking stream captured */
    size_t late_count, late_places;
};

/* Numba may release its context before the last array goes, and before close. A context that is no primary one is
 * the program's. */
static cai_status numba_retain(cai_numba *numba, cai_error *err)
{
    const cai_cuda *cuda = &numba->driver.cuda;
    uint64_t current = 0, primary = 0;
    CAI_TRY(cai_cuda_status(cuda->context_current(cuda->self, &current), "context_current", err));
    if (!current) return CAI_OK; /* cai_manager_init refuses that */
    CAI_TRY(cai_cuda_status(cuda->context_device(cuda->self, &numba->device), "context_device", err));
    CAI_TRY(cai_cuda_status(cuda->device_context(cuda->self, numba->device, &primary), "device_context", err));
    if (current != primary) return CAI_OK;
    CAI_TRY(cai_cuda_status(cuda->primary_retain(cuda->self, numba->device, &primary), "primary_retain", err));
    numba->retained = 1;
    return CAI_OK;
}

/* cudaMallocAsync, by a pool of its own on the current device: threads of Numba share its default stream. */
static cai_status numba_async(cai_numba *numba, cai_emm_hooks *made, cai_error *err)
{
    const cai_cuda *cuda = &numba->driver.cuda;
    CAI_TRY(cai_emm_pool_create(&numba->own, cuda, numba->device, err));
    return cai_emm_hooks_async(made, cuda, &numba->own, err);
}

static void numba_drop(cai_numba *numba)
{
    const cai_cuda *cuda = &numba->driver.cuda;
    const cai_status status = numba->own.pool ? cai_emm_pool_destroy(&numba->own, NULL) : CAI_OK;
    (void)status; /* of a device that is gone */
    if (numba->retained) (void)cuda->primary_release(cuda->self, numba->device);
    adapter_mutex_end(&numba->mutex);
    free(numba->late);
    free(numba);
}

static cai_status numba_start(cai_numba *numba, const cai_emm_hooks *hooks, int32_t standard, cai_error *err)
{
    const cai_cuda *cuda = &numba->driver.cuda;
    cai_emm_hooks made;
    CAI_TRY(numba_retain(numba, err));
    CAI_TRY(cai_event_pool_init(&numba->pool, cuda, NULL, 0, 0, err));
    numba->orders = hooks && hooks->kind != CAI_MEMORY_HOST;
    if (!hooks) {
        if (standard == CAI_NUMBA_ASYNC) CAI_TRY(numba_async(numba, &made, err));
        else CAI_TRY(cai_emm_hooks_cuda(&made, cuda, err));
        hooks = &made;
    }
    return cai_manager_init(&numba->manager, &numba->pool, hooks, NULL, err);
}

CAI_NUMBA_API cai_numba *cai_numba_open(const cai_emm_hooks *hooks, int32_t standard, cai_error *err)
{
    cai_numba *numba = (cai_numba *)calloc(1, sizeof *numba);
    cai_status status;
    if (numba) adapter_mutex_init(&numba->mutex);
    status = numba ? cai_cuda_load(&numba->driver, NULL, err) : cai_cuda_status(2, "calloc", err);
    if (!status) status = numba_start(numba, hooks, standard, err);
    if (!status) return numba;
    if (numba) numba_drop(numba);
    return NULL;
}

/* Python frees at any time. Returns 0 if there is no host memory. */
static int numba_keep(cai_numba *numba, cai_memory_handle memory)
{
    cai_memory_handle *grown = numba->late;
    size_t places;
    adapter_lock(&numba->mutex);
    if (numba->late_count == numba->late_places) {
        places = numba->late_places ? 2 * numba->late_places : 16;
        grown = (cai_memory_handle *)realloc(numba->late, places * sizeof *grown);
        if (grown) {
            numba->late = grown;
            numba->late_places = places;
        }
    }
    if (grown) numba->late[numba->late_count++] = memory;
    adapter_unlock(&numba->mutex);
    return grown != NULL;
}

static cai_memory_handle numba_kept(cai_numba *numba)
{
    cai_memory_handle memory;
    adapter_lock(&numba->mutex);
    memory = numba->late_count ? numba->late[--numba->late_count] : 0;
    adapter_unlock(&numba->mutex);
    return memory;
}

static cai_status numba_free(cai_numba *numba, cai_memory_handle memory, cai_error *err)
{
    const cai_status status = cai_manager_free(&numba->manager, memory, CAI_STREAM_LEGACY, err);
    return status == CAI_ERR_CAPTURE && numba_keep(numba, memory) ? CAI_OK : status;
}

/* Frees what was kept, unless a stream captures now. */
static void numba_free_late(cai_numba *numba)
{
    cai_memory_handle memory;
    while ((memory = numba_kept(numba)) != 0) {
        const cai_status status = cai_manager_free(&numba->manager, memory, CAI_STREAM_LEGACY, NULL);
        if (status != CAI_ERR_CAPTURE) continue;
        (void)numba_keep(numba, memory);
        return;
    }
}

CAI_NUMBA_API cai_status cai_numba_close(cai_numba *numba, cai_error *err)
{
    if (!numba) return CAI_OK;
    numba_free_late(numba);
    CAI_TRY(cai_manager_destroy(&numba->manager, err));
    CAI_TRY(cai_event_pool_destroy(&numba->pool, err));
    numba_drop(numba);
    return CAI_OK;
}

/* adapter_order in the context of the manager. */
static cai_status numba_order(const cai_numba *numba, cai_error *err)
{
    const cai_cuda *cuda = &numba->driver.cuda;
    uint64_t current = 0;
    int32_t error = cuda->context_current(cuda->self, &current);
    const int32_t other = !error && current != numba->manager.context;
    if (other) error = cuda->context_push(cuda->self, numba->manager.context);
    if (error) return cai_cuda_status(error, "context_push", err);
    error = adapter_order(cuda);
    if (other) (void)cuda->context_pop(cuda->self);
    return cai_cuda_status(error, "event_record", err);
}

static cai_status numba_device(cai_numba *numba, size_t size, cai_memory_handle *memory, cai_error *err)
{
    cai_manager *manager = &numba->manager;
    cai_memory_handle made;
    cai_status status, freed;
    CAI_TRY(cai_manager_alloc(&made, manager, size, 0, CAI_STREAM_LEGACY, err));
    status = numba->orders ? numba_order(numba, err) : CAI_OK;
    if (status) {
        freed = cai_manager_free(manager, made, CAI_STREAM_LEGACY, NULL);
        (void)freed; /* the manager lists what was not freed */
        return status;
    }
    *memory = made;
    return CAI_OK;
}

CAI_NUMBA_API cai_status cai_numba_alloc(cai_numba *numba, int32_t kind, size_t size, uint32_t flags,
                                         cai_memory_handle *memory, void **ptr, cai_error *err)
{
    cai_manager *manager = &numba->manager;
    cai_status status;
    numba_free_late(numba);
    switch (kind) {
    case CAI_NUMBA_HOST:
        status = cai_manager_pinned_alloc(memory, manager, size, flags, err);
        break;
    case CAI_NUMBA_MANAGED:
        status = cai_manager_managed_alloc(memory, manager, size, flags, err);
        break;
    case CAI_NUMBA_PIN:
        status = cai_manager_pin(memory, manager, *ptr, size, flags, err);
        break;
    default:
        status = numba_device(numba, size, memory, err);
        break;
    }
    if (!status && kind != CAI_NUMBA_PIN) *ptr = cai_manager_pointer(manager, *memory);
    return status;
}

CAI_NUMBA_API cai_status cai_numba_free(cai_numba *numba, cai_memory_handle memory, cai_error *err)
{
    numba_free_late(numba);
    return numba_free(numba, memory, err);
}

CAI_NUMBA_API cai_status cai_numba_reset(cai_numba *numba, cai_error *err)
{
    return cai_manager_reset(&numba->manager, err);
}

CAI_NUMBA_API cai_status cai_numba_memory(cai_numba *numba, size_t *free_bytes, size_t *total, cai_error *err)
{
    return cai_manager_device_memory(&numba->manager, free_bytes, total, err);
}

CAI_NUMBA_API cai_status cai_numba_ipc(cai_numba *numba, cai_memory_handle memory, cai_memory_ipc *out,
                                       cai_error *err)
{
    return cai_manager_ipc_handle(&numba->manager, memory, out, err);
}

CAI_NUMBA_API cai_status cai_numba_defer(cai_numba *numba, int32_t on, cai_error *err)
{
    return on ? cai_manager_defer_begin(&numba->manager, err) : cai_manager_defer_end(&numba->manager, err);
}

CAI_NUMBA_API cai_status cai_numba_flush(cai_numba *numba, cai_error *err)
{
    numba_free_late(numba);
    return cai_manager_flush(&numba->manager, err);
}

CAI_NUMBA_API int64_t cai_numba_list(cai_numba *numba, cai_memory_object *out, int64_t capacity)
{
    return cai_manager_list(&numba->manager, out, capacity);
}

CAI_NUMBA_API void cai_numba_counts(cai_numba *numba, cai_manager_count *out)
{
    cai_manager_counts(&numba->manager, out);
}

CAI_NUMBA_API const char *cai_numba_table(cai_numba *numba)
{
    return numba->manager.hooks.name;
}
