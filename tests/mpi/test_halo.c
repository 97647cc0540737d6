/* test_halo.c - cai_mpi_halo: all elements of halos of random fields, on any number of ranks, and errors
 * SPDX-License-Identifier: MIT
 *
 * Without HALO_DEVICE the fields are in memory of the host: no CUDA, no pool and no simulation. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"
#if defined(HALO_DEVICE)
#include "sim/cai_sim.h"
#endif
#include "cai_test.h"

enum { CASES = 60, MOST = CAI_MPI_MESSAGES };

static cai_error err;
static int ranks;
static uint32_t seed = 1;

/* The same numbers on all ranks. */
static int draw(int below)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 16) % (uint32_t)below);
}

/* ------------------------------------------------------------------- memory */
#if defined(HALO_DEVICE)
static cai_sim *sim;
static cai_event_pool pool;
static cai_emm_hooks hooks;
static uint64_t producer, transfer;
enum { ENGINES = 3 };

static void begin(void)
{
    sim = cai_sim_create(1);
    (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    producer = cai_sim_stream_create(sim, 1);
    transfer = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_emm_hooks_cuda(&hooks, cai_sim_cuda(sim), &err), CAI_OK);
}

static void end(void)
{
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    cai_sim_destroy(sim);
}

static int32_t *allocate(size_t bytes)
{
    return (int32_t *)(uintptr_t)cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, bytes);
}

static void release(int32_t *memory)
{
    (void)cai_sim_stream_synchronize(sim, producer);
    (void)cai_sim_free(sim, (uint64_t)(uintptr_t)memory);
}

static const int32_t *look(const int32_t *memory)
{
    CHECK_INT(cai_sim_stream_synchronize(sim, producer), 0);
    return (const int32_t *)cai_sim_bytes(sim, (uint64_t)(uintptr_t)memory);
}

static void place(cai_array *field, cai_mpi_options *options)
{
    CHECK_INT(cai_stream_export(field, &pool, producer, NULL, 0, &err), CAI_OK);
    options->pool = &pool;
    options->hooks = &hooks;
    options->stream = transfer;
}
#else
enum { ENGINES = 1 };

static void begin(void)
{
}
static void end(void)
{
}
static int32_t *allocate(size_t bytes)
{
    return (int32_t *)malloc(bytes);
}
static void release(int32_t *memory)
{
    free(memory);
}
static const int32_t *look(const int32_t *memory)
{
    return memory;
}

static void place(cai_array *field, cai_mpi_options *options)
{
    field->sync = CAI_SYNC_NONE;
    options->engine = CAI_MPI_DIRECT;
}
#endif

/* -------------------------------------------------------------------- cases */
/* A field of up to 4 axes, of which up to 3 are distributed. `first` and `inside`: of the block of this rank. */
typedef struct setting {
    int ndim, dims, periods[3], split[3], at[3];
    int32_t axes[3];
    int64_t low[4], high[4], global[4], first[4], inside[4], shape[4], strides[4], size;
    cai_mpi_halo_options halo;
} setting;

static void build_shape(setting *s, int fortran)
{
    int64_t step = 4;
    int i, d;
    for (i = 0; i < s->ndim; ++i) {
        s->low[i] = draw(3);
        s->high[i] = draw(3);
        s->global[i] = s->inside[i] = 1 + draw(3);
        s->shape[i] = s->inside[i] + s->low[i] + s->high[i]; /* sent in whole */
        s->first[i] = s->low[i];
    }
    for (d = 0; d < s->dims; ++d) {
        i = s->axes[d];
        s->global[i] = 2 * s->split[d] + draw(6);
        s->first[i] = s->global[i] * s->at[d] / s->split[d];
        s->inside[i] = s->global[i] * (s->at[d] + 1) / s->split[d] - s->first[i];
        s->shape[i] = s->inside[i] + s->low[i] + s->high[i];
    }
    for (d = 0; d < s->ndim; ++d) {
        i = fortran ? d : s->ndim - 1 - d;
        s->strides[i] = step;
        step *= s->shape[i];
    }
    s->size = step / 4;
}

