/* threads.c - the host threads of a rule: each does one call at a time, and the rule waits for it.
 * SPDX-License-Identifier: MIT */
#include "world.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct host_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int32_t (*call)(uint64_t a, uint64_t b); /* to be done; NULL: none */
    uint64_t a, b;
    int32_t result;
    int alive, ending;
} host_thread;

static host_thread host_threads[WORLD_THREADS];

static void *host_thread_main(void *argument)
{
    host_thread *self = (host_thread *)argument;
    world_thread_begins();
    if (pthread_mutex_lock(&self->lock)) abort();
    while (!self->ending) {
        if (self->call != NULL) {
            self->result = self->call(self->a, self->b);
            self->call = NULL;
            (void)pthread_cond_broadcast(&self->changed);
        }
        if (!self->ending) (void)pthread_cond_wait(&self->changed, &self->lock);
    }
    (void)pthread_mutex_unlock(&self->lock);
    world_thread_ends();
    return NULL;
}

static void host_thread_start(host_thread *self)
{
    self->call = NULL;
    self->ending = 0;
    if (pthread_mutex_init(&self->lock, NULL) || pthread_cond_init(&self->changed, NULL)) abort();
    if (pthread_create(&self->thread, NULL, host_thread_main, self)) abort();
    self->alive = 1;
}

int32_t world_on_thread(int32_t thread, int32_t (*call)(uint64_t a, uint64_t b), uint64_t a, uint64_t b)
{
    host_thread *self = &host_threads[thread];
    int32_t result;
    if (!self->alive) host_thread_start(self);
    (void)pthread_mutex_lock(&self->lock);
    self->a = a;
    self->b = b;
    self->call = call;
    (void)pthread_cond_broadcast(&self->changed);
    while (self->call != NULL) (void)pthread_cond_wait(&self->changed, &self->lock);
    result = self->result;
    (void)pthread_mutex_unlock(&self->lock);
    return result;
}

void world_threads_end(void)
{
    int32_t i;
    for (i = 0; i < WORLD_THREADS; i++) {
        host_thread *self = &host_threads[i];
        if (!self->alive) continue;
        (void)pthread_mutex_lock(&self->lock);
        self->ending = 1;
        (void)pthread_cond_broadcast(&self->changed);
        (void)pthread_mutex_unlock(&self->lock);
        (void)pthread_join(self->thread, NULL);
        (void)pthread_cond_destroy(&self->changed);
        (void)pthread_mutex_destroy(&self->lock);
        self->alive = 0;
    }
}
