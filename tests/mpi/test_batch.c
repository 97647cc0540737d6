/* test_batch.c - ext/cai_mpi.h: messages to itself in all orders, each ordering call left out in turn, errors
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi.h"
#include "sim/cai_check.h"
#include "cai_test.h"
#include "mpi_watch.h"

enum { ROWS = 6, COLUMNS = 8, BYTES = ROWS * COLUMNS * 4 };

static cai_error err;
static const char *const engines[] = {"staged", "packed", "direct"};

/* ------------------------------------------------------------------ programs */
typedef struct plan {
    int engine;
    int early; /* writes what was sent before the messages are finished */
    int freed; /* frees the field before that */
    int hasty; /* uses what is received before that */
} plan;

typedef struct world {
    cai_sim *sim;
    cai_event_pool pool;
    cai_emm_hooks hooks;
    uint64_t producer, stream, memory;
    cai_array field, parts[4]; /* a row and a column that are sent, those that are received */
    cai_mpi_message messages[4];
    cai_mpi_options options;
} world;

static void good(const world *w, cai_status status, const char *what)
{
    char text[400];
    if (!status) return;
    (void)snprintf(text, sizeof text, "%s: status %d, %s", what, (int)status, err.message);
    cai_check_fail(w->sim, text);
}

static void view(const cai_array *of, int64_t row, int64_t rows, int64_t column, int64_t columns,
                 cai_array *out)
{
    cai_array some;
    CHECK_INT(cai_view_slice(of, 0, row, rows, 1, &some, &err), CAI_OK);
    CHECK_INT(cai_view_slice(&some, 1, column, columns, 1, out, &err), CAI_OK);
}

/* A field with the last row and column inside sent to the first ones outside, by messages to itself. */
static void build(world *w, cai_sim *sim, int engine)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    int i;
    memset(w, 0, sizeof *w);
    w->sim = sim;
    w->producer = cai_sim_stream_create(sim, 1);
    w->stream = cai_sim_stream_create(sim, 1);
    w->memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, BYTES);
    good(w, cai_event_pool_init(&w->pool, cai_sim_cuda(sim), NULL, 0, 0, &err), "pool");
    good(w, cai_emm_hooks_cuda(&w->hooks, cai_sim_cuda(sim), &err), "hooks");
    good(w, cai_array_init(&w->field, CAI_FLOAT32, 2, shape, NULL, (void *)(uintptr_t)w->memory, &err),
         "init");
    good(w, cai_stream_export(&w->field, &w->pool, w->producer, NULL, 0, &err), "export");
    view(&w->field, 4, 1, 1, 6, &w->parts[0]);
    view(&w->field, 1, 3, 6, 1, &w->parts[1]);
    view(&w->field, 0, 1, 1, 6, &w->parts[2]);
    view(&w->field, 1, 3, 0, 1, &w->parts[3]);
    for (i = 0; i < 4; ++i) {
        w->messages[i].array = &w->parts[i];
        w->messages[i].tag = i % 2;
        w->messages[i].receives = i / 2;
    }
    w->options.engine = engine;
    w->options.seconds = 20;
    w->options.pool = &w->pool;
    w->options.hooks = &w->hooks;
    w->options.stream = w->stream;
    w->options.comm = MPI_COMM_SELF;
    watch_sim = sim;
}

static void pull_down(world *w)
{
    watch_sim = NULL;
    (void)cai_sim_stream_synchronize(w->sim, w->producer);
    (void)cai_sim_stream_destroy(w->sim, w->stream);
    (void)cai_sim_stream_destroy(w->sim, w->producer);
    (void)cai_sim_free(w->sim, w->memory);
    good(w, cai_event_pool_destroy(&w->pool, &err), "destroy");
}

