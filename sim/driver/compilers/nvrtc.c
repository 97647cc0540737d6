/* nvrtc.c - a stand-in of libnvrtc.so: NVRTC has the PTX of each program beside its machine code
 * SPDX-License-Identifier: MIT */
#include "forward.h"

enum { NVRTC_INTERNAL = 11 };

/* Names of later versions are not here: who asks for one is told that there is none. */
#define NVRTC_PLAIN(X)                                                                                             \
    X(nvrtcVersion) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs) X(nvrtcCreateProgram)                   \
    X(nvrtcDestroyProgram) X(nvrtcCompileProgram) X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetCUBINSize)           \
    X(nvrtcGetNVVMSize) X(nvrtcGetNVVM) X(nvrtcGetLTOIRSize) X(nvrtcGetLTOIR) X(nvrtcGetOptiXIRSize)               \
    X(nvrtcGetOptiXIR) X(nvrtcGetTileIRSize) X(nvrtcGetTileIR) X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog)     \
    X(nvrtcAddNameExpression) X(nvrtcGetLoweredName) X(nvrtcGetPCHHeapSize) X(nvrtcSetPCHHeapSize)                 \
    X(nvrtcGetPCHCreateStatus) X(nvrtcGetPCHHeapSizeRequired) X(nvrtcSetFlowCallback)
#define NVRTC_FORWARD(name) FORWARD(name, NVRTC_INTERNAL)
NVRTC_PLAIN(NVRTC_FORWARD)
FORWARD(nvrtcGetErrorString, "NVRTC is not installed")

FORWARD_EXPORT int nvrtcGetCUBIN(void *program, char *cubin);

static uintptr_t nvrtc_number(const void *pointer)
{
    return (uintptr_t)pointer;
}

static void nvrtc_explain(void *program, const char *cubin)
{
    size_t bytes = 0, ptx_bytes = 0;
    char *ptx;
    if (nvrtcGetCUBINSize(nvrtc_number(program), nvrtc_number(&bytes), 0, 0, 0, 0, 0, 0) || !bytes)
        return;
    if (nvrtcGetPTXSize(nvrtc_number(program), nvrtc_number(&ptx_bytes), 0, 0, 0, 0, 0, 0) || ptx_bytes < 2)
        return;
    ptx = (char *)malloc(ptx_bytes);
    if (ptx && !nvrtcGetPTX(nvrtc_number(program), nvrtc_number(ptx), 0, 0, 0, 0, 0, 0))
        forward_source(cubin, bytes, ptx, ptx_bytes);
    free(ptx);
}

int nvrtcGetCUBIN(void *program, char *cubin)
{
    static forward_function kept;
    int result = (int)forward_call(&kept, "nvrtcGetCUBIN", NVRTC_INTERNAL, nvrtc_number(program), nvrtc_number(cubin),
                                   0, 0, 0, 0, 0, 0);
    if (!result)
        nvrtc_explain(program, cubin);
    return result;
}
