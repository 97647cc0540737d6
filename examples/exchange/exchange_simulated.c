/* exchange_simulated.c - the device of exchange.c where there is no GPU: the runtime of sim
 * SPDX-License-Identifier: MIT
 *
 * A kernel is a function of the host that says what it touches. It runs when its stream gets to it: of all
 * work that may run, the newest first, so that a wait that is missing shows. */

#include "exchange_device.h"

#include "cai_sim.h"

#include <stdio.h>
#include <string.h>

typedef struct kernel {
    cai_kernel_view y, x;
    int64_t size;
    float a, b;
} kernel;

static cai_sim *sim;
static kernel kernels[16];
static uint64_t streams[2], told; /* told: up to this operation */
static int32_t kernel_count, stream_count, newest_first;

static void ramp_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i) *(float *)cai_kernel_element(&k->y, i) = (float)i;
}

static void scale_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i)
        *(float *)cai_kernel_element(&k->y, i) = k->a * *(float *)cai_kernel_element(&k->x, i) + k->b;
}

static kernel *new_kernel(const cai_kernel_view *y, const cai_kernel_view *x, int64_t size)
{
    kernel *k = &kernels[kernel_count++ % 16];
    k->y = *y;
    k->x = *x;
    k->size = size;
    return k;
}

static int32_t launch(const char *name, cai_sim_function function, kernel *k, uint64_t stream)
{
    const cai_kernel_view views[2] = {k->y, k->x};
    return cai_sim_launch_views(sim, stream, name, function, k, views, k->x.data == k->y.data ? 1 : 2, 1);
}

static int32_t ramp(float *x, int64_t size, uint64_t stream)
{
    cai_kernel_view view;
    memset(&view, 0, sizeof view);
    view.data = (char *)x;
    view.ndim = 1;
    view.itemsize = (int32_t)sizeof *x;
    view.shape[0] = size;
    view.strides[0] = (int64_t)sizeof *x;
    return launch("ramp", ramp_kernel, new_kernel(&view, &view, size), stream);
}

static int32_t scale(cai_kernel_view y, cai_kernel_view x, int64_t size, float a, float b, uint64_t stream)
{
    kernel *k = new_kernel(&y, &x, size);
    k->a = a;
    k->b = b;
    return launch("scale", scale_kernel, k, stream);
}

static int32_t read_back(float *to, const float *from, int64_t size, uint64_t stream)
{
    uint64_t ready[16];
    int32_t count, error;
    while ((count = cai_sim_ready(sim, ready, 16)) > 0)
        cai_sim_run_operation(sim, newest_first ? ready[count - 1] : ready[0]);
    error = cai_sim_stream_synchronize(sim, stream);
    memcpy(to, from, (size_t)size * sizeof *to);
    return error;
}

static uint64_t new_stream(void)
{
    streams[stream_count] = cai_sim_stream_create(sim, 1);
    return streams[stream_count++];
}

/* The function of CUDA that an operation comes from, or the kernel. */
static const char *function_of(const cai_sim_operation *op)
{
    switch (op->kind) {
    case CAI_SIM_OP_ALLOC: return "cudaMallocFromPoolAsync";
    case CAI_SIM_OP_FREE: return "cudaFreeAsync";
    case CAI_SIM_OP_RECORD: return "cudaEventRecord";
    case CAI_SIM_OP_WAIT: return "cudaStreamWaitEvent";
    case CAI_SIM_OP_SYNCHRONIZE: return "cudaStreamSynchronize";
    default: return op->name;
    }
}

/* "e1", "m1", or "reads m1, writes m2". */
static void tell_objects(const cai_sim_operation *op, char *text, size_t room)
{
    const int launched = op->kind == CAI_SIM_OP_LAUNCH;
    size_t used = 0;
    int32_t i;
    text[0] = 0;
    if (op->event_number) snprintf(text, room, "e%d", (int)op->event_number);
    for (i = op->access_count - 1; i >= 0 && used < room; --i) { /* what it reads first */
        const cai_sim_access *access = &op->accesses[i];
        const char *verb = !launched ? "" : access->write ? "writes " : "reads ";
        used += (size_t)snprintf(text + used, room - used, "%s%sm%d", used ? ", " : "", verb,
                                 (int)access->memory);
    }
}

const char *exchange_operations(uint64_t *seen)
{
    static char text[4096];
    size_t used = 0;
    cai_sim_operation op;
    text[0] = 0;
    while (cai_sim_operation_get(sim, *seen + 1, &op) && sizeof text - used > 128) {
        char stream[64], objects[64];
        ++*seen;
        if (op.stream) cai_sim_stream_name(sim, op.stream, stream, sizeof stream);
        else memcpy(stream, "host", sizeof "host");
        tell_objects(&op, objects, sizeof objects);
        used += (size_t)snprintf(text + used, sizeof text - used, "    %2d  %-4s  %-*s%s\n", (int)op.id, stream,
                                 *objects ? 25 : 0, function_of(&op), objects);
    }
    return text;
}

static const char *calls(void)
{
    return exchange_operations(&told);
}

static int32_t close_device(void)
{
    int32_t leaks;
    while (stream_count) (void)cai_sim_stream_destroy(sim, streams[--stream_count]);
    leaks = cai_sim_leaks(sim, NULL, 0);
    cai_sim_destroy(sim);
    return leaks;
}

cai_sim *exchange_simulation(int32_t newest)
{
    newest_first = newest;
    return sim;
}

int exchange_simulated(exchange_device *out)
{
    sim = cai_sim_create(1);
    if (!sim) return 0;
    memset(out, 0, sizeof *out);
    memcpy(out->name, "the simulated runtime", sizeof "the simulated runtime");
    newest_first = 1;
    told = 0;
    out->simulated = 1;
    out->cuda = cai_sim_cuda(sim);
    out->new_stream = new_stream;
    out->ramp = ramp;
    out->scale = scale;
    out->read = read_back;
    out->calls = calls;
    out->close = close_device;
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    return 1;
}