/* Work of the producer on the field. `inside`: 1 writes what is inside; `outside`: 1 reads what is outside. */
static void work(world *w, const char *name, int inside, int outside)
{
    cai_sim_access accesses[2 * ROWS];
    int32_t row, count = 0;
    for (row = 1; inside && row <= 4; ++row)
        accesses[count++] = cai_sim_writes(w->memory + (uint64_t)(row * COLUMNS + 1) * 4, 6 * 4);
    if (outside) accesses[count++] = cai_sim_reads(w->memory + 4, 6 * 4);
    for (row = 1; outside && row <= 3; ++row)
        accesses[count++] = cai_sim_reads(w->memory + (uint64_t)(row * COLUMNS) * 4, 4);
    if (cai_sim_touch(w->sim, w->producer, name, accesses, count)) cai_check_fail(w->sim, "touch failed");
}

static void exchange_twice(cai_sim *sim, void *argument)
{
    const plan *const what = (const plan *)argument;
    world w;
    cai_mpi_batch batch;
    int step;
    build(&w, sim, what->engine);
    work(&w, "fill", 1, 0);
    good(&w, cai_mpi_open(&batch, &w.options, w.messages, 4, &err), "open");
    for (step = 0; step < 2; ++step) {
        good(&w, cai_mpi_start(&batch, &err), "start");
        if (what->early) work(&w, "early", 1, 0);
        if (what->hasty) work(&w, "too early", 0, 1);
        if (what->freed) (void)cai_sim_free(sim, w.memory); /* it has no pending work */
        good(&w, cai_mpi_finish(&batch, &err), "finish");
        if (what->freed) break;
        work(&w, "step", 1, 1);
    }
    good(&w, cai_mpi_close(&batch, &err), "close");
    pull_down(&w);
}

/* ------------------------------------------------------------------- orders */
static void test_orders(void)
{
    int engine, early;
    for (engine = 0; engine < 3; ++engine) {
        for (early = 0; early < 2; ++early) {
            const int right = !early || engine != CAI_MPI_DIRECT;
            plan what = {0, 0, 0, 0};
            cai_check_result result;
            what.engine = engine;
            what.early = early;
            CHECK_INT(cai_check(exchange_twice, &what, NULL, &result), !right);
            printf("%s%s: %ld orders, %s%s\n", engines[engine], early ? ", sent arrays written early" : "",
                   (long)result.orders, result.text[0] ? "found: " : "no race", result.text);
        }
    }
}

/* Mistakes of the program, not of the header: an array that MPI reads or writes is used, or not kept alive.
 * With buffers the first is in order, but reads old values. */
static void test_mistakes(void)
{
    int engine;
    for (engine = 0; engine < 3; ++engine) {
        plan what = {0, 0, 0, 1};
        cai_check_result result;
        what.engine = engine;
        CHECK_INT(cai_check(exchange_twice, &what, NULL, &result), engine == CAI_MPI_DIRECT);
        printf("%s, received arrays used early: %s\n", engines[engine],
               result.text[0] ? result.text : "no race");
        what.hasty = 0;
        what.freed = 1;
        CHECK_INT(cai_check(exchange_twice, &what, NULL, &result), 1);
        printf("%s, arrays freed early: %s\n", engines[engine], result.text);
    }
}

/* Each call that orders, left out. */
static void test_left_out(void)
{
    static const char *const operations[] = {"event_record", "stream_wait_event", "stream_synchronize",
                                             "event_synchronize", "context_synchronize"};
    size_t o;
    int engine, n, found, made;
    for (engine = 0; engine < 3; ++engine) {
        for (o = 0; o < sizeof operations / sizeof operations[0]; ++o) {
            plan what = {0, 0, 0, 0};
            what.engine = engine;
            what.early = what.hasty = engine != CAI_MPI_DIRECT;
            for (n = 1, found = made = 0;; ++n) {
                cai_check_options options = {0, 0, 0, 0, NULL, 0, 0, NULL, NULL};
                cai_check_result result;
                options.omit = operations[o];
                options.omit_call = n;
                const int32_t bad = cai_check(exchange_twice, &what, &options, &result);
                if (!result.omitted) break;
                ++made;
                if (bad) ++found;
            }
            if (!made) continue;
            printf("%s: %s left out: %d of %d found\n", engines[engine], operations[o], found, made);
            if (engine == CAI_MPI_DIRECT) { /* no back edge is needed: MPI has ended before the next work */
                CHECK_INT(found, 2);
                CHECK_INT(made, o < 2 ? 4 : 2);
            } else if (o < 2) { /* one of four in each step: after the packs the host waits anyway */
                CHECK_INT(found, 6);
                CHECK_INT(made, 8);
            } else { /* close: the hooks wait before each free, the first of them for all */
                CHECK_INT(found, 2);
                CHECK_INT(made, 6);
            }
        }
    }
}

