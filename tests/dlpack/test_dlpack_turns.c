/* test_dlpack_turns.c - 10,000 exports to random consumers, which destroy their streams first
 * SPDX-License-Identifier: MIT
 *
 *     test_dlpack_turns [turns] [seed]
 *
 * Each turn allocates in the order of a stream, fills, exports, and launches a kernel of the consumer that reads.
 * The consumer destroys its stream at a random moment before its deleter, which runs at a random moment on one of
 * three host threads. Other threads capture meanwhile. What is freed is the memory of a later turn. Prints how much
 * was parked at most. */
#include "ordered.h"
#include "cai_test.h"

enum { BYTES = 64, TURNS = 500, THREADS = 3, MOST_OUT = 48, LIMIT = 8 };

/* One turn. Its kernel may run when the turn is long over. */
typedef struct turn {
    uint64_t memory, named, launched; /* the consumer's stream: as it is named, as it launches; 0: destroyed */
    int32_t stream, thread, is_out, released, done;
    cai_array array;
    cai_dlpack_ordered storage;
    struct DLManagedTensorVersioned *tensor;
} turn;

static cai_error err;
static uint64_t state;
static cai_sim *sim;
static const cai_cuda *cuda;
static cai_event_pool pool;
static turn turns[TURNS];
static int32_t made, used, wrong, dead, refused, captures, seen; /* of a round */
static uint64_t producers[2], lasting, capturing;
static int64_t peak_arrays, peak_bytes, all_refused, kinds[8];

static uint32_t random_below(uint32_t count)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % count;
}

static void count_dead(void *context, const cai_sim_undefined *what)
{
    (void)context;
    printf("    %s\n", what->text);
    dead++;
}

static unsigned char version_of(const turn *at)
{
    return (unsigned char)(1 + (at - turns) % 250);
}

static void fill(void *argument)
{
    const turn *at = (const turn *)argument;
    memset(cai_sim_bytes(sim, at->memory), version_of(at), BYTES);
}

static void use(void *argument)
{
    const turn *at = (const turn *)argument;
    const unsigned char *bytes = (const unsigned char *)cai_sim_bytes(sim, at->memory);
    int32_t i;
    used++;
    for (i = 0; i < BYTES; i++) wrong += bytes[i] != version_of(at);
}

static void launch(turn *at, uint64_t stream, const char *name, cai_sim_function function, int writes)
{
    const cai_sim_access access = writes ? cai_sim_writes(at->memory, BYTES) : cai_sim_reads(at->memory, BYTES);
    CHECK_INT(cai_sim_launch(sim, stream, name, function, at, &access, 1), 0);
}

/* The owner frees in the order of its stream, whoever captures. */
static void free_in_order(cai_array *array)
{
    turn *at = (turn *)array->owner;
    int32_t mode = 2;
    array->release = NULL;
    at->released++;
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    CHECK_INT(cuda->memory_free_async(cuda->self, at->memory, producers[at->stream]), 0);
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
}

static void count_done(cai_dlpack_storage *storage)
{
    ((turn *)storage->user)->done++;
}

static void play(uint64_t thread)
{
    cai_sim_host_thread(sim, thread);
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
}

/* ------------------------------------------------------------------- a turn */

/* Chooses the consumer: its stream, and what it promises. */
static uint32_t choose(turn *at)
{
    const uint32_t kind = random_below(8);
    kinds[kind]++;
    at->named = at->launched = 0;
    if (kind == 0) at->named = producers[at->stream];
    if (kind == 1) at->named = CAI_STREAM_LEGACY;
    if (kind == 2) at->named = CAI_STREAM_PER_THREAD;
    if (kind == 3) at->named = lasting;
    if (kind >= 4) at->launched = cai_sim_stream_create(sim, kind != 4);
    if (kind >= 4 && kind <= 6) at->named = at->launched;
    if (kind == 6 && !capturing) return CAI_DLPACK_NO_CAPTURES;
    return kind == 3 ? (uint32_t)CAI_DLPACK_STREAMS_LIVE : 0;
}

