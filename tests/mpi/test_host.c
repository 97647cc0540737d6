/* test_host.c - ext/cai_mpi.h on nodes without a GPU: arrays of the host, no pool, no table of CUDA
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"
#include "cai_test.h"

#if defined(__CUDA_RUNTIME_API_H__) || defined(__cuda_cuda_h__)
#error "a header of CUDA is here"
#endif

static cai_error err;
static float field[6][8];

typedef struct pair {
    cai_array parts[2];
    cai_mpi_message messages[2];
    cai_mpi_options options;
} pair;

/* A column, which is sent to another one by a message to itself. */
static void build(pair *p)
{
    const int64_t shape[1] = {6}, strides[1] = {8 * sizeof(float)};
    int i;
    memset(p, 0, sizeof *p);
    for (i = 0; i < 6 * 8; ++i) field[i / 8][i % 8] = (float)i;
    for (i = 0; i < 2; ++i) {
        CHECK_INT(cai_array_init(&p->parts[i], CAI_FLOAT32, 1, shape, strides, &field[0][7 * i], &err),
                  CAI_OK);
        p->parts[i].sync = CAI_SYNC_NONE;
        p->messages[i].array = &p->parts[i];
        p->messages[i].receives = i;
    }
    p->options.engine = CAI_MPI_DIRECT;
    p->options.seconds = 20;
    p->options.comm = MPI_COMM_SELF;
}

static void test_direct(void)
{
    pair p;
    cai_mpi_batch batch;
    int step, row;
    build(&p);
    CHECK_INT(cai_mpi_open(&batch, &p.options, p.messages, 2, &err), CAI_OK);
    for (step = 0; step < 2; ++step) {
        for (row = 0; row < 6; ++row) field[row][0] = (float)(100 * step + row);
        CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
        CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
        for (row = 0; row < 6; ++row) CHECK(field[row][7] == (float)(100 * step + row));
        CHECK(field[1][6] == 14 && p.parts[1].sync == CAI_SYNC_NONE && !p.parts[1].stream);
    }
    p.parts[0].shape[0] = p.parts[0].size = 5; /* what is checked with a pool is checked without one */
    p.parts[0].nbytes = 20;
    p.parts[0].hi = 4 * 32 + 4;
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "the array has 20 bytes, and had 24 before");
    CHECK_INT(err.index, 0);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
}

/* Nothing could wait for it. */
static void test_pending(void)
{
    static const char *const kinds[] = {"work may be pending (CAI_SYNC_UNKNOWN)", "",
                                        "stream 7 has pending work", "event 9 has pending work"};
    int32_t sync, which;
    for (sync = CAI_SYNC_UNKNOWN; sync <= CAI_SYNC_EVENT; ++sync) {
        for (which = 0; which < 2; ++which) {
            pair p;
            cai_mpi_batch batch;
            char text[200];
            build(&p);
            CHECK_INT(cai_mpi_open(&batch, &p.options, p.messages, 2, &err), CAI_OK);
            p.parts[which].sync = sync;
            p.parts[which].stream = sync == CAI_SYNC_STREAM ? 7 : 0;
            p.parts[which].event = sync == CAI_SYNC_EVENT ? 9 : 0;
            (void)snprintf(text, sizeof text, "cai_mpi_start: message %d: %s, and options.pool is NULL",
                           (int)which, kinds[sync]);
            if (sync == CAI_SYNC_NONE) {
                CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
                CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
            } else {
                CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_ARGUMENT);
                CHECK_INT(err.index, which);
                CHECK_STR(err.message, text);
                p.messages[which].peer = MPI_PROC_NULL; /* nobody to send it to */
                p.messages[1 - which].peer = MPI_PROC_NULL;
                CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
            }
            CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
        }
    }
}

/* The other engines have buffers and streams. */
static void test_no_pool(void)
{
    cai_event_pool unmade;
    pair p;
    cai_mpi_batch batch;
    int engine;
    build(&p);
    memset(&unmade, 0, sizeof unmade);
    for (engine = CAI_MPI_STAGED; engine <= CAI_MPI_DIRECT; ++engine) {
        const int direct = engine == CAI_MPI_DIRECT;
        p.options.engine = engine;
        p.options.pool = direct ? &unmade : NULL;
        CHECK_INT(cai_mpi_open(&batch, &p.options, p.messages, 2, &err), CAI_ERR_ARGUMENT);
        CHECK_STR(err.message,
                  direct ? "cai_mpi_open: options.pool is not made" : "cai_mpi_open: options.pool is NULL");
    }
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_direct();
    test_pending();
    test_no_pool();
    MPI_Finalize();
    return cai_test_end();
}