/* ------------------------------------------------------------------- errors */
/* What a message of `sent` elements to an array of `received` elements becomes. */
static cai_status finish_of(int engine, int64_t sent, int64_t received, int32_t tag, double seconds)
{
    cai_sim *sim = cai_sim_create(1);
    world w;
    cai_mpi_batch batch;
    cai_status status, closed;
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    build(&w, sim, engine);
    watch_sim = NULL;
    work(&w, "fill", 1, 0);
    view(&w.field, 4, 1, 1, sent, &w.parts[0]);
    view(&w.field, 0, 1, 1, received, &w.parts[1]);
    w.messages[1].receives = 1;
    w.messages[1].tag = tag;
    w.options.seconds = seconds;
    CHECK_INT(cai_mpi_open(&batch, &w.options, w.messages, 2, &err), CAI_OK);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
    status = cai_mpi_finish(&batch, &err);
    closed = cai_mpi_close(&batch, NULL);
    if (tag) { /* what was sent is still there; MPICH keeps it in the sender's buffer */
        float values[8];
        CHECK(!closed || closed == CAI_ERR_PENDING);
        CHECK_INT(cai_mpi_finish(&batch, NULL), CAI_ERR_ARGUMENT); /* what was to be received is cancelled */
        MPI_Recv(values, 8, MPI_FLOAT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        closed = cai_mpi_close(&batch, NULL);
    }
    CHECK_INT(closed, CAI_OK);
    pull_down(&w);
    cai_sim_destroy(sim);
    return status;
}

static void test_messages(void)
{
    int engine;
    for (engine = 0; engine < 3; ++engine) {
        CHECK_INT(finish_of(engine, 4, 4, 0, 0), CAI_OK);
        CHECK_INT(finish_of(engine, 4, 5, 0, 20), CAI_ERR_MPI);
        CHECK_STR(err.message, "message 1 from rank 0, tag 0, has fewer elements than the array");
        CHECK_INT(err.index, 1);
        CHECK_INT(finish_of(engine, 4, 5, 0, 0), CAI_ERR_MPI);
#if defined(OPEN_MPI) /* 4.1 cuts off a message to itself, and says nothing; between ranks it does */
        CHECK_INT(finish_of(engine, 5, 4, 0, 20), CAI_OK);
#else
        CHECK_INT(finish_of(engine, 5, 4, 0, 0), CAI_ERR_MPI);
        CHECK_INT(finish_of(engine, 5, 4, 0, 20), CAI_ERR_MPI);
        CHECK_INT(err.index, 1);
        CHECK(strstr(err.message, "message 1 from rank 0, tag 0, ") == err.message);
        CHECK(err.native != 0);
#endif
        CHECK_INT(finish_of(engine, 4, 4, 3, 0.05), CAI_ERR_PENDING); /* nobody sends tag 3 */
        CHECK_STR(err.message, err.index ? "message 1 from rank 0, tag 3, did not pass in time"
                                         : "message 0 to rank 0, tag 0, did not pass in time");
    }
}

/* What is received into an array that names no stream, or an event: the array names the stream of the unpack, and
 * that it is one of HIP. */
static void test_unnamed(void)
{
    int engine, kind;
    for (engine = 0; engine < 3; ++engine) {
        for (kind = 0; kind < 4; ++kind) {
            cai_sim *sim = cai_sim_create(1);
            world w;
            cai_mpi_batch batch;
            cai_array *const to = &w.parts[1];
            int direct = engine == CAI_MPI_DIRECT;
            cai_cuda hip = *cai_sim_cuda(sim);
            hip.flags |= (uint32_t)CAI_CUDA_HIP;
            cai_sim_set_context(sim, cai_sim_primary(sim, 0));
            build(&w, sim, engine);
            watch_sim = NULL;
            CHECK_INT(cai_event_pool_init(&w.pool, &hip, NULL, 0, 0, &err), CAI_OK);
            view(&w.field, 4, 1, 1, 4, &w.parts[0]);
            view(&w.field, 0, 1, 1, 4, to);
            w.messages[1].receives = 1;
            w.messages[1].tag = 0;
            if (kind < 2) to->sync = kind ? CAI_SYNC_UNKNOWN : CAI_SYNC_NONE;
            else CHECK_INT(cai_stream_detach(to, &w.pool, &err), CAI_OK);
            if (kind != 2) to->stream = 0;
            CHECK_INT(cai_mpi_open(&batch, &w.options, w.messages, 2, &err), CAI_OK);
            CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
            CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
            if (!direct) CHECK_INT(to->sync, CAI_SYNC_STREAM);
            if (!direct) CHECK_UINT(to->stream, kind == 2 ? w.producer : w.stream);
            if (!direct) CHECK_INT(to->backend, CAI_BACKEND_HIP);
            CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
            if (direct) CHECK_INT(cai_stream_drop_event(to, &w.pool, &err), CAI_OK);
            pull_down(&w);
            cai_sim_destroy(sim);
        }
    }
}

/* A batch of one message to itself, of 4 elements of a row. `column`: to a column instead. */
static void open_pair(world *w, cai_mpi_batch *batch, cai_sim *sim, int engine, int column)
{
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    build(w, sim, engine);
    watch_sim = NULL;
    view(&w->field, 4, 1, 1, 4, &w->parts[0]);
    view(&w->field, 0, column ? 4 : 1, column ? 7 : 1, column ? 1 : 4, &w->parts[1]);
    w->messages[1].receives = 1;
    w->messages[1].tag = 0;
    CHECK_INT(cai_mpi_open(batch, &w->options, w->messages, 2, &err), CAI_OK);
}

static void close_pair(world *w, cai_mpi_batch *batch, cai_sim *sim)
{
    char alive[400];
    CHECK_INT(cai_mpi_close(batch, &err), CAI_OK);
    pull_down(w);
    (void)cai_sim_errors(sim, alive, sizeof alive);
    CHECK_STR(alive, "");
    cai_sim_destroy(sim);
}

/* After a start that failed with messages on their way, nothing is left but to close. */
static void test_half_started(void)
{
    const float ones[4] = {1, 1, 1, 1};
    int engine;
    for (engine = 0; engine < 3; ++engine) {
        cai_sim *sim = cai_sim_create(1);
        world w;
        cai_mpi_batch batch;
        open_pair(&w, &batch, sim, engine, 0);
        w.messages[0].peer = 77;
        CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_MPI);
        CHECK_INT(err.index, 0);
        CHECK(strstr(err.message, "message 0 to rank 77, tag 0, ") == err.message);
        MPI_Send(ones, 4, MPI_FLOAT, 0, 0, MPI_COMM_SELF); /* what is received is there */
        CHECK_INT(cai_mpi_finish(&batch, &err), CAI_ERR_ARGUMENT);
        CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_ARGUMENT);
        close_pair(&w, &batch, sim);
    }
}