static void end_capture(void)
{
    if (!capturing) return;
    play(THREADS + 1);
    CHECK_INT(cai_sim_capture_end(sim, capturing, NULL), 0); /* nobody has ended it */
    CHECK_INT(cai_sim_stream_destroy(sim, capturing), 0);
    capturing = 0;
    captures++;
}

static void begin_capture(void)
{
    turn *at;
    for (at = turns; at < turns + made; at++) { /* they were promised that nothing captures */
        if (!at->done && at->storage.flags & (uint32_t)CAI_DLPACK_NO_CAPTURES) return;
    }
    play(THREADS + 1);
    seen = (int32_t)random_below(2);
    capturing = cai_sim_stream_create(sim, !seen);
    CHECK_INT(cai_sim_capture_begin(sim, capturing, (int32_t)random_below(3)), 0);
}

/* The drain may wait for what a capture forbids. */
static void drain(void)
{
    end_capture();
    play(1 + random_below(THREADS));
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
}

static void export_it(turn *at, uint32_t flags)
{
    cai_status status = cai_dlpack_export_ordered_versioned(&at->array, &pool, at->named, flags, &at->storage,
                                                            &at->tensor, &err);
    if (status == CAI_ERR_CAPACITY) {
        CHECK(at->array.release != NULL);
        refused++;
        drain();
        play((uint64_t)at->thread);
        status = cai_dlpack_export_ordered_versioned(&at->array, &pool, at->named, flags, &at->storage,
                                                     &at->tensor, &err);
    }
    if (!CHECK_INT(status, CAI_OK)) printf("    %s\n", err.message);
}

static void make(void)
{
    turn *at = &turns[made++];
    const int64_t shape[1] = {BYTES};
    uint32_t flags;
    int32_t mode = 2;
    memset(at, 0, sizeof *at);
    at->thread = 1 + (int32_t)random_below(THREADS);
    at->stream = (int32_t)random_below(2);
    play((uint64_t)at->thread);
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    CHECK_INT(cuda->memory_alloc_async(cuda->self, &at->memory, BYTES, producers[at->stream]), 0);
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    CHECK_INT(cai_array_init(&at->array, CAI_UINT8, 1, shape, NULL, cai_sim_bytes(sim, at->memory), &err), CAI_OK);
    at->array.memory = CAI_MEMORY_DEVICE;
    at->array.device = 0;
    at->array.sync = CAI_SYNC_STREAM;
    at->array.stream = producers[at->stream];
    cai_array_own(&at->array, free_in_order, at);
    at->array.flags |= CAI_ORDERED_FREE;
    at->storage.storage.done = count_done;
    at->storage.storage.user = at;
    launch(at, producers[at->stream], "fill", fill, 1);
    flags = choose(at);
    if (capturing && at->named == CAI_STREAM_LEGACY && seen) end_capture(); /* a wait of stream 1 would end it */
    if (capturing && !at->named) end_capture();                             /* so would a wait of the host */
    play((uint64_t)at->thread);
    if (!at->named) CHECK_INT(cai_sim_stream_synchronize(sim, producers[at->stream]), 0);
    export_it(at, flags);
    launch(at, at->launched ? at->launched : at->named, "use", use, 0);
    at->is_out = 1;
}

static void destroy_stream(turn *at)
{
    if (at->launched) CHECK_INT(cai_sim_stream_destroy(sim, at->launched), 0);
    at->launched = 0;
}

static int32_t host_waits(void)
{
    return cai_sim_calls_of(sim, "context_synchronize") + cai_sim_calls_of(sim, "event_synchronize") +
           cai_sim_calls_of(sim, "stream_synchronize");
}

static void drop(turn *at)
{
    int32_t before;
    destroy_stream(at);
    play(1 + random_below(THREADS));
    before = host_waits();
    at->is_out = 0;
    ((cai_dl_managed_versioned *)at->tensor)->deleter(at->tensor);
    CHECK_INT(host_waits(), before);
}

static turn *one_that_is_out(void)
{
    const int32_t from = made > MOST_OUT ? made - MOST_OUT : 0;
    int32_t i, first;
    if (made == from) return NULL;
    first = (int32_t)random_below((uint32_t)(made - from));
    for (i = 0; i < made - from; i++) {
        turn *at = &turns[from + (first + i) % (made - from)];
        if (at->is_out) return at;
    }
    return NULL;
}

