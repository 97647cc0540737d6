/* exchange.c - two libraries exchange an array on two streams, in order at both ends
 * SPDX-License-Identifier: MIT
 *
 * A producer fills an array on its stream and hands it over as interface entries, all that a consumer in
 * another library sees. The consumer imports them, works on a stream of its own, and hands back. The producer
 * goes on at once, on its own stream. Nobody waits on the host, and the numbers are right: (2 i) + 1.
 *
 * Runs on the GPU if one answers, else on the simulated runtime, which runs the newest work first wherever the
 * order on streams allows it. Exit status 0: the numbers are right. */

#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART /* exchange_gpu.cu has the table */
#define CAI_NO_LOADER
#include "cai_stream.h"

#include "exchange_device.h"

#include <stdio.h>

enum { ROWS = 256, COLUMNS = 1024, SIZE = ROWS * COLUMNS };

/* ------------------------------------------------------------------ the producer's library */

static cai_status produce(const exchange_device *device, cai_stream_pool *pool, float *x, uint64_t stream,
                          const cai_export_storage *storage, cai_interface *out, cai_error *err)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    cai_array array;
    CAI_TRY(cai_cuda_status(device->ramp(x, SIZE, stream), "ramp", err));
    CAI_TRY(cai_array_init(&array, CAI_FLOAT32, 2, shape, NULL, x, err));
    CAI_TRY(cai_stream_export(&array, pool, stream, NULL, 0, err));
    return cai_export(&array, 3, storage, out, err);
}

/* ------------------------------------------------------------------ the consumer's library */

static cai_status work(const exchange_device *device, const cai_array *y, uint64_t stream, cai_error *err)
{
    cai_kernel_view view;
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, 2, CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_kernel_view_of(y, &view, err));
    return cai_cuda_status(device->scale(view, y->size, 2, stream), "scale", err);
}

static cai_status consume(const exchange_device *device, cai_stream_pool *pool, const cai_interface *entries,
                          uint64_t stream, cai_error *err)
{
    cai_exchange exchange;
    cai_array y;
    const cai_array *io[1];
    io[0] = &y;
    CAI_TRY(cai_import(entries, NULL, &y, err));
    CAI_TRY(cai_locate(&y, pool->cuda, CAI_LOCATE_BOUNDS, NULL, err));
    CAI_TRY(cai_exchange_begin(&exchange, pool, io, 1, stream, err));
    return cai_exchange_end(&exchange, work(device, &y, stream, err), err);
}

/* ------------------------------------------------------------------ the program */

static int64_t count_wrong(const float *x)
{
    int64_t i, wrong = 0;
    for (i = 0; i < SIZE; ++i) wrong += x[i] < 2 * (float)i + 1 || x[i] > 2 * (float)i + 1;
    return wrong;
}

static cai_status run(const exchange_device *device, cai_stream_pool *pool, float *x, float *result,
                      cai_error *err)
{
    const uint64_t producer = device->new_stream(), consumer = device->new_stream();
    cai_token tokens[32];
    char text[CAI_TYPESTR_SIZE];
    cai_export_storage storage = {NULL, 32, NULL, CAI_TYPESTR_SIZE, NULL};
    cai_interface entries;
    storage.tokens = tokens;
    storage.text = text;
    CAI_TRY(produce(device, pool, x, producer, &storage, &entries, err));
    printf("produced on stream 0x%llx, handed over as shape, typestr, data, version, stream\n%s",
           (unsigned long long)producer, device->calls());
    CAI_TRY(consume(device, pool, &entries, consumer, err));
    printf("consumed on stream 0x%llx\n%s", (unsigned long long)consumer, device->calls());
    CAI_TRY(cai_cuda_status(device->increment(x, SIZE, producer), "increment", err));
    return cai_cuda_status(device->read(result, x, SIZE, producer), "read", err);
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

int main(void)
{
    static float result[SIZE];
    exchange_device device;
    cai_stream_pool pool;
    cai_error err;
    cai_status status;
    float *x;
    if (!open_device(&device)) return 1;
    printf("exchange on %s\n", device.name);
    x = (float *)device.allocate(sizeof result);
    status = cai_stream_pool_init(&pool, device.cuda, NULL, 0, 0, &err);
    if (!status) status = run(&device, &pool, x, result, &err);
    if (!status) status = cai_stream_pool_destroy(&pool, &err);
    if (!status) status = cai_cuda_status(device.deallocate(x), "deallocate", &err);
    if (status) {
        printf("%s: %s\n", cai_status_name(status), err.message);
        return 1;
    }
    printf("%d elements, %lld wrong\n", SIZE, (long long)count_wrong(result));
    return count_wrong(result) != 0;
}
