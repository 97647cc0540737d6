/* object.c - user objects: what graphs and their executables keep alive
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <limits.h>
#include <stdlib.h>

enum { OBJECT_MAGIC = 0x434f424a };

typedef struct user_object {
    uint32_t magic; /* 0: destroyed. Its memory is kept, so that a late use is an error */
    void *pointer;
    CUhostFn destroy;
    uint64_t count;
    struct user_object *next; /* of those that are destroyed */
} user_object;

/* References of a graph or of an executable. */
typedef struct object_owned {
    uint64_t owner; /* 0: of an executable that is gone, whose launches may still run */
    user_object *object;
    uint64_t count;
    struct object_owned *next;
} object_owned;

static pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;
static object_owned *object_all;

static user_object *object_of(CUuserObject handle)
{
    user_object *object = (user_object *)(void *)handle;
    return object && object->magic == OBJECT_MAGIC ? object : NULL;
}

/* With the lock. An object without references goes to the list `ended`. */
static void object_release(user_object *object, uint64_t count, user_object **ended)
{
    object->count -= count < object->count ? count : object->count;
    if (object->count || !object->magic)
        return;
    object->magic = 0;
    object->next = *ended;
    *ended = object;
}

/* Without the lock: a destructor may take locks of its own. */
static void object_destroy(const user_object *ended)
{
    for (; ended; ended = ended->next)
        ended->destroy(ended->pointer);
}

/* With the lock. Returns 0: no memory. */
static int object_own(uint64_t owner, user_object *object, uint64_t count)
{
    object_owned *made = (object_owned *)calloc(1, sizeof *made);
    if (!made)
        return 0;
    made->owner = owner;
    made->object = object;
    made->count = count;
    made->next = object_all;
    object_all = made;
    return 1;
}

/* With the lock. Releases all that an owner has. */
static void object_release_of(uint64_t owner, user_object **ended)
{
    object_owned **at = &object_all;
    while (*at) {
        object_owned *one = *at;
        if (one->owner != owner) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        object_release(one->object, one->count, ended);
        free(one);
    }
}

CUresult driver_objects_copy(uint64_t graph, uint64_t executable)
{
    object_owned *one;
    int good = 1;
    pthread_mutex_lock(&object_lock);
    for (one = object_all; one && good; one = one->next) {
        if (one->owner != graph)
            continue;
        good = object_own(executable, one->object, one->count);
        one->object->count += good ? one->count : 0;
    }
    pthread_mutex_unlock(&object_lock);
    return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void driver_objects_drop(uint64_t owner, int may_run)
{
    user_object *ended = NULL;
    object_owned *one;
    pthread_mutex_lock(&object_lock);
    for (one = object_all; one && may_run; one = one->next)
        if (one->owner == owner)
            one->owner = 0;
    if (!may_run)
        object_release_of(owner, &ended);
    if (!cai_sim_pending(cai_driver_sim()))
        object_release_of(0, &ended);
    pthread_mutex_unlock(&object_lock);
    object_destroy(ended);
}

CUresult do_cuUserObjectCreate(CUuserObject *out, void *pointer, CUhostFn destroy, unsigned int count,
                               unsigned int flags)
{
    user_object *made;
    DRIVER_NEED(out && destroy && count && count <= INT_MAX && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    made = (user_object *)calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->magic = OBJECT_MAGIC;
    made->pointer = pointer;
    made->destroy = destroy;
    made->count = count;
    *out = (CUuserObject)(void *)made;
    return CUDA_SUCCESS;
}

CUresult do_cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
    user_object *object;
    pthread_mutex_lock(&object_lock);
    object = count && count <= INT_MAX ? object_of(handle) : NULL;
    if (object)
        object->count += count;
    pthread_mutex_unlock(&object_lock);
    return object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
    user_object *object, *ended = NULL;
    pthread_mutex_lock(&object_lock);
    object = count && count <= INT_MAX ? object_of(handle) : NULL;
    if (object)
        object_release(object, count, &ended);
    pthread_mutex_unlock(&object_lock);
    object_destroy(ended);
    return object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned int count, unsigned int flags)
{
    user_object *object;
    int good = 1;
    DRIVER_NEED(count && count <= INT_MAX && flags <= CU_GRAPH_USER_OBJECT_MOVE);
    DRIVER_NEED(cai_sim_graph_node_count(cai_driver_sim(), driver_number(graph)) >= 0);
    pthread_mutex_lock(&object_lock);
    object = object_of(handle);
    if (object)
        good = object_own(driver_number(graph), object, count);
    if (object && good && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
        object->count += count;
    pthread_mutex_unlock(&object_lock);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult do_cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned int count)
{
    user_object *object, *ended = NULL;
    object_owned *one;
    pthread_mutex_lock(&object_lock);
    object = count && count <= INT_MAX ? object_of(handle) : NULL;
    for (one = object_all; one; one = one->next)
        if (one->owner == driver_number(graph) && one->object == object && one->count >= count)
            break;
    if (object && one) {
        one->count -= count;
        object_release(object, count, &ended);
    }
    pthread_mutex_unlock(&object_lock);
    object_destroy(ended);
    return object && one ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
