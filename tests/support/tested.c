/* tested.c - the implementation of the headers, once, for all tests in C
 * SPDX-License-Identifier: MIT
 *
 * A test that is compiled with CAI_TESTS_LINKED leaves it out and is linked with this. CAI_SIM_LINKED does the
 * same for the simulation. Without these two each test is a whole program; lists of planted defects and the
 * coverage compile it so. cai_dlpack.h is not here: its tests take different dlpack.h. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_access.h"
#include "cai_array_struct.h"
#include "cai_ipc.h"
#include "cai_layout.h"
#include "cai_move.h"
#include "cai_place.h"
#include "cai_scaled.h"
#include "cai_small_view.h"
#include "cai_storage.h"
#include "cai_tensor_map.h"
#include "cai_transfer.h"
