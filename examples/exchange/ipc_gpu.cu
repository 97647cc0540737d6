/* ipc_gpu.cu - an array goes from one process to another without a copy (ext/cai_ipc.h).
 * SPDX-License-Identifier: MIT
 *
 *     nvcc -I. -Iext examples/exchange/ipc_gpu.cu -o ipc_gpu && ./ipc_gpu
 *
 * The parent starts the child before it calls CUDA, and fills an array. The child imports every second
 * column, doubles it on its own stream, and answers. The parent checks the result. Exit status 77: no GPU. */
#define CAI_IMPLEMENTATION
#include "cai_ipc.h"
#include <cuda_runtime.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        if (call) {                                                                                          \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, err.message);                               \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

enum { ROWS = 1000, COLUMNS = 8 };

static cai_error err;

__global__ void fill(float *x)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < ROWS * COLUMNS) x[i] = (float)i;
}

__global__ void twice(cai_kernel_view v)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < v.shape[0] * v.shape[1]) *(float *)cai_kernel_element(&v, i) *= 2;
}

static int importer(int from, int to)
{
    static cai_cuda_driver driver;
    static cai_ipc_mapping places[2];
    static cai_ipc ipc;
    static struct cai_ipc_v0 d[3];
    cai_array x, again, outside;
    cai_kernel_view v;
    cudaStream_t stream;
    if (read(from, d, sizeof d) != (ssize_t)sizeof d) return 77; /* the exporter has no GPU */
    CHECK(cudaFree(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cai_cuda_linked(&driver, &err));
    CHECK(cai_ipc_init(&ipc, &driver.cuda, places, 2, 0, &err));
    CHECK(cai_ipc_import(&ipc, &d[0], &x, &err));
    CHECK(cai_ipc_import(&ipc, &d[1], &again, &err));
    CHECK(ipc.used != 1);
    printf("importer: allocation of %llu bytes open\n", (unsigned long long)places[0].nbytes);
    d[2].size += places[0].nbytes;
    CHECK(cai_ipc_import(&ipc, &d[2], &outside, &err) != CAI_ERR_MEMORY);
    CHECK(cai_expect(&x, "x", CAI_FLOAT32, 2, CAI_WRITABLE | CAI_ON_DEVICE, &err));
    CHECK(cai_locate(&x, "x", &driver.cuda, CAI_LOCATE_BOUNDS, NULL, &err));
    CHECK(cai_kernel_view_of(&x, &v, &err));
    twice<<<(unsigned)(x.size + 255) / 256, 256, 0, stream>>>(v);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream)); /* then release, then answer */
    cai_array_release(&x);
    cai_array_release(&again);
    CHECK(ipc.failed);
    CHECK(cai_ipc_destroy(&ipc, &err));
    CHECK(write(to, "k", 1) != 1);
    return 0;
}

static int exporter(int from, int to)
{
    static cai_cuda_driver driver;
    static cai_event_pool pool;
    static cai_manager emm;
    static cai_ipc ipc, other;
    static cai_ipc_mapping place;
    static struct cai_ipc_v0 d[3];
    static float host[ROWS * COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS / 2}, strides[2] = {COLUMNS * 4, 8};
    cai_emm_hooks hooks;
    cai_memory_handle before, memory;
    cai_array x;
    int i;
    float *first;
    char answer = 0;
    CHECK(cudaFree(0));
    CHECK(cai_cuda_linked(&driver, &err));
    CHECK(cai_event_pool_init(&pool, &driver.cuda, NULL, 0, 0, &err));
    CHECK(cai_emm_hooks_cuda(&hooks, &driver.cuda, &err));
    CHECK(cai_manager_init(&emm, &pool, &hooks, NULL, &err));
    CHECK(cai_manager_alloc(&before, &emm, 1000, 0, 1, &err)); /* so that ours is not first in CUDA's block */
    CHECK(cai_manager_alloc(&memory, &emm, sizeof host, 0, 1, &err));
    CHECK(cai_ipc_init(&ipc, &driver.cuda, NULL, 0, 0, &err));
    fill<<<(ROWS * COLUMNS + 255) / 256, 256>>>((float *)cai_manager_pointer(&emm, memory));
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(0)); /* before the descriptor is sent */
    first = (float *)cai_manager_pointer(&emm, memory);
    CHECK(cai_array_init(&x, CAI_FLOAT32, 2, shape, strides, first + 1, &err));
    x.sync = CAI_SYNC_NONE;
    CHECK(cai_ipc_export(&ipc, &emm, memory, &x, &d[0], &err));
    CHECK(cai_ipc_export(&ipc, &emm, memory, NULL, &d[1], &err));
    d[2] = d[1];
    printf("exporter: offset %llu, size %llu\n", (unsigned long long)d[0].offset,
           (unsigned long long)d[0].size);
    CHECK(cai_ipc_init(&other, &driver.cuda, &place, 1, 0, &err));
    CHECK(cai_ipc_import(&other, &d[0], &x, &err) != CAI_ERR_ARGUMENT); /* CUDA knows its own process */
    printf("exporter: %s (CUDA error %d)\n", err.message, (int)err.native);
    CHECK(write(to, d, sizeof d) != (ssize_t)sizeof d);
    CHECK(read(from, &answer, 1) != 1);
    CHECK(cudaMemcpy(host, cai_manager_pointer(&emm, memory), sizeof host, cudaMemcpyDeviceToHost));
    for (i = 0; i < ROWS * COLUMNS; i++) CHECK(host[i] != (float)(i % 2 ? 2 * i : i));
    CHECK(cai_manager_free(&emm, memory, 1, &err));
    CHECK(cai_manager_free(&emm, before, 1, &err));
    CHECK(cai_manager_destroy(&emm, &err));
    CHECK(cai_event_pool_destroy(&pool, &err));
    printf("every second column came back doubled\n");
    return 0;
}

int main(void)
{
    int there[2], back[2], devices = 0, status = 0, mine;
    pid_t child;
    if (pipe(there) || pipe(back)) return 1;
    child = fork(); /* CUDA does not survive a fork: before its first call */
    if (child < 0) return 1;
    if (!child) {
        (void)close(there[1]);
        (void)close(back[0]);
        return importer(there[0], back[1]);
    }
    (void)close(there[0]);
    (void)close(back[1]);
    if (cudaGetDeviceCount(&devices) || !devices) {
        printf("no GPU\n");
        return 77;
    }
    mine = exporter(back[0], there[1]);
    (void)close(there[1]);
    if (waitpid(child, &status, 0) != child) return 1;
    return mine ? mine : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
