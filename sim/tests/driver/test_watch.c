/* test_watch.c - the simulated driver sees what the host reads and refills before it has waited
 * SPDX-License-Identifier: MIT */
#include <cuda.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cai_check.h"
#include "cai_driver.h"
#include "cai_sim.h"
#include "cai_test.h"

enum { PAGE = 4096, BYTES = 4 * PAGE, LARGE = 256 * PAGE, MANY = 300 };

typedef struct world {
    CUstream stream, other;
    CUevent event;
    CUdeviceptr device;
    unsigned char *host; /* pinned, BYTES */
} world;

static volatile unsigned char sink;
static uint64_t seen_until;
static int32_t races_before;

/* What the host did since the last question: "r", "w" for each access that the driver saw, in order. */
static const char *seen(void)
{
    static char text[64];
    size_t length = 0;
    cai_driver_host counts;
    cai_sim_operation op;
    cai_sim *sim = cai_driver_sim();
    cai_driver_host_get(&counts);
    for (; seen_until < cai_sim_operation_count(sim); ++seen_until) {
        int32_t i;
        if (!cai_sim_operation_get(sim, seen_until + 1, &op) || op.kind != CAI_SIM_OP_HOST_ACCESS)
            continue;
        CHECK_STR(op.name, CAI_DRIVER_HOST_ACCESS);
        for (i = 0; i < op.access_count && length + 1 < sizeof text; ++i)
            text[length++] = op.accesses[i].write ? 'w' : 'r';
    }
    text[length] = 0;
    return text;
}

/* Races that were added since the last question. */
static int32_t races(void)
{
    const int32_t all = cai_check_races(cai_driver_sim(), NULL, 0), more = all - races_before;
    races_before = all;
    return more;
}

