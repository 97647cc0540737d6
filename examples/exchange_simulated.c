/* exchange_simulated.c - the device of exchange.c where there is no GPU: the runtime of tests/sim
 * SPDX-License-Identifier: MIT
 *
 * A kernel is a function of the host that says what it touches. It runs when its stream gets to it: of all
 * work that may run, the newest first, so that a wait that is missing shows. */

#include "exchange_device.h"

#include "cai_sim.h"

#include <string.h>

typedef struct kernel {
    cai_kernel_view x;
    int64_t size;
    float a;
} kernel;

static cai_sim *sim;
static kernel kernels[16];
static int32_t kernel_count;

static void ramp_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i) *(float *)cai_kernel_element(&k->x, i) = (float)i;
}

static void scale_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i) *(float *)cai_kernel_element(&k->x, i) *= k->a;
}

static void increment_kernel(void *argument)
{
    const kernel *k = (const kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i) *(float *)cai_kernel_element(&k->x, i) += 1;
}

static int32_t launch(const char *name, cai_sim_function function, const cai_kernel_view *x, int64_t size, float a,
                      uint64_t stream)
{
    const cai_sim_access access =
        cai_sim_writes((uint64_t)(uintptr_t)x->data, (uint64_t)size * (uint64_t)sizeof(float));
    kernel *k = &kernels[kernel_count++ % 16];
    k->x = *x;
    k->size = size;
    k->a = a;
    return cai_sim_launch(sim, stream, name, function, k, &access, 1);
}

static cai_kernel_view line(float *x, int64_t size)
{
    cai_kernel_view view;
    memset(&view, 0, sizeof view);
    view.data = (char *)x;
    view.ndim = 1;
    view.itemsize = (int32_t)sizeof *x;
    view.shape[0] = size;
    view.strides[0] = (int64_t)sizeof *x;
    return view;
}

static int32_t ramp(float *x, int64_t size, uint64_t stream)
{
    const cai_kernel_view view = line(x, size);
    return launch("ramp", ramp_kernel, &view, size, 0, stream);
}

static int32_t scale(cai_kernel_view x, int64_t size, float a, uint64_t stream)
{
    return launch("scale", scale_kernel, &x, size, a, stream);
}

static int32_t increment(float *x, int64_t size, uint64_t stream)
{
    const cai_kernel_view view = line(x, size);
    return launch("increment", increment_kernel, &view, size, 1, stream);
}

static int32_t read_back(float *to, const float *from, int64_t size, uint64_t stream)
{
    uint64_t ready[16];
    int32_t count, error;
    while ((count = cai_sim_ready(sim, ready, 16)) > 0) cai_sim_run_operation(sim, ready[count - 1]);
    error = cai_sim_stream_synchronize(sim, stream);
    memcpy(to, from, (size_t)size * sizeof *to);
    return error;
}

static uint64_t new_stream(void)
{
    return cai_sim_stream_create(sim, 1);
}

static void *allocate(size_t bytes)
{
    return cai_sim_bytes(sim, cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, bytes));
}

static int32_t deallocate(void *memory)
{
    const int32_t error = cai_sim_free(sim, (uint64_t)(uintptr_t)memory);
    cai_sim_destroy(sim);
    return error;
}

/* The log of the simulation, indented. */
static const char *calls(void)
{
    static char text[4096];
    const char *log = cai_sim_log(sim);
    size_t n = 0;
    int32_t start = 1;
    for (; *log && n + 6 < sizeof text; ++log) {
        if (start) {
            memcpy(text + n, "    ", 4);
            n += 4;
        }
        text[n++] = *log;
        start = *log == '\n';
    }
    text[n] = 0;
    cai_sim_log_clear(sim);
    return text;
}

int exchange_simulated(exchange_device *out)
{
    sim = cai_sim_create(1);
    if (!sim) return 0;
    memset(out, 0, sizeof *out);
    memcpy(out->name, "the simulated runtime", sizeof "the simulated runtime");
    out->cuda = cai_sim_cuda(sim);
    out->new_stream = new_stream;
    out->allocate = allocate;
    out->deallocate = deallocate;
    out->ramp = ramp;
    out->scale = scale;
    out->increment = increment;
    out->read = read_back;
    out->calls = calls;
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    return 1;
}
