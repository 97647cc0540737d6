/* bench_engines.c - a strided face between two ranks: by a datatype, packed, and run by run
 * SPDX-License-Identifier: MIT
 *
 * Memory of the host. Each face of a field of 128 x 128 x 128 float64 is sent back and forth. The time is that
 * of one message, the best of five rounds of ten. */
#define CAI_IMPLEMENTATION
#include "cai_mpi_type.h"

#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 128, ROUNDS = 5, REPEATS = 10, MOST_RUNS = LENGTH * LENGTH };

static double field[LENGTH][LENGTH][LENGTH], buffer[LENGTH * LENGTH];

typedef struct way {
    const char *name;
    void (*pass)(const cai_array *face, MPI_Datatype type, int peer, int sends);
} way;

static void by_datatype(const cai_array *face, MPI_Datatype type, int peer, int sends)
{
    void *const at = (void *)(uintptr_t)face->data;
    if (sends) MPI_Send(at, 1, type, peer, 0, MPI_COMM_WORLD);
    else MPI_Recv(at, 1, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void packed(const cai_array *face, MPI_Datatype type, int peer, int sends)
{
    const uint64_t at = (uint64_t)(uintptr_t)buffer;
    cai_transfer plan;
    (void)type;
    if (sends) {
        if (cai_transfer_pack(&plan, face, at, NULL)) abort();
        cai_transfer_on_host(&plan);
        MPI_Send(buffer, (int)face->size, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, (int)face->size, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (cai_transfer_unpack(&plan, face, at, NULL)) abort();
        cai_transfer_on_host(&plan);
    }
}

static void run_by_run(const cai_array *face, MPI_Datatype type, int peer, int sends)
{
    static MPI_Request requests[MOST_RUNS];
    static MPI_Status states[MOST_RUNS];
    cai_transfer plan;
    cai_run run;
    int n;
    (void)type;
    if (cai_transfer_pack(&plan, face, 0, NULL)) abort();
    for (n = 0; cai_transfer_runs(&plan, n, &run, 1); ++n) {
        void *const at = (void *)(uintptr_t)run.from;
        if (sends) MPI_Isend(at, (int)run.nbytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n]);
        else MPI_Irecv(at, (int)run.nbytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[n]);
    }
    MPI_Waitall(n, requests, states);
}

static double time_of(const way *by, const cai_array *face, MPI_Datatype type, int rank)
{
    double best = 1e9;
    int round, n;
    for (round = 0; round < ROUNDS; ++round) {
        double begin;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (n = 0; n < REPEATS; ++n) {
            by->pass(face, type, 1 - rank, rank == 0);
            by->pass(face, type, 1 - rank, rank == 1);
        }
        begin = (MPI_Wtime() - begin) / (2 * REPEATS);
        if (begin < best) best = begin;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const way ways[] = {{"datatype", by_datatype}, {"packed", packed}, {"run by run", run_by_run}};
    static const char *const names[] = {"outer axis", "middle axis", "inner axis"};
    const int64_t shape[3] = {LENGTH, LENGTH, LENGTH};
    cai_array whole, face;
    MPI_Datatype type;
    int axis, rank;
    size_t n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (cai_array_init(&whole, CAI_FLOAT64, 3, shape, NULL, field, NULL)) return 1;
    for (axis = 0; axis < 3; ++axis) {
        cai_transfer plan;
        if (cai_view_slice(&whole, axis, 1, 1, 1, &face, NULL) || cai_mpi_type(&face, &type, NULL)) return 1;
        if (cai_transfer_pack(&plan, &face, 0, NULL)) return 1;
        for (n = 0; n < sizeof ways / sizeof ways[0]; ++n) {
            const double seconds = time_of(&ways[n], &face, type, rank);
            if (!rank)
                printf("%-11s %6ld runs, %-10s %9.1f us\n", names[axis], (long)plan.runs, ways[n].name,
                       1e6 * seconds);
        }
        MPI_Type_free(&type);
    }
    MPI_Finalize();
    return 0;
}
