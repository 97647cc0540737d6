// must.h - the end of a benchmark whose call fails. SPDX-License-Identifier: MIT
#pragma once

#include "cai.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

static void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return;
    std::printf("%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

static void must(cai_status status, const cai_error &err)
{
    if (status == CAI_OK) return;
    std::printf("%s\n", err.message);
    std::exit(1);
}
