/* libcai - the three core headers as a shared library, for languages that load one: docs/ffi.md
 * SPDX-License-Identifier: MIT
 *
 *     cc -O2 -shared -fPIC -I. examples/bindings/shared/cai_shared.c -o libcai.so -pthread -ldl
 *
 * CUDA is loaded at run time by cai_cuda_load, so the library starts without it. */

#define CAI_SHARED
#define CAI_BUILD
#define CAI_NO_CUDART
#define CAI_IMPLEMENTATION
#include "cai_emm.h"
