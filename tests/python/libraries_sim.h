/* libraries_sim.h - libraries_gpu.h on the simulated runtime, for those of the tests that need no library
 * SPDX-License-Identifier: MIT
 *
 * What is queued runs when somebody waits for it: so all of it is late, and a spin is not needed. */
#ifndef LIBRARIES_GPU_H
#define LIBRARIES_GPU_H

#include "cai_sim.c"

enum { GPU_NOT_READY = 600 };

/* As much of cai_cuda_driver as is used. */
typedef struct gpu {
    struct {
        cai_cuda cuda;
    } driver;
    char why[512];
    cai_sim *sim;
} gpu;

typedef struct gpu_floats {
    uint64_t data;
    int64_t stride;
} gpu_floats;

typedef struct gpu_job {
    float a;
    int64_t n;
    gpu_floats x, y, r;
} gpu_job;

static int gpu_open(gpu *g)
{
    if (g->sim) return 0;
    g->sim = cai_sim_create(1);
    if (!g->sim) {
        (void)snprintf(g->why, sizeof g->why, "no memory for the simulation");
        return -1;
    }
    g->driver.cuda = *cai_sim_cuda(g->sim);
    (void)cai_sim_primary_retain(g->sim, 0); /* as libraries_gpu.h does */
    return 0;
}

static int32_t gpu_enter(gpu *g)
{
    return g->driver.cuda.context_push(g->driver.cuda.self, cai_sim_primary(g->sim, 0));
}

static void gpu_leave(gpu *g)
{
    (void)g->driver.cuda.context_pop(g->driver.cuda.self);
}

static float *gpu_at(gpu_floats floats, int64_t i)
{
    return (float *)(uintptr_t)(floats.data + (uint64_t)(i * floats.stride));
}

static void gpu_compute(void *argument)
{
    gpu_job *j = (gpu_job *)argument;
    int64_t i;
    for (i = 0; i < j->n; ++i) *gpu_at(j->r, i) = j->a * *gpu_at(j->x, i) + *gpu_at(j->y, i);
    free(j);
}

static cai_sim_access gpu_access(gpu_floats floats, int64_t n, int32_t write)
{
    const uint64_t bytes = (uint64_t)((n - 1) * floats.stride) + sizeof(float); /* never negative here */
    cai_sim_access access = cai_sim_reads(floats.data, bytes);
    access.write = write;
    return access;
}

static int32_t gpu_run_saxpy(gpu *g, float a, int64_t n, gpu_floats x, gpu_floats y, gpu_floats r,
                             uint64_t stream)
{
    cai_sim_access accesses[3];
    gpu_job *j = n > 0 ? (gpu_job *)malloc(sizeof *j) : NULL;
    int32_t code;
    if (n <= 0) return 0;
    if (!j) return 2;
    j->a = a;
    j->n = n;
    j->x = x;
    j->y = y;
    j->r = r;
    accesses[0] = gpu_access(x, n, 0);
    accesses[1] = gpu_access(y, n, 0);
    accesses[2] = gpu_access(r, n, 1);
    code = cai_sim_launch(g->sim, stream, "saxpy", gpu_compute, j, accesses, 3);
    if (code) free(j);
    return code;
}

static void gpu_nothing(void *argument)
{
    (void)argument;
}

static int32_t gpu_run_spin(gpu *g, uint64_t nanoseconds, uint64_t stream)
{
    return nanoseconds ? cai_sim_launch(g->sim, stream, "spin", gpu_nothing, NULL, NULL, 0) : 0;
}

static int gpu_computes(const gpu *g)
{
    (void)g;
    return 1;
}

static int32_t gpu_new_stream(gpu *g, uint64_t *stream)
{
    *stream = cai_sim_stream_create(g->sim, 1);
    return *stream ? 0 : 2;
}

static void gpu_drop_stream(gpu *g, uint64_t stream)
{
    (void)cai_sim_stream_destroy(g->sim, stream);
}

/* All that is queued runs. */
static void gpu_pass_time(gpu *g)
{
    (void)cai_sim_run(g->sim);
}

static int32_t gpu_query(gpu *g, uint64_t stream)
{
    cai_sim_operation one;
    uint64_t id = cai_sim_operation_count(g->sim), wanted;
    int32_t code = g->driver.cuda.stream_id(g->driver.cuda.self, stream, &wanted);
    for (; !code && id; --id)
        if (cai_sim_operation_get(g->sim, id, &one) && one.stream == wanted &&
            one.state == CAI_SIM_STATE_QUEUED)
            code = GPU_NOT_READY;
    return code;
}

static int32_t gpu_to_host(gpu *g, void *to, uint64_t from, size_t bytes, uint64_t stream)
{
    const int32_t code = cai_sim_stream_synchronize(g->sim, stream);
    if (!code) memcpy(to, (const void *)(uintptr_t)from, bytes);
    return code;
}

static int32_t gpu_to_device(gpu *g, uint64_t to, const void *from, size_t bytes, uint64_t stream)
{
    const int32_t code = cai_sim_stream_synchronize(g->sim, stream);
    if (!code) memcpy((void *)(uintptr_t)to, from, bytes);
    return code;
}

#endif
