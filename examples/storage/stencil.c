/* stencil.c - the diffusion of a weather code on fields that have a buffer on the host and one on the device
 * SPDX-License-Identifier: MIT
 *
 * Two fields, in and out, change places after each step. The program says where it works and what it does
 * there. It never calls for a copy. It runs once with its steps on the host, and once with its steps on the
 * device. Both times the host writes the initial data and reads the result. A plain loop over an array of C
 * verifies both.
 *
 * The device is a simulated one (stencil_simulated.c) or a GPU (stencil.cu):
 *
 *     cc -I. -Iext -Isim -pthread examples/storage/stencil.c examples/storage/stencil_plain.c \
 *        examples/storage/stencil_simulated.c sim/cai_sim.c sim/cai_check.c
 *     nvcc -I. -Iext examples/storage/stencil.c examples/storage/stencil_plain.c examples/storage/stencil.cu
 *
 * Exit status 0: all results are the same, bit for bit; 1: they are not, or an error; 77: there is no GPU. */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* stencil.cu has the table */
#define CAI_NO_LOADER
#include "cai_storage.h"

#include "stencil.h"

#include <stdio.h>
#include <string.h>

static stencil_device device;

/* ------------------------------------------------------------------ fields */

/* A field of float64 over I, J and K. I is contiguous, and the first point of the domain in each row is at a
 * multiple of 256 bytes. */
static cai_status new_field(cai_storage *field, const cai_storage_options *options, cai_error *err)
{
    cai_layout layout;
    cai_dtype dtype;
    memset(&layout, 0, sizeof layout);
    CAI_TRY(cai_dtype_of(CAI_FLOAT64, &dtype, err));
    CAI_TRY(cai_layout_preset(&layout, "gtcuda", "IJK", err));
    layout.alignment = 256;
    layout.shape[0] = NI + 2 * HALO;
    layout.shape[1] = NJ + 2 * HALO;
    layout.shape[2] = NK;
    layout.halo_low[0] = layout.halo_high[0] = layout.halo_low[1] = layout.halo_high[1] = HALO;
    return cai_storage_init(field, options, &dtype, &layout, err);
}

/* What a loop or a kernel works on: the domain. Its halo has the indices outside of it. */
static cai_status view_of(const cai_storage_access *access, cai_kernel_view *view, cai_error *err)
{
    const cai_layout *layout = &access->storage->layout;
    cai_array domain;
    CAI_TRY(cai_view_domain(&access->array, layout->halo_low, layout->halo_high, &domain, err));
    CAI_TRY(cai_kernel_view_of(&domain, view, err));
    if (access->side == CAI_SIDE_HOST) stencil_host_works(view, access->mode != CAI_READ);
    return CAI_OK;
}

static cai_status write_values(cai_storage *field, stencil_grid values, cai_error *err)
{
    cai_storage_access access;
    cai_kernel_view view;
    cai_status status;
    int i, j, k;
    CAI_TRY(cai_storage_begin(&access, field, CAI_SIDE_HOST, CAI_OVERWRITE, 0, err));
    status = view_of(&access, &view, err);
    for (k = 0; k < NK && !status; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i) *point(&view, i, j, k) = values[k][j][i];
    return cai_storage_end(&access, status, err);
}

static cai_status read_values(cai_storage *field, stencil_grid values, cai_error *err)
{
    cai_storage_access access;
    cai_kernel_view view;
    cai_status status;
    int i, j, k;
    CAI_TRY(cai_storage_begin(&access, field, CAI_SIDE_HOST, CAI_READ, 0, err));
    status = view_of(&access, &view, err);
    for (k = 0; k < NK && !status; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i) values[k][j][i] = *point(&view, i, j, k);
    return cai_storage_end(&access, status, err);
}

/* ------------------------------------------------------------------ steps */

static cai_status work(const cai_storage_access *out, const cai_storage_access *in, cai_error *err)
{
    cai_kernel_view to, from;
    CAI_TRY(view_of(out, &to, err));
    CAI_TRY(view_of(in, &from, err));
    if (in->side == CAI_SIDE_DEVICE)
        return cai_cuda_status(stencil_launch(&device, to, from), "launch", err);
    fill_halo(&from);
    diffuse(&to, &from);
    return CAI_OK;
}

/* `in` is written, too: its halo. The domain of `out` is overwritten. Its halo does not matter, because the
 * next step fills it. So nothing of `out` is copied to the side of the step. */
static cai_status step(cai_storage *out, cai_storage *in, int32_t side, cai_error *err)
{
    const uint64_t stream = side == CAI_SIDE_DEVICE ? device.stream : 0;
    cai_storage_access a, b;
    cai_status status;
    CAI_TRY(cai_storage_begin(&a, in, side, CAI_WRITE, stream, err));
    status = cai_storage_begin(&b, out, side, CAI_OVERWRITE, stream, err);
    if (!status) status = cai_storage_end(&b, work(&b, &a, err), err);
    return cai_storage_end(&a, status, err);
}

/* All steps on one side. `values` are the initial data, then the result. */
static cai_status run(const cai_storage_options *options, int32_t side, stencil_grid values, cai_error *err)
{
    cai_storage field[2];
    int n;
    CAI_TRY(new_field(&field[0], options, err));
    CAI_TRY(new_field(&field[1], options, err));
    CAI_TRY(write_values(&field[0], values, err));
    for (n = 0; n < STEPS; ++n) CAI_TRY(step(&field[(n + 1) % 2], &field[n % 2], side, err));
    CAI_TRY(read_values(&field[STEPS % 2], values, err));
    CAI_TRY(cai_storage_release(&field[0], err));
    return cai_storage_release(&field[1], err);
}

static cai_status run_both(stencil_grid on_host, stencil_grid on_device, cai_error *err)
{
    cai_storage_options options;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    CAI_TRY(cai_event_pool_init(&pool, device.cuda, NULL, 0, 0, err));
    CAI_TRY(cai_emm_hooks_cuda(&hooks, device.cuda, err));
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = device.home;
    options.kind = CAI_STORAGE_BOTH;
    CAI_TRY(run(&options, CAI_SIDE_HOST, on_host, err));
    CAI_TRY(run(&options, CAI_SIDE_DEVICE, on_device, err));
    return cai_event_pool_destroy(&pool, err);
}

/* ------------------------------------------------------------------ the program */

static void initial(stencil_grid values)
{
    int i, j, k;
    for (k = 0; k < NK; ++k)
        for (j = 0; j < NJ; ++j)
            for (i = 0; i < NI; ++i) values[k][j][i] = (7 * i * i + 5 * j * k + 11 * j + i * k) % 64;
}

static int compare(const char *what, const void *a, const void *b)
{
    const int differ = memcmp(a, b, sizeof(stencil_grid)) != 0;
    printf("%s: %s\n", what, differ ? "different" : "identical");
    return differ;
}

int main(void)
{
    static stencil_grid on_host, on_device, plain;
    cai_error err;
    int wrong;
    if (!stencil_open(&device)) {
        printf("skipped: %s\n", device.name);
        return 77;
    }
    printf("%d x %d x %d points, halo %d, %d steps on the host and on %s\n", NI, NJ, NK, HALO, STEPS,
           device.name);
    initial(on_host);
    initial(on_device);
    initial(plain);
    stencil_plain(plain);
    if (run_both(on_host, on_device, &err)) {
        printf("%s: %s\n", cai_status_name(err.code), err.message);
        return 1;
    }
    wrong = compare("host and device", on_host, on_device);
    wrong |= compare("plain loop", plain, on_host);
    return stencil_close(&device) || wrong;
}
