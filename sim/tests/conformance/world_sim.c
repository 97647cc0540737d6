/* world_sim.c - the world of the rules on the simulation of sim, and the bugs to plant in it.
 * SPDX-License-Identifier: MIT
 *
 * The simulation runs a kernel when something waits for it. Here a kernel whose flag is not set is left
 * alone, and what may run runs when a rule asks whether a mark is reached: all of it, so that what should
 * have been held back, and was not, shows. */
#include "world.h"

#include "sim/cai_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_JOBS = 256, MOST_PLAIN = 8, MOST_PAIRS = 32, ONE_THREAD = 7, NOT_INITIALIZED = 3 };
enum { HANDLE_BYTES = 64, UUID_BYTES = 16, ENOUGH_BYTES = 1 << 22 };

typedef struct job { /* a kernel */
    uint64_t operation, memory; /* memory: that it writes to, or 0 */
    unsigned char *byte; /* the same; NULL: not of the simulation */
    int32_t flag, mark;
} job;

typedef struct pair {
    uint64_t a, b;
} pair;

static cai_sim *sim;
static int32_t device_count, chosen = -1; /* see world_choose */
static cai_cuda table; /* with the planted bug */
static const char *planted;
static char undefined[2 * WORLD_TEXT]; /* what was said of a dead handle; empty: nothing */

static job jobs[MOST_JOBS];
static int32_t job_count;
static int flags[WORLD_FLAGS], flag_comes[WORLD_FLAGS], ran[WORLD_MARKS];
static int saw[WORLD_MARKS][WORLD_MARKS];
static int endless; /* a host thread waited for a kernel whose flag nobody sets */
static void *plain[MOST_PLAIN];
static int32_t plain_count;

/* What the planted bugs remember. */
static pair recorded[MOST_PAIRS], waited[MOST_PAIRS];
static int32_t recorded_count, waited_count;
static cai_cuda_pointer known[MOST_PAIRS];
static uint64_t known_at[MOST_PAIRS];
static int32_t known_count;
static uint64_t only_stream, capturing_thread, capturing_stream, capturing_event, only_executable;
static uint64_t mapped_first;

static int is_planted(const char *name)
{
    return planted != NULL && strcmp(planted, name) == 0;
}

/* ------------------------------------------------------------- planted wrongs */
static int has_pair(const pair *pairs, int32_t count, uint64_t a)
{
    int32_t i;
    for (i = 0; i < count; i++)
        if (pairs[i].a == a) return 1;
    return 0;
}

static void add_pair(pair *pairs, int32_t *count, uint64_t a, uint64_t b)
{
    if (*count == MOST_PAIRS) return;
    pairs[*count].a = a;
    pairs[(*count)++].b = b;
}

static const cai_cuda *honest(void)
{
    return cai_sim_cuda(sim);
}

static int32_t note_record(void *self, uint64_t event, uint64_t stream)
{
    const int32_t error = honest()->event_record(self, event, stream);
    if (!error) add_pair(recorded, &recorded_count, event, stream);
    return error;
}

static int32_t strict_wait(void *self, uint64_t stream, uint64_t event)
{
    if (!has_pair(recorded, recorded_count, event)) return CAI_SIM_ERROR_INVALID_HANDLE;
    return honest()->stream_wait_event(self, stream, event);
}

static int32_t note_wait(void *self, uint64_t stream, uint64_t event)
{
    const int32_t error = honest()->stream_wait_event(self, stream, event);
    if (!error) add_pair(waited, &waited_count, event, stream);
    return error;
}

static int32_t retroactive_record(void *self, uint64_t event, uint64_t stream)
{
    const int32_t error = honest()->event_record(self, event, stream);
    int32_t i;
    for (i = 0; !error && i < waited_count; i++)
        if (waited[i].a == event) (void)honest()->stream_wait_event(self, waited[i].b, event);
    return error;
}

static int32_t tolerant_record(void *self, uint64_t event, uint64_t stream)
{
    const int32_t error = honest()->event_record(self, event, stream);
    return error == CAI_SIM_ERROR_INVALID_HANDLE ? 0 : error;
}

static int32_t ruinous_query(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    const int32_t error = honest()->stream_capture(self, stream, capture);
    if (!error && capture->status == CAI_CAPTURE_ACTIVE) (void)honest()->stream_synchronize(self, stream);
    return error;
}

static int32_t lazy_pop(void *self)
{
    uint64_t context = 0;
    int32_t error = honest()->context_current(self, &context);
    if (!error) error = honest()->context_pop(self);
    if (!error && cai_sim_current(sim) != 0) (void)cai_sim_set_context(sim, context);
    return error;
}

static int32_t hasty_query(void *self, uint64_t event)
{
    const int32_t error = honest()->event_query(self, event);
    return error == CAI_SIM_ERROR_NOT_READY ? 0 : error;
}

static int32_t loud_record(void *self, uint64_t event, uint64_t stream)
{
    (void)self;
    return cai_sim_event_record(sim, event, stream);
}

static int32_t stream_id_by_handle(void *self, uint64_t stream, uint64_t *id)
{
    (void)self;
    *id = stream;
    return 0;
}

static int32_t deaf_mode(void *self, int32_t *mode)
{
    static int32_t imagined;
    const int32_t before = imagined;
    (void)self;
    imagined = *mode;
    *mode = before;
    return 0;
}

/* Freed memory is still what it was. */
static int32_t fond_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = honest()->pointer_info(self, pointer, info);
    int32_t i;
    if (error) return error;
    for (i = 0; i < known_count; i++)
        if (known_at[i] == pointer) *info = known[i];
    if (known_count == MOST_PAIRS) return 0;
    known_at[known_count] = pointer;
    known[known_count++] = *info;
    return 0;
}

static int32_t base_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    uint64_t base = 0, size;
    const int32_t error = honest()->pointer_info(self, pointer, info);
    if (error || honest()->pointer_range(self, pointer, &base, &size) || base == pointer) return error;
    memset(info, 0, sizeof *info);
    info->memory = CAI_MEMORY_HOST;
    info->device = CAI_DEVICE_UNKNOWN;
    return 0;
}

static int32_t current_device_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = honest()->pointer_info(self, pointer, info);
    if (!error && info->memory != CAI_MEMORY_HOST) {
        (void)honest()->context_current(self, &info->context);
        (void)honest()->context_device(self, &info->device);
    }
    return error;
}

static int32_t pushy_device_context(void *self, int32_t device, uint64_t *context)
{
    const int32_t error = honest()->device_context(self, device, context);
    if (!error) (void)cai_sim_set_context(sim, *context);
    return error;
}

static int32_t making_device_context(void *self, int32_t device, uint64_t *context)
{
    const int32_t error = honest()->device_context(self, device, context);
    if (!error && *context == 0) *context = cai_sim_primary_retain(sim, device);
    return error;
}

static int32_t bold_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    const int32_t error = honest()->pointer_info(self, pointer, info);
    if (!error && (info->flags & CAI_POINTER_NO_CONTEXT)) info->device_pointer = pointer;
    info->flags &= ~(uint32_t)CAI_POINTER_NO_CONTEXT;
    return error;
}

static int32_t whole_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    const int32_t error = honest()->pointer_range(self, pointer, base, size);
    if (error || *size != ENOUGH_BYTES / 2) return error;
    *base -= ENOUGH_BYTES / 2;
    *size = ENOUGH_BYTES;
    return 0;
}

/* Waits for the current context, whatever the options say. */
static int32_t slow_free(void *self, uint64_t pointer)
{
    const int32_t error = cai_sim_current(sim) == 0 ? 0 : honest()->context_synchronize(self);
    return error ? error : honest()->memory_free(self, pointer);
}

