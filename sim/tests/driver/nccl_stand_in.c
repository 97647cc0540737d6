/* nccl_stand_in.c - the functions of NCCL that examples/nccl.cu calls, by copies on the streams it gives
 * SPDX-License-Identifier: MIT
 *
 * For one process with several devices on the simulated driver, where NCCL's own kernels cannot run. It keeps
 * NCCL's promise of order: a send reads and a receive writes in the order of its stream, and no more. Counts that
 * do not match are an error here, where NCCL's behaviour is undefined. At the end it looks for races. */
#include "cai_check.h"
#include "cai_driver.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>

struct ncclComm {
    int rank;
};

typedef struct operation {
    int rank, peer, sends;
    void *buffer;
    size_t bytes;
    cudaStream_t stream;
} operation;

enum { MOST_OPERATIONS = 256 };
static operation operations[MOST_OPERATIONS];
static int operation_count, group_depth, comm_count;

/* `after` waits for what is in `before`. Events are of the current device, as their first stream is. */
static cudaError_t order(int device, cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;
    cudaError_t error = cudaSetDevice(device);
    if (!error) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error) return error;
    error = cudaEventRecord(event, before);
    if (!error) error = cudaStreamWaitEvent(after, event, 0);
    (void)cudaEventDestroy(event);
    return error;
}

static ncclResult_t carry_out(const operation *from, const operation *to)
{
    cudaError_t error;
    if (from->bytes != to->bytes) return ncclInvalidUsage;
    error = from->stream == to->stream ? cudaSuccess : order(from->rank, from->stream, to->stream);
    if (!error) error = cudaSetDevice(to->rank);
    if (!error) error = cudaMemcpyAsync(to->buffer, from->buffer, from->bytes, cudaMemcpyDefault, to->stream);
    if (!error && from->stream != to->stream) error = order(to->rank, to->stream, from->stream);
    return error ? ncclUnhandledCudaError : ncclSuccess;
}

/* Gives each send the first receive that fits. */
ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result = ncclSuccess;
    int device, i, k;
    if (--group_depth > 0) return ncclSuccess;
    (void)cudaGetDevice(&device);
    for (i = 0; i < operation_count && !result; ++i) {
        operation *const from = &operations[i];
        if (!from->sends) continue;
        for (k = 0; k < operation_count; ++k) {
            operation *const to = &operations[k];
            if (!to->sends && to->buffer && to->rank == from->peer && to->peer == from->rank) break;
        }
        if (k == operation_count) result = ncclInvalidUsage;
        else result = carry_out(from, &operations[k]);
        if (k < operation_count) operations[k].buffer = NULL;
    }
    operation_count = 0;
    (void)cudaSetDevice(device);
    return result;
}

ncclResult_t ncclGroupStart(void)
{
    ++group_depth;
    return ncclSuccess;
}

static ncclResult_t add(void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                        cudaStream_t stream, int sends)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    operation *const one = &operations[operation_count];
    if (operation_count == MOST_OPERATIONS || (size_t)type >= sizeof sizes / sizeof sizes[0] || !group_depth)
        return ncclInvalidArgument;
    one->rank = comm->rank;
    one->peer = peer;
    one->sends = sends;
    one->buffer = buffer;
    one->bytes = count * sizes[type];
    one->stream = stream;
    ++operation_count;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add((void *)(size_t)buffer, count, type, peer, comm, stream, 1);
}

ncclResult_t ncclRecv(void *buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return add(buffer, count, type, peer, comm, stream, 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int devices, const int *list)
{
    int i;
    if (list) return ncclInvalidArgument;
    for (i = 0; i < devices; ++i) {
        comms[i] = (ncclComm_t)calloc(1, sizeof **comms);
        if (!comms[i]) return ncclSystemError;
        comms[i]->rank = i;
        ++comm_count;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    cai_check_race race;
    char text[CAI_CHECK_TEXT] = "no race";
    free(comm);
    if (--comm_count) return ncclSuccess;
    if (cai_check_races(cai_driver_sim(), &race, 1)) cai_check_race_text(cai_driver_sim(), &race, text);
    puts(text);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess ? "no error" : "an error of the stand-in for NCCL";
}