/* When time runs out, finish may be called again, or close. */
static void test_late(void)
{
    float ones[4] = {1, 1, 1, 1}, sent[4];
    int engine, again;
    for (engine = 0; engine < 3; ++engine) {
        for (again = 0; again < 2; ++again) {
            cai_sim *sim = cai_sim_create(1);
            world w;
            cai_mpi_batch batch;
            open_pair(&w, &batch, sim, engine, 0);
            batch.options.seconds = 0.02;
            w.messages[1].tag = 3;
            CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
            MPI_Recv(sent, 4, MPI_FLOAT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            CHECK_INT(cai_mpi_finish(&batch, &err), CAI_ERR_PENDING);
            CHECK_STR(err.message, "message 1 from rank 0, tag 3, did not pass in time");
            CHECK_INT(err.index, 1);
            CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_ARGUMENT);
            if (again) {
                MPI_Send(ones, 4, MPI_FLOAT, 0, 3, MPI_COMM_SELF);
                CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
                (void)cai_sim_stream_synchronize(sim, w.stream);
                CHECK_BYTES(cai_sim_bytes(sim, w.parts[1].data), ones, sizeof ones);
                CHECK_INT(cai_mpi_finish(&batch, &err), CAI_ERR_ARGUMENT);
            }
            close_pair(&w, &batch, sim);
        }
    }
}

