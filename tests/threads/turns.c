/* turns.c - arrays that go from thread to thread: memory of managers, by waits, events, exchanges, and DLPack.
 * SPDX-License-Identifier: MIT
 *
 *     turns thin|sim THREADS ROUNDS
 *
 * CUDA is that of threads.c. A thread takes an array from a shelf, moves it to another stream by cai_stream_depend, by
 * the event that another thread made, by cai_migrate or by an exchange, works on it, and puts it back. Or it exports it
 * to a consumer of DLPack, who destroys the stream. Another thread calls the deleter then. Pools and managers are those
 * of the thread or of all. On the simulation each kernel looks for what the one before it wrote, what is freed is
 * memory of a later array, and one thread captures all the time. Prints one line; the exit status is 1 if a kernel
 * found something else, a capture was ended, a stream was named that is gone, or something is left over. */
int main_of_threads(int argc, char **argv);
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#define main main_of_threads
#include "threads.c"
#undef main
#include "cai_dlpack.h"
#include "cai_manager.h"
#include "cai_place.h"

enum { SHELVES = 12, TENSORS = 12, BYTES = 64, GAP = 2 /* streams of one context */ };

typedef struct item {
    cai_array array;
    uint64_t tag, event; /* 0: none */
    int64_t version, stream; /* its place in `streams` */
    cai_event_pool *events;
    void (*release)(cai_array *array); /* of the manager */
    void *owner;
    cai_dlpack_ordered storage;
    struct DLManagedTensorVersioned *tensor;
} item;

typedef struct house { /* of one thread, and one of all */
    cai_event_pool pool;
    cai_manager manager;
} house;

typedef struct kernel {
    uint64_t address, tag;
    int64_t version;
} kernel;

static house houses[MOST_THREADS + 1];
static item *shelves[SHELVES], *tensors[TENSORS];
static int64_t uses[SHARED + MOST_THREADS * OWN]; /* arrays that name the stream */
static int64_t tags, stale, turns, done_turns, moves, captures, lost_captures, stops, parked_left;
static pthread_mutex_t no_capture = PTHREAD_MUTEX_INITIALIZER; /* a drain waits for what a capture forbids */
static cai_emm_hooks hooks;

/* ------------------------------------------------------------------- table */
static int32_t thin_id(void *self, uint64_t stream, uint64_t *id)
{
    (void)self;
    *id = stream + 7;
    return 0;
}

static int32_t thin_flags(void *self, uint64_t stream, uint32_t *flags)
{
    (void)self;
    *flags = stream > CAI_STREAM_PER_THREAD;
    return 0;
}

static int give_plain(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)stream;
    return posix_memalign(ptr, 256, size) ? 2 : 0;
}

static int take_plain(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)size, (void)stream;
    free(ptr);
    return 0;
}

static cai_status fill_hooks(cai_error *err)
{
    if (sim) return cai_emm_hooks_async(&hooks, &table, NULL, err);
    table.stream_id = thin_id;
    table.stream_flags = thin_flags;
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_DEVICE;
    hooks.device_alloc = give_plain;
    hooks.device_free = take_plain;
    return CAI_OK;
}

/* ------------------------------------------------------------------- work */
static void run_kernel(void *argument)
{
    kernel *k = (kernel *)argument;
    uint64_t *at = (uint64_t *)cai_sim_bytes(sim, k->address);
    if (at && k->version && (at[0] != k->tag || at[1] != (uint64_t)k->version - 1)) add(&stale, 1);
    if (!at) add(&stale, 1);
    if (at) at[0] = k->tag;
    if (at) at[1] = (uint64_t)k->version;
    free(k);
}

/* A kernel in a stream that comes after the earlier work on the memory. */
static void work_on(worker *w, item *it, uint64_t address, uint64_t stream)
{
    const cai_sim_access whole = cai_sim_writes(address, BYTES);
    kernel *k;
    if (!sim) return;
    k = (kernel *)calloc(1, sizeof *k);
    if (!k) exit(2);
    k->address = address;
    k->tag = it->tag;
    k->version = it->version++;
    if (cai_sim_launch(sim, stream, "kernel", run_kernel, k, &whole, 1)) w->failures++;
}

static house *any_house(worker *w) { return &houses[draw(w, 2) || !w->rounds ? MOST_THREADS : w->number]; }

