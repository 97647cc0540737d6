/* The smallest consumer of cai_stream.h: starts wherever it is, and finds out whether there is CUDA.
 * SPDX-License-Identifier: MIT
 *
 * What such a program links: the loader of CAI_NO_CUDART is dlopen, in libdl before glibc 2.34, in libc since
 * then and in musl. Which host thread it is on, pthread_self says, in libc everywhere; but before glibc 2.27 a
 * program without libpthread gets 0 for an answer, so link that, too. On Windows both are in kernel32. With
 * CAI_NO_LOADER and a table of its own a program links nothing. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai_stream.h"

#include <stdio.h>

static cai_cuda_driver driver;
static cai_event_pool pool;

/* An exchange with nothing to order: no call of CUDA, with a GPU or without. */
static cai_status exchange_nothing(cai_error *error)
{
    cai_exchange exchange;
    CAI_TRY(cai_event_pool_init(&pool, &driver.cuda, NULL, 0, 0, error));
    CAI_TRY(cai_exchange_begin(&exchange, &pool, NULL, 0, CAI_STREAM_LEGACY, error));
    CAI_TRY(cai_exchange_end(&exchange, CAI_OK, error));
    return cai_event_pool_destroy(&pool, error);
}

int main(void)
{
    cai_error error;
    uint64_t thread = 0;
    cai_status status = cai_cuda_load(&driver, NULL, &error);
    if (status == CAI_ERR_UNAVAILABLE) {
        printf("cai_stream %d: no CUDA here: %s\n", (int)CAI_STREAM_H_INCLUDED, error.message);
        return 0;
    }
    if (!status) status = exchange_nothing(&error);
    if (status) {
        printf("%s\n", error.message);
        return 1;
    }
    printf("cai_stream %d: CUDA %d loaded\n", (int)CAI_STREAM_H_INCLUDED, (int)driver.driver_version);
    if (driver.cuda.host_thread(driver.cuda.self, &thread) || !thread) return 2;
    return 0;
}