static void pass(const world *w, cai_mpi_batch *batch)
{
    CHECK_INT(cai_mpi_start(batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_finish(batch, &err), CAI_OK);
    (void)cai_sim_stream_synchronize(w->sim, w->stream);
}

/* Between finish and start the peer may change, the layout may not. Errors have the number of the message. */
static void test_changes(void)
{
    int engine, i;
    for (engine = 0; engine < 3; ++engine) {
        const int direct = engine == CAI_MPI_DIRECT;
        cai_sim *sim = cai_sim_create(1);
        world w;
        cai_mpi_batch batch;
        float *field;
        open_pair(&w, &batch, sim, engine, 1);
        CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
        w.messages[0].peer = w.messages[1].peer = MPI_PROC_NULL;
        CHECK_INT(cai_mpi_open(&batch, &w.options, w.messages, 2, &err), CAI_OK);
        pass(&w, &batch);
        w.messages[0].peer = w.messages[1].peer = 0;
        field = (float *)cai_sim_bytes(sim, w.memory);
        for (i = 0; i < ROWS * COLUMNS; ++i) field[i] = (float)i;
        pass(&w, &batch);
        for (i = 0; i < 4; ++i) CHECK(field[i * COLUMNS + 7] == (float)(4 * COLUMNS + 1 + i));
        CHECK(field[8] == 8 && field[9] == 9); /* what an unpack into a row would have changed */
        view(&w.field, 4, 1, 1, 5, &w.parts[0]);
        CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_EXPECT);
        CHECK_STR(err.message, "the array has 20 bytes, and had 16 before");
        view(&w.field, 4, 1, 1, 4, &w.parts[0]);
        if (!direct) CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
        w.parts[1].stream = 0;
        CHECK_INT(direct ? cai_mpi_start(&batch, &err) : cai_mpi_finish(&batch, &err), CAI_ERR_STREAM);
        CHECK_INT(err.index, 1);
        w.parts[1].stream = w.producer;
        pass(&w, &batch);
        w.messages[0].peer = w.messages[1].peer = MPI_PROC_NULL;
        CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK); /* and closed without a finish */
        close_pair(&w, &batch, sim);
    }
}

/* Two batches with one tag: messages match in the order of the starts, whatever is finished first. */
static void test_same_tag(void)
{
    int engine, i;
    for (engine = 0; engine < 3; ++engine) {
        cai_sim *sim = cai_sim_create(1);
        world w;
        cai_mpi_batch one, two;
        float *field;
        open_pair(&w, &one, sim, engine, 0);
        view(&w.field, 5, 1, 1, 4, &w.parts[2]);
        view(&w.field, 1, 1, 1, 4, &w.parts[3]);
        w.messages[2].receives = 0;
        w.messages[3].tag = 0;
        CHECK_INT(cai_mpi_open(&two, &w.options, w.messages + 2, 2, &err), CAI_OK);
        field = (float *)cai_sim_bytes(sim, w.memory);
        for (i = 0; i < ROWS * COLUMNS; ++i) field[i] = (float)i;
        CHECK_INT(cai_mpi_start(&one, &err), CAI_OK);
        CHECK_INT(cai_mpi_start(&two, &err), CAI_OK);
        CHECK_INT(cai_mpi_finish(&two, &err), CAI_OK);
        CHECK_INT(cai_mpi_finish(&one, &err), CAI_OK);
        (void)cai_sim_stream_synchronize(sim, w.stream);
        CHECK(field[1] == 4 * COLUMNS + 1 && field[COLUMNS + 1] == 5 * COLUMNS + 1);
        CHECK_INT(cai_mpi_close(&two, &err), CAI_OK);
        close_pair(&w, &one, sim);
    }
}