static int32_t slow_host_free(void *self, uint64_t pointer)
{
    const int32_t error = cai_sim_current(sim) == 0 ? 0 : honest()->context_synchronize(self);
    return error ? error : honest()->host_free(self, pointer);
}

static int32_t narrow_synchronize(void *self)
{
    return honest()->stream_synchronize(self, CAI_STREAM_LEGACY);
}

static int32_t stream_of_here(void *self, uint64_t stream, uint64_t *context)
{
    (void)stream;
    return honest()->context_current(self, context);
}

static int32_t eager_info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    if (cai_sim_current(sim) == 0) (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    return honest()->pointer_info(self, pointer, info);
}

/* The start of the capture is waited for, not what was recorded. */
static int32_t loose_wait(void *self, uint64_t stream, uint64_t event)
{
    cai_cuda_capture own;
    if (honest()->stream_capture(self, stream, &own) || own.status != CAI_CAPTURE_NONE || !capturing_event)
        return honest()->stream_wait_event(self, stream, event);
    return honest()->stream_wait_event(self, stream, capturing_event);
}

static int32_t late_wait(void *self, uint64_t stream, uint64_t event)
{
    int32_t i;
    for (i = recorded_count; i-- > 0;) {
        if (recorded[i].a != event) continue;
        (void)honest()->event_record(self, event, recorded[i].b);
        break;
    }
    return honest()->stream_wait_event(self, stream, event);
}

static int32_t reserved_query(void *self, uint64_t event)
{
    if (!has_pair(recorded, recorded_count, event)) return CAI_SIM_ERROR_NOT_READY;
    return honest()->event_query(self, event);
}

static int32_t device_by_context(void *self, int32_t *device)
{
    const int32_t error = honest()->context_device(self, device);
    if (!error && cai_sim_current(sim) != cai_sim_primary(sim, *device)) *device += 1;
    return error;
}

static int32_t tolerant_device_context(void *self, int32_t device, uint64_t *context)
{
    return honest()->device_context(self, device >= 0 && device < device_count ? device : 0, context);
}

static int32_t restless_id(void *self, uint64_t stream, uint64_t *id)
{
    static uint64_t next;
    const int32_t error = honest()->stream_id(self, stream, id);
    *id = ++next;
    return error;
}

