/* old.c - launches as before CUDA 4: a function keeps its block, its shared memory and its arguments
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { OLD_ARGUMENTS = 4096 };

/* What a function was told for its next launch. */
typedef struct old_launch {
    unsigned block[3], shared, bytes;
    unsigned char arguments[OLD_ARGUMENTS];
} old_launch;

static driver_map old_launches;

/* The one of a function, made at first use. */
static CUresult old_launch_of(CUfunction function, old_launch **launch)
{
    old_launch *before, *made;
    DRIVER_TRY(do_cuFuncLoad(function)); /* is it a function? */
    *launch = (old_launch *)driver_map_get(&old_launches, driver_number(function));
    if (*launch)
        return CUDA_SUCCESS;
    made = (old_launch *)calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    before = (old_launch *)driver_map_set(&old_launches, driver_number(function), made);
    free(before);
    *launch = made;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    old_launch *launch;
    DRIVER_NEED(x > 0 && y > 0 && z > 0);
    DRIVER_TRY(driver_need_context());
    DRIVER_TRY(old_launch_of(function, &launch));
    launch->block[0] = (unsigned)x;
    launch->block[1] = (unsigned)y;
    launch->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult do_cuFuncSetSharedSize(CUfunction function, unsigned int bytes)
{
    old_launch *launch;
    DRIVER_TRY(old_launch_of(function, &launch));
    launch->shared = bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuParamSetSize(CUfunction function, unsigned int bytes)
{
    old_launch *launch;
    DRIVER_NEED(bytes <= OLD_ARGUMENTS);
    DRIVER_TRY(old_launch_of(function, &launch));
    launch->bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult do_cuParamSetv(CUfunction function, int offset, void *bytes, unsigned int count)
{
    old_launch *launch;
    DRIVER_NEED(offset >= 0 && bytes && count <= OLD_ARGUMENTS && (unsigned)offset <= OLD_ARGUMENTS - count);
    DRIVER_TRY(old_launch_of(function, &launch));
    memcpy(launch->arguments + offset, bytes, count);
    return CUDA_SUCCESS;
}

CUresult do_cuParamSeti(CUfunction function, int offset, unsigned int value)
{
    return do_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult do_cuParamSetf(CUfunction function, int offset, float value)
{
    return do_cuParamSetv(function, offset, &value, sizeof value);
}

CUresult do_cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    old_launch *launch;
    size_t bytes;
    void *extra[5];
    DRIVER_NEED(width > 0 && height > 0);
    DRIVER_TRY(old_launch_of(function, &launch));
    bytes = launch->bytes;
    extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra[1] = launch->arguments;
    extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra[3] = &bytes;
    extra[4] = CU_LAUNCH_PARAM_END;
    return do_cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, launch->block[0],
                             launch->block[1], launch->block[2], launch->shared, stream, NULL, extra);
}

CUresult do_cuLaunchGrid(CUfunction function, int width, int height)
{
    return do_cuLaunchGridAsync(function, width, height, NULL);
}

CUresult do_cuLaunch(CUfunction function)
{
    return do_cuLaunchGridAsync(function, 1, 1, NULL);
}
