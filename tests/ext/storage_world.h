/* storage_world.h - the world of test_storage.c and test_storage_more.c: a simulation, and what a storage is made of
 * SPDX-License-Identifier: MIT
 *
 * Include after cai_storage.h, the simulation and cai_test.h. */
#ifndef STORAGE_WORLD_H_INCLUDED
#define STORAGE_WORLD_H_INCLUDED

#include <stdlib.h>
#include <string.h>

enum { H = CAI_SIDE_HOST, D = CAI_SIDE_DEVICE, CLEAN = CAI_STORAGE_CLEAN, LENGTH = 6 };

static cai_sim *sim;
static const cai_cuda *cuda;
static cai_event_pool pool;
static cai_emm_hooks hooks, plain;
static cai_storage_options options; /* of the storage to come */
static cai_layout layout;
static cai_dtype dtype;
static cai_storage storage;
static uint64_t c1, c2, home, s1, s2;
static cai_error err;

#include "calls_of_cai.h" /* GOOD, REFUSED */

/* ------------------------------------------------------------------ the world */
static uint64_t stream_in(uint64_t context)
{
    uint64_t made;
    CHECK_INT(cai_sim_set_context(sim, context), 0);
    made = cai_sim_stream_create(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    return made;
}

/* A line of LENGTH numbers, to be stored on both sides; what runs when is up to the test. */
static void start(const char *note)
{
    cai_test_note(note);
    sim = cai_sim_create(2);
    if (!sim) exit(2);
    cuda = cai_sim_cuda(sim);
    cai_sim_set_options(sim, cai_sim_options(sim) & ~(uint32_t)CAI_SIM_PROGRESS);
    c1 = cai_sim_primary_retain(sim, 0);
    c2 = cai_sim_primary_retain(sim, 1);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    home = stream_in(c1);
    s1 = stream_in(c1);
    s2 = stream_in(c1);
    GOOD(cai_event_pool_init(&pool, cuda, NULL, 0, 0, &err));
    GOOD(cai_emm_hooks_cuda(&hooks, cuda, &err));
    cai_emm_hooks_malloc(&plain);
    GOOD(cai_dtype_of(CAI_INT32, &dtype, &err));
    memset(&layout, 0, sizeof layout);
    layout.ndim = 1;
    layout.shape[0] = LENGTH;
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = home;
    options.kind = CAI_STORAGE_BOTH;
    memset(&storage, 0, sizeof storage);
}

static void make(cai_storage *out)
{
    GOOD(cai_storage_init(out, &options, &dtype, &layout, &err));
    cai_sim_run(sim);
    cai_sim_log_clear(sim);
}

/* A record failed with an error that ends all work of its context. The pool then makes no call on the event. */
static int32_t device_died;

static void finish(void)
{
    char text[300];
    GOOD(cai_storage_release(&storage, &err));
    cai_sim_run(sim);
    GOOD(cai_keepalive_drain(&pool, &err));
    GOOD(cai_event_pool_destroy(&pool, &err));
    cai_sim_stream_destroy(sim, home);
    cai_sim_stream_destroy(sim, s1);
    cai_sim_stream_destroy(sim, s2);
    (void)cai_sim_leaks(sim, text, sizeof text);
    if (!device_died || strncmp(text, "events: ", 8) || strchr(text, ';')) CHECK_STR(text, "");
    device_died = 0;
    CHECK_INT(cai_sim_current(sim), c1);
    cai_sim_destroy(sim);
}

#endif