/* A stream of this thread or of all, of the context of the memory. Its place. */
static int64_t any_place(worker *w)
{
    for (;;) {
        const int64_t n = draw(w, SHARED + OWN);
        const int64_t place = n < SHARED ? n : n + w->number * OWN;
        if (place % GAP == 0) return place;
    }
}

static uint64_t stream_at(int64_t place) { return (uint64_t)get(&streams[place]); }

static void names(item *it, int64_t place)
{
    add(&uses[place], 1);
    if (it->stream >= 0) add(&uses[it->stream], -1);
    it->stream = place;
    it->array.sync = CAI_SYNC_STREAM;
    it->array.stream = stream_at(place);
}

/* A stream of this thread that no array names goes, with its work pending. */
static void renew_stream(worker *w)
{
    const int64_t place = SHARED + w->number * OWN + draw(w, OWN);
    const uint64_t old = stream_at(place);
    uint64_t fresh = old + STREAM_STEP;
    if (place % GAP || get(&uses[place])) return;
    if (sim && cai_sim_stream_destroy(sim, old)) w->failures++;
    if (sim) fresh = cai_sim_stream_create(sim, 1);
    set(&streams[place], (int64_t)fresh);
    add(&gone_streams, 1);
}

static void put_event(worker *w, item *it)
{
    cai_error err;
    it->events = &any_house(w)->pool;
    ok(w, cai_event_make(it->events, it->array.stream, &it->event, &err), &err);
}

static void take_event(worker *w, item *it)
{
    cai_error err;
    if (it->event) ok(w, cai_event_drop(it->events, it->event, &err), &err);
    it->event = 0;
}

/* ------------------------------------------------------------------- ways */
static void by_wait(worker *w, item *it, int64_t to, int event)
{
    cai_work before = {0, 0};
    cai_error err;
    if (event && it->event) before.event = it->event;
    else before.stream = it->array.stream;
    ok(w, cai_stream_depend(&any_house(w)->pool, stream_at(to), &before, 1, &err), &err);
    names(it, to);
}

static void by_migrate(worker *w, item *it, int64_t to)
{
    cai_error err;
    ok(w, cai_migrate(&it->array, &any_house(w)->pool, stream_at(to), &err), &err);
    names(it, to);
}

/* The array's own stream waits for the consumer, so the array stays there. */
static void by_exchange(worker *w, item *it, int64_t to)
{
    cai_array *list[1];
    cai_exchange ex;
    cai_error err;
    list[0] = &it->array;
    ok(w, cai_exchange_begin(&ex, &any_house(w)->pool, list, 1, stream_at(to), &err), &err);
    work_on(w, it, it->array.data, stream_at(to));
    ok(w, cai_exchange_end(&ex, CAI_OK, &err), &err);
}

/* ------------------------------------------------------------------- DLPack */
static void count_done(cai_dlpack_storage *storage)
{
    free(storage->user);
    add(&done_turns, 1);
}

static void call_deleter(item *it)
{
    if (it) ((cai_dl_managed_versioned *)it->tensor)->deleter(it->tensor);
}

/* The consumer's stream is one of this thread, which may be gone before the deleter. */
static void by_dlpack(worker *w, item *it)
{
    const int64_t to = any_place(w);
    const uint64_t address = it->array.data;
    cai_error err;
    it->storage.storage.done = count_done;
    it->storage.storage.user = it;
    if (draw(w, 2)) it->array.flags |= CAI_ORDERED_FREE;
    if (cai_dlpack_export_ordered_versioned(&it->array, &any_house(w)->pool, stream_at(to), 0, &it->storage,
                                            &it->tensor, &err)) {
        ok(w, CAI_ERR_ARGUMENT, &err);
        return;
    }
    work_on(w, it, address, stream_at(to));
    add(&turns, 1);
    call_deleter(__atomic_exchange_n(&tensors[draw(w, TENSORS)], it, __ATOMIC_ACQ_REL));
}

/* ------------------------------------------------------------------- a thread */
/* The stream that the array names lives until now (R81). */
static void release_item(cai_array *array)
{
    item *it = (item *)array->owner;
    array->owner = it->owner;
    array->release = it->release;
    cai_array_release(array);
    add(&uses[it->stream], -1);
    if (!it->tensor) free(it);
}

