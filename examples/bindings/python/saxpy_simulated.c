/* saxpy_simulated.c - the device of cai_saxpy.c where there is no GPU: the runtime of sim
 * SPDX-License-Identifier: MIT
 *
 * Device memory is host memory here. A kernel is a function that runs when its stream gets to it. The
 * simulation is compiled into this unit, so that the module is made of two files however it is built. */

#include "cai_sim.c"

#include "saxpy_device.h"

#include <stdio.h>

struct saxpy_device {
    cai_sim *sim;
    char calls[8192];
};

typedef struct kernel {
    cai_kernel_view x, y;
    int64_t size;
    float a, b;
} kernel;

static void run_kernel(void *argument)
{
    kernel *k = (kernel *)argument;
    int64_t i;
    for (i = 0; i < k->size; ++i) {
        float *y = (float *)cai_kernel_element(&k->y, i);
        const float ax = k->a * *(const float *)cai_kernel_element(&k->x, i);
        *y = k->b < 0 || k->b > 0 ? ax + k->b * *y : ax;
    }
    free(k);
}

cai_status saxpy_device_launch(saxpy_device *device, float a, const cai_array *x, float b, const cai_array *y,
                               uint64_t stream, cai_error *err)
{
    kernel views, *k;
    cai_kernel_view accessed[2]; /* y, which is written, and x */
    int32_t error = CAI_SIM_ERROR_OUT_OF_MEMORY;
    CAI_TRY(cai_kernel_view_of(x, &views.x, err));
    CAI_TRY(cai_kernel_view_of(y, &views.y, err));
    if (!y->size) return CAI_OK;
    views.size = y->size;
    views.a = a;
    views.b = b;
    accessed[0] = views.y;
    accessed[1] = views.x;
    k = (kernel *)malloc(sizeof *k);
    if (k) {
        *k = views;
        error = cai_sim_launch_views(device->sim, stream, "saxpy", run_kernel, k, accessed, 2, 1);
        if (error) free(k);
    }
    return cai_cuda_status(error, "saxpy", err);
}

saxpy_device *saxpy_device_open(void)
{
    saxpy_device *device = (saxpy_device *)calloc(1, sizeof *device);
    if (!device) return NULL;
    device->sim = cai_sim_create(1);
    if (device->sim) return device;
    free(device);
    return NULL;
}

void saxpy_device_close(saxpy_device *device)
{
    if (!device) return;
    (void)cai_sim_run(device->sim);
    cai_sim_destroy(device->sim);
    free(device);
}

const cai_cuda *saxpy_device_cuda(const saxpy_device *device)
{
    return cai_sim_cuda(device->sim);
}

uint64_t saxpy_device_new_stream(saxpy_device *device)
{
    return cai_sim_stream_create(device->sim, 1);
}

void saxpy_device_drop_stream(saxpy_device *device, uint64_t stream)
{
    (void)cai_sim_stream_destroy(device->sim, stream);
}

const char *saxpy_device_calls(saxpy_device *device)
{
    (void)snprintf(device->calls, sizeof device->calls, "%s", cai_sim_log(device->sim));
    cai_sim_log_clear(device->sim);
    return device->calls;
}

int32_t saxpy_device_queued(saxpy_device *device)
{
    return cai_sim_pending(device->sim);
}

int32_t saxpy_device_run(saxpy_device *device)
{
    return cai_sim_run(device->sim);
}

const char *saxpy_device_leaks(saxpy_device *device)
{
    (void)cai_sim_leaks(device->sim, device->calls, sizeof device->calls);
    return device->calls;
}
