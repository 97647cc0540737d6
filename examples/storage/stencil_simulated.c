/* stencil_simulated.c - the device of stencil.c where there is no GPU: the simulated CUDA of sim
 * SPDX-License-Identifier: MIT
 *
 * A kernel is a function of the host that says what it touches. It runs when something waits for it. At the
 * end the trace of all work, and of what the host did, is searched for races. */

#include "stencil.h"

#include "cai_check.h"

#include <stdio.h>
#include <string.h>

typedef struct kernel {
    cai_kernel_view out, in;
} kernel;

static cai_sim *sim;
static kernel kernels[STEPS]; /* each exists until its work has run */
static int32_t launched;

static void halo_kernel(void *argument)
{
    fill_halo(&((const kernel *)argument)->in);
}

static void diffuse_kernel(void *argument)
{
    const kernel *work = (const kernel *)argument;
    diffuse(&work->out, &work->in);
}

/* The bytes of a field, with its halo. */
static cai_sim_access bytes_of(const cai_kernel_view *field, int writes)
{
    const double *first = point(field, -HALO, -HALO, 0);
    const double *last = point(field, NI + HALO - 1, NJ + HALO - 1, NK - 1);
    const uint64_t address = (uint64_t)(uintptr_t)first, bytes = (uint64_t)(uintptr_t)(last + 1) - address;
    return writes ? cai_sim_writes(address, bytes) : cai_sim_reads(address, bytes);
}

int32_t stencil_launch(const stencil_device *device, cai_kernel_view out, cai_kernel_view in)
{
    kernel *work = &kernels[launched++ % STEPS];
    cai_sim_access access[2];
    int32_t error;
    work->out = out;
    work->in = in;
    access[0] = bytes_of(&in, 1);
    error = cai_sim_launch(sim, device->stream, "fill_halo", halo_kernel, work, access, 1);
    if (error) return error;
    access[0] = bytes_of(&in, 0);
    access[1] = bytes_of(&out, 1);
    return cai_sim_launch(sim, device->stream, "diffuse", diffuse_kernel, work, access, 2);
}

void stencil_host_works(const cai_kernel_view *field, int writes)
{
    const cai_sim_access access = bytes_of(field, writes);
    (void)cai_sim_host_access(sim, "the host", &access, 1);
}

int stencil_open(stencil_device *out)
{
    static const char name[] = "a simulated device", no_memory[] = "out of memory";
    sim = cai_sim_create(1);
    memcpy(out->name, sim ? name : no_memory, sim ? sizeof name : sizeof no_memory);
    if (!sim) return 0;
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    out->cuda = cai_sim_cuda(sim);
    out->home = cai_sim_stream_create(sim, 1);
    out->stream = cai_sim_stream_create(sim, 1);
    return 1;
}

/* Of all that a step needs, CUDA was asked for two copies: the initial data in, the result out. */
static int wrong_copies(void)
{
    const int copies = cai_sim_calls_of(sim, "copy_async") + cai_sim_calls_of(sim, "copy_3d_async");
    printf("copies: %d\n", copies);
    return copies != 2;
}

static int races(void)
{
    char text[CAI_CHECK_TEXT];
    cai_check_race first;
    const int count = cai_check_races(sim, &first, 1);
    printf("races: %d\n", count);
    if (!count) return 0;
    cai_check_race_text(sim, &first, text);
    printf("    %s\n", text);
    return 1;
}

int stencil_close(stencil_device *device)
{
    char text[400];
    int wrong = wrong_copies();
    wrong |= races();
    (void)cai_sim_stream_destroy(sim, device->home);
    (void)cai_sim_stream_destroy(sim, device->stream);
    if (cai_sim_leaks(sim, text, sizeof text) || cai_sim_errors(sim, text, sizeof text)) {
        printf("left over: %s\n", text);
        wrong = 1;
    }
    cai_sim_destroy(sim);
    return wrong;
}
