/* ordered.h - what the tests of ordered exports are compiled with: cai_dlpack.h over the simulation and its checker
 * SPDX-License-Identifier: MIT */
#ifndef ORDERED_H_INCLUDED
#define ORDERED_H_INCLUDED

#if defined(CAI_TESTS_LINKED)
#define CAI_DLPACK_IMPLEMENTATION
#else
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"

#include "cai_dlpack.h"

#if defined(CAI_SIM_LINKED)
#include "cai_check.h"
#else
#include "sim/cai_sim.c"

#include "sim/cai_check.c"
#endif

#endif
