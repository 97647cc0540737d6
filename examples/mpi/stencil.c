/* stencil.c - diffusion of a 3-D field that is split over ranks, each with a device of its own (simulated)
 * SPDX-License-Identifier: MIT
 *
 *     mpicc -I. -Iext -Isim -pthread examples/mpi/stencil.c sim/cai_sim.c sim/cai_check.c -o stencil
 *     mpiexec -n 4 ./stencil [what=value...] (Open MPI, with fewer cores than ranks: mpiexec --oversubscribe)
 *         n=24             elements of the field along each axis     weak=1     n is that of each rank
 *         steps=4          engine=0        of cai_mpi.h              check=1    searches for races (slow)
 *         wait=1           leaves out a wait of the host             edge=1     leaves out a wait of a stream
 *         early=1          uses a halo before it is there            wrong=2    a rank with another shape
 *         dies=2           a rank that ends in the midst
 *
 * Each rank has a block of the field with a halo of one element, and sends six faces in each step. While they
 * travel, it works on what is inside. All ranks together print one number, made of all bits of the result. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"
#include "cai_storage.h"
#include "cai_check.h"
#include "mpi_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAUNCHES = 7 }; /* of a step: the inside, six faces */

typedef struct arguments {
    int64_t n, weak, steps, engine, check, wait, edge, early, dies, wrong;
} arguments;

typedef struct kernel {
    cai_kernel_view out, in;
    int64_t low[3], high[3];
} kernel;

typedef struct program {
    arguments is;
    cai_sim *sim;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    MPI_Comm comm;
    int rank, ranks, dims[3], at[3];
    int64_t global[3], first[3], shape[3]; /* of the field; of the block in it, without its halo */
    uint64_t home, compute, transfer;
    cai_storage fields[2];
    cai_array faces[2][12];
    cai_mpi_message messages[2][12];
    cai_mpi_batch batches[2];
    kernel kernels[2][MOST_LAUNCHES];
} program;

/* ------------------------------------------------------------------ kernels */
static void diffuse(void *argument)
{
    const kernel *w = (const kernel *)argument;
    int64_t i, j, k;
    for (i = w->low[0]; i < w->high[0]; ++i) {
        for (j = w->low[1]; j < w->high[1]; ++j) {
            for (k = w->low[2]; k < w->high[2]; ++k) {
#define AT(di, dj, dk) (*(const double *)cai_kernel_at3(&w->in, i + (di), j + (dj), k + (dk)))
                const double around =
                    AT(-1, 0, 0) + AT(1, 0, 0) + AT(0, -1, 0) + AT(0, 1, 0) + AT(0, 0, -1) + AT(0, 0, 1);
                *(double *)cai_kernel_at3(&w->out, i, j, k) = AT(0, 0, 0) + 0.1 * (around - 6 * AT(0, 0, 0));
#undef AT
            }
        }
    }
}

/* Declares the rows that a box touches, and those around it if it is read. */
static int32_t declare(const cai_kernel_view *of, const int64_t *low, const int64_t *high, int writes,
                       cai_sim_access *list)
{
    const int64_t around = writes ? 0 : 1;
    int64_t i, j;
    int32_t count = 0;
    for (i = low[0] - around; i < high[0] + around; ++i) {
        for (j = low[1] - around; j < high[1] + around; ++j) {
            /* a row beside the box is read without its ends, and one at an edge not at all */
            const int beside = (i < low[0] || i >= high[0]) + (j < low[1] || j >= high[1]);
            const int64_t ends = beside ? 0 : around;
            const uint64_t at = (uint64_t)(uintptr_t)cai_kernel_at3(of, i, j, low[2] - ends);
            const uint64_t bytes = (uint64_t)(high[2] - low[2] + 2 * ends) * sizeof(double);
            if (beside < 2) list[count++] = writes ? cai_sim_writes(at, bytes) : cai_sim_reads(at, bytes);
        }
    }
    return count;
}

