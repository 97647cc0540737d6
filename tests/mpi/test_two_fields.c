/* test_two_fields.c - docs/communication.md: two fields have halos at once, each in a batch of its own
 * SPDX-License-Identifier: MIT
 *
 * run_mpi.py puts my_halo and open_halo of the page into halo_of_page.h. Every element of both fields is compared with
 * a formula of its place in the whole field. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"
#include "cai_test.h"
#include "halo_of_page.h"

enum { STEPS = 3, DEPTH = 2, LOW_0 = 1, LOW_1 = 2 }; /* widths of the page: 1 of axis 0, 2 of axis 1, none of axis 2 */

static cai_error err;

/* The block of this rank. The page's axis 1 goes along dimension 0 of cart, and axis 0 along dimension 1. */
typedef struct block {
    MPI_Comm cart;
    int64_t inside[2], first[2], whole[2]; /* of axes 0 and 1 */
    int64_t shape[3];
} block;

static void split(block *b, int ranks)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, at[2], rank, axis;
    b->whole[0] = 5;
    b->whole[1] = 11;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &b->cart);
    MPI_Comm_rank(b->cart, &rank);
    MPI_Cart_coords(b->cart, rank, 2, at);
    for (axis = 0; axis < 2; ++axis) {
        const int place = at[1 - axis], count = dims[1 - axis];
        b->first[axis] = b->whole[axis] * place / count;
        b->inside[axis] = b->whole[axis] * (place + 1) / count - b->first[axis];
    }
    b->shape[0] = b->inside[0] + 2 * LOW_0;
    b->shape[1] = b->inside[1] + 2 * LOW_1;
    b->shape[2] = DEPTH;
}

static int64_t length(const block *b)
{
    return b->shape[0] * b->shape[1] * b->shape[2];
}

/* Element n of a field: a number of its place in the whole field, of the field and of the step; -1 in a halo, if that
 * was not filled or is beyond the edge of axis 0. Axis 1 is periodic. */
static int32_t value(const block *b, int64_t n, int field, int step, int filled)
{
    const int64_t k = n % DEPTH, in_1 = n / DEPTH % b->shape[1] - LOW_1, in_0 = n / DEPTH / b->shape[1] - LOW_0;
    const int64_t i = b->first[0] + in_0, j = (b->first[1] + in_1 + b->whole[1]) % b->whole[1];
    const int outside = in_0 < 0 || in_0 >= b->inside[0] || in_1 < 0 || in_1 >= b->inside[1];
    if (outside && (!filled || i < 0 || i >= b->whole[0])) return -1;
    return (int32_t)(10000 * (field + 1) + 1000 * step + (i * b->whole[1] + j) * DEPTH + k);
}

static void compare(const block *b, int step, int32_t *const memory[2])
{
    int64_t n, wrong[2] = {0, 0};
    for (n = 0; n < length(b); ++n) {
        wrong[0] += memory[0][n] != value(b, n, 0, step, 1);
        wrong[1] += memory[1][n] != value(b, n, 1, step, 1);
    }
    CHECK_INT(wrong[0], 0);
    CHECK_INT(wrong[1], 0);
}

static void test_two_fields(const block *b)
{
    static my_halo halos[2];
    int32_t *memory[2];
    cai_mpi_options options;
    cai_array fields[2];
    int64_t n;
    int step, i;
    memset(&options, 0, sizeof options);
    options.engine = CAI_MPI_DIRECT;
    options.comm = b->cart;
    options.seconds = 5;
    for (i = 0; i < 2; ++i) {
        memory[i] = (int32_t *)malloc((size_t)length(b) * sizeof *memory[i]);
        if (!memory[i]) exit(2);
        CHECK_INT(cai_array_init(&fields[i], CAI_INT32, 3, b->shape, NULL, memory[i], &err), CAI_OK);
        fields[i].sync = CAI_SYNC_NONE;
        CHECK_INT(open_halo(&halos[i], &fields[i], b->cart, &options, &err), CAI_OK);
    }
    for (step = 0; step < STEPS; ++step) {
        for (n = 0; n < length(b); ++n) {
            memory[0][n] = value(b, n, 0, step, 0);
            memory[1][n] = value(b, n, 1, step, 0);
        }
        for (i = 0; i < 2; ++i) CHECK_INT(cai_mpi_start(&halos[i].batch, &err), CAI_OK);
        for (i = 0; i < 2; ++i) CHECK_INT(cai_mpi_finish(&halos[i].batch, &err), CAI_OK);
        compare(b, step, memory);
    }
    for (i = 0; i < 2; ++i) {
        CHECK_INT(cai_mpi_close(&halos[i].batch, &err), CAI_OK);
        free(memory[i]);
    }
}

int main(void)
{
    block b;
    int ranks, failed;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    split(&b, ranks);
    test_two_fields(&b);
    MPI_Comm_free(&b.cart);
    failed = cai_test_end();
    MPI_Finalize();
    return failed;
}
