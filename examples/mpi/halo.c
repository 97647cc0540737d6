/* halo.c - a field that is split over ranks, and smoothed by all eight neighbours of each element
 * SPDX-License-Identifier: MIT
 *
 *     mpicc -I. -Iext examples/mpi/halo.c -o halo && mpiexec -n 4 ./halo
 *     mpiexec -n 4 ./halo periodic
 *
 * With fewer cores than ranks, Open MPI needs mpiexec --oversubscribe.
 * This runs on nodes without a GPU: there is no CUDA, no header of it and no pool. With -DHALO_DEVICE the
 * same model has its field on a device (simulated: add -Isim and sim/cai_sim.c). All ranks together print one
 * number, made of all bits of the result. It is the same for any number of ranks, on the host and on the
 * device. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, COLUMNS = 53, STEPS = 5 };

static const int64_t widths[2] = {1, 1}; /* of the halo, on both sides */

typedef struct kernel {
    cai_kernel_view in, out;
    int64_t rows, columns; /* of the block, without its halo */
    int at_edge;           /* 0: elements that need no halo; 1: the others */
} kernel;

typedef struct model {
    MPI_Comm comm;
    int split[2], at[2];
    int64_t first[2], inside[2], shape[2]; /* of the block in the whole field */
    cai_array fields[2], parts[2][16];
    cai_mpi_message messages[2][16];
    cai_mpi_batch batches[2];
    cai_mpi_options options;
    kernel work[2][2]; /* of the steps from each field: they are queued by address */
} model;

static void smooth(void *argument)
{
    const kernel *w = (const kernel *)argument;
    int64_t i, j, k;
    for (i = 1; i <= w->rows; ++i) {
        for (j = 1; j <= w->columns; ++j) {
            double sum = 0;
            if (w->at_edge != (i == 1 || j == 1 || i == w->rows || j == w->columns)) continue;
            for (k = 0; k < 9; ++k)
                sum += *(const double *)cai_kernel_at2(&w->in, i + k / 3 - 1, j + k % 3 - 1);
            *(double *)cai_kernel_at2(&w->out, i, j) = sum / 9;
        }
    }
}

/* ------------------------------------------------------- where the field lies */
#if defined(HALO_DEVICE)
#include "cai_sim.h"
static cai_sim *sim;
static cai_event_pool pool;
static cai_emm_hooks hooks;
static uint64_t compute;

static cai_status place(cai_mpi_options *options, cai_error *err)
{
    sim = cai_sim_create(1);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    compute = cai_sim_stream_create(sim, 1);
    options->stream = cai_sim_stream_create(sim, 1);
    CAI_TRY(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, err));
    CAI_TRY(cai_emm_hooks_cuda(&hooks, cai_sim_cuda(sim), err));
    options->engine = CAI_MPI_STAGED;
    options->pool = &pool;
    options->hooks = &hooks;
    return CAI_OK;
}

static double *allocate(size_t size)
{
    return (double *)(uintptr_t)cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, size);
}
static double *look(const cai_array *field)
{
    (void)cai_sim_stream_synchronize(sim, compute);
    return (double *)cai_sim_bytes(sim, field->data);
}
static cai_status own(cai_array *field, cai_error *err)
{
    return cai_stream_export(field, &pool, compute, NULL, 0, err);
}
static cai_status launch(kernel *work, cai_error *err)
{
    return cai_cuda_status(cai_sim_launch(sim, compute, "smooth", smooth, work, NULL, 0), "smooth", err);
}
#else
static cai_status place(cai_mpi_options *options, cai_error *err)
{
    (void)err;
    options->engine = CAI_MPI_DIRECT;
    return CAI_OK;
}

static double *allocate(size_t size)
{
    return (double *)malloc(size);
}
static double *look(const cai_array *field)
{
    return (double *)(uintptr_t)field->data;
}
static cai_status own(cai_array *field, cai_error *err)
{
    (void)err;
    field->sync = CAI_SYNC_NONE; /* nothing is pending on the host */
    return CAI_OK;
}
static cai_status launch(kernel *work, cai_error *err)
{
    (void)err;
    smooth(work);
    return CAI_OK;
}
#endif