static void run_some(void)
{
    uint64_t ready[32];
    int32_t i, count;
    for (i = (int32_t)random_below(8); i > 0; i--) {
        count = cai_sim_ready(sim, ready, 32);
        if (!count) return;
        CHECK_INT(cai_sim_run_operation(sim, ready[random_below((uint32_t)(count < 32 ? count : 32))]), 1);
    }
}

static void step(void)
{
    turn *at = one_that_is_out();
    const uint32_t what = random_below(20);
    if (made > MOST_OUT && turns[made - MOST_OUT].is_out) drop(&turns[made - MOST_OUT]);
    else if (what < 6) make();
    else if (what < 12 && at) drop(at);
    else if (what < 14 && at) destroy_stream(at);
    else if (what < 17) run_some();
    else if (what < 18) CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    else if (what < 19) capturing ? end_capture() : begin_capture();
    else if (!random_below(8)) drain();
}

/* ------------------------------------------------------------------- a round */

static void open_round(int limited)
{
    sim = cai_sim_create(1);
    if (!sim) exit(2);
    cai_sim_on_undefined(sim, count_dead, NULL);
    cuda = cai_sim_cuda(sim);
    made = used = wrong = refused = 0;
    play(1);
    producers[0] = cai_sim_stream_create(sim, 1);
    producers[1] = cai_sim_stream_create(sim, 0);
    lasting = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_event_pool_init(&pool, cuda, NULL, 0, 0, &err), CAI_OK);
    CHECK_INT(cai_dlpack_limit(&pool, limited ? LIMIT : 0, 0, &err), CAI_OK);
}

static void close_round(void)
{
    cai_check_race race;
    char text[CAI_CHECK_TEXT] = "";
    turn *at;
    for (at = turns; at < turns + made; at++) {
        if (at->is_out) drop(at);
    }
    drain();
    CHECK_INT(pool.dlpack.arrays + pool.dlpack.bytes + pool.waiting, 0);
    (void)cai_sim_run(sim);
    for (at = turns; at < turns + made; at++) CHECK_INT(at->released * 10 + at->done, 11);
    CHECK_INT(used, made);
    CHECK_INT(wrong, 0);
    CHECK_INT(dead, 0);
    if (cai_check_races(sim, &race, 1)) cai_check_race_text(sim, &race, text);
    CHECK_STR(text, "");
    if (peak_arrays < pool.dlpack.peak_arrays) peak_arrays = pool.dlpack.peak_arrays;
    if (peak_bytes < pool.dlpack.peak_bytes) peak_bytes = pool.dlpack.peak_bytes;
    all_refused += refused;
    CHECK_INT(cai_event_pool_destroy(&pool, &err), CAI_OK);
    CHECK_INT(cai_sim_stream_destroy(sim, producers[0]), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, producers[1]), 0);
    CHECK_INT(cai_sim_stream_destroy(sim, lasting), 0);
    CHECK_INT(cai_sim_leaks(sim, NULL, 0), 0);
    cai_sim_destroy(sim);
}

int main(int count, char **arguments)
{
    const int32_t wanted = count > 1 ? atoi(arguments[1]) : 10000;
    const int32_t seed = count > 2 ? atoi(arguments[2]) : 1;
    int32_t all = 0, round;
    char name[60];
    for (round = 0; all < wanted; round++) {
        (void)snprintf(name, sizeof name, "seed %d, round %d", (int)seed, (int)round);
        cai_test_note(name);
        state = 0x9e3779b97f4a7c15u * (uint64_t)(seed * 1000 + round + 1);
        open_round(round % 4 == 3);
        while (made < TURNS && all + made < wanted) step();
        all += made;
        close_round();
    }
    cai_test_note("");
    printf("%d turns, %d captures of others, none lost; at most %lld arrays and %lld bytes were parked, 0 after the "
           "drains; %lld exports were refused at a limit of %d\n", (int)all, (int)captures, (long long)peak_arrays,
           (long long)peak_bytes, (long long)all_refused, (int)LIMIT);
    return cai_test_end();
}
