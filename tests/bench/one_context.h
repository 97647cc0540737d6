/* one_context.h - the slots of a CUDA table that every pool needs, for a platform with one context and no captures:
 * what a test does not fill itself
 * SPDX-License-Identifier: MIT */
#ifndef ONE_CONTEXT_H_INCLUDED
#define ONE_CONTEXT_H_INCLUDED

#include "cai_stream.h"

#include <string.h>

static int32_t one_context_current(void *self, uint64_t *context)
{
    (void)self;
    *context = 4096;
    return 0;
}

static int32_t one_context_of_stream(void *self, uint64_t stream, uint64_t *context)
{
    (void)stream;
    return one_context_current(self, context);
}

static int32_t one_context_of_device(void *self, int32_t device, uint64_t *context)
{
    if (device) return 101; /* invalid device */
    return one_context_current(self, context);
}

static int32_t one_context_device(void *self, int32_t *device)
{
    (void)self;
    *device = 0;
    return 0;
}

static int32_t one_context_nothing(void *self)
{
    (void)self;
    return 0;
}

static int32_t one_context_nothing_with(void *self, uint64_t object)
{
    (void)self;
    (void)object;
    return 0;
}

static int32_t one_context_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    (void)self;
    (void)stream;
    memset(capture, 0, sizeof *capture);
    return 0;
}

static int32_t one_context_mode(void *self, int32_t *mode)
{
    (void)self;
    *mode = 0;
    return 0;
}

static int32_t one_context_pointer(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self;
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_DEVICE;
    info->context = 4096;
    info->device_pointer = pointer;
    return 0;
}

static int32_t one_context_thread(void *self, uint64_t *thread)
{
    (void)self;
    *thread = 1;
    return 0;
}

static void one_context_fill(cai_cuda *cuda)
{
    memset(cuda, 0, sizeof *cuda);
    cuda->struct_size = (uint32_t)sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->context_current = one_context_current;
    cuda->context_push = one_context_nothing_with;
    cuda->context_pop = cuda->context_synchronize = one_context_nothing;
    cuda->context_device = one_context_device;
    cuda->device_context = one_context_of_device;
    cuda->stream_context = one_context_of_stream;
    cuda->stream_capture = one_context_capture;
    cuda->stream_synchronize = cuda->event_query = cuda->event_synchronize = one_context_nothing_with;
    cuda->capture_mode = one_context_mode;
    cuda->pointer_info = one_context_pointer;
    cuda->host_thread = one_context_thread;
}

#endif