static item *make_item(worker *w)
{
    const int64_t shape[1] = {BYTES}, place = any_place(w);
    item *it = (item *)calloc(1, sizeof *it);
    cai_error err;
    if (!it) exit(2);
    it->tag = (uint64_t)add(&tags, 1);
    it->stream = -1;
    ok(w, cai_manager_array(&it->array, &any_house(w)->manager, CAI_UINT8, 1, shape, stream_at(place), &err), &err);
    it->array.device = 0;
    it->release = it->array.release;
    it->owner = it->array.owner;
    it->array.release = release_item;
    it->array.owner = it;
    names(it, place);
    work_on(w, it, it->array.data, it->array.stream);
    return it;
}

/* The array goes when its stream has passed. */
static void end_item(worker *w, item *it)
{
    cai_error err;
    cai_array array;
    take_event(w, it);
    cai_array_move(&array, &it->array);
    parking = 1;
    ok(w, cai_keepalive_push(&array, &any_house(w)->pool, array.stream, &err), &err);
    parking = 0;
}

static void put_back(worker *w, item *it)
{
    item *before;
    take_event(w, it);
    if (draw(w, 3) == 0) put_event(w, it);
    before = __atomic_exchange_n(&shelves[draw(w, SHELVES)], it, __ATOMIC_ACQ_REL);
    if (before) end_item(w, before);
}

static void do_turn(worker *w)
{
    item *it = __atomic_exchange_n(&shelves[draw(w, SHELVES)], NULL, __ATOMIC_ACQ_REL);
    const uint32_t way = draw(w, 8);
    const int64_t to = any_place(w);
    if (!it) it = make_item(w);
    if (way == 0) end_item(w, it);
    if (way == 1 || way == 2) {
        take_event(w, it);
        by_dlpack(w, it);
    }
    if (way < 3) return;
    if (way == 3) by_exchange(w, it, to);
    else if (way == 4) by_migrate(w, it, to);
    else by_wait(w, it, to, way > 5);
    if (way > 3) work_on(w, it, it->array.data, it->array.stream);
    add(&moves, 1);
    put_back(w, it);
}

static void run_some(worker *w)
{
    uint64_t ready[16];
    int32_t i, count;
    for (i = (int32_t)draw(w, 10); i > 0 && sim; i--) {
        count = cai_sim_ready(sim, ready, 16);
        if (count) (void)cai_sim_run_operation(sim, ready[draw(w, (uint32_t)(count < 16 ? count : 16))]);
    }
}

/* Another thread may have the list at this moment, or put something into it. */
static void drain(worker *w, house *of)
{
    cai_error err;
    cai_status status;
    pthread_mutex_lock(&no_capture);
    status = cai_keepalive_drain(&of->pool, &err);
    pthread_mutex_unlock(&no_capture);
    if (w->rounds && status == CAI_ERR_PENDING) return;
    ok(w, status, &err);
}

static void play(int64_t number)
{
    me = number;
    if (!sim) return;
    cai_sim_host_thread(sim, (uint64_t)number);
    if (cai_sim_set_context(sim, cai_sim_primary(sim, 0))) add(&bad_contexts, 1);
}

static void *take_turns(void *argument)
{
    worker *w = (worker *)argument;
    cai_error err;
    int64_t n;
    play(w->number + 1);
    for (n = 0; n < w->rounds && !w->failures; n++) {
        const uint32_t what = draw(w, 16);
        if (what < 8) do_turn(w);
        else if (what < 11) call_deleter(__atomic_exchange_n(&tensors[draw(w, TENSORS)], NULL, __ATOMIC_ACQ_REL));
        else if (what < 13) run_some(w);
        else if (what < 14) renew_stream(w), renew_stream(w), renew_stream(w);
        else if (what < 15) ok(w, cai_keepalive_poll(&any_house(w)->pool, NULL, &err), &err);
        else if (draw(w, 8) == 0) drain(w, any_house(w));
        w->exchanges++;
    }
    if (depth != 0 || mode_of_thread != 0) add(&bad_contexts, 1);
    return NULL;
}

static void nothing(void *unused) { (void)unused; }

/* Captures, one after the other. Nobody may end one. */
static void *capture_all_the_time(void *argument)
{
    worker *w = (worker *)argument;
    uint64_t stream, graph;
    play(w->number + 1);
    stream = cai_sim_stream_create(sim, 1);
    while (!get(&stops)) {
        int32_t error;
        pthread_mutex_lock(&no_capture);
        error = cai_sim_capture_begin(sim, stream, 1 + (int32_t)draw(w, 2));
        if (!error) error = cai_sim_launch(sim, stream, "nothing", nothing, NULL, NULL, 0);
        sched_yield();
        graph = 0;
        if (cai_sim_capture_end(sim, stream, &graph) || error) add(&lost_captures, 1);
        if (graph) (void)cai_sim_graph_destroy(sim, graph);
        pthread_mutex_unlock(&no_capture);
        add(&captures, 1);
        sched_yield();
    }
    (void)cai_sim_stream_destroy(sim, stream);
    return NULL;
}

