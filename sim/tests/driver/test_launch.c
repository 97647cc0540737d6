/* test_launch.c - what launches access on the simulated libcuda.so.1, from PTX and from the arguments
 * SPDX-License-Identifier: MIT */
#include <cuda.h>
#include <string.h>

#include "cai_check.h"
#include "cai_driver.h"
#include "cai_sim.h"
#include "cai_test.h"
#include "recorded.h"

enum { BYTES = 1024 };

/* read: *x is read and *y written. pair: a struct by value, whose second pointer is read. late: the pointer gets out
 * of sight. idle: nothing. */
static const char image[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .const .align 4 .b8 factors[12];\n"
    ".visible .global .align 8 .b8 table[64] = {1, 2};\n"
    ".visible .entry copy(.param .u64 .ptr .global .align 4 x, .param .u32 n, .param .u64 y)\n"
    "{ .reg .b64 %rd<5>; .reg .f32 %f<2>;\n"
    "  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];\n"
    "  cvta.to.global.u64 %rd3, %rd1; add.s64 %rd4, %rd2, 4;\n"
    "  ld.global.f32 %f1, [%rd3+8]; st.global.f32 [%rd4], %f1; ret; }\n"
    ".visible .entry pair(.param .align 8 .b8 both[24])\n"
    "{ .reg .b64 %rd<3>; .reg .f32 %f<2>; ld.param.u64 %rd2, [both+16]; ld.f32 %f1, [%rd2]; ret; }\n"
    ".visible .entry late(.param .u64 x)\n"
    "{ .reg .b64 %rd<3>; ld.param.u64 %rd1, [x]; st.global.u64 [table], %rd1; ret; }\n"
    ".visible .entry idle() { ret; }\n";

static CUmodule module;

static CUfunction test_function(const char *name)
{
    CUfunction function = NULL;
    CHECK_INT(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
}

static cai_sim_operation test_last(void)
{
    cai_sim_operation operation;
    cai_sim *sim = cai_driver_sim();
    CHECK_INT(cai_sim_operation_get(sim, cai_sim_operation_count(sim), &operation), 1);
    return operation;
}

static CUresult test_run(const char *name, CUstream stream, void **arguments, void **extra)
{
    return cuLaunchKernel(test_function(name), 1, 1, 1, 32, 1, 1, 0, stream, arguments, extra);
}

static void test_names(void)
{
    CUfunction function = NULL, functions[5];
    CUlibrary library = NULL;
    CUkernel kernel = NULL, kernels[4];
    const char *name = NULL;
    unsigned count = 0;
    CHECK_INT(cuModuleGetFunction(&function, module, "copied"), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuModuleGetFunction(&function, module, "table"), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
    CHECK_INT(count, 4);
    memset(functions, 0, sizeof functions);
    CHECK_INT(cuModuleEnumerateFunctions(functions, 5, module), CUDA_SUCCESS);
    CHECK_INT(cuFuncGetName(&name, functions[3]), CUDA_SUCCESS);
    CHECK_STR(name, "pair"); /* sorted by name */
    CHECK(functions[3] == test_function("pair"));
    CHECK(functions[4] == NULL);
    CHECK_INT(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
    CHECK_INT(cuLibraryGetKernelCount(&count, library), CUDA_SUCCESS);
    CHECK_INT(count, 4);
    memset(kernels, 0, sizeof kernels);
    CHECK_INT(cuLibraryEnumerateKernels(kernels, 1, library), CUDA_SUCCESS);
    CHECK(kernels[0] != NULL && kernels[1] == NULL);
    CHECK_INT(cuLibraryGetKernel(&kernel, library, "copied"), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuLibraryUnload(library), CUDA_SUCCESS);
    CHECK_INT(cuLibraryGetKernelCount(&count, library), CUDA_ERROR_INVALID_HANDLE);
}

static void test_parameters(void)
{
    CUfunction function = test_function("copy");
    size_t offset = 9, bytes = 9;
    CHECK_INT(cuFuncGetParamInfo(function, 0, &offset, &bytes), CUDA_SUCCESS);
    CHECK(offset == 0 && bytes == 8);
    CHECK_INT(cuFuncGetParamInfo(function, 1, &offset, &bytes), CUDA_SUCCESS);
    CHECK(offset == 8 && bytes == 4);
    CHECK_INT(cuFuncGetParamInfo(function, 2, &offset, NULL), CUDA_SUCCESS);
    CHECK(offset == 16);
    CHECK_INT(cuFuncGetParamInfo(function, 3, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuFuncGetParamInfo(function, 0, NULL, &bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuFuncGetParamInfo(NULL, 0, &offset, &bytes), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuFuncGetParamInfo(test_function("idle"), 0, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

/* A global variable has memory of its module, made once. */
static void test_globals(void)
{
    CUdeviceptr table = 0, again = 0, factors = 0;
    size_t bytes = 0;
    CHECK_INT(cuModuleGetGlobal(&table, &bytes, module, "table"), CUDA_SUCCESS);
    CHECK(table != 0 && bytes == 64);
    CHECK_INT(cuModuleGetGlobal(&again, NULL, module, "table"), CUDA_SUCCESS);
    CHECK(again == table);
    CHECK_INT(cuModuleGetGlobal(&factors, &bytes, module, "factors"), CUDA_SUCCESS);
    CHECK(factors != table && bytes == 12);
    CHECK_INT(cuModuleGetGlobal(NULL, NULL, module, "table"), CUDA_ERROR_INVALID_VALUE);
    CHECK_INT(cuModuleGetGlobal(&table, &bytes, module, "copy"), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuModuleGetGlobal(&table, &bytes, NULL, "table"), CUDA_ERROR_INVALID_HANDLE);
    CHECK_INT(cuMemsetD8(table, 1, 64), CUDA_SUCCESS);
}

/* The arguments in one block of bytes. */
static void test_block(CUdeviceptr memory)
{
    CUdeviceptr x = memory + 16, y = memory + 512;
    void *extra[5];
    struct {
        CUdeviceptr x;
        int n, gap;
        CUdeviceptr y;
    } block;
    size_t bytes = sizeof block;
    cai_sim_operation launch;
    block.x = y;
    block.n = 0;
    block.gap = 0;
    block.y = 12345; /* no memory of anybody */
    extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra[1] = &block;
    extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra[3] = &bytes;
    extra[4] = CU_LAUNCH_PARAM_END;
    CHECK_INT(test_run("copy", NULL, NULL, extra), CUDA_SUCCESS);
    launch = test_last();
    CHECK_INT(launch.access_count, 2);
    CHECK(launch.accesses[0].address == y && launch.accesses[0].write == 0);
    bytes = 8; /* what is not in the block is zero */
    block.y = x;
    CHECK_INT(test_run("copy", NULL, NULL, extra), CUDA_SUCCESS);
    CHECK_INT(test_last().access_count, 2);
}

static void test_accesses(CUdeviceptr memory)
{
    CUdeviceptr x = memory + 16, y = memory + 512, both[3];
    int n = 3;
    void *arguments[3];
    cai_sim_operation launch;
    cai_driver_call call;
    arguments[0] = &x;
    arguments[1] = &n;
    arguments[2] = &y;
    CHECK_INT(test_run("copy", NULL, arguments, NULL), CUDA_SUCCESS);
    launch = test_last();
    CHECK_INT(launch.access_count, 4);
    CHECK(launch.accesses[0].address == x && launch.accesses[0].bytes == 1 && launch.accesses[0].write == 0);
    CHECK(launch.accesses[1].address == memory && launch.accesses[1].bytes == BYTES);
    CHECK_INT(launch.accesses[1].write, CAI_SIM_MAY_READ);
    CHECK(launch.accesses[2].address == y && launch.accesses[2].bytes == 1 && launch.accesses[2].write == 1);
    CHECK_INT(launch.accesses[3].write, CAI_SIM_MAY_ACCESS);
    CHECK_INT(cai_driver_call_of(launch.tag, &call), 1);
    CHECK_INT(call.opaque, 0);
    CHECK_INT(call.follows, 0);
    CHECK_STR(call.kernel, "copy");

    both[0] = x;
    both[1] = x;
    both[2] = y;
    arguments[0] = both;
    CHECK_INT(test_run("pair", NULL, arguments, NULL), CUDA_SUCCESS);
    launch = test_last();
    CHECK_INT(launch.access_count, 2);
    CHECK(launch.accesses[0].address == y && launch.accesses[0].write == 0);

    arguments[0] = &x;
    CHECK_INT(test_run("late", NULL, arguments, NULL), CUDA_SUCCESS);
    launch = test_last();
    CHECK_INT(launch.access_count, 2);
    CHECK(launch.accesses[0].write == CAI_SIM_MAY_WRITE);
    CHECK_INT(test_run("idle", NULL, NULL, NULL), CUDA_SUCCESS);
    CHECK_INT(test_last().access_count, 0);
}

/* The stream of a launch that has its arguments in a struct. */
static void test_stream(CUdeviceptr memory)
{
    CUlaunchConfig config;
    cai_sim_operation launch;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUdeviceptr x = memory, y = memory + 512;
    int n = 3;
    void *arguments[3];
    arguments[0] = &x;
    arguments[1] = &n;
    arguments[2] = &y;
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(event, stream), CUDA_SUCCESS);
    memset(&config, 0, sizeof config);
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    launch = test_last();
    CHECK_INT(cuLaunchKernelEx(&config, test_function("copy"), arguments, NULL), CUDA_SUCCESS);
    CHECK_UINT(test_last().stream, launch.stream);
    config.hStream = NULL;
    CHECK_INT(cuLaunchKernelEx(&config, test_function("copy"), arguments, NULL), CUDA_SUCCESS);
    CHECK(test_last().stream != launch.stream);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuEventDestroy(event), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(stream), CUDA_SUCCESS);
}

static void test_refused(void)
{
    int other = 0;
    void *extra[3];
    uint64_t before = cai_sim_operation_count(cai_driver_sim());
    CHECK_INT(test_run("copy", NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE); /* it has parameters */
    extra[0] = (void *)(uintptr_t)7; /* no such number */
    extra[1] = &other;
    extra[2] = CU_LAUNCH_PARAM_END;
    CHECK_INT(test_run("copy", NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    CHECK(cai_sim_operation_count(cai_driver_sim()) == before);
}

/* Two kernels in two streams: which pairs race, and which are certain. */
static int32_t test_parts(const char *first, const char *second, CUdeviceptr x, CUdeviceptr y,
                          CUdeviceptr second_y, int32_t *certain)
{
    CUstream streams[2];
    cai_check_race races[4];
    void *arguments[3];
    int n = 0, i;
    int32_t found;
    arguments[0] = &x;
    arguments[1] = &n;
    arguments[2] = &y;
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
    found = cai_check_races(cai_driver_sim(), NULL, 0);
    for (i = 0; i < 2; i++) {
        CHECK_INT(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        CHECK_INT(test_run(i ? second : first, streams[i], arguments, NULL), CUDA_SUCCESS);
        arguments[2] = &second_y;
    }
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
    memset(races, 0, sizeof races);
    i = cai_check_races(cai_driver_sim(), races, 4) - found;
    *certain = races[i > 0 && found + i <= 4 ? found + i - 1 : 0].certain;
    return i;
}

static int32_t test_pair(const char *first, const char *second, CUdeviceptr x, CUdeviceptr y, int32_t *certain)
{
    return test_parts(first, second, x, y, y, certain);
}

static void test_races(CUdeviceptr memory)
{
    CUdeviceptr other = 0;
    int32_t certain = 7;
    CHECK_INT(cuMemAlloc(&other, BYTES), CUDA_SUCCESS);
    CHECK_INT(test_pair("copy", "idle", memory, memory + 8, &certain), 0);
    CHECK_INT(test_pair("late", "idle", memory, memory + 8, &certain), 0);
    CHECK_INT(test_pair("copy", "copy", memory, memory + 8, &certain), 1); /* both write y, both read x */
    CHECK_INT(certain, 1);
    CHECK_INT(test_pair("late", "late", memory, memory + 8, &certain), 1);
    CHECK_INT(certain, 0);
    CHECK_INT(test_pair("copy", "late", other, memory, &certain), 1); /* one reads, of the other nothing is known */
    CHECK_INT(certain, 0);
    CHECK_INT(test_parts("copy", "copy", other, memory, memory + 512, &certain), 1); /* both write, elsewhere or not */
    CHECK_INT(certain, 0);
    CHECK_INT(test_parts("copy", "copy", other, memory, memory, &certain), 1);
    CHECK_INT(certain, 1);
    CHECK_INT(cuMemFree(other), CUDA_SUCCESS);
}

static void test_host_copy(const cai_driver_launch *launch)
{
    const float *x = *(float *const *)launch->arguments[0];
    float *y = *(float *const *)launch->arguments[2];
    CHECK_STR(launch->kernel, "copy");
    CHECK_INT(launch->argument_count, 3);
    CHECK(launch->grid[0] == 1 && launch->block[0] == 32 && launch->grid[2] == 1);
    y[1] = x[2] + (float)*(const int *)launch->arguments[1];
    ++*(int *)launch->context;
}

/* A function of the host does what the kernel would do, in the order of the stream, and in graphs. */
static void test_replaced(CUdeviceptr memory)
{
    static const uint32_t sizes[1] = {8};
    const float three = 3;
    float y = 0;
    int n = 4, calls = 0;
    CUdeviceptr x = memory, to = memory + 64;
    void *arguments[3];
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    arguments[0] = &x;
    arguments[1] = &n;
    arguments[2] = &to;
    CHECK_INT(cai_driver_replace_kernel("", NULL, 0, test_host_copy, NULL), 0);
    CHECK_INT(cai_driver_replace_kernel("copy", sizes, 257, test_host_copy, NULL), 0);
    CHECK_INT(cai_driver_replace_kernel("copy", NULL, 0, test_host_copy, &calls), 1);
    CHECK_INT(cuMemcpyHtoD(memory + 8, &three, 4), CUDA_SUCCESS);
    CHECK_INT(test_run("copy", NULL, arguments, NULL), CUDA_SUCCESS);
    n = 100; /* the launch has its own copy */
    CHECK_INT(cuMemcpyDtoH(&y, to + 4, 4), CUDA_SUCCESS);
    CHECK(y == 7 && calls == 1);
    CHECK_INT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    CHECK_INT(test_run("copy", stream, arguments, NULL), CUDA_SUCCESS);
    CHECK_INT(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CHECK_INT(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoH(&y, to + 4, 4), CUDA_SUCCESS);
    CHECK(y == 103 && calls == 3);
    CHECK_INT(cai_driver_replace_kernel("copy", NULL, 0, NULL, NULL), 1);
    CHECK_INT(test_run("copy", NULL, arguments, NULL), CUDA_SUCCESS);
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
    CHECK_INT(calls, 3);
}

/* What cuLinkComplete makes has the kernels of all inputs. */
static void test_link(void)
{
    static char other[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry more(.param .u64 x) { ret; }\n";
    CUlinkState state = NULL;
    CUmodule linked = NULL;
    CUfunction function = NULL;
    void *made = NULL;
    size_t bytes = 0;
    CHECK_INT(cuLinkCreate(0, NULL, NULL, &state), CUDA_SUCCESS);
    CHECK_INT(cuLinkComplete(state, &made, &bytes), CUDA_ERROR_INVALID_IMAGE);
    CHECK_INT(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)(uintptr_t)image, sizeof image, "a", 0, NULL, NULL),
              CUDA_SUCCESS);
    CHECK_INT(cuLinkAddData(state, CU_JIT_INPUT_PTX, other, sizeof other, "b", 0, NULL, NULL), CUDA_SUCCESS);
    CHECK_INT(cuLinkComplete(state, &made, &bytes), CUDA_SUCCESS);
    CHECK(made != NULL && bytes > sizeof image + sizeof other);
    CHECK_INT(cuModuleLoadData(&linked, made), CUDA_SUCCESS);
    CHECK_INT(cuLinkDestroy(state), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, linked, "more"), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, linked, "copy"), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, linked, "less"), CUDA_ERROR_NOT_FOUND);
    CHECK_INT(cuModuleUnload(linked), CUDA_SUCCESS);
}

/* Of what cannot be read any name is a kernel, and a launch is opaque. */
static void test_opaque(void)
{
    static const char unknown[] = "no image";
    CUmodule other = NULL;
    CUfunction function = NULL;
    cai_driver_call call;
    unsigned count;
    size_t offset;
    CHECK_INT(cuModuleLoadData(&other, unknown), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, other, "any"), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunctionCount(&count, other), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_INT(cuFuncGetParamInfo(function, 0, &offset, NULL), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    CHECK_INT(cai_driver_call_of(test_last().tag, &call), 1);
    CHECK_INT(call.opaque, 1);
    CHECK_INT(cuModuleUnload(other), CUDA_SUCCESS);
}

static void test_replaced_opaque(void)
{
    CUmodule other = NULL;
    CUfunction function = NULL;
    CHECK_INT(cuModuleLoadData(&other, "no image"), CUDA_SUCCESS);
    CHECK_INT(cuModuleGetFunction(&function, other, "any"), CUDA_SUCCESS);
    CHECK_INT(cai_driver_replace_kernel("any", NULL, 0, test_host_copy, NULL), 1); /* of which size are they? */
    CHECK_INT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_IMAGE);
    CHECK_INT(cai_driver_replace_kernel("any", NULL, 0, NULL, NULL), 1);
    CHECK_INT(cuModuleUnload(other), CUDA_SUCCESS);
}

static void test_all(void)
{
    CUcontext context = NULL;
    CUdeviceptr memory = 0;
    recorded_begin();
    CHECK_INT(cuInit(0), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&memory, BYTES), CUDA_SUCCESS);
    CHECK_INT(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    test_names();
    test_parameters();
    test_globals();
    test_accesses(memory);
    test_block(memory);
    test_refused();
    test_races(memory);
    test_stream(memory);
    test_link();
    test_opaque();
    if (recorded_is_on()) {
        CHECK_INT(cai_driver_replace_kernel("any", NULL, 0, test_host_copy, NULL), 0);
    } else {
        test_replaced(memory);
        test_replaced_opaque();
    }
    CHECK_INT(cuModuleUnload(module), CUDA_SUCCESS);
    CHECK_INT(cuMemFree(memory), CUDA_SUCCESS);
    recorded_end();
}

CAI_TEST_MAIN(test_all)