static int32_t forceful_alloc(void *self, uint64_t *pointer, uint64_t size)
{
    if (cai_sim_current(sim) == 0) (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    return honest()->memory_alloc(self, pointer, size);
}

static int32_t boundless_alloc(void *self, uint64_t *pointer, uint64_t size)
{
    return honest()->memory_alloc(self, pointer, size < 1 ? 1 : size > ENOUGH_BYTES ? ENOUGH_BYTES : size);
}

static int32_t primary_alloc(void *self, uint64_t *pointer, uint64_t size)
{
    const uint64_t here = cai_sim_current(sim);
    int32_t error;
    if (here != 0) (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    error = honest()->memory_alloc(self, pointer, size);
    if (here != 0) (void)cai_sim_set_context(sim, here);
    return error;
}

static int32_t current_alloc_async(void *self, uint64_t *pointer, uint64_t size, uint64_t stream)
{
    *pointer = 0;
    if (cai_sim_current(sim) == 0) return CAI_SIM_ERROR_INVALID_CONTEXT;
    return honest()->memory_alloc_async(self, pointer, size, stream);
}

static int32_t obliging_host_alloc(void *self, uint64_t *pointer, uint64_t size, uint32_t how)
{
    return honest()->host_alloc(self, pointer, size == 0 ? 1 : size, how);
}

/* As the simulation's own free: without a wait. */
static int32_t rash_free(void *self, uint64_t pointer)
{
    if (cai_sim_current(sim) == 0) return honest()->memory_free(self, pointer);
    return cai_sim_free(sim, pointer);
}

static int32_t rash_host_free(void *self, uint64_t pointer)
{
    if (cai_sim_current(sim) == 0) return honest()->host_free(self, pointer);
    return cai_sim_free(sim, pointer);
}

static int32_t waiting_free(void *self, uint64_t pointer)
{
    const int32_t error = honest()->context_synchronize(self);
    return error ? error : honest()->memory_free(self, pointer);
}

static int32_t tolerant_free(void *self, uint64_t pointer)
{
    const int32_t error = honest()->memory_free(self, pointer);
    return error == CAI_SIM_ERROR_INVALID_VALUE ? 0 : error;
}

/* At once, and not in the order of the stream. */
static int32_t rash_free_async(void *self, uint64_t pointer, uint64_t stream)
{
    uint64_t context;
    const int32_t error = honest()->stream_context(self, stream, &context);
    return error ? error : cai_sim_free(sim, pointer);
}

static int32_t home_free_async(void *self, uint64_t pointer, uint64_t stream)
{
    uint64_t context;
    cai_cuda_pointer info;
    const int32_t error = honest()->stream_context(self, stream, &context);
    if (error || honest()->pointer_info(self, pointer, &info)) return error;
    if (context == cai_sim_primary(sim, 1 - info.device)) return CAI_SIM_ERROR_INVALID_VALUE;
    return honest()->memory_free_async(self, pointer, stream);
}

static int32_t waiting_free_async(void *self, uint64_t pointer, uint64_t stream)
{
    const int32_t error = honest()->memory_free_async(self, pointer, stream);
    return error ? error : honest()->stream_synchronize(self, stream);
}

static int32_t tolerant_register(void *self, uint64_t pointer, uint64_t size, uint32_t how)
{
    const int32_t error = honest()->host_register(self, pointer, size, how);
    return error == CAI_SIM_ERROR_ALREADY_REGISTERED ? 0 : error;
}

static int32_t tolerant_managed(void *self, uint64_t *pointer, uint64_t size, uint32_t how)
{
    return honest()->managed_alloc(self, pointer, size, how ? how : 1);
}

static int32_t restless_export(void *self, uint64_t pointer, void *handle)
{
    static unsigned char next;
    const int32_t error = honest()->ipc_export(self, pointer, handle);
    ((unsigned char *)handle)[HANDLE_BYTES - 1] = ++next;
    return error;
}

static int32_t base_export(void *self, uint64_t pointer, void *handle)
{
    uint64_t base = 0, size;
    const int32_t error = honest()->pointer_range(self, pointer, &base, &size);
    if (!error && base != pointer) return CAI_SIM_ERROR_INVALID_VALUE;
    return honest()->ipc_export(self, pointer, handle);
}

static int32_t pool_export(void *self, uint64_t pointer, void *handle)
{
    const int32_t error = honest()->ipc_export(self, pointer, handle);
    return error == CAI_SIM_ERROR_INVALID_VALUE ? 0 : error;
}

static int32_t own_open(void *self, const void *handle, uint64_t *pointer)
{
    const int32_t error = honest()->ipc_open(self, handle, pointer);
    return error == CAI_SIM_ERROR_INVALID_CONTEXT ? 0 : error;
}

static int32_t flat_copy(void *self, const cai_cuda_copy *copy, uint64_t stream)
{
    cai_cuda_copy dense = *copy;
    dense.to_height = dense.height;
    return honest()->copy_3d_async(self, &dense, stream);
}

static int32_t waiting_slot_copy(void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream)
{
    const int32_t error = honest()->copy_async(self, to, from, size, stream);
    return error ? error : honest()->stream_synchronize(self, stream);
}

static int32_t word_set(void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream)
{
    return honest()->set_async(self, to, value ? 0 : 1, size, stream);
}

static int32_t full_set(void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width,
                        uint64_t height, uint64_t stream)
{
    (void)width;
    return honest()->set_2d_async(self, to, pitch, value, pitch, height, stream);
}

static int32_t waiting_peer_copy(void *self, uint64_t to, uint64_t to_context, uint64_t from,
                                 uint64_t from_context, uint64_t size, uint64_t stream)
{
    const int32_t error = honest()->copy_peer_async(self, to, to_context, from, from_context, size, stream);
    return error ? error : honest()->stream_synchronize(self, stream);
}

/* As a copy that names no contexts does. */
static int32_t poor_peer_copy(void *self, uint64_t to, uint64_t to_context, uint64_t from,
                              uint64_t from_context, uint64_t size, uint64_t stream)
{
    const uint32_t options = cai_sim_options(sim);
    int32_t error;
    (void)to_context;
    (void)from_context;
    cai_sim_set_options(sim, options | CAI_SIM_COPY_NEEDS_ACCESS);
    (void)honest()->context_push(self, cai_sim_primary(sim, 0));
    error = honest()->copy_async(self, to, from, size, stream);
    (void)honest()->context_pop(self);
    cai_sim_set_options(sim, options);
    return error;
}

static int32_t tolerant_peer_copy(void *self, uint64_t to, uint64_t to_context, uint64_t from,
                                  uint64_t from_context, uint64_t size, uint64_t stream)
{
    const int32_t error = honest()->copy_peer_async(self, to, to_context, from, from_context, size, stream);
    return error == CAI_SIM_ERROR_INVALID_VALUE ? 0 : error;
}

static int32_t strict_peer_copy(void *self, uint64_t to, uint64_t to_context, uint64_t from,
                                uint64_t from_context, uint64_t size, uint64_t stream)
{
    if (!to_context || !from_context) return CAI_SIM_ERROR_INVALID_CONTEXT;
    return honest()->copy_peer_async(self, to, to_context, from, from_context, size, stream);
}

static int32_t flat_peer_copy(void *self, const cai_cuda_copy *copy, uint64_t to_context,
                              uint64_t from_context, uint64_t stream)
{
    cai_cuda_copy dense = *copy;
    dense.to_height = dense.height;
    return honest()->copy_3d_peer_async(self, &dense, to_context, from_context, stream);
}

/* Access to pools counts where the option is off, and not where it is on. */
static int32_t contrary_copy(void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream)
{
    const uint32_t options = cai_sim_options(sim);
    int32_t error;
    cai_sim_set_options(sim, options ^ CAI_SIM_COPY_NEEDS_ACCESS);
    error = honest()->copy_async(self, to, from, size, stream);
    cai_sim_set_options(sim, options);
    return error;
}

static int32_t one_uuid(void *self, int32_t device, void *uuid)
{
    return honest()->device_uuid(self, device > 0 && device < device_count ? 0 : device, uuid);
}

/* Operations that do nothing, or always fail. */
#define WRONG_ANSWER 999
#define IDLE(name, parameters, unused, answer)    \
    static int32_t idle_##name parameters         \
    {                                             \
        unused;                                   \
        answer;                                   \
        return 0;                                 \
    }                                             \
    static int32_t broken_##name parameters       \
    {                                             \
        unused;                                   \
        answer;                                   \
        return WRONG_ANSWER;                      \
    }
IDLE(context_current, (void *self, uint64_t *context), (void)self, *context = 0)
IDLE(context_push, (void *self, uint64_t context), (void)self, (void)context)
IDLE(context_pop, (void *self), (void)self, (void)0)
IDLE(context_synchronize, (void *self), (void)self, (void)0)
IDLE(context_device, (void *self, int32_t *device), (void)self, *device = 0)
IDLE(device_context, (void *self, int32_t device, uint64_t *context), ((void)self, (void)device),
     *context = 0)
IDLE(stream_context, (void *self, uint64_t stream, uint64_t *context), ((void)self, (void)stream),
     *context = 0)
IDLE(stream_capture, (void *self, uint64_t stream, cai_cuda_capture *capture), ((void)self, (void)stream),
     memset(capture, 0, sizeof *capture))
IDLE(stream_id, (void *self, uint64_t stream, uint64_t *id), ((void)self, (void)stream), *id = 0)
IDLE(stream_wait_event, (void *self, uint64_t stream, uint64_t event), ((void)self, (void)stream),
     (void)event)
IDLE(stream_synchronize, (void *self, uint64_t stream), (void)self, (void)stream)
IDLE(event_create, (void *self, uint64_t *event), (void)self, *event = 0)
IDLE(event_destroy, (void *self, uint64_t event), (void)self, (void)event)
IDLE(event_record, (void *self, uint64_t event, uint64_t stream), ((void)self, (void)stream), (void)event)
IDLE(event_query, (void *self, uint64_t event), (void)self, (void)event)
IDLE(event_synchronize, (void *self, uint64_t event), (void)self, (void)event)
IDLE(capture_mode, (void *self, int32_t *mode), (void)self, (void)mode)
IDLE(pointer_info, (void *self, uint64_t pointer, cai_cuda_pointer *info), ((void)self, (void)pointer),
     memset(info, 0, sizeof *info))
IDLE(pointer_range, (void *self, uint64_t pointer, uint64_t *base, uint64_t *size),
     ((void)self, (void)pointer), (*base = 0, *size = 0))
IDLE(device_attribute, (void *self, int32_t device, int32_t attribute, int32_t *value),
     ((void)self, (void)device, (void)attribute), *value = 0)

IDLE(memory_alloc, (void *self, uint64_t *pointer, uint64_t size), ((void)self, (void)size), *pointer = 0)
IDLE(memory_free, (void *self, uint64_t pointer), (void)self, (void)pointer)
IDLE(memory_alloc_async, (void *self, uint64_t *pointer, uint64_t size, uint64_t stream),
     ((void)self, (void)size, (void)stream), *pointer = 0)
IDLE(memory_free_async, (void *self, uint64_t pointer, uint64_t stream), ((void)self, (void)stream),
     (void)pointer)
IDLE(host_alloc, (void *self, uint64_t *pointer, uint64_t size, uint32_t how),
     ((void)self, (void)size, (void)how), *pointer = 0)
IDLE(host_free, (void *self, uint64_t pointer), (void)self, (void)pointer)
IDLE(host_register, (void *self, uint64_t pointer, uint64_t size, uint32_t how),
     ((void)self, (void)size, (void)how), (void)pointer)
IDLE(host_unregister, (void *self, uint64_t pointer), (void)self, (void)pointer)
IDLE(managed_alloc, (void *self, uint64_t *pointer, uint64_t size, uint32_t how),
     ((void)self, (void)size, (void)how), *pointer = 0)
IDLE(memory_info, (void *self, uint64_t *available, uint64_t *total), (void)self,
     (*available = 0, *total = 0))
IDLE(ipc_export, (void *self, uint64_t pointer, void *handle), ((void)self, (void)pointer),
     memset(handle, 0, HANDLE_BYTES))
IDLE(ipc_open, (void *self, const void *handle, uint64_t *pointer), ((void)self, (void)handle), *pointer = 0)
IDLE(ipc_close, (void *self, uint64_t pointer), (void)self, (void)pointer)
IDLE(device_uuid, (void *self, int32_t device, void *uuid), ((void)self, (void)device),
     memset(uuid, 0, UUID_BYTES))

IDLE(copy_async, (void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream),
     ((void)self, (void)to, (void)from), ((void)size, (void)stream))
IDLE(copy_3d_async, (void *self, const cai_cuda_copy *copy, uint64_t stream), ((void)self, (void)copy),
     (void)stream)
IDLE(set_async, (void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream),
     ((void)self, (void)to, (void)value), ((void)size, (void)stream))
IDLE(set_2d_async,
     (void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width, uint64_t height,
      uint64_t stream),
     ((void)self, (void)to, (void)pitch, (void)value), ((void)width, (void)height, (void)stream))
IDLE(copy_peer_async,
     (void *self, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context, uint64_t size,
      uint64_t stream),
     ((void)self, (void)to, (void)to_context, (void)from), ((void)from_context, (void)size, (void)stream))
IDLE(copy_3d_peer_async,
     (void *self, const cai_cuda_copy *copy, uint64_t to_context, uint64_t from_context, uint64_t stream),
     ((void)self, (void)copy, (void)to_context), ((void)from_context, (void)stream))

/* X(operation, whether rules cannot even begin without it) */
#define OPERATIONS(X) \
    X(context_current, 0) X(context_push, 0) X(context_pop, 0) X(context_synchronize, 0) \
    X(context_device, 0) X(device_context, 1) X(stream_context, 0) X(stream_capture, 0) X(stream_id, 0) \
    X(stream_wait_event, 0) X(stream_synchronize, 0) X(event_create, 1) X(event_destroy, 0) \
    X(event_record, 0) X(event_query, 0) X(event_synchronize, 0) X(capture_mode, 0) X(pointer_info, 0) \
    X(pointer_range, 0) X(device_attribute, 0) X(memory_alloc, 0) X(memory_free, 0) \
    X(memory_alloc_async, 0) X(memory_free_async, 0) X(host_alloc, 0) X(host_free, 0) X(host_register, 0) \
    X(host_unregister, 0) X(managed_alloc, 0) X(memory_info, 0) X(ipc_export, 0) X(ipc_open, 0) \
    X(ipc_close, 0) X(device_uuid, 0) X(copy_async, 0) X(copy_3d_async, 0) X(set_async, 0) \
    X(set_2d_async, 0) X(copy_peer_async, 0) X(copy_3d_peer_async, 0)

/* X(name, what is wrong, the rule that must fail, the slots that are other); where those are none, a function
 * below asks is_planted. */
#define WRONGS(X) \
    X("no-legacy-order", "streams do not synchronize with the legacy stream", "L01", (void)0) \
    X("all-legacy-order", "non-blocking streams synchronize with the legacy stream", "L04", (void)0) \
    X("one-stream", "all streams that are made are the same", "L06", (void)0) \
    X("per-thread-is-legacy", "stream 2 is stream 1", "L09", (void)0) \
    X("one-legacy", "the legacy stream is the same in all contexts", "D06", (void)0) \
    X("strict-wait", "a wait for an event that was never recorded fails", "E03", \
      (table.event_record = note_record, table.stream_wait_event = strict_wait)) \
    X("late-wait", "an event covers what its stream has got when it is waited for", "E06", \
      (table.event_record = note_record, table.stream_wait_event = late_wait)) \
    X("reserved-query", "an event that was never recorded is pending", "E09", \
      (table.event_record = note_record, table.event_query = reserved_query)) \
    X("tolerant-record", "a record in a stream of another context is accepted", "E01", \
      table.event_record = tolerant_record) \
    X("retroactive-record", "recording again adds to the waits made before", "E05", \
      (table.event_record = retroactive_record, table.stream_wait_event = note_wait)) \
    X("hasty-query", "an event is said to have passed while it is pending", "E08", \
      table.event_query = hasty_query) \
    X("loud-record", "a failed record stays behind as the last error", "Q01", \
      table.event_record = loud_record) \
    X("migrant-launch", "a launch in a stream of another context is accepted", "D07", (void)0) \
    X("no-capture", "captured work runs", "C01", (void)0) \
    X("ruinous-query", "a capture query invalidates the capture", "C03", \
      table.stream_capture = ruinous_query) \
    X("legacy-capture", "the legacy stream can be captured", "C04", (void)0) \
    X("tolerant-begin", "a capture can be begun twice", "C06", (void)0) \
    X("tolerant-end", "a capture that was not begun can be ended", "C07", (void)0) \
    X("unjoined-end", "a capture with a fork is never joined", "C20", table.stream_wait_event = note_wait) \
    X("bound-end", "a relaxed capture is bound to its host thread", "C26", (void)0) \
    X("deaf-mode", "the capture mode of the thread is exchanged and not used", "M04", \
      table.capture_mode = deaf_mode) \
    X("lazy-pop", "pop leaves the popped context current", "X04", table.context_pop = lazy_pop) \
    X("pushy-device", "device_context makes the context current", "X03", \
      table.device_context = pushy_device_context) \
    X("making-device", "device_context makes the context of a device that nobody uses", "X23", \
      table.device_context = making_device_context) \
    X("bold-info", "a device address is told without a current context", "P19", \
      table.pointer_info = bold_info) \
    X("whole-range", "two segments are told as one", "P20", table.pointer_range = whole_range) \
    X("same-stream", "the handle of a destroyed stream comes back too soon", "S08", (void)0) \
    X("shared-context", "a further context is current on several host threads", "X07", (void)0) \
    X("tolerant-device", "every number is that of a device", "X11", \
      table.device_context = tolerant_device_context) \
    X("device-by-context", "a further context is on a further device", "X10", \
      table.context_device = device_by_context) \
    X("one-thread", "host threads are not told apart", "L10", (void)0) \
    X("one-context", "a further context is the primary one", "X04", (void)0) \
    X("undying-context", "a context is not destroyed", "X13", (void)0) \
    X("narrow-synchronize", "context_synchronize leaves out non-blocking streams", "X14", \
      table.context_synchronize = narrow_synchronize) \
    X("stream-of-here", "stream_context is the current context", "S01", \
      table.stream_context = stream_of_here) \
    X("id-by-handle", "the id of a stream is its handle", "S05", table.stream_id = stream_id_by_handle) \
    X("restless-id", "the id of a stream is another each time", "S06", table.stream_id = restless_id) \
    X("fond-info", "freed memory is still known", "P12", table.pointer_info = fond_info) \
    X("base-info", "only the first address of an allocation is known", "P02", \
      table.pointer_info = base_info) \
    X("current-info", "memory is said to be on the current device", "D04", \
      table.pointer_info = current_device_info) \
    X("eager-info", "a question about memory makes a context current", "P17", \
      table.pointer_info = eager_info) \
    X("forceful-alloc", "an allocation makes a context current", "A03", table.memory_alloc = forceful_alloc) \
    X("boundless-alloc", "every size can be had", "A07", table.memory_alloc = boundless_alloc) \
    X("size-0-alloc", "memory of size 0 can be had", "A05", table.memory_alloc = boundless_alloc) \
    X("size-0-host-alloc", "pinned memory of size 0 can be had", "A06", \
      table.host_alloc = obliging_host_alloc) \
    X("primary-alloc", "memory is always of the primary context", "A02", \
      table.memory_alloc = primary_alloc) \
    X("current-alloc-async", "an allocation in a stream needs a current context", "A04", \
      table.memory_alloc_async = current_alloc_async) \
    X("tolerant-free", "what is freed twice is freed twice", "A08", table.memory_free = tolerant_free) \
    X("rash-free", "a free does not wait", "A09", table.memory_free = rash_free) \
    X("rash-host-free", "a free of pinned memory does not wait", "A10", \
      table.host_free = rash_host_free) \
    X("slow-free", "a free waits that should not", "A09", table.memory_free = slow_free) \
    X("slow-host-free", "a free of pinned memory waits that should not", "A10", \
      table.host_free = slow_host_free) \
    X("rash-free-too", "a free does not wait for another device", "D09", table.memory_free = rash_free) \
    X("waiting-free", "a free of pool memory waits", "A12", table.memory_free = waiting_free) \
    X("rash-free-async", "a free is not in the order of the stream", "A13", \
      table.memory_free_async = rash_free_async) \
    X("rash-free-async-too", "a free does not wait for another stream", "A14", \
      table.memory_free_async = rash_free_async) \
    X("home-free-async", "memory is freed in streams of its own device alone", "A27", \
      table.memory_free_async = home_free_async) \
    X("waiting-free-async", "a free in the order of the stream waits", "A13", \
      table.memory_free_async = waiting_free_async) \
    X("tolerant-register", "memory can be registered twice", "A17", \
      table.host_register = tolerant_register) \
    X("tolerant-managed", "managed memory needs no flag", "A18", table.managed_alloc = tolerant_managed) \
    X("restless-export", "a handle is another each time", "A20", table.ipc_export = restless_export) \
    X("base-export", "only the first address has a handle", "A21", table.ipc_export = base_export) \
    X("pool-export", "pool memory has a handle", "A22", table.ipc_export = pool_export) \
    X("own-open", "a handle can be opened where it comes from", "A23", table.ipc_open = own_open) \
    X("one-uuid", "all devices have one UUID", "A25", table.device_uuid = one_uuid) \
    X("waiting-slot-copy", "copy_async waits", "T23", table.copy_async = waiting_slot_copy) \
    X("flat-copy", "copy_3d_async leaves nothing out between planes", "T24", \
      table.copy_3d_async = flat_copy) \
    X("other-set", "set_async stores another byte", "T25", table.set_async = word_set) \
    X("full-set", "set_2d_async fills what is between rows", "T26", table.set_2d_async = full_set) \
    X("waiting-peer-copy", "copy_peer_async waits", "T27", table.copy_peer_async = waiting_peer_copy) \
    X("poor-peer-copy", "copy_peer_async needs access to pools", "T27", \
      table.copy_peer_async = poor_peer_copy) \
    X("flat-peer-copy", "copy_3d_peer_async leaves nothing out between planes", "T28", \
      table.copy_3d_peer_async = flat_peer_copy) \
    X("contrary-copy", "access to pools counts the other way round", "T29", \
      table.copy_async = contrary_copy) \
    X("strict-peer-context", "copy_peer_async needs both contexts", "T30", \
      table.copy_peer_async = strict_peer_copy) \
    X("any-peer-context", "copy_peer_async takes any context", "T31", \
      table.copy_peer_async = tolerant_peer_copy) \
    X("idle-copy", "a copy does nothing", "T04", (void)0) \
    X("waiting-copy", "a copy waits that should not", "T01", (void)0) \
    X("home-launch", "launches are made in streams of the current context alone", "S04", (void)0) \
    X("home-copy", "copies are queued in streams of the current context alone", "T17", (void)0) \
    X("running-copy", "a captured copy runs", "T18", (void)0) \
    X("tolerant-copy", "a copy in the legacy stream is accepted beside a capture", "T19", (void)0) \
    X("boundless-copy", "a copy over the end of memory is accepted", "T20", (void)0) \
    X("idle-host-function", "a host function is not called", "T21", (void)0) \
    X("running-host-function", "a host function is called at once", "T22", (void)0) \
    X("idle-fill", "a fill does nothing", "T13", (void)0) \
    X("waiting-fill", "a fill waits that should not", "T12", (void)0) \
    X("idle-graph", "a graph does nothing", "N01", (void)0) \
    X("hasty-graph", "a graph does not wait for the stream", "N02", (void)0) \
    X("lost-graph", "the stream does not wait for a graph", "N03", (void)0) \
    X("many-executables", "launches of one executable are not ordered", "N04", (void)0) \
    X("one-executable", "all executables of a graph are one", "N05", (void)0) \
    X("serial-graph", "a graph has one branch", "N06", (void)0) \
    X("loose-graph", "a branch begins with the capture", "N07", table.stream_wait_event = loose_wait) \
    X("running-child", "a graph is launched although the stream captures", "N08", (void)0) \
    X("bound-executable", "an executable goes with its graph", "N09", (void)0) \
    X("waiting-executable", "an executable is destroyed when it is done", "N10", (void)0) \
    X("single-executable", "an executable runs once", "N11", (void)0) \
    X("many-nodes", "records and waits are nodes", "N12", (void)0) \
    X("broken-graph", "a capture that was invalidated has a graph", "N13", (void)0) \
    X("mortal-default", "the default pool can be destroyed", "K01", (void)0) \
    X("orphaned-device", "another pool is current when the current one is destroyed", "K02", (void)0) \
    X("foreign-pool", "a pool of another device is accepted", "K03", (void)0) \
    X("idle-current", "the default pool stays the current one", "K04", (void)0) \
    X("idle-threshold", "the threshold is always 0", "K05", (void)0) \
    X("grasping-pool", "the threshold is not 0 at first", "K06", (void)0) \
    X("idle-trim", "a trim does nothing", "K07", (void)0) \
    X("full-trim", "a trim keeps nothing", "K07", (void)0) \
    X("free-watermark", "a high watermark can be set to anything", "K08", (void)0) \
    X("deadly-pool", "memory goes with its pool", "K09", (void)0) \
    X("always-again", "memory is used again that should not", "K10", (void)0) \
    X("never-again", "memory is not used again that should", "K10", (void)0) \
    X("never-again-too", "memory is not used again behind an event", "K11", (void)0) \
    X("eager-events", "events bring memory back that should not", "K12", (void)0) \
    X("eager-waits", "an allocation is made to wait that should not", "K13", (void)0) \
    X("open-mapping", "a mapping has access at first", "V01", (void)0) \
    X("idle-access", "a mapping never has access", "V02", (void)0) \
    X("loyal-access", "the next mapping has the access of the one before", "V03", (void)0) \
    X("tolerant-unmap", "a part of a mapping can be unmapped", "V04", (void)0) \
    X("tolerant-map", "mapped addresses are mapped again", "V05", (void)0) \
    X("tolerant-access", "access is given where nothing is mapped", "V06", (void)0) \
    X("tolerant-unreserve", "addresses are given back with any size", "V07", (void)0) \
    X("empty-mapping", "a mapping is empty", "V08", (void)0) \
    X("deadly-release", "a mapping goes with its handle", "V09", (void)0) \
    X("no-init", "the first calls find the driver not initialized", "Q05", (void)0)

static const world_plant plants[] = {
#define PLANT_WRONG(name, what, rule, slots) {name, what, rule, 0},
#define PLANT_IDLE(name, coarse) {"idle-" #name, #name " does nothing", NULL, coarse},
#define PLANT_BROKEN(name, coarse) {"broken-" #name, #name " fails", NULL, 1},
    WRONGS(PLANT_WRONG) OPERATIONS(PLANT_IDLE) OPERATIONS(PLANT_BROKEN){NULL, NULL, NULL, 0}};

const world_plant *world_plants(void)
{
    return plants;
}

static void plant_in_table(void)
{
#define APPLY_WRONG(name, what, rule, slots) \
    if (is_planted(name)) slots;
#define APPLY_IDLE(name, coarse) \
    if (is_planted("idle-" #name)) table.name = idle_##name;
#define APPLY_BROKEN(name, coarse) \
    if (is_planted("broken-" #name)) table.name = broken_##name;
    WRONGS(APPLY_WRONG)
    OPERATIONS(APPLY_IDLE)
    OPERATIONS(APPLY_BROKEN)
}

/* ------------------------------------------------------------------ the world */
int world_open(int32_t devices)
{
    device_count = devices;
    return devices > 0;
}

void world_close(void)
{
}

int world_is_simulation(void)
{
    return 1;
}

const char *world_about(void)
{
    return "the simulation";
}

int32_t world_devices(void)
{
    return device_count;
}

int world_has_contexts(void)
{
    return 1;
}

const cai_cuda *world_cuda(void)
{
    return &table;
}

void world_choose(int other)
{
    chosen = other;
}

/* A free that does not wait does not do so for another device either. */
int world_option(const char *name)
{
    static const struct {
        const char *name;
        uint32_t any;
    } options[] = {{"one_thread_contexts", CAI_SIM_ONE_THREAD_CONTEXTS},
                   {"primary_inactive", CAI_SIM_PRIMARY_INACTIVE},
                   {"reuse", CAI_SIM_REUSE},
                   {"need_context", CAI_SIM_NEED_CONTEXT},
                   {"segments", CAI_SIM_SEGMENTS},
                   {"free_returns", CAI_SIM_FREE_RETURNS},
                   {"copy_returns", CAI_SIM_COPY_RETURNS},
                   {"pool_reuse", CAI_SIM_POOL_REUSE},
                   {"copy_needs_access", CAI_SIM_COPY_NEEDS_ACCESS},
                   {"free_own_context", CAI_SIM_FREE_OWN_CONTEXT | CAI_SIM_FREE_RETURNS}};
    size_t i;
    for (i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].name, name) == 0) return (cai_sim_options(sim) & options[i].any) != 0;
    abort();
}

int32_t world_first_error(void)
{
    cai_sim *fresh = cai_sim_create(1);
    const cai_cuda *first = cai_sim_cuda(fresh);
    cai_cuda_pointer info;
    uint64_t context;
    int32_t error = first->pointer_info(first->self, (uint64_t)(uintptr_t)&info, &info);
    if (!error) error = first->context_current(first->self, &context);
    if (!error) error = first->device_context(first->self, 0, &context);
    cai_sim_destroy(fresh);
    return is_planted("no-init") ? NOT_INITIALIZED : error;
}

/* A rule gave a handle that is dead, or none. On a GPU the program would have ended. */
static void note_undefined(void *context, const cai_sim_undefined *what)
{
    (void)context;
    (void)snprintf(undefined, sizeof undefined, "%s", what->text);
}

void world_begin(const char *rule, const char *plant)
{
    (void)rule;
    undefined[0] = 0;
    planted = plant;
    sim = cai_sim_create(device_count);
    if (sim == NULL) abort();
    cai_sim_on_undefined(sim, note_undefined, NULL);
    if (chosen >= 0) cai_sim_set_options(sim, chosen ? CAI_SIM_ADVERSARIAL : 0);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS); /* flags say what runs */
    table = *cai_sim_cuda(sim);
    plant_in_table();
    job_count = plain_count = 0;
    recorded_count = waited_count = known_count = 0;
    only_stream = capturing_thread = capturing_stream = capturing_event = only_executable = mapped_first = 0;
    endless = 0;
    memset(flags, 0, sizeof flags);
    memset(flag_comes, 0, sizeof flag_comes);
    memset(ran, 0, sizeof ran);
    memset(saw, 0, sizeof saw);
    world_thread_begins();
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
}

const char *world_end(void)
{
    world_threads_end();
    cai_sim_destroy(sim);
    sim = NULL;
    while (plain_count > 0) free(plain[--plain_count]);
    if (undefined[0]) return undefined;
    return endless ? "a wait without end: for a kernel that nobody lets go" : NULL;
}

void world_thread_begins(void)
{
    if (is_planted("one-thread")) cai_sim_host_thread(sim, ONE_THREAD);
}

void world_thread_ends(void)
{
}

/* ------------------------------------------------------- contexts and streams */
int32_t world_set_device(int32_t device)
{
    return cai_sim_set_context(sim, cai_sim_primary(sim, device));
}

int32_t world_set_context(uint64_t context)
{
    return cai_sim_set_context(sim, context);
}

uint64_t world_context_create(int32_t device)
{
    if (is_planted("one-context") || is_planted("shared-context")) return cai_sim_primary(sim, device);
    return cai_sim_context_create(sim, device);
}

int32_t world_context_destroy(uint64_t context)
{
    if (is_planted("undying-context")) return 0;
    return cai_sim_context_destroy(sim, context);
}

uint64_t world_stream_create(int nonblocking)
{
    if (is_planted("no-legacy-order")) nonblocking = 1;
    if (is_planted("all-legacy-order")) nonblocking = 0;
    if (is_planted("same-stream")) cai_sim_recycle_handles(sim, 1);
    if (!is_planted("one-stream")) return cai_sim_stream_create(sim, nonblocking);
    if (only_stream == 0) only_stream = cai_sim_stream_create(sim, nonblocking);
    return only_stream;
}

int32_t world_stream_destroy(uint64_t stream)
{
    return cai_sim_stream_destroy(sim, stream);
}

/* -------------------------------------------------------------------- kernels */
static void kernel(void *argument)
{
    const job *self = (const job *)argument;
    if (self->flag && !flags[self->flag]) {
        if (!flag_comes[self->flag]) endless = 1;
        flags[self->flag] = 1;
    }
    if (self->byte != NULL) *self->byte = 1;
    memcpy(saw[self->mark], ran, sizeof ran);
    ran[self->mark] = 1;
}

/* A launch as it is, and with the bugs that are in launches. */
static int32_t launch(uint64_t stream, job *made)
{
    const cai_sim_access touched = cai_sim_writes(made->memory, 1);
    return cai_sim_launch(sim, stream, "kernel", kernel, made, &touched, made->memory != 0);
}

static int32_t launch_wrongly(uint64_t stream, job *made)
{
    const uint64_t here = cai_sim_current(sim);
    uint64_t there = here;
    int32_t error;
    if (is_planted("serial-graph") && capturing_stream) stream = capturing_stream;
    if (is_planted("per-thread-is-legacy") && stream == CAI_STREAM_PER_THREAD) stream = CAI_STREAM_LEGACY;
    if (is_planted("one-legacy") && stream == CAI_STREAM_LEGACY) there = cai_sim_primary(sim, 0);
    if (is_planted("migrant-launch")) (void)honest()->stream_context(sim, stream, &there);
    if (there == 0 || there == here) return launch(stream, made);
    (void)cai_sim_set_context(sim, there);
    error = launch(stream, made);
    (void)cai_sim_set_context(sim, here);
    return error;
}

/* The planted bug of a launch: a stream of another context than the current one is refused. */
static int is_elsewhere(uint64_t stream)
{
    uint64_t context = 0;
    return is_planted("home-launch") && !honest()->stream_context(sim, stream, &context) &&
           context != cai_sim_current(sim);
}

int32_t world_launch(uint64_t stream, int32_t flag, int32_t mark)
{
    return world_touch(stream, flag, mark, 0);
}

int32_t world_touch(uint64_t stream, int32_t flag, int32_t mark, uint64_t memory)
{
    job *made = &jobs[job_count];
    cai_sim_operation queued;
    int32_t error;
    if (job_count == MOST_JOBS) abort();
    made->memory = memory;
    made->byte = (unsigned char *)cai_sim_bytes(sim, memory);
    made->flag = flag;
    made->mark = mark;
    error = is_elsewhere(stream) ? CAI_SIM_ERROR_INVALID_HANDLE : launch_wrongly(stream, made);
    if (error) return error;
    made->operation = cai_sim_operation_count(sim);
    job_count++;
    if (!is_planted("no-capture")) return 0;
    if (cai_sim_operation_get(sim, made->operation, &queued) && queued.capture != 0) kernel(made);
    return 0;
}

int32_t world_host_function(uint64_t stream, int32_t mark)
{
    job *made = &jobs[job_count];
    int32_t error;
    if (job_count == MOST_JOBS) abort();
    memset(made, 0, sizeof *made);
    made->mark = mark;
    if (is_planted("idle-host-function")) return 0;
    if (is_planted("running-host-function")) kernel(made);
    error = cai_sim_host_function(sim, stream, "host function", kernel, made, NULL, 0);
    if (error) return error;
    made->operation = cai_sim_operation_count(sim);
    job_count++;
    return 0;
}

void world_set(int32_t flag)
{
    flags[flag] = 1;
}

int world_is_set(int32_t flag)
{
    return flags[flag];
}

void world_set_while_waiting(int32_t flag)
{
    flag_comes[flag] = 1;
}

static int is_held(uint64_t operation)
{
    cai_sim_operation op;
    int32_t i;
    while (cai_sim_operation_get(sim, operation, &op) && op.node) operation = op.node;
    for (i = 0; i < job_count; i++)
        if (jobs[i].operation == operation) return jobs[i].flag && !flags[jobs[i].flag];
    return 0;
}

int world_reaches(int32_t mark)
{
    uint64_t ready[MOST_JOBS];
    int32_t i, count, progress;
    do {
        progress = 0;
        count = cai_sim_ready(sim, ready, MOST_JOBS);
        for (i = 0; i < count && i < MOST_JOBS; i++)
            if (!is_held(ready[i])) progress += cai_sim_run_operation(sim, ready[i]);
    } while (progress);
    return ran[mark];
}

int world_ran(int32_t mark)
{
    return ran[mark];
}

int world_saw(int32_t mark, int32_t earlier)
{
    return ran[mark] && saw[mark][earlier];
}

/* -------------------------------------------------- captures, memory and errors */
static uint64_t host_thread(void)
{
    uint64_t thread = 0;
    (void)honest()->host_thread(sim, &thread);
    return thread;
}

int32_t world_capture_begin(uint64_t stream, int32_t mode)
{
    int32_t error;
    if (is_planted("legacy-capture") && stream == CAI_STREAM_LEGACY) return 0;
    error = cai_sim_capture_begin(sim, stream, mode);
    capturing_thread = host_thread();
    capturing_stream = stream;
    if (is_planted("loose-graph") && !error) {
        capturing_event = cai_sim_event_create(sim);
        (void)cai_sim_event_record(sim, capturing_event, stream);
    }
    return is_planted("tolerant-begin") && error == CAI_SIM_ERROR_ILLEGAL_STATE ? 0 : error;
}

int32_t world_capture_end(uint64_t stream)
{
    return world_capture_graph(stream, NULL);
}

int32_t world_capture_graph(uint64_t stream, uint64_t *graph)
{
    int32_t error;
    if (is_planted("bound-end") && capturing_thread != host_thread())
        return CAI_SIM_ERROR_CAPTURE_WRONG_THREAD;
    error = cai_sim_capture_end(sim, stream, graph);
    capturing_stream = 0;
    if (is_planted("broken-graph") && error && graph != NULL) *graph = 1;
    if (is_planted("tolerant-end") && error == CAI_SIM_ERROR_ILLEGAL_STATE) return 0;
    if (is_planted("unjoined-end") && waited_count > 0 && !error) return CAI_SIM_ERROR_CAPTURE_UNJOINED;
    return error;
}

int32_t world_graph_nodes(uint64_t graph)
{
    return cai_sim_graph_node_count(sim, graph) + is_planted("many-nodes");
}

uint64_t world_graph_instantiate(uint64_t graph)
{
    if (is_planted("many-executables")) return graph;
    if (!is_planted("one-executable") || only_executable == 0)
        only_executable = cai_sim_graph_instantiate(sim, graph);
    return only_executable;
}

int32_t world_graph_destroy(uint64_t graph)
{
    if (is_planted("many-executables")) return 0;
    if (is_planted("bound-executable")) (void)cai_sim_graph_executable_destroy(sim, only_executable);
    return cai_sim_graph_destroy(sim, graph);
}

/* The stream in which a graph is launched that is planted not to be ordered in its own, or only one way. */
static uint64_t wrong_stream(uint64_t stream)
{
    uint64_t other, event;
    if (!is_planted("hasty-graph") && !is_planted("lost-graph") && !is_planted("running-child"))
        return stream;
    if (is_planted("running-child") && !capturing_stream) return stream;
    other = cai_sim_stream_create(sim, 1);
    if (!is_planted("lost-graph")) return other;
    event = cai_sim_event_create(sim);
    (void)cai_sim_event_record(sim, event, stream);
    (void)cai_sim_stream_wait_event(sim, other, event);
    return other;
}

int32_t world_graph_launch(uint64_t executable, uint64_t stream)
{
    int32_t error;
    if (is_planted("idle-graph")) return 0;
    if (is_planted("single-executable") && only_executable == 0) return 0;
    if (is_planted("many-executables")) executable = cai_sim_graph_instantiate(sim, executable);
    error = cai_sim_graph_launch(sim, executable, wrong_stream(stream));
    if (is_planted("single-executable")) only_executable = 0;
    if (is_planted("running-child") && capturing_stream) (void)cai_sim_run(sim);
    return error;
}

int32_t world_executable_destroy(uint64_t executable)
{
    if (is_planted("waiting-executable")) (void)cai_sim_context_synchronize(sim);
    return cai_sim_graph_executable_destroy(sim, executable);
}

/* Registered memory is of the kind that devices address in another way. */
int32_t world_alloc(int32_t kind, uint64_t bytes, uint64_t *address)
{
    static const int32_t kinds[] = {CAI_SIM_MEM_DEVICE,  CAI_SIM_MEM_MANAGED, CAI_SIM_MEM_PINNED,
                                    CAI_SIM_MEM_ALIASED, CAI_SIM_MEM_POOL,    CAI_SIM_MEM_VIRTUAL,
                                    0,                   CAI_SIM_MEM_REGISTERED, CAI_SIM_MEM_ARRAY,
                                    CAI_SIM_MEM_VIRTUAL};
    if (kind != WORLD_PLAIN) {
        *address = cai_sim_alloc(sim, kinds[kind], bytes);
        if (kind == WORLD_SEGMENTS) cai_sim_set_segment(sim, *address, bytes / 2);
        return *address ? 0 : cai_sim_last_error(sim);
    }
    if (plain_count == MOST_PLAIN) return WORLD_NO_SUCH_MEMORY;
    plain[plain_count] = malloc((size_t)bytes);
    if (plain[plain_count] == NULL) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    *address = (uint64_t)(uintptr_t)plain[plain_count++];
    return 0;
}

int32_t world_free(uint64_t address)
{
    return cai_sim_free(sim, address);
}

/* The bugs in copies that all forms have. 1: *error is the result. */
static int copies_wrongly(uint64_t stream, int32_t *error)
{
    uint64_t context = 0;
    *error = 0;
    if (is_planted("idle-copy")) return 1;
    if (is_planted("home-copy") && !honest()->stream_context(sim, stream, &context) &&
        context != cai_sim_current(sim)) {
        *error = CAI_SIM_ERROR_INVALID_HANDLE;
        return 1;
    }
    return 0;
}

/* After a copy or a fill: the wait that is not asked for. */
static int32_t after_copy(const char *plant, uint64_t stream, int32_t error)
{
    return is_planted(plant) && !error ? cai_sim_stream_synchronize(sim, stream) : error;
}

int32_t world_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    int32_t error;
    if (copies_wrongly(CAI_STREAM_LEGACY, &error)) return error;
    error = cai_sim_copy(sim, to, from, bytes, CAI_STREAM_LEGACY);
    if (is_planted("tolerant-copy") && error == CAI_SIM_ERROR_CAPTURE_IMPLICIT) return 0;
    if (is_planted("boundless-copy") && error == CAI_SIM_ERROR_INVALID_VALUE) return 0;
    return after_copy("waiting-copy", CAI_STREAM_LEGACY, error);
}

int32_t world_copy_async(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream)
{
    cai_sim_operation queued;
    int32_t error;
    if (copies_wrongly(stream, &error)) return error;
    error = cai_sim_copy_async(sim, to, from, bytes, stream);
    if (is_planted("running-copy") && cai_sim_operation_get(sim, cai_sim_operation_count(sim), &queued) &&
        queued.capture != 0)
        memcpy(cai_sim_bytes(sim, to), cai_sim_bytes(sim, from), (size_t)bytes);
    return after_copy("waiting-copy", stream, error);
}

static cai_sim_rows row(uint64_t address)
{
    const cai_sim_rows made = {address, 0, 0};
    return made;
}

int32_t world_fill(uint64_t to, int value, uint64_t bytes)
{
    const cai_sim_rows rows = row(to);
    const cai_sim_extent extent = {bytes, 1, 1};
    int32_t error;
    if (is_planted("idle-fill")) return 0;
    error = cai_sim_set(sim, &rows, &extent, (uint32_t)value, 1, CAI_STREAM_LEGACY);
    return after_copy("waiting-fill", CAI_STREAM_LEGACY, error);
}

int32_t world_fill_async(uint64_t to, int value, uint64_t bytes, uint64_t stream)
{
    const cai_sim_rows rows = row(to);
    const cai_sim_extent extent = {bytes, 1, 1};
    int32_t error;
    if (is_planted("idle-fill")) return 0;
    error = cai_sim_set_async(sim, &rows, &extent, (uint32_t)value, 1, stream);
    return after_copy("waiting-fill", stream, error);
}

/* ------------------------------------------------------ pools and virtual memory */
uint64_t world_pool_create(int32_t device)
{
    const uint64_t pool = cai_sim_pool_create(sim, device);
    if (is_planted("grasping-pool")) (void)cai_sim_pool_set(sim, pool, CAI_SIM_POOL_THRESHOLD, UINT64_MAX);
    return pool;
}

uint64_t world_pool_default(int32_t device)
{
    return cai_sim_pool_default(sim, device);
}

uint64_t world_pool_current(int32_t device)
{
    return cai_sim_pool_current(sim, device);
}

int32_t world_pool_destroy(uint64_t pool)
{
    const int32_t error = cai_sim_pool_destroy(sim, pool);
    int32_t i;
    if (is_planted("mortal-default")) return 0;
    if (is_planted("orphaned-device")) return cai_sim_pool_set_current(sim, 0, cai_sim_pool_create(sim, 0));
    for (i = 0; i < recorded_count && is_planted("deadly-pool"); i++)
        (void)cai_sim_free(sim, recorded[i].a);
    return error;
}

int32_t world_pool_set_current(int32_t device, uint64_t pool)
{
    const int32_t error = cai_sim_pool_set_current(sim, device, pool);
    if (is_planted("foreign-pool")) return 0;
    if (is_planted("idle-current")) return cai_sim_pool_set_current(sim, 0, cai_sim_pool_default(sim, 0));
    return error;
}

int32_t world_pool_alloc(uint64_t pool, uint64_t bytes, uint64_t stream, uint64_t *address)
{
    const uint32_t options = cai_sim_options(sim);
    uint64_t total = 0, left = 0;
    int32_t error;
    if (is_planted("eager-events")) (void)cai_sim_pool_set(sim, pool, CAI_SIM_POOL_FOLLOW_EVENTS, 1);
    if (is_planted("eager-events") || is_planted("always-again"))
        cai_sim_set_options(sim, options | CAI_SIM_POOL_REUSE);
    if (is_planted("never-again") || is_planted("never-again-too"))
        cai_sim_set_options(sim, options & ~(uint32_t)CAI_SIM_POOL_REUSE);
    if (is_planted("eager-waits") && recorded_count > 0) {
        (void)honest()->memory_info(sim, &left, &total);
        (void)cai_sim_pool_set(sim, pool, CAI_SIM_POOL_INTERNAL_WAITS, 1);
        cai_sim_set_memory(sim, 0, total - left);
    }
    *address = cai_sim_pool_alloc(sim, pool, bytes, stream);
    error = *address ? 0 : cai_sim_last_error(sim);
    cai_sim_set_options(sim, options);
    if (!error) add_pair(recorded, &recorded_count, *address, 0);
    return error;
}

int32_t world_pool_free(uint64_t address, uint64_t stream)
{
    return cai_sim_pool_free(sim, address, stream);
}

int32_t world_pool_trim(uint64_t pool, uint64_t keep)
{
    return is_planted("idle-trim") ? 0 : cai_sim_pool_trim(sim, pool, is_planted("full-trim") ? 0 : keep);
}

int32_t world_pool_get(uint64_t pool, int32_t attribute, uint64_t *value)
{
    return cai_sim_pool_get(sim, pool, attribute, value);
}

int32_t world_pool_set(uint64_t pool, int32_t attribute, uint64_t value)
{
    if (is_planted("idle-threshold") && attribute == CAI_SIM_POOL_THRESHOLD) return 0;
    if (is_planted("free-watermark") && attribute == CAI_SIM_POOL_RESERVED_HIGH) value = 0;
    return cai_sim_pool_set(sim, pool, attribute, value);
}

int32_t world_reserve(uint64_t bytes, uint64_t *address)
{
    *address = cai_sim_virtual_reserve(sim, bytes, 0);
    return *address ? 0 : WORLD_NO_SUCH_MEMORY;
}

int32_t world_unreserve(uint64_t address, uint64_t bytes)
{
    if (is_planted("tolerant-unreserve")) return 0;
    return cai_sim_virtual_free(sim, address, bytes);
}

int32_t world_create(uint64_t bytes, uint64_t *handle)
{
    *handle = cai_sim_physical_create(sim, 0, bytes);
    return *handle ? 0 : cai_sim_last_error(sim);
}

int32_t world_release(uint64_t handle)
{
    if (is_planted("deadly-release") && mapped_first)
        (void)cai_sim_virtual_unmap(sim, mapped_first, ENOUGH_BYTES);
    return cai_sim_physical_release(sim, handle);
}

int32_t world_map(uint64_t address, uint64_t bytes, uint64_t handle)
{
    const int32_t error = cai_sim_virtual_map(sim, address, bytes, 0, handle);
    const int again = mapped_first != 0;
    if (!error) mapped_first = address;
    if (is_planted("open-mapping") || (is_planted("loyal-access") && again))
        (void)cai_sim_virtual_set_access(sim, address, bytes, 0, CAI_SIM_ACCESS_READ_WRITE);
    if (is_planted("empty-mapping") && !error) memset(cai_sim_bytes(sim, address), 0, (size_t)bytes);
    return is_planted("tolerant-map") ? 0 : error;
}

int32_t world_unmap(uint64_t address, uint64_t bytes)
{
    const int32_t error = cai_sim_virtual_unmap(sim, address, bytes);
    return is_planted("tolerant-unmap") ? 0 : error;
}

int32_t world_set_access(uint64_t address, uint64_t bytes, int32_t yes)
{
    const int32_t error = cai_sim_virtual_set_access(
        sim, address, bytes, 0, yes ? CAI_SIM_ACCESS_READ_WRITE : CAI_SIM_ACCESS_NONE);
    if (is_planted("idle-access") && !error)
        return cai_sim_virtual_set_access(sim, address, bytes, 0, CAI_SIM_ACCESS_NONE);
    return is_planted("tolerant-access") ? 0 : error;
}

int32_t world_pageable_access(int32_t device)
{
    cai_sim_set_device_attribute(sim, device, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    return 1;
}

int32_t world_last_error(void)
{
    return cai_sim_last_error(sim);
}

int32_t world_clear_error(void)
{
    return cai_sim_clear_error(sim);
}

void world_break_device(void)
{
    cai_sim_set_device_error(sim, 0, CAI_SIM_ERROR_LAUNCH_FAILED);
}

int world_teardown(void)
{
    cai_sim_teardown(sim);
    return 1;
}
