/* saxpy_device.h - what cai_saxpy.c needs of a device beside the table of cai_stream.h
 * SPDX-License-Identifier: MIT
 *
 * Any thread, with or without the GIL. saxpy_simulated.c has it for the simulated runtime; on a GPU the table
 * is that of cai_cuda_load, and the launch is one of a kernel. */
#ifndef SAXPY_DEVICE_H
#define SAXPY_DEVICE_H

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct saxpy_device saxpy_device;

/** NULL: there is none, or no memory. Close it last; what is queued runs before. */
saxpy_device *saxpy_device_open(void);
void saxpy_device_close(saxpy_device *device);

const cai_cuda *saxpy_device_cuda(const saxpy_device *device);

/** A stream that is not ordered with the default stream; 0: that failed. */
uint64_t saxpy_device_new_stream(saxpy_device *device);
void saxpy_device_drop_stream(saxpy_device *device, uint64_t stream);

/** Queues y = a x + b y, element by element, float32; y is not read where b is 0. The memory of both lives
 *  until it has run. */
cai_status saxpy_device_launch(saxpy_device *device, float a, const cai_array *x, float b, const cai_array *y,
                               uint64_t stream, cai_error *err);

/* For tests, where it is simulated: the calls of the table since the last time; how much is queued; runs all
 * of it, and says how much that was; what had to be destroyed and exists, or "". */
const char *saxpy_device_calls(saxpy_device *device);
int32_t saxpy_device_queued(saxpy_device *device);
int32_t saxpy_device_run(saxpy_device *device);
const char *saxpy_device_leaks(saxpy_device *device);

#ifdef __cplusplus
}
#endif

#endif
