/* contention.c - what a pair of calls costs when many threads use one pool and one manager.
 *
 *     contention [PAIRS]
 *
 * CUDA and the hooks do nothing, so that the headers' own guard is what the threads meet at. A line for each
 * kind of pair and number of threads: the kind, the threads, nanoseconds a pair (of the whole run), and the
 * longest pair in microseconds (of each eighth one). */

#define _POSIX_C_SOURCE 200809L

#include "cai_manager.h"
#include "hooks.h"
#include "one_context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_THREADS = 64, OWN_STREAM = 5000, OTHER_STREAM = 6000 };

enum { ALLOC_FREE, IN_ORDER, ACROSS, KINDS };

static const char *const names[KINDS] = {"alloc_free", "exchange_in_order", "exchange_across"};

static cai_cuda cuda;
static cai_event_pool pool;
static cai_manager emm;
static pthread_barrier_t start;

/* ------------------------------------------------------------------ a CUDA that does nothing */

static int32_t event_create(void *self, uint64_t *event)
{
    static uint64_t made;
    (void)self;
    *event = __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    return 0;
}

static int32_t event_destroy(void *self, uint64_t event)
{
    (void)self;
    (void)event;
    return 0;
}

static int32_t on_a_stream(void *self, uint64_t a, uint64_t b)
{
    (void)self;
    (void)a;
    (void)b;
    return 0;
}

static void must(cai_status status, const cai_error *err)
{
    if (!status) return;
    fprintf(stderr, "contention: %s\n", err->message);
    exit(2);
}

static void make_all(void)
{
    cai_emm_hooks hooks;
    cai_error err;
    one_context_fill(&cuda);
    cuda.event_create = event_create;
    cuda.event_destroy = event_destroy;
    cuda.event_record = cuda.stream_wait_event = on_a_stream;
    must(cai_event_pool_init(&pool, &cuda, NULL, 0, 0, &err), &err);
    no_op_hooks(&hooks);
    must(cai_manager_init(&emm, &pool, &hooks, NULL, &err), &err);
}

/* ------------------------------------------------------------------ threads */

typedef struct worker {
    pthread_t thread;
    int kind;
    uint64_t number;
    long pairs;
    double longest;
} worker;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void one_pair(const worker *w, cai_array *const *list)
{
    const uint64_t stream = OWN_STREAM + w->number;
    cai_error err;
    cai_exchange ex;
    cai_memory_handle memory;
    if (w->kind == ALLOC_FREE) {
        must(cai_manager_alloc(&memory, &emm, 4096, 0, stream, &err), &err);
        must(cai_manager_free(&emm, memory, stream, &err), &err);
    } else {
        must(cai_exchange_begin(&ex, &pool, list, 1, stream, &err), &err);
        must(cai_exchange_end(&ex, CAI_OK, &err), &err);
    }
}

static void *work(void *argument)
{
    static float buffer[16];
    worker *w = (worker *)argument;
    const int64_t extent = 16;
    cai_array array;
    cai_array *list[1];
    cai_error err;
    long i;
    list[0] = &array;
    must(cai_array_init(&array, CAI_FLOAT32, 1, &extent, NULL, buffer, &err), &err);
    array.sync = CAI_SYNC_STREAM;
    array.stream = (w->kind == ACROSS ? OTHER_STREAM : OWN_STREAM) + w->number;
    pthread_barrier_wait(&start);
    for (i = 0; i < w->pairs; i++) {
        const double before = i % 8 ? 0 : seconds();
        one_pair(w, list);
        if (i % 8 == 0 && seconds() - before > w->longest) w->longest = seconds() - before;
    }
    return NULL;
}

static void run(int kind, int threads, long pairs)
{
    static worker workers[MOST_THREADS];
    double before, longest = 0;
    int i;
    pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
    for (i = 0; i < threads; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].kind = kind;
        workers[i].number = (uint64_t)i;
        workers[i].pairs = pairs / threads;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) exit(2);
    }
    before = seconds();
    pthread_barrier_wait(&start);
    for (i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].longest > longest) longest = workers[i].longest;
    }
    printf("%s %d %.1f %.1f\n", names[kind], threads, (seconds() - before) * 1e9 / (double)pairs, longest * 1e6);
    pthread_barrier_destroy(&start);
}

int main(int argc, char **argv)
{
    static const int threads[3] = {1, 8, 64};
    const long pairs = argc > 1 ? strtol(argv[1], NULL, 10) : 640000;
    int kind, i;
    if (pairs < MOST_THREADS) return 2;
    make_all();
    for (kind = 0; kind < KINDS; kind++) {
        for (i = 0; i < 3; i++) run(kind, threads[i], pairs);
    }
    return 0;
}