static void fill(const world *w)
{
    CHECK_INT(cuMemsetD8(w->device, 7, LARGE), CUDA_SUCCESS);
    CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void make(world *w)
{
    int i;
    CHECK_INT(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&w->other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    CHECK_INT(cuMemAlloc(&w->device, LARGE), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocHost((void **)&w->host, BYTES), CUDA_SUCCESS);
    for (i = 0; i < BYTES; ++i)
        CHECK_INT(w->host[i], 0);
    fill(w);
}

static void test_read(world *w)
{
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_STR(seen(), "");
    sink = w->host[100];
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_STR(seen(), "r");
    CHECK_INT(races(), 1);
    CHECK_INT(w->host[BYTES - 1], 7); /* in order now */
    CHECK_STR(seen(), "");
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    w->host[BYTES - 1] = 1; /* nothing is called any more */
    CHECK_STR(seen(), "r");
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
}

static void test_refill(world *w)
{
    memset(w->host, 1, BYTES);
    CHECK_INT(cuMemcpyHtoDAsync(w->device, w->host, BYTES, w->stream), CUDA_SUCCESS);
    sink = w->host[5]; /* both read */
    CHECK_STR(seen(), "");
    w->host[5] = 1; /* and this changes nothing */
    CHECK_STR(seen(), "");
    w->host[3 * PAGE] = 2;
    CHECK_INT(cuEventRecord(w->event, w->stream), CUDA_SUCCESS);
    CHECK_STR(seen(), "w");
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    memset(w->host, 3, BYTES);
    CHECK_INT(cuMemcpyHtoDAsync(w->device, w->host, 10, w->stream), CUDA_SUCCESS);
    w->host[10] = 9; /* not of the copy, if of its page */
    CHECK_STR(seen(), "");
    CHECK_INT(cuEventRecord(w->event, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuEventSynchronize(w->event), CUDA_SUCCESS);
    memset(w->host, 4, BYTES);
    CHECK_STR(seen(), "");
    CHECK_INT(races(), 0);
}

/* All ways to wait, and a loop of queries. */
static void test_waits(world *w)
{
    uint64_t i, entries;
    fill(w);
    for (i = 0; i < 4; ++i) {
        CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
        CHECK_INT(cuEventRecord(w->event, w->stream), CUDA_SUCCESS);
        CHECK_INT(cuStreamWaitEvent(w->other, w->event, 0), CUDA_SUCCESS);
        if (i == 0)
            while (cuEventQuery(w->event) == CUDA_ERROR_NOT_READY) {}
        else if (i == 1)
            CHECK_INT(cuStreamSynchronize(w->other), CUDA_SUCCESS);
        else if (i == 2)
            CHECK_INT(cuCtxSynchronize(), CUDA_SUCCESS);
        else
            while (cuStreamQuery(w->stream) == CUDA_ERROR_NOT_READY) {}
        CHECK_INT(w->host[0], 7);
        w->host[0] = 1;
        CHECK_STR(seen(), "");
    }
    entries = cai_sim_operation_count(cai_driver_sim());
    CHECK_INT(cuMemcpyDtoH(w->host, w->device, BYTES), CUDA_SUCCESS); /* waits itself */
    CHECK_INT(w->host[0], 7);
    CHECK_STR(seen(), "");
    CHECK_INT((int)(cai_sim_operation_count(cai_driver_sim()) - entries), 2);
    CHECK_INT(races(), 0);
}

/* Neither the pages of another block nor those of another part of the same one count. */
static void test_neighbours(world *w)
{
    unsigned char *small[8], *large;
    int i;
    for (i = 0; i < 8; ++i)
        CHECK_INT(cuMemAllocHost((void **)&small[i], 16), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoHAsync(small[3], w->device, 16, w->stream), CUDA_SUCCESS);
    for (i = 0; i < 8; ++i)
        if (i != 3)
            sink = small[i][0];
    CHECK_STR(seen(), "");
    sink = small[3][8];
    CHECK_STR(seen(), "r");
    CHECK_INT(races(), 1);
    CHECK_INT(cuMemAllocHost((void **)&large, LARGE), CUDA_SUCCESS);
    memset(large, 1, LARGE);
    for (i = 1; i < LARGE / BYTES; i += 2) /* a ring: each odd part is written, each even one is read */
        CHECK_INT(cuMemcpyDtoHAsync(large + i * BYTES, w->device, BYTES, w->stream), CUDA_SUCCESS);
    for (i = 0; i < LARGE / BYTES; i += 2)
        sink = large[i * BYTES + BYTES - 1];
    CHECK_STR(seen(), "");
    sink = large[5 * BYTES];
    CHECK_STR(seen(), "r");
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoHAsync(large + 100, w->device, BYTES, w->stream), CUDA_SUCCESS);
    sink = large[0]; /* of a page of which only a part is written */
    sink = large[BYTES + 200];
    CHECK_STR(seen(), "");
    sink = large[PAGE];
    CHECK_STR(seen(), "r");
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(races(), 1);
    CHECK_INT(cuMemFreeHost(large), CUDA_SUCCESS);
    for (i = 0; i < 8; ++i)
        CHECK_INT(cuMemFreeHost(small[i]), CUDA_SUCCESS);
}

/* The system can use the memory at any time, and that counts as well. */
static void test_system_calls(world *w)
{
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    memset(w->host, 5, BYTES);
    CHECK_INT(cuMemcpyHtoDAsync(w->device, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT((int)write(ends[1], w->host, PAGE), PAGE); /* reads it */
    CHECK_STR(seen(), "");
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT((int)read(ends[0], w->host, PAGE), PAGE);
    CHECK_INT(w->host[PAGE - 1], 5);
    CHECK_STR(seen(), "r");
    CHECK_INT(cuMemcpyHtoDAsync(w->device, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT((int)write(ends[1], w->host, 1), 1);
    CHECK_INT(w->host[0] = 6, 6);
    CHECK_STR(seen(), "w");
    CHECK_INT(races(), 3); /* also with the copy before, which nobody waited for */
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    close(ends[0]);
    close(ends[1]);
    fill(w);
}

static void test_managed(world *w)
{
    CUdeviceptr managed;
    unsigned char *bytes;
    CHECK_INT(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    bytes = (unsigned char *)(uintptr_t)managed;
    CHECK_INT(cuMemsetD8Async(managed, 9, BYTES, w->stream), CUDA_SUCCESS);
    sink = bytes[PAGE];
    CHECK_STR(seen(), "r");
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(bytes[PAGE], 9);
    CHECK_STR(seen(), "");
    CHECK_INT(races(), 1);
    CHECK_INT(cuMemFree(managed), CUDA_SUCCESS);
}

/* Memory that is freed while work uses it is a race of the free. */
static void test_free(world *w)
{
    unsigned char *again;
    CHECK_INT(cuMemAllocHost((void **)&again, LARGE), CUDA_SUCCESS);
    memset(again, 3, LARGE);
    CHECK_INT(cuMemcpyHtoDAsync(w->device, again, LARGE, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeHost(again), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocHost((void **)&again, LARGE), CUDA_SUCCESS);
    CHECK_INT(again[0] + again[LARGE - 1], 0);
    CHECK_INT(cuMemcpyDtoHAsync(again, w->device, LARGE, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeHost(again), CUDA_SUCCESS);
    sink = again[0]; /* the memory is kept */
    CHECK_STR(seen(), "");
    races();
    cuCtxSynchronize();
    seen();
    races();
}

static void in_order(void *argument)
{
    unsigned char *bytes = (unsigned char *)argument;
    ++bytes[0];
}

/* A host function accesses memory in its order, and a copy that writes changes what another one reads. */
static void test_order(world *w)
{
    fill(w);
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuLaunchHostFunc(w->stream, in_order, w->host), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyHtoDAsync(w->device + BYTES, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(w->event, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyHtoDAsync(w->device + BYTES, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_STR(seen(), "");
    CHECK_INT(cuEventSynchronize(w->event), CUDA_SUCCESS);
    CHECK_INT(w->host[0], 8); /* the last copy reads, too */
    CHECK_STR(seen(), "");
    w->host[0] = 1;
    CHECK_STR(seen(), "w");
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuLaunchHostFunc(w->stream, in_order, w->host), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyHtoDAsync(w->device + BYTES, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuEventRecord(w->event, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyHtoDAsync(w->device + BYTES, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuEventSynchronize(w->event), CUDA_SUCCESS);
    CHECK_STR(seen(), ""); /* the function wrote, not the host */
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    fill(w);
    memset(w->host, 0, BYTES);
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyHtoDAsync(w->device + BYTES, w->host, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(cuStreamQuery(w->stream), CUDA_ERROR_NOT_READY); /* the first copy runs now */
    sink = w->host[0];
    CHECK_STR(seen(), "r"); /* the copy wrote, and the host only read */
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
}

/* The last page of a block, of which only a part is in use, is wholly written. */
static void test_last_page(world *w)
{
    unsigned char *odd;
    CHECK_INT(cuMemAllocHost((void **)&odd, PAGE + 16), CUDA_SUCCESS);
    CHECK_INT(cuMemcpyDtoHAsync(odd, w->device, PAGE + 16, w->stream), CUDA_SUCCESS);
    sink = odd[PAGE + 3];
    CHECK_STR(seen(), "r");
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemFreeHost(odd), CUDA_SUCCESS);
}

static void *thread_reads(void *argument)
{
    const world *w = (const world *)argument;
    sink = w->host[0];
    return NULL;
}

static void *thread_works(void *argument)
{
    world w = *(world *)argument;
    CUcontext context;
    int i;
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CHECK_INT(cuStreamCreate(&w.stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_INT(cuMemAllocHost((void **)&w.host, BYTES), CUDA_SUCCESS);
    for (i = 0; i < MANY; ++i) {
        CHECK_INT(cuMemcpyDtoHAsync(w.host, w.device, BYTES, w.stream), CUDA_SUCCESS);
        CHECK_INT(cuStreamSynchronize(w.stream), CUDA_SUCCESS);
        CHECK_INT(w.host[0], 7);
        memset(w.host, 0, BYTES);
    }
    CHECK_INT(cuMemFreeHost(w.host), CUDA_SUCCESS);
    CHECK_INT(cuStreamDestroy(w.stream), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    return NULL;
}

static void test_threads(world *w)
{
    pthread_t threads[4];
    int i;
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    CHECK_INT(pthread_create(&threads[0], NULL, thread_reads, w), 0);
    CHECK_INT(pthread_join(threads[0], NULL), 0);
    CHECK_STR(seen(), "r"); /* whose access it was is not known */
    CHECK_INT(races(), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    for (i = 0; i < 4; ++i)
        CHECK_INT(pthread_create(&threads[i], NULL, thread_works, w), 0);
    for (i = 0; i < 4; ++i)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_STR(seen(), "");
    races();
}

/* What cannot be watched is counted. */
static void test_not_watched(world *w)
{
    static unsigned char own[BYTES];
    cai_driver_host before, after;
    int i;
    cai_driver_host_get(&before);
    CHECK_INT(before.watched > 3, 1);
    CHECK_INT((int)before.not_watched, 0);
    CHECK_INT(cuMemHostRegister(own, BYTES, 0), CUDA_SUCCESS);
    cai_driver_host_get(&after);
    CHECK_INT((int)(after.registered - before.registered), 0);
    for (i = 0; i < 2; ++i)
        CHECK_INT(cuMemcpyDtoHAsync(own + 8, w->device, 8, w->stream), CUDA_SUCCESS);
    cai_driver_host_get(&after);
    CHECK_INT((int)(after.registered - before.registered), 1);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_INT(cuMemHostUnregister(own), CUDA_SUCCESS);
    CHECK_INT(mlock(w->host, PAGE), 0);
    CHECK_INT(cuMemcpyDtoHAsync(w->host, w->device, BYTES, w->stream), CUDA_SUCCESS);
    cai_driver_host_get(&after);
    CHECK_INT((int)(after.forgotten - before.forgotten), 1);
    CHECK_STR(seen(), "");
    CHECK_INT(munlock(w->host, PAGE), 0);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    for (i = 0; i < 1030; ++i)
        CHECK_INT(cuMemcpyHtoDAsync(w->device, w->host + i % BYTES, 1, w->stream), CUDA_SUCCESS);
    cai_driver_host_get(&after);
    CHECK_INT((int)(after.forgotten - before.forgotten), 7);
    CHECK_INT(cuStreamSynchronize(w->stream), CUDA_SUCCESS);
    CHECK_STR(seen(), "");
}

static void test_all(void)
{
    CUcontext context;
    world w;
    CHECK_INT(cuInit(0), CUDA_SUCCESS);
    CHECK_INT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CHECK_INT(cuCtxSetCurrent(context), CUDA_SUCCESS);
    make(&w);
    test_read(&w);
    test_refill(&w);
    test_waits(&w);
    test_neighbours(&w);
    test_system_calls(&w);
    test_managed(&w);
    test_order(&w);
    test_last_page(&w);
    test_threads(&w);
    test_not_watched(&w);
    test_free(&w);
}

CAI_TEST_MAIN(test_all)
