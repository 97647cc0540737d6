/* caches.c - threads that ask caches for the streams of two devices, all at once while a cache is still empty.
 * SPDX-License-Identifier: MIT
 *
 *     caches thin|sim THREADS ROUNDS
 *
 * CUDA is that of threads.c. Every round has a cache of its own, which all threads walk through. Each device must
 * have one stream, made once, and the same for all threads; the first attempt of every third cache fails. Prints one
 * line; the exit status is 1 if that was not so. */
int main_of_threads(int argc, char **argv);
#define _POSIX_C_SOURCE 200112L
#define main main_of_threads
#include "threads.c"
#undef main
#include "cai_place.h"

typedef struct round {
    cai_stream_cache cache;
    cai_cached_stream places[2];
    int64_t attempts, made[2];
    uint64_t seen[MOST_THREADS][2];
} round_of;

static round_of *rounds_of;
static int64_t round_count, refusals, wrong, next_stream = 1 << 20;

static int32_t make_stream(void *self, int32_t device, uint64_t *stream)
{
    round_of *r = (round_of *)self;
    if ((r - rounds_of) % 3 == 0 && add(&r->attempts, 1) == 1) return 2;
    add(&r->made[device], 1);
    *stream = (uint64_t)add(&next_stream, 1);
    return 0;
}

static void *ask(void *number)
{
    const int64_t thread = (int64_t)(uintptr_t)number;
    int64_t n, k;
    if (sim) (void)cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    for (n = 0; n < round_count; n++) {
        round_of *r = &rounds_of[n];
        for (k = 0; k < 2;) {
            const int32_t device = (int32_t)((thread + k) % 2);
            cai_error err;
            const cai_status status = cai_stream_cache_get(&r->cache, device, &r->seen[thread][device], &err);
            if (!status) k++;
            else if (status == CAI_ERR_CUDA && err.native == 2) add(&refusals, 1);
            else return add(&wrong, 1), NULL;
        }
    }
    if (depth) add(&wrong, 1);
    return NULL;
}

static void judge(const round_of *r, int64_t threads)
{
    int64_t thread, device;
    for (device = 0; device < 2; device++) {
        if (r->made[device] != 1) wrong++;
        for (thread = 0; thread < threads; thread++)
            if (!r->seen[thread][device] || r->seen[thread][device] != r->seen[0][device]) wrong++;
    }
    if (r->seen[0][0] == r->seen[0][1]) wrong++;
}

int main(int argc, char **argv)
{
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 8, rounds = argc > 3 ? atoll(argv[3]) : 4000;
    pthread_t started[MOST_THREADS];
    int64_t n;
    if (threads < 2 || threads > MOST_THREADS || rounds < 1) return 2;
    if (!open_table(argc > 1 && strcmp(argv[1], "sim") == 0)) return 2;
    rounds_of = (round_of *)calloc((size_t)rounds, sizeof *rounds_of);
    if (!rounds_of) return 2;
    round_count = rounds;
    for (n = 0; n < rounds; n++) {
        cai_stream_maker maker;
        cai_error err;
        maker.self = &rounds_of[n];
        maker.create = make_stream;
        maker.destroy = NULL;
        if (cai_stream_cache_init(&rounds_of[n].cache, &table, &maker, rounds_of[n].places, 2, 0, &err)) return 2;
    }
    for (n = 0; n < threads; n++)
        if (pthread_create(&started[n], NULL, ask, (void *)(uintptr_t)n)) return 2;
    for (n = 0; n < threads; n++) pthread_join(started[n], NULL);
    for (n = 0; n < rounds; n++) judge(&rounds_of[n], threads);
    printf("%lld caches, %lld threads: %lld refused attempts, %lld wrong\n", (long long)rounds, (long long)threads,
           (long long)refusals, (long long)(wrong + get(&bad_contexts)));
    return wrong || get(&bad_contexts) || refusals != (rounds + 2) / 3;
}
