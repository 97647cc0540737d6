/* exchange.c - two libraries exchange an array on two streams, in order at both ends
 * SPDX-License-Identifier: MIT
 *
 *     cc -I. -Iext -Isim -pthread examples/exchange/exchange*.c sim/cai_*.c -o exchange && ./exchange
 *
 * A producer fills an array on its stream. It gives the array away as interface entries with an owner: a
 * consumer in another library sees no more. The consumer imports the entries, works on its own stream, and
 * releases the array at once. The producer's stream waits for the consumer's work, and then frees the
 * memory. The host waits for nothing, and the result is right: y = 2 x + 1.
 *
 * Without a GPU the program runs on the simulated CUDA, which runs the newest work first wherever the order
 * on streams allows it. Then exchange_races.c leaves one wait out, and the simulation reports the race. With
 * a folder as argument the program draws the runs. Exit status 0: right numbers, and nothing was leaked. */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* exchange_gpu.cu has the table */
#define CAI_NO_LOADER
#include "cai_manager.h"

#include "exchange_device.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 1024, SIZE = ROWS * COLUMNS };

/* ------------------------------------------------------------------ the producer's library */

static cai_status produce(const exchange_device *device, cai_manager *emm, uint64_t stream, cai_array *x,
                          const cai_export_storage *storage, cai_interface *out, cai_error *err)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    CAI_TRY(cai_manager_array(x, emm, CAI_FLOAT32, 2, shape, stream, err)); /* owned; its work is on `stream` */
    CAI_TRY(cai_cuda_status(device->ramp((float *)(uintptr_t)x->data, SIZE, stream), "ramp", err));
    return cai_export(x, 3, storage, out, err);
}

/* ------------------------------------------------------------------ the consumer's library */

/* The owner of what was imported: the producer's array. */
static void let_go(cai_array *imported)
{
    imported->release = NULL;
    cai_array_release((cai_array *)imported->owner);
}

static cai_status work(const exchange_device *device, const cai_array *x, const cai_array *y, uint64_t stream,
                       cai_error *err)
{
    cai_kernel_view vx, vy;
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, 2, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect_same_shape(x, "x", y, "y", err));
    CAI_TRY(cai_kernel_view_of(x, &vx, err));
    CAI_TRY(cai_kernel_view_of(y, &vy, err));
    return cai_cuda_status(device->scale(vy, vx, y->size, 2, 1, stream), "scale", err);
}

/* y = 2 x + 1, a new array of the consumer's; x is what the entries describe. */
static cai_status consume(const exchange_device *device, cai_manager *emm, const cai_interface *entries,
                          cai_array *owner, uint64_t stream, cai_array *y, cai_error *err)
{
    cai_exchange exchange;
    cai_array x;
    cai_array *io[1];
    io[0] = &x;
    CAI_TRY(cai_import(entries, NULL, &x, err));
    CAI_TRY(cai_locate(&x, "x", emm->cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_manager_array(y, emm, CAI_FLOAT32, 2, x.shape, stream, err));
    cai_array_own(&x, let_go, owner);
    x.flags |= CAI_ORDERED_FREE; /* let_go frees behind the work in the stream of x */
    CAI_TRY(cai_exchange_begin(&exchange, emm->pool, io, 1, stream, err));
    return cai_exchange_finish(&exchange, work(device, &x, y, stream, err), io, 1, err);
}

/* ------------------------------------------------------------------ the program */

static int64_t count_wrong(const float *y)
{
    int64_t i, wrong = 0;
    for (i = 0; i < SIZE; ++i) wrong += y[i] < 2 * (float)i + 1 || y[i] > 2 * (float)i + 1;
    return wrong;
}

static void say(const exchange_device *device, const char *what)
{
    if (!device->quiet) printf("%s\n%s", what, device->calls());
}

static cai_status run(const exchange_device *device, cai_manager *emm, float *result, cai_error *err)
{
    const uint64_t producer = device->new_stream(), consumer = device->new_stream();
    cai_token tokens[32];
    char text[CAI_TYPESTR_SIZE];
    cai_export_storage storage;
    cai_interface entries;
    cai_array x, y;
    memset(&storage, 0, sizeof storage);
    storage.tokens = tokens;
    storage.token_capacity = 32;
    storage.text = text;
    storage.text_capacity = sizeof text;
    CAI_TRY(produce(device, emm, producer, &x, &storage, &entries, err));
    say(device, "the producer fills m1 on s1, and hands over shape, typestr, data, version, stream:");
    CAI_TRY(consume(device, emm, &entries, &x, consumer, &y, err));
    say(device, "the consumer reads it on s2, and lets go of it before any of this has run:");
    CAI_TRY(cai_cuda_status(device->read(result, (float *)(uintptr_t)y.data, SIZE, consumer), "read", err));
    cai_array_release(&y);
    return CAI_OK;
}

static cai_status run_with_memory(const exchange_device *device, float *result, cai_error *err)
{
    cai_event_pool pool;
    cai_emm_pool memory;
    cai_emm_hooks hooks;
    cai_manager emm;
    CAI_TRY(cai_event_pool_init(&pool, device->cuda, NULL, 0, 0, err));
    CAI_TRY(cai_emm_pool_create(&memory, device->cuda, 0, err));
    CAI_TRY(cai_emm_hooks_async(&hooks, device->cuda, &memory, err));
    CAI_TRY(cai_manager_init(&emm, &pool, &hooks, NULL, err));
    CAI_TRY(run(device, &emm, result, err));
    CAI_TRY(cai_manager_destroy(&emm, err)); /* an error if an array was left over */
    CAI_TRY(cai_emm_pool_destroy(&memory, err));
    return cai_event_pool_destroy(&pool, err);
}

static int open_device(exchange_device *device)
{
#if defined(EXCHANGE_WITH_GPU)
    if (exchange_gpu(device)) return 1;
    printf("%s: the runtime is simulated\n", device->name);
#else
    printf("built without nvcc: the runtime is simulated\n");
#endif
    return exchange_simulated(device);
}

/* 0: the numbers are right, and nothing was leaked. */
static int exchange(const exchange_device *device)
{
    static float result[SIZE];
    cai_error err;
    const cai_status status = run_with_memory(device, result, &err);
    const int32_t closed = device->close();
    if (status) {
        printf("%s: %s\n", cai_status_name(status), err.message);
        return 1;
    }
    if (closed) {
        printf("an error, or something was leaked\n");
        return 1;
    }
    if (!device->quiet) printf("%d elements, %lld wrong\n", SIZE, (long long)count_wrong(result));
    return count_wrong(result) != 0;
}

int main(int argc, char **argv)
{
    exchange_device device;
    if (!open_device(&device)) return 1;
    printf("exchange on %s\n", device.name);
    if (exchange(&device)) return 1;
    return device.simulated ? exchange_races(exchange, argc > 1 ? argv[1] : NULL) : 0;
}
