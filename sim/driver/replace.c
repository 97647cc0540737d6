/* replace.c - functions of the host in place of kernels
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLACE_MOST = 256 /* parameters */ };

typedef struct replacement {
    char *kernel;
    char part[80]; /* how a mangled name has it: "5saxpy" */
    uint32_t bytes[REPLACE_MOST];
    int32_t count; /* -1: as the image says */
    cai_driver_kernel_function function;
    void *context;
    struct replacement *next;
} replacement;

/* One launch. It is kept, as a graph may run it again. */
typedef struct replaced {
    cai_driver_launch launch;
    cai_driver_kernel_function function;
    const void *arguments[REPLACE_MOST];
    struct replaced *next;
    uint8_t values[]; /* each at a multiple of 16 */
} replaced;

static pthread_mutex_t replace_lock = PTHREAD_MUTEX_INITIALIZER;
static replacement *replacements; /* the newest first */
static replaced *replace_kept;

int32_t cai_driver_replace_kernel(const char *kernel, const uint32_t *argument_bytes, int32_t count,
                                  cai_driver_kernel_function function, void *context)
{
    replacement *made;
    if (driver_recorder || !kernel || !*kernel || count < 0 || count > REPLACE_MOST)
        return 0;
    made = (replacement *)calloc(1, sizeof *made);
    if (made)
        made->kernel = strdup(kernel);
    if (!made || !made->kernel) {
        free(made);
        return 0;
    }
    (void)snprintf(made->part, sizeof made->part, "%zu%s", strlen(kernel), kernel);
    made->count = argument_bytes ? count : -1;
    if (argument_bytes && count)
        memcpy(made->bytes, argument_bytes, (size_t)count * sizeof *argument_bytes);
    made->function = function;
    made->context = context;
    pthread_mutex_lock(&replace_lock);
    made->next = replacements;
    replacements = made;
    pthread_mutex_unlock(&replace_lock);
    return 1;
}

static const replacement *replace_find(const char *name)
{
    const replacement *one;
    pthread_mutex_lock(&replace_lock);
    for (one = replacements; one; one = one->next)
        if (!strcmp(one->kernel, name) || strstr(name, one->part))
            break;
    pthread_mutex_unlock(&replace_lock);
    return one && one->function ? one : NULL;
}

static size_t replace_room(uint32_t bytes)
{
    return ((size_t)bytes + 15) / 16 * 16;
}

/* The sizes of the parameters. Returns how many there are, or -1: not known. */
static int32_t replace_sizes(const replacement *one, const cai_kernel *kernel, uint32_t *bytes)
{
    int32_t i;
    if (one->count >= 0)
        memcpy(bytes, one->bytes, (size_t)one->count * sizeof *bytes);
    if (one->count >= 0 || !kernel || kernel->opaque || kernel->parameter_count > REPLACE_MOST)
        return one->count;
    for (i = 0; i < kernel->parameter_count; i++)
        bytes[i] = kernel->parameters[i].bytes;
    return kernel->parameter_count;
}

/* Where the value of a parameter is. NULL: not known. */
static const void *replace_value(const cai_kernel *kernel, int32_t index, void **arguments,
                                 const void *buffer, size_t bytes)
{
    const cai_kernel_parameter *parameter;
    if (arguments)
        return arguments[index];
    if (!buffer || !kernel || kernel->opaque || index >= kernel->parameter_count)
        return NULL;
    parameter = &kernel->parameters[index];
    return parameter->offset + parameter->bytes <= bytes ? (const uint8_t *)buffer + parameter->offset : NULL;
}

static void replace_keep(replaced *made)
{
    pthread_mutex_lock(&replace_lock);
    made->next = replace_kept;
    replace_kept = made;
    pthread_mutex_unlock(&replace_lock);
}

CUresult driver_replaced(const char *name, const CUlaunchConfig *config, const cai_kernel *kernel,
                         void **arguments, const void *buffer, size_t bytes, void **argument)
{
    const replacement *one = replace_find(name);
    uint32_t sizes[REPLACE_MOST];
    size_t room = 0;
    int32_t i, count = one ? replace_sizes(one, kernel, sizes) : 0;
    replaced *made;
    *argument = NULL;
    if (!one)
        return CUDA_SUCCESS;
    if (count < 0)
        return driver_refuse(CUDA_ERROR_INVALID_IMAGE, "cai_driver_replace_kernel needs argument_bytes");
    for (i = 0; i < count; i++) {
        DRIVER_NEED(replace_value(kernel, i, arguments, buffer, bytes));
        room += replace_room(sizes[i]);
    }
    made = (replaced *)calloc(1, sizeof *made + room);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (i = 0, room = 0; i < count; room += replace_room(sizes[i++])) {
        memcpy(made->values + room, replace_value(kernel, i, arguments, buffer, bytes), sizes[i]);
        made->arguments[i] = made->values + room;
    }
    made->function = one->function;
    made->launch.kernel = name;
    made->launch.arguments = made->arguments;
    made->launch.argument_count = count;
    made->launch.context = one->context;
    made->launch.grid[0] = config->gridDimX;
    made->launch.grid[1] = config->gridDimY;
    made->launch.grid[2] = config->gridDimZ;
    made->launch.block[0] = config->blockDimX;
    made->launch.block[1] = config->blockDimY;
    made->launch.block[2] = config->blockDimZ;
    replace_keep(made);
    *argument = made;
    return CUDA_SUCCESS;
}

void driver_replaced_run(void *argument)
{
    const replaced *one = (const replaced *)argument;
    one->function(&one->launch);
}