static void build(setting *s)
{
    int i, d, rank;
    memset(s, 0, sizeof *s);
    s->dims = 1 + draw(3);
    s->ndim = s->dims + draw(5 - s->dims);
    for (d = 0; d < s->dims; ++d) {
        s->periods[d] = draw(2);
        do {
            s->axes[d] = (int32_t)draw(s->ndim);
            for (i = 0; i < d && s->axes[i] != s->axes[d];) ++i;
        } while (i < d);
    }
    MPI_Dims_create(ranks, s->dims, s->split);
    MPI_Cart_create(MPI_COMM_WORLD, s->dims, s->split, s->periods, 0, &s->halo.comm);
    MPI_Comm_set_errhandler(s->halo.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(s->halo.comm, &rank);
    MPI_Cart_coords(s->halo.comm, rank, s->dims, s->at);
    build_shape(s, draw(2));
    s->halo.halo_low = s->low;
    s->halo.halo_high = s->high;
    s->halo.axes = s->axes;
    s->halo.faces = draw(3) == 0;
    s->halo.tag = 100 * draw(3);
}

/* What element n must be, before and after: its place in the whole field, or -1. */
static int32_t expected(const setting *s, int64_t n, int after)
{
    int64_t place = 0;
    int i, d, outside = 0, beyond = 0;
    for (i = 0; i < s->ndim; ++i) {
        int64_t at = n / (s->strides[i] / 4) % s->shape[i], extent = s->shape[i];
        for (d = 0; d < s->dims; ++d) {
            if (s->axes[d] != i) continue;
            outside += at < s->low[i] || at >= s->low[i] + s->inside[i];
            at += s->first[i] - s->low[i];
            extent = s->global[i];
            if (!s->periods[d] && (at < 0 || at >= extent)) beyond = 1;
            at = (at + extent) % extent;
        }
        place = place * extent + at;
    }
    if (outside && (!after || beyond || (outside > 1 && s->halo.faces))) return -1;
    return (int32_t)place;
}

static void test_case(int number, int engine)
{
    static cai_array parts[MOST];
    static cai_mpi_message list[MOST];
    setting s;
    cai_array field;
    cai_mpi_options options;
    cai_mpi_batch batch;
    int32_t *memory, count, most;
    const int32_t *seen;
    int64_t n, wrong = 0;
    build(&s);
    memory = allocate((size_t)s.size * 4);
    for (n = 0; n < s.size; ++n) ((int32_t *)(uintptr_t)look(memory))[n] = expected(&s, n, 0);
    CHECK_INT(cai_array_init(&field, CAI_INT32, s.ndim, s.shape, s.strides, memory, &err), CAI_OK);
    memset(&options, 0, sizeof options);
    options.engine = engine;
    options.seconds = 5;
    options.comm = s.halo.comm;
    place(&field, &options);
    most = s.halo.faces ? 4 * s.dims : s.dims == 1 ? 4 : s.dims == 2 ? 16 : 52;
    CHECK_INT(cai_mpi_halo(&field, &s.halo, list, parts, most, &count, &err), CAI_OK);
    for (n = 0; n < count; ++n)
        CHECK(list[n].array == &parts[n] && parts[n].size && list[n].peer != MPI_PROC_NULL);
    CHECK_INT(cai_mpi_open(&batch, &options, list, count, &err), CAI_OK);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
    seen = look(memory);
    for (n = 0; n < s.size; ++n) wrong += seen[n] != expected(&s, n, 1);
    if (wrong)
        printf("case %d, engine %d: %ld of %ld elements are wrong\n", number, engine, (long)wrong,
               (long)s.size);
    CHECK_INT(wrong, 0);
    if (cai_test_failures) {
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1); /* the ranks no longer do the same */
    }
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
    release(memory);
    MPI_Comm_free(&s.halo.comm);
}

/* ------------------------------------------------------------------- errors */
static const cai_mpi_halo_options *options_now;

static void refuse(const cai_array *field, cai_status status, int32_t index, const char *text)
{
    int32_t count = 7;
    CHECK_INT(cai_mpi_halo(field, options_now, NULL, NULL, 0, &count, &err), status);
    CHECK_INT(err.index, index);
    CHECK_STR(err.message, text);
    if (status != CAI_ERR_CAPACITY) CHECK_INT(count, 7);
}

static void refuse_widths(const cai_array *field, cai_mpi_halo_options *halo)
{
    static int64_t low[3] = {1, 2, 9}, high[3] = {1, 2, 9};
    halo->halo_low = low;
    halo->halo_high = high;
    low[1] = 3; /* of 6 */
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_low[1] = 3: elements inside: 1");
    low[1] = 1;
    high[1] = 4;
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_high[1] = 4: elements inside: 1");
    low[1] = high[1] = 5;
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_low[1] = 5: elements inside: 0");
    high[1] = INT64_MAX;
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_high[1] = 9223372036854775807: elements inside: 6");
    low[1] = -1;
    high[1] = 0;
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_low[1] = -1: elements inside: 6");
    low[1] = 0;
    high[1] = -2;
    refuse(field, CAI_ERR_SHAPE, 1, "cai_mpi_halo: halo_high[1] = -2: elements inside: 6");
    low[1] = high[1] = 2; /* as many as there are inside */
    refuse(field, CAI_ERR_CAPACITY, -1, "cai_mpi_halo: capacity = 0: messages needed: 16");
}

