/* mpi_watch.h - tells the simulation what MPI reads and writes, and when
 * SPDX-License-Identifier: MIT
 *
 * MPI may read or write a message from the call that starts it to the call that ends it. MPI's profiling
 * interface sees both. Each is recorded as an access by the host, so cai_check finds work that is not ordered
 * before the first or after the second. Include it in one file, after MPI and cai_check.h, and set watch_sim. */
#ifndef MPI_WATCH_H
#define MPI_WATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCH_MESSAGES = 256 };

typedef struct watch_message {
    MPI_Request request;
    cai_sim_access *accesses;
    int32_t count;
    const char *name;
} watch_message;

static cai_sim *watch_sim; /* NULL: nothing is recorded */
static watch_message watch_messages[WATCH_MESSAGES];

static void watch_touch(const watch_message *message)
{
    const int32_t error = cai_sim_host_access(watch_sim, message->name, message->accesses, message->count);
    if (error) cai_check_fail(watch_sim, "MPI uses memory that was freed");
}

/* Finds the bytes of a datatype: those that MPI_Unpack changes. */
static void watch_begin(const char *name, const void *at, int count, MPI_Datatype type, int writes,
                        MPI_Request request)
{
    const uint64_t address = (uint64_t)(uintptr_t)at;
    MPI_Aint low, extent, i, first;
    char *bytes, *ones;
    int size, position = 0, slot = 0;
    watch_message *message;
    if (!watch_sim || request == MPI_REQUEST_NULL || !count) return;
    MPI_Type_size(type, &size);
    MPI_Type_get_true_extent(type, &low, &extent);
    while (watch_messages[slot].accesses && slot < WATCH_MESSAGES - 1) ++slot;
    message = &watch_messages[slot];
    bytes = (char *)calloc((size_t)extent + 2, 1);
    ones = (char *)malloc((size_t)size + 1);
    message->accesses = (cai_sim_access *)malloc(((size_t)size + 1) * sizeof *message->accesses);
    if (!bytes || !ones || !message->accesses) abort();
    memset(ones, 1, (size_t)size);
    MPI_Unpack(ones, size, &position, bytes - low, 1, type, MPI_COMM_SELF);
    message->request = request;
    message->name = name;
    message->count = 0;
    for (i = 0; i < extent; ++i) {
        if (!bytes[i]) continue;
        for (first = i; i < extent && bytes[i];) ++i;
        message->accesses[message->count++] =
            writes ? cai_sim_writes(address + (uint64_t)(low + first), (uint64_t)(i - first))
                   : cai_sim_reads(address + (uint64_t)(low + first), (uint64_t)(i - first));
    }
    free(bytes);
    free(ones);
    watch_touch(message);
}

/* Ends a message whose request has gone. */
static void watch_end(MPI_Request before, MPI_Request after)
{
    int slot;
    if (!watch_sim || before == MPI_REQUEST_NULL || after != MPI_REQUEST_NULL) return;
    for (slot = 0; slot < WATCH_MESSAGES; ++slot) {
        watch_message *message = &watch_messages[slot];
        if (!message->accesses || message->request != before) continue;
        watch_touch(message);
        free(message->accesses);
        memset(message, 0, sizeof *message);
        break;
    }
}

int MPI_Isend(const void *at, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    const int code = PMPI_Isend(at, count, type, peer, tag, comm, request);
    if (!code && peer != MPI_PROC_NULL) watch_begin("MPI_Isend", at, count, type, 0, *request);
    return code;
}

int MPI_Irecv(void *at, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    const int code = PMPI_Irecv(at, count, type, peer, tag, comm, request);
    if (!code && peer != MPI_PROC_NULL) watch_begin("MPI_Irecv", at, count, type, 1, *request);
    return code;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *state)
{
    const MPI_Request before = *request;
    const int code = PMPI_Test(request, done, state);
    watch_end(before, *request);
    return code;
}

#endif /* MPI_WATCH_H */