static cai_status launch(program *p, kernel *work, const char *name, cai_error *err)
{
    cai_sim_access *list = NULL;
    int32_t count = 0, error;
    if (p->is.check) {
        const int64_t rows = (work->high[0] - work->low[0] + 2) * (work->high[1] - work->low[1] + 2);
        list = (cai_sim_access *)malloc((size_t)(2 * rows) * sizeof *list);
        if (!list) return cai_cuda_status(2, name, err);
        count = declare(&work->in, work->low, work->high, 0, list);
        count += declare(&work->out, work->low, work->high, 1, list + count);
    }
    error = cai_sim_launch(p->sim, p->compute, name, diffuse, work, list, count);
    free(list);
    return cai_cuda_status(error, name, err);
}

/* The inside needs no halo; the faces do. */
static cai_status launch_part(program *p, int from, const cai_array *in, const cai_array *out, int faces,
                              cai_error *err)
{
    kernel box, *work = p->kernels[from];
    int axis, side;
    CAI_TRY(cai_kernel_view_of(in, &box.in, err));
    CAI_TRY(cai_kernel_view_of(out, &box.out, err));
    for (axis = 0; axis < 3; ++axis) {
        box.low[axis] = 2;
        box.high[axis] = p->shape[axis];
    }
    work[0] = box;
    if (!faces) return launch(p, work, "inside", err);
    for (axis = 2; axis >= 0; --axis) { /* later ones are wider, by the rows of those before */
        for (side = 0; side < 2; ++side) {
            kernel *const face = ++work;
            *face = box;
            face->low[axis] = side ? p->shape[axis] : 1;
            face->high[axis] = face->low[axis] + 1;
            CAI_TRY(launch(p, face, "face", err));
        }
        box.low[axis] = 1;
        box.high[axis] = p->shape[axis] + 1;
    }
    return CAI_OK;
}

/* ------------------------------------------------------------------ building */
static cai_status build_field(program *p, cai_storage *field, cai_error *err)
{
    cai_storage_options options = {&p->pool, &p->hooks, NULL, p->home, CAI_STORAGE_BOTH, 0};
    cai_layout layout;
    cai_dtype dtype;
    int axis;
    memset(&layout, 0, sizeof layout);
    layout.ndim = 3;
    for (axis = 0; axis < 3; ++axis) {
        layout.shape[axis] = p->shape[axis] + 2;
        layout.halo_low[axis] = layout.halo_high[axis] = 1;
    }
    CAI_TRY(cai_dtype_of(CAI_FLOAT64, &dtype, err));
    return cai_storage_init(field, &options, &dtype, &layout, err);
}

/* The faces of a block and of its halo: the kernel reads no edge and no corner. */
static cai_status build_batch(program *p, int which, cai_error *err)
{
    const cai_mpi_options options = {(int32_t)p->is.engine, 10.0, &p->pool, &p->hooks, p->transfer, p->comm};
    const cai_layout *const layout = &p->fields[which].layout;
    const cai_mpi_halo_options halo = {p->comm, layout->halo_low, layout->halo_high, NULL, 1, 0};
    cai_array field = p->fields[which].array[1];
    int32_t count;
    if (p->is.wrong == p->rank) CAI_TRY(cai_view_slice(&field, 1, 0, p->shape[1] + 1, 1, &field, err));
    CAI_TRY(cai_stream_export(&field, &p->pool, p->compute, NULL, 0, err)); /* where its work is */
    CAI_TRY(cai_mpi_halo(&field, &halo, p->messages[which], p->faces[which], 12, &count, err));
    return cai_mpi_open(&p->batches[which], &options, p->messages[which], count, err);
}

/* Fills the block with numbers that depend on the place in the field alone. */
static cai_status fill(program *p, cai_error *err)
{
    cai_storage_access access;
    int64_t i, j, k;
    CAI_TRY(cai_storage_begin(&access, &p->fields[0], CAI_SIDE_HOST, CAI_OVERWRITE, 0, err));
    memset((void *)(uintptr_t)access.array.data, 0, (size_t)access.array.nbytes);
    for (i = 0; i < p->shape[0]; ++i) {
        for (j = 0; j < p->shape[1]; ++j) {
            for (k = 0; k < p->shape[2]; ++k) {
                const int64_t place =
                    ((p->first[0] + i) * p->global[1] + p->first[1] + j) * p->global[2] + p->first[2] + k;
                const int64_t offset = (i + 1) * access.array.strides[0] + (j + 1) * access.array.strides[1] +
                                       (k + 1) * access.array.strides[2];
                *(double *)(uintptr_t)(access.array.data + (uint64_t)offset) =
                    (double)(place * 7919 % 10007) / 10007;
            }
        }
    }
    return cai_storage_end(&access, CAI_OK, err);
}