/* ------------------------------------------------------------------- all of it */
static int open_houses(int64_t threads, cai_error *err)
{
    int64_t i, n;
    CAI_TRY(fill_hooks(err));
    for (i = 0; i <= threads; i++) {
        n = i == threads ? MOST_THREADS : i;
        CAI_TRY(cai_event_pool_init(&houses[n].pool, &table, NULL, 0, 0, err));
        CAI_TRY(cai_manager_init(&houses[n].manager, &houses[n].pool, &hooks, NULL, err));
    }
    return 0;
}

static void close_houses(worker *w, int64_t threads)
{
    cai_error err;
    int64_t i, n;
    for (n = 0; n < SHELVES; n++)
        if (shelves[n]) end_item(w, shelves[n]);
    for (n = 0; n < TENSORS; n++) call_deleter(tensors[n]);
    for (i = 0; i <= threads; i++) { /* arrays of one manager wait in the pools of others */
        n = i == threads ? MOST_THREADS : i;
        drain(w, &houses[n]);
        parked_left += houses[n].pool.dlpack.arrays + houses[n].pool.dlpack.bytes + houses[n].pool.waiting;
    }
    for (i = 0; i <= threads; i++) {
        n = i == threads ? MOST_THREADS : i;
        ok(w, cai_manager_flush(&houses[n].manager, &err), &err);
        ok(w, cai_manager_destroy(&houses[n].manager, &err), &err);
    }
    for (i = 0; i <= threads; i++)
        ok(w, cai_event_pool_destroy(&houses[i == threads ? MOST_THREADS : i].pool, &err), &err);
}

static int tell(const worker *workers, int64_t threads)
{
    int64_t failures = 0, left, n;
    for (n = 0; n <= threads; n++) failures += workers[n].failures;
    if (sim) (void)cai_sim_run(sim);
    left = close_table() + parked_left + get(&turns) - get(&done_turns);
    printf("%lld threads: %lld turns of DLPack, %lld moves, %lld streams gone, %lld captures; %lld stale, "
           "%lld captures lost, %lld left over, %lld streams named after their end, %lld event errors, "
           "%lld context errors, %lld failures\n", (long long)threads, (long long)get(&turns), (long long)get(&moves),
           (long long)get(&gone_streams), (long long)get(&captures), (long long)get(&stale),
           (long long)get(&lost_captures), (long long)left, (long long)get(&bad_streams),
           (long long)(get(&two_threads) + get(&bad_events)), (long long)get(&bad_contexts), (long long)failures);
    return failures || left || get(&stale) || get(&lost_captures) || get(&two_threads) || get(&bad_events) ||
           get(&bad_streams) || get(&bad_contexts) || !get(&turns) || !get(&moves);
}

int main(int argc, char **argv)
{
    static worker workers[MOST_THREADS + 1];
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 4, rounds = argc > 3 ? atoll(argv[3]) : 4000;
    const int simulated = argc > 1 && strcmp(argv[1], "sim") == 0;
    cai_error err;
    int64_t n;
    if (threads < 1 || threads >= MOST_THREADS || rounds < 1) return 2;
    handed_on = 1;
    if (!open_table(simulated)) return 2;
    play(threads + 1);
    if (open_houses(threads, &err)) {
        printf("%s\n", err.message);
        return 2;
    }
    for (n = 0; n <= threads; n++) {
        workers[n].number = n;
        workers[n].rounds = n < threads ? rounds : 0;
        workers[n].random = (uint64_t)n * 7919 + 1;
        if (n == threads && !sim) continue;
        if (pthread_create(&workers[n].thread, NULL, n < threads ? take_turns : capture_all_the_time, &workers[n]))
            return 2;
    }
    for (n = 0; n < threads; n++) pthread_join(workers[n].thread, NULL);
    set(&stops, 1);
    if (sim) pthread_join(workers[threads].thread, NULL);
    play(threads + 2);
    close_houses(&workers[threads], threads);
    return tell(workers, threads);
}