/* Fields of a record that are not received keep what they have: MPI sends none of them. */
static void test_padding(void)
{
    static cai_field row;
    const int64_t shape[1] = {4};
    int engine, i;
    row.name = "x";
    row.name_length = 1;
    row.nbytes = 4;
    row.parent = -1;
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &row.dtype, &err), CAI_OK);
    for (engine = 0; engine < 3; ++engine) {
        cai_sim *sim = cai_sim_create(1);
        cai_dtype dtype;
        world w;
        cai_mpi_batch batch;
        float *field;
        open_pair(&w, &batch, sim, engine, 0);
        CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
        CHECK_INT(cai_dtype_parse("|V8", 3, 0, &dtype, &err), CAI_OK); /* {x: float32, 4 bytes of others} */
        for (i = 0; i < 2; ++i) {
            cai_array *const array = &w.parts[i];
            const uint64_t at = w.memory + (uint64_t)i * 32;
            good(&w, cai_array_init_dtype(array, &dtype, 1, shape, NULL, at, &err), "init");
            array->fields = &row;
            array->field_count = 1;
            good(&w, cai_stream_export(array, &w.pool, w.producer, NULL, 0, &err), "export");
        }
        CHECK_INT(cai_mpi_open(&batch, &w.options, w.messages, 2, &err), CAI_OK);
        field = (float *)cai_sim_bytes(sim, w.memory);
        for (i = 0; i < 16; ++i) field[i] = (float)i;
        pass(&w, &batch);
        for (i = 0; i < 16; ++i) CHECK(field[i] == (float)(i < 8 || i % 2 ? i : i - 8));
        close_pair(&w, &batch, sim);
    }
}