static cai_status build(program *p, cai_error *err)
{
    const int periods[3] = {1, 1, 1};
    int axis, i;
    MPI_Comm_size(MPI_COMM_WORLD, &p->ranks);
    MPI_Dims_create(p->ranks, 3, p->dims);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* the new one inherits it */
    MPI_Cart_create(MPI_COMM_WORLD, 3, p->dims, periods, 0, &p->comm);
    MPI_Comm_rank(p->comm, &p->rank);
    MPI_Cart_coords(p->comm, p->rank, 3, p->at);
    for (axis = 0; axis < 3; ++axis) {
        p->global[axis] = p->is.n * (p->is.weak ? p->dims[axis] : 1);
        p->first[axis] = p->global[axis] * p->at[axis] / p->dims[axis];
        p->shape[axis] = p->global[axis] * (p->at[axis] + 1) / p->dims[axis] - p->first[axis];
    }
    p->sim = cai_sim_create(1);
    (void)cai_sim_set_context(p->sim, cai_sim_primary(p->sim, 0));
    p->home = cai_sim_stream_create(p->sim, 1);
    p->compute = cai_sim_stream_create(p->sim, 1);
    p->transfer = cai_sim_stream_create(p->sim, 1);
    CAI_TRY(cai_event_pool_init(&p->pool, cai_sim_cuda(p->sim), NULL, 0, 0, err));
    CAI_TRY(cai_emm_hooks_cuda(&p->hooks, cai_sim_cuda(p->sim), err));
    for (i = 0; i < 2; ++i) {
        CAI_TRY(build_field(p, &p->fields[i], err));
        CAI_TRY(build_batch(p, i, err));
    }
    return fill(p, err);
}

/* ------------------------------------------------------------------- running */
static cai_status step(program *p, int from, cai_error *err)
{
    cai_mpi_batch *const batch = &p->batches[from];
    cai_storage_access in, out;
    cai_status status, ended;
    CAI_TRY(
        cai_storage_begin(&in, &p->fields[from], CAI_SIDE_DEVICE, CAI_WRITE, p->compute, err)); /* the halo */
    status = cai_storage_begin(&out, &p->fields[1 - from], CAI_SIDE_DEVICE, CAI_OVERWRITE, p->compute, err);
    if (status) {
        ended = cai_storage_end(&in, status, NULL);
        return ended;
    }
    status = cai_mpi_start(batch, err);
    if (!status) status = launch_part(p, from, &in.array, &out.array, 0, err);
    if (!status && p->is.early) status = launch_part(p, from, &in.array, &out.array, 1, err);
    if (!status) status = cai_mpi_finish(batch, err);
    if (!status && !p->is.early) status = launch_part(p, from, &in.array, &out.array, 1, err);
    status = cai_storage_end(&out, status, err);
    return cai_storage_end(&in, status, err);
}

/* Prints a number that depends on all bits of the field. */
static cai_status result(program *p, cai_storage *field, double seconds, cai_error *err)
{
    const size_t size = (size_t)(p->global[0] * p->global[1] * p->global[2]);
    uint64_t *const mine = (uint64_t *)calloc(size, 8), *const all = (uint64_t *)calloc(size, 8);
    uint64_t hash = 14695981039346656037u;
    cai_storage_access access;
    cai_array domain;
    size_t n;
    int64_t i, j;
    if (!mine || !all) return cai_cuda_status(2, "result", err);
    CAI_TRY(cai_storage_begin(&access, field, CAI_SIDE_HOST, CAI_READ, 0, err));
    CAI_TRY(cai_view_domain(&access.array, field->layout.halo_low, field->layout.halo_high, &domain, err));
    for (i = 0; i < p->shape[0]; ++i) {
        for (j = 0; j < p->shape[1]; ++j) {
            const int64_t place =
                ((p->first[0] + i) * p->global[1] + p->first[1] + j) * p->global[2] + p->first[2];
            const uint64_t row = domain.data + (uint64_t)(i * domain.strides[0] + j * domain.strides[1]);
            memcpy(mine + place, (const void *)(uintptr_t)row, (size_t)p->shape[2] * 8);
        }
    }
    CAI_TRY(cai_storage_end(&access, CAI_OK, err));
    MPI_Reduce(mine, all, (int)size, MPI_UINT64_T, MPI_BXOR, 0, p->comm); /* each place has one rank */
    for (n = 0; n < size; ++n) hash = (hash ^ all[n]) * 1099511628211u;
    if (p->rank == 0)
        printf("%d ranks as %d x %d x %d: %016llx, %.3f ms per step\n", p->ranks, p->dims[0], p->dims[1],
               p->dims[2], (unsigned long long)hash, 1e3 * seconds / (double)p->is.steps);
    free(mine);
    free(all);
    return CAI_OK;
}

