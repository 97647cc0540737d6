/* saxpy.h - what saxpy.cu offers to the bindings
 * SPDX-License-Identifier: MIT */
#pragma once
#include "cai.hpp"

/* Queues z = a x + y on the stream. The arrays are float32, of one shape, in any layout. Throws cai::error. */
void queue_saxpy(float a, const cai_array &x, const cai_array &y, const cai_array &z, uint64_t stream);