static void refuse_unopened(const world *w)
{
    static cai_mpi_message many[CAI_MPI_MESSAGES + 1];
    cai_mpi_batch batch;
    memset(&batch, 0, sizeof batch);
    CHECK_INT(cai_mpi_start(NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_finish(NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_close(NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_open(NULL, &w->options, w->messages, 4, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_open(&batch, NULL, w->messages, 4, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_open(&batch, &w->options, NULL, 4, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_open(&batch, &w->options, w->messages, -1, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_open(&batch, &w->options, many, CAI_MPI_MESSAGES + 1, &err), CAI_ERR_CAPACITY);
}

static void refuse_options(const world *w, const cai_mpi_options *options, cai_status status)
{
    cai_mpi_batch batch;
    CHECK_INT(cai_mpi_open(&batch, options, w->messages, 4, &err), status);
}

static void refuse_each_option(const world *w, cai_sim *sim)
{
    cai_mpi_options options = w->options;
    cai_emm_hooks poor;
    options.engine = 3;
    refuse_options(w, &options, CAI_ERR_ARGUMENT);
    options = w->options;
    options.seconds = -1;
    refuse_options(w, &options, CAI_ERR_ARGUMENT);
    options = w->options;
    options.pool = NULL;
    refuse_options(w, &options, CAI_ERR_ARGUMENT);
    options = w->options;
    options.stream = 0;
    refuse_options(w, &options, CAI_ERR_STREAM);
    options = w->options;
    options.hooks = NULL;
    refuse_options(w, &options, CAI_ERR_ARGUMENT);
    CHECK_INT(cai_emm_hooks_async(&poor, cai_sim_cuda(sim), NULL, &err), CAI_OK);
    options.hooks = &poor;
    refuse_options(w, &options, CAI_ERR_UNAVAILABLE);
}

static void refuse_messages(world *w, cai_sim *sim)
{
    /* the third of four buffers cannot be had: the two others are given back */
    CHECK_INT(cai_sim_fail_op(sim, "host_alloc", 3, 2), 1);
    refuse_options(w, &w->options, CAI_ERR_OUT_OF_MEMORY);
    CHECK_INT(err.index, 2);
    CHECK_INT(cai_sim_fail_op(sim, "host_alloc", 1, 999), 1);
    refuse_options(w, &w->options, CAI_ERR_CUDA);
    w->parts[3].flags &= ~(uint32_t)CAI_WRITABLE;
    refuse_options(w, &w->options, CAI_ERR_EXPECT);
    CHECK_INT(err.index, 3);
    w->parts[3].flags |= CAI_WRITABLE;
    w->messages[1].array = NULL;
    refuse_options(w, &w->options, CAI_ERR_ARGUMENT);
    CHECK_INT(err.index, 1);
    w->messages[1].array = &w->parts[1];
}

/* Nobody there, or nothing in it. */
static void pass_nothing(world *w)
{
    cai_mpi_batch batch;
    int i;
    for (i = 0; i < 4; ++i) w->messages[i].peer = MPI_PROC_NULL;
    CHECK_INT(cai_mpi_open(&batch, &w->options, w->messages, 4, &err), CAI_OK);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
    for (i = 0; i < 4; ++i) w->messages[i].peer = 0;
    view(&w->field, 0, 0, 0, 3, &w->parts[0]);
    view(&w->field, 1, 0, 0, 3, &w->parts[1]);
    w->messages[1].receives = 1;
    w->messages[1].tag = 0;
    CHECK_INT(cai_mpi_open(&batch, &w->options, w->messages, 2, &err), CAI_OK);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
}

/* Another shape than before, then an error of MPI. */
static void refuse_start(world *w)
{
    cai_mpi_batch batch;
    view(&w->field, 0, 1, 0, 3, &w->parts[0]);
    view(&w->field, 1, 1, 0, 3, &w->parts[1]);
    CHECK_INT(cai_mpi_open(&batch, &w->options, w->messages, 2, &err), CAI_OK);
    view(&w->field, 0, 1, 0, 4, &w->parts[0]);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "the array has 16 bytes, and had 12 before");
    CHECK_INT(err.index, 0);
    view(&w->field, 0, 1, 0, 3, &w->parts[0]);
    w->messages[0].peer = 77;
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_MPI);
    CHECK_INT(err.index, 0);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_OK);
    w->messages[0].peer = 0;
}

static void fail_in_cuda(const world *w, cai_sim *sim)
{
    cai_mpi_batch batch;
    CHECK_INT(cai_mpi_open(&batch, &w->options, w->messages, 2, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 1, 700), 1);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "stream_synchronize", 1, 700), 1);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_mpi_start(&batch, &err), CAI_OK);
    CHECK_INT(cai_mpi_finish(&batch, &err), CAI_OK);
    CHECK_INT(cai_sim_fail_op(sim, "host_free", 1, 700), 1);
    CHECK_INT(cai_mpi_close(&batch, &err), CAI_ERR_CUDA);
}

static void test_refused(void)
{
    cai_sim *sim = cai_sim_create(1);
    world w;
    char alive[400];
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    build(&w, sim, CAI_MPI_STAGED);
    watch_sim = NULL;
    refuse_unopened(&w);
    refuse_each_option(&w, sim);
    refuse_messages(&w, sim);
    pass_nothing(&w);
    refuse_start(&w);
    fail_in_cuda(&w, sim);
    pull_down(&w);
    (void)cai_sim_errors(sim, alive, sizeof alive);
    CHECK_STR(alive, "");
    cai_sim_destroy(sim);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_orders();
    test_mistakes();
    test_left_out();
    test_messages();
    test_unnamed();
    test_half_started();
    test_late();
    test_changes();
    test_same_tag();
    test_padding();
    test_refused();
    MPI_Finalize();
    return cai_test_end();
}