static void refuse_axes(const cai_array *field, cai_mpi_halo_options *halo)
{
    static int32_t axes[2] = {0, 3};
    cai_array line;
    halo->axes = axes;
    refuse(field, CAI_ERR_ARGUMENT, 1, "cai_mpi_halo: axes[1] = 3: axes of the field: 3");
    axes[1] = -1;
    refuse(field, CAI_ERR_ARGUMENT, 1, "cai_mpi_halo: axes[1] = -1: axes of the field: 3");
    axes[1] = 0;
    refuse(field, CAI_ERR_ARGUMENT, 1, "cai_mpi_halo: axes[1] = 0: so is axis 0");
    halo->axes = NULL;
    CHECK_INT(cai_view_index(field, 2, 0, &line, &err), CAI_OK);
    CHECK_INT(cai_view_index(&line, 0, 0, &line, &err), CAI_OK);
    refuse(&line, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.comm has 2 dimensions: axes of the field: 1");
}

static void refuse_comm(const cai_array *field, cai_mpi_halo_options *halo)
{
    int sizes[10] = {0}, i;
    int64_t shape[10], none[10] = {0};
    const MPI_Comm right = halo->comm;
    cai_array large;
    for (i = 0; i < 10; ++i) sizes[i] = i ? 1 : ranks;
    for (i = 0; i < 10; ++i) shape[i] = 1;
    halo->comm = MPI_COMM_WORLD;
    refuse(field, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.comm is not of MPI_Cart_create");
    halo->comm = MPI_COMM_NULL;
    refuse(field, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.comm is not of MPI_Cart_create");
    CHECK_INT(cai_array_init(&large, CAI_INT32, 10, shape, NULL, (void *)(uintptr_t)field->data, &err),
              CAI_OK);
    MPI_Cart_create(MPI_COMM_WORLD, 10, sizes, sizes, 0, &halo->comm);
    halo->halo_low = halo->halo_high = none;
    refuse(&large, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.comm has 10 dimensions: at most 9");
    MPI_Comm_free(&halo->comm);
    halo->comm = right;
}

static void refuse_arguments(const cai_array *field, cai_mpi_halo_options *halo)
{
    static const char *const missing = "cai_mpi_halo: options, a width, list, parts or count is NULL";
    const int64_t *const widths = halo->halo_high;
    cai_mpi_message list[8];
    cai_array parts[8];
    int32_t count;
    options_now = NULL;
    refuse(field, CAI_ERR_ARGUMENT, -1, missing);
    options_now = halo;
    CHECK_INT(cai_mpi_halo(NULL, halo, list, parts, 8, &count, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_halo(field, halo, NULL, parts, 8, &count, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_halo(field, halo, list, NULL, 8, &count, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_halo(field, halo, list, parts, 8, NULL, &err), CAI_ERR_ARGUMENT);
    halo->halo_high = NULL;
    refuse(field, CAI_ERR_ARGUMENT, -1, missing);
    halo->halo_low = NULL;
    halo->halo_high = widths;
    refuse(field, CAI_ERR_ARGUMENT, -1, missing);
    halo->halo_low = widths;
    halo->tag = -1;
    refuse(field, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.tag = -1");
    halo->tag = INT32_MAX;
    refuse(field, CAI_ERR_ARGUMENT, -1, "cai_mpi_halo: options.tag = 2147483647");
    halo->tag = 0;
    list[7].array = NULL;
    CHECK_INT(cai_mpi_halo(field, halo, list, parts, 7, &count, &err), CAI_ERR_CAPACITY);
    CHECK(count == 16 && !list[7].array);
}

static void test_errors(void)
{
    const int64_t shape[3] = {4, 6, 2}, widths[3] = {1, 1, 1};
    const int periods[2] = {1, 1};
    int split[2] = {0, 0};
    cai_mpi_halo_options halo = {MPI_COMM_NULL, widths, widths, NULL, 0, 0};
    cai_array field;
    int32_t *const memory = allocate(4 * 6 * 2 * 4);
    CHECK_INT(cai_array_init(&field, CAI_INT32, 3, shape, NULL, memory, &err), CAI_OK);
    MPI_Dims_create(ranks, 2, split);
    MPI_Cart_create(MPI_COMM_WORLD, 2, split, periods, 0, &halo.comm);
    refuse_arguments(&field, &halo);
    refuse_comm(&field, &halo);
    halo.halo_low = halo.halo_high = widths;
    refuse_axes(&field, &halo);
    refuse_widths(&field, &halo);
    MPI_Comm_free(&halo.comm);
    release(memory);
}

int main(void)
{
    int number, engine, failed;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    begin();
    for (number = 0; number < CASES; ++number) {
        const uint32_t before = seed;
        for (engine = 0; engine < ENGINES; ++engine) {
            seed = before;
            test_case(number, engine);
        }
    }
    test_errors();
    end();
    failed = cai_test_end();
    MPI_Finalize();
    return failed;
}
