/* example_kernels.c - the kernels of examples/array/saxpy.cu, examples/exchange/exchange_gpu.cu,
 * examples/storage/stencil.cu and examples/transfer/pack.cu, for the host
 * SPDX-License-Identifier: MIT
 *
 * The simulated driver runs no kernel. With LD_PRELOAD of this library it calls these functions in their place. */
#define CAI_IMPLEMENTATION
#define CAI_STATIC
#include "cai.h"

#include "cai_driver.h"
#include "examples/storage/stencil.h"
#include "examples/transfer/pack.h"

#define ARGUMENT(launch, type, index) (*(const type *)(launch)->arguments[index])

static float *element(const cai_kernel_view *view, int64_t i)
{
    return (float *)cai_kernel_element(view, i);
}

static void saxpy(const cai_driver_launch *launch)
{
    const float a = ARGUMENT(launch, float, 0);
    const cai_kernel_view x = ARGUMENT(launch, cai_kernel_view, 1), y = ARGUMENT(launch, cai_kernel_view, 2);
    int64_t i;
    for (i = 0; i < ARGUMENT(launch, int64_t, 3); ++i)
        *element(&y, i) += a * *element(&x, i);
}

static void ramp(const cai_driver_launch *launch)
{
    float *x = *(float *const *)launch->arguments[0];
    int64_t i;
    for (i = 0; i < ARGUMENT(launch, int64_t, 1); ++i)
        x[i] = (float)i;
}

static void scale(const cai_driver_launch *launch)
{
    const cai_kernel_view y = ARGUMENT(launch, cai_kernel_view, 0), x = ARGUMENT(launch, cai_kernel_view, 1);
    const float a = ARGUMENT(launch, float, 3), b = ARGUMENT(launch, float, 4);
    int64_t i;
    for (i = 0; i < ARGUMENT(launch, int64_t, 2); ++i)
        *element(&y, i) = a * *element(&x, i) + b;
}

static void halo(const cai_driver_launch *launch)
{
    const cai_kernel_view in = ARGUMENT(launch, cai_kernel_view, 0);
    fill_halo(&in);
}

static void diffusion(const cai_driver_launch *launch)
{
    const cai_kernel_view out = ARGUMENT(launch, cai_kernel_view, 0), in = ARGUMENT(launch, cai_kernel_view, 1);
    diffuse(&out, &in);
}

static void pack(const cai_driver_launch *launch)
{
    const cai_transfer *plan = (const cai_transfer *)launch->arguments[0];
    int64_t i;
    for (i = 0; i < ARGUMENT(launch, int64_t, 2); ++i) pack_one(plan, ARGUMENT(launch, int32_t, 1), i);
}

__attribute__((constructor)) static void example_kernels(void)
{
    static const uint32_t of_saxpy[] = {4, sizeof(cai_kernel_view), sizeof(cai_kernel_view), 8};
    static const uint32_t of_ramp[] = {8, 8, 8};
    static const uint32_t of_scale[] = {sizeof(cai_kernel_view), sizeof(cai_kernel_view), 8, 4, 4};
    static const uint32_t of_stencil[] = {sizeof(cai_kernel_view), sizeof(cai_kernel_view)};
    static const uint32_t of_pack[] = {sizeof(cai_transfer), 4, 8};
    (void)cai_driver_replace_kernel("saxpy_kernel", of_saxpy, 4, saxpy, NULL);
    (void)cai_driver_replace_kernel("ramp_kernel", of_ramp, 3, ramp, NULL);
    (void)cai_driver_replace_kernel("scale_kernel", of_scale, 5, scale, NULL);
    (void)cai_driver_replace_kernel("halo_kernel", of_stencil, 1, halo, NULL);
    (void)cai_driver_replace_kernel("diffuse_kernel", of_stencil, 2, diffusion, NULL);
    (void)cai_driver_replace_kernel("pack_kernel", of_pack, 3, pack, NULL);
}
