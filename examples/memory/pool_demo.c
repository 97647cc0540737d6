/* pool_demo.c - pool_plugin.h at work on the simulated CUDA: what a program asks for, and what CUDA sees
 * SPDX-License-Identifier: MIT
 *
 *     cc -I. -Iext -Isim -pthread examples/memory/pool_demo.c sim/cai_sim.c -o pool_demo && ./pool_demo */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"
#include "pool_plugin.h"

#include "cai_sim.h"

#include <stdio.h>

enum { MIB = 1 << 20 };

typedef struct world {
    cai_sim *sim;
    uint64_t s1, s2;
    cai_event_pool streams;
    cai_emm_hooks cuda, hooks;
    pool_plugin pool;
    cai_manager emm;
} world;

/* The calls that allocate, free or order; what only asks is left out. */
static void print_calls(world *w, const char *what)
{
    const char *line = cai_sim_log(w->sim), *end;
    int32_t lines = 0;
    printf("%s\n", what);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const int32_t memory = !strncmp(line, "memory_", 7) && strncmp(line, "memory_info", 11);
        if (!memory && strncmp(line, "event_", 6) && strncmp(line, "stream_wait", 11)) continue;
        printf("    %.*s\n", (int)(end - line), line);
        lines++;
    }
    if (!lines) printf("    no call\n");
    cai_sim_log_clear(w->sim);
}

/* What a library does in each step: two blocks for a while. */
static cai_status step(world *w, uint64_t stream, cai_error *err)
{
    cai_memory_handle a, b;
    CAI_TRY(cai_manager_alloc(&a, &w->emm, 1000, 0, stream, err));
    CAI_TRY(cai_manager_alloc(&b, &w->emm, MIB, 0, stream, err));
    CAI_TRY(cai_manager_free(&w->emm, a, stream, err));
    return cai_manager_free(&w->emm, b, stream, err);
}

static cai_status run(world *w, cai_error *err)
{
    cai_memory_handle memory, large;
    int i;
    CAI_TRY(step(w, w->s1, err));
    print_calls(w, "the first step on s1");
    for (i = 0; i < 100; ++i) CAI_TRY(step(w, w->s1, err));
    print_calls(w, "100 steps on s1");
    CAI_TRY(step(w, w->s2, err));
    print_calls(w, "a step on s2: what is kept for s1 may still be in use there");
    CAI_TRY(cai_manager_alloc(&memory, &w->emm, MIB, 0, w->s1, err));
    CAI_TRY(cai_manager_free(&w->emm, memory, w->s2, err));
    print_calls(w, "a block of s1 freed on s2: s2 waits for s1 and keeps it");
    cai_sim_set_memory(w->sim, 0, 4 * MIB);
    CAI_TRY(cai_manager_alloc(&large, &w->emm, 3 * MIB, 0, w->s1, err));
    print_calls(w, "3 MiB of 4: out of memory, until what is kept went back");
    return cai_manager_free(&w->emm, large, w->s1, err);
}

static cai_status open_world(world *w, cai_error *err)
{
    w->sim = cai_sim_create(1);
    if (!w->sim) return cai_cuda_status(2, "cai_sim_create", err);
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    w->s1 = cai_sim_stream_create(w->sim, 1);
    w->s2 = cai_sim_stream_create(w->sim, 1);
    CAI_TRY(cai_event_pool_init(&w->streams, cai_sim_cuda(w->sim), NULL, 0, 0, err));
    CAI_TRY(cai_emm_hooks_cuda(&w->cuda, cai_sim_cuda(w->sim), err));
    pool_plugin_open(&w->pool, &w->cuda, &w->hooks);
    return cai_manager_init(&w->emm, &w->streams, &w->hooks, NULL, err);
}

static cai_status close_world(world *w, cai_error *err)
{
    CAI_TRY(cai_manager_destroy(&w->emm, err));
    CAI_TRY(cai_cuda_status(pool_empty(&w->pool, &w->pool.kept, NULL), "pool_empty", err));
    print_calls(w, "the end");
    return cai_event_pool_destroy(&w->streams, err);
}

int main(void)
{
    static world w;
    char leaks[400];
    cai_error err;
    if (open_world(&w, &err) || run(&w, &err) || close_world(&w, &err)) {
        printf("%s: %s\n", cai_status_name(err.code), err.message);
        return 1;
    }
    printf("%llu blocks were used again, %llu taken from CUDA, %llu given back\n",
           (unsigned long long)w.pool.hits, (unsigned long long)w.pool.taken,
           (unsigned long long)w.pool.returned);
    (void)cai_sim_stream_destroy(w.sim, w.s1);
    (void)cai_sim_stream_destroy(w.sim, w.s2);
    cai_sim_leaks(w.sim, leaks, sizeof leaks);
    printf("%s%s\n", leaks[0] ? "leaked: " : "nothing leaked", leaks);
    cai_sim_destroy(w.sim);
    return leaks[0] != 0;
}