/* ------------------------------------------------------------------ the model */
static cai_status build_field(model *m, int which, cai_error *err)
{
    const cai_mpi_halo_options halo = {m->comm, widths, widths, NULL, 0, 0};
    cai_array *const field = &m->fields[which];
    const size_t size = (size_t)(m->shape[0] * m->shape[1]) * sizeof(double);
    double *const memory = allocate(size);
    int64_t i, j;
    int32_t count;
    if (!memory) return cai_cuda_status(2, "allocate", err);
    CAI_TRY(cai_array_init(field, CAI_FLOAT64, 2, m->shape, NULL, memory, err));
    memset(look(field), 0, size); /* what lies beyond an edge stays 0 */
    for (i = 0; i < m->inside[0]; ++i)
        for (j = 0; j < m->inside[1]; ++j)
            look(field)[(i + 1) * m->shape[1] + j + 1] =
                (double)(((m->first[0] + i) * COLUMNS + m->first[1] + j) * 7919 % 10007) / 10007;
    CAI_TRY(own(field, err));
    CAI_TRY(cai_mpi_halo(field, &halo, m->messages[which], m->parts[which], 16, &count, err));
    return cai_mpi_open(&m->batches[which], &m->options, m->messages[which], count, err);
}

static cai_status build(model *m, int periodic, cai_error *err)
{
    const int64_t global[2] = {ROWS, COLUMNS};
    const int periods[2] = {periodic, periodic};
    int ranks, rank, i;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, m->split);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* the new one inherits it */
    MPI_Cart_create(MPI_COMM_WORLD, 2, m->split, periods, 0, &m->comm);
    MPI_Comm_rank(m->comm, &rank);
    MPI_Cart_coords(m->comm, rank, 2, m->at);
    for (i = 0; i < 2; ++i) {
        m->first[i] = global[i] * m->at[i] / m->split[i];
        m->inside[i] = global[i] * (m->at[i] + 1) / m->split[i] - m->first[i];
        m->shape[i] = m->inside[i] + 2;
    }
    m->options.seconds = 10;
    m->options.comm = m->comm;
    CAI_TRY(place(&m->options, err));
    for (i = 0; i < 2; ++i) CAI_TRY(build_field(m, i, err));
    return CAI_OK;
}

/* Works on the inside while the halo travels, then on what needs it. */
static cai_status step(model *m, int from, cai_error *err)
{
    kernel *const w = m->work[from];
    CAI_TRY(cai_kernel_view_of(&m->fields[from], &w[0].in, err));
    CAI_TRY(cai_kernel_view_of(&m->fields[1 - from], &w[0].out, err));
    w[0].rows = m->inside[0];
    w[0].columns = m->inside[1];
    w[0].at_edge = 0;
    w[1] = w[0];
    w[1].at_edge = 1;
    CAI_TRY(cai_mpi_start(&m->batches[from], err));
    CAI_TRY(launch(&w[0], err));
    CAI_TRY(cai_mpi_finish(&m->batches[from], err));
    return launch(&w[1], err);
}

static void print(const model *m, const double *block)
{
    uint64_t sum = 0, all = 0, bits;
    int64_t i, j;
    for (i = 0; i < m->inside[0]; ++i) {
        for (j = 0; j < m->inside[1]; ++j) {
            memcpy(&bits, &block[(i + 1) * m->shape[1] + j + 1], 8);
            bits = (bits ^ (uint64_t)((m->first[0] + i) * COLUMNS + m->first[1] + j)) * 0x9E3779B97F4A7C15u;
            sum += bits ^ bits >> 29;
        }
    }
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, m->comm);
    if (!m->at[0] && !m->at[1])
        printf("%d x %d ranks: %016llx\n", m->split[0], m->split[1], (unsigned long long)all);
}

static cai_status run(model *m, int periodic, cai_error *err)
{
    int i;
    CAI_TRY(build(m, periodic, err));
    for (i = 0; i < STEPS; ++i) CAI_TRY(step(m, i % 2, err));
    print(m, look(&m->fields[STEPS % 2]));
    for (i = 0; i < 2; ++i) CAI_TRY(cai_mpi_close(&m->batches[i], err));
    return CAI_OK;
}

int main(int argc, char **argv)
{
    static model m;
    cai_error err;
    MPI_Init(&argc, &argv);
    if (run(&m, argc > 1 && !strcmp(argv[1], "periodic"), &err)) {
        printf("%s\n", err.message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
