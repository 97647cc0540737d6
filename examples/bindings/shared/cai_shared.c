/* libcai - cai.h as a shared library, for languages that load one: see cai_ctypes.py
 * SPDX-License-Identifier: MIT */

#define CAI_SHARED
#define CAI_BUILD
#define CAI_IMPLEMENTATION
#include "cai.h"