static cai_status destroy(program *p, cai_error *err)
{
    cai_status status;
    int i;
    for (i = 0; i < 2; ++i) {
        CAI_TRY(cai_mpi_close(&p->batches[i], err));
        CAI_TRY(cai_storage_release(&p->fields[i], err));
    }
    status = cai_event_pool_destroy(&p->pool, err);
    return status;
}

static cai_status run(program *p, cai_error *err)
{
    double begin;
    int64_t i;
    CAI_TRY(build(p, err));
    if (p->is.check) watch_sim = p->sim;
    if (p->is.wait) (void)cai_sim_omit_op(p->sim, "stream_synchronize", (int32_t)p->is.wait);
    if (p->is.edge) (void)cai_sim_omit_op(p->sim, "stream_wait_event", (int32_t)p->is.edge);
    MPI_Barrier(p->comm);
    begin = MPI_Wtime();
    for (i = 0; i < p->is.steps; ++i) {
        if (p->is.dies == p->rank && i == 1) exit(9);
        CAI_TRY(step(p, (int)(i % 2), err));
    }
    CAI_TRY(cai_cuda_status(cai_sim_stream_synchronize(p->sim, p->compute), "stream_synchronize", err));
    CAI_TRY(result(p, &p->fields[p->is.steps % 2], MPI_Wtime() - begin, err));
    watch_sim = NULL;
    return destroy(p, err);
}

/* What the checker finds in this rank. */
static int races(const program *p)
{
    cai_check_race found[1];
    char text[CAI_CHECK_TEXT];
    const int32_t count = p->is.check ? cai_check_races(p->sim, found, 1) : 0;
    if (!count) return 0;
    cai_check_race_text(p->sim, &found[0], text);
    printf("rank %d, %d races: %s\n", p->rank, (int)count, text);
    return 1;
}

int main(int argc, char **argv)
{
    static program p;
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {{"n", offsetof(arguments, n)},         {"weak", offsetof(arguments, weak)},
                 {"steps", offsetof(arguments, steps)}, {"engine", offsetof(arguments, engine)},
                 {"check", offsetof(arguments, check)}, {"wait", offsetof(arguments, wait)},
                 {"edge", offsetof(arguments, edge)},   {"early", offsetof(arguments, early)},
                 {"dies", offsetof(arguments, dies)},   {"wrong", offsetof(arguments, wrong)}};
    cai_error err;
    size_t name;
    int i, racy, any = 0;
    MPI_Init(&argc, &argv);
    p.is.n = 24;
    p.is.steps = 4;
    p.is.dies = p.is.wrong = -1;
    for (i = 1; i < argc; ++i) {
        for (name = 0; name < sizeof names / sizeof names[0]; ++name) {
            const size_t length = strlen(names[name].name);
            if (strncmp(argv[i], names[name].name, length) || argv[i][length] != '=') continue;
            *(int64_t *)(void *)((char *)&p.is + names[name].offset) = strtoll(argv[i] + length + 1, NULL, 0);
        }
    }
    if (run(&p, &err)) {
        printf("rank %d: %s\n", p.rank, err.message);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1); /* no rank waits for this one for ever */
    }
    racy = races(&p);
    MPI_Allreduce(&racy, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    cai_sim_destroy(p.sim);
    MPI_Finalize();
    return any;
}
