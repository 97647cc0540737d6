/* facts.c - what CUDA answers where its documents say nothing: one question a process
 * SPDX-License-Identifier: MIT
 *
 *     gpu_facts [question]...
 *
 * Each line is the name of a question and its answer: the error code of each call, in their order. A signal
 * that kills the process is named. After " | " stand figures that differ from run to run. facts_h100.txt has
 * the answers of one GPU. Exit status 0: all was asked; 77: no GPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* usleep, strsignal */
#endif
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))
#define ELEMENTS(list) (sizeof(list) / sizeof(list)[0])
enum { LIMIT = 20, BYTES = 4096 };

static CUcontext primary;
static CUdevice device;

/* ----------------------------------------------------------------------------------- what questions share */

static void start(void)
{
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&primary, device);
    cuCtxSetCurrent(primary);
}

static CUstream stream_of(unsigned flags)
{
    CUstream stream = NULL;
    const CUresult code = cuStreamCreate(&stream, flags);
    if (code) SAY("no stream: %d ", code);
    return stream;
}

static CUstream new_stream(void)
{
    return stream_of(CU_STREAM_NON_BLOCKING);
}

static CUevent new_event(void)
{
    CUevent event = NULL;
    const CUresult code = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (code) SAY("no event: %d ", code);
    return event;
}

static CUdeviceptr new_memory(void)
{
    CUdeviceptr memory = 0;
    cuMemAlloc(&memory, BYTES);
    return memory;
}

static CUcontext new_context(void)
{
    CUcontext context = NULL;
    const CUresult code = cuCtxCreate(&context, NULL, 0, device);
    if (code) SAY("no context: %d ", code);
    return context;
}

/* What a query of the capture says: a status, or 1000 and the error. */
static int capture_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = cuStreamIsCapturing(stream, &status);
    return code ? 1000 + (int)code : (int)status;
}

static CUresult end_capture(CUstream stream)
{
    CUgraph graph = NULL;
    return cuStreamEndCapture(stream, &graph);
}

/* The id of a context, or 100000 and the error */
static unsigned long long id_of(CUcontext context)
{
    unsigned long long id = 0;
    const CUresult code = cuCtxGetId(context, &id);
    return code ? 100000ull + (unsigned long long)code : id;
}

static unsigned long long id_of_stream(CUstream stream)
{
    unsigned long long id = 0;
    cuStreamGetId(stream, &id);
    return id;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&mode);
}

/* A host function keeps a stream busy until let_go. */
static volatile int held;

static void CUDA_CB hold(void *unused)
{
    (void)unused;
    while (held) usleep(100);
}

static void keep_busy(CUstream stream)
{
    held = 1;
    cuLaunchHostFunc(stream, hold, NULL);
}

static void let_go(void)
{
    held = 0;
    cuCtxSynchronize();
}

static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin(.param .u64 nanoseconds) {\n"
    ".reg .pred p; .reg .u64 first, now, passed, n;\n"
    "ld.param.u64 n, [nanoseconds]; mov.u64 first, %globaltimer;\n"
    "again: mov.u64 now, %globaltimer; sub.u64 passed, now, first; setp.lt.u64 p, passed, n;\n"
    "@p bra again; ret; }\n"
    ".visible .entry store(.param .u64 where) {\n"
    ".reg .u64 a; ld.param.u64 a, [where]; cvta.to.global.u64 a, a; st.global.u32 [a], 7; ret; }\n"
    ".visible .entry fail() { trap; }\n"
    ".visible .entry nothing() { ret; }\n";

static CUfunction kernel(const char *name)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUresult code = cuModuleLoadData(&module, kernels);
    if (!code) code = cuModuleGetFunction(&function, module, name);
    if (code) SAY("no kernel: %d ", code);
    return function;
}

static CUresult launch(CUfunction function, CUstream stream, unsigned long long argument)
{
    void *arguments[1];
    arguments[0] = &argument;
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static CUresult launch_and_wait(CUfunction function, CUstream stream, unsigned long long argument)
{
    const CUresult code = launch(function, stream, argument);
    return code ? code : cuStreamSynchronize(stream);
}

static CUfunction spin_kernel;

static void spin(CUstream stream, unsigned milliseconds)
{
    if (!spin_kernel) {
        spin_kernel = kernel("spin");
        launch_and_wait(spin_kernel, stream, 0); /* loads it */
    }
    launch(spin_kernel, stream, milliseconds * 1000000ull);
}

/* -------------------------------------------------------- a handle that was destroyed, and its successors */

static CUstream dead_stream(void)
{
    CUstream stream = new_stream();
    cuStreamDestroy(stream);
    return stream;
}

static CUevent dead_event(void)
{
    CUevent event = new_event();
    cuEventDestroy(event);
    return event;
}

static void dead_stream_context(void)
{
    CUcontext context;
    SAY("%d", cuStreamGetCtx(dead_stream(), &context));
}

static void dead_stream_id(void)
{
    unsigned long long id;
    SAY("%d", cuStreamGetId(dead_stream(), &id));
}

static void dead_stream_capture(void)
{
    SAY("%d", capture_of(dead_stream()));
}

static void dead_stream_record(void)
{
    SAY("%d", cuEventRecord(new_event(), dead_stream()));
}

static void dead_stream_wait(void)
{
    CUevent event = new_event();
    cuEventRecord(event, new_stream());
    SAY("%d", cuStreamWaitEvent(dead_stream(), event, 0));
}

static void dead_stream_query(void)
{
    SAY("%d", cuStreamQuery(dead_stream()));
}

static void dead_stream_synchronize(void)
{
    SAY("%d", cuStreamSynchronize(dead_stream()));
}

static void dead_stream_free_async(void)
{
    CUdeviceptr memory = 0;
    CUstream stream = new_stream();
    cuMemAllocAsync(&memory, BYTES, stream);
    cuStreamSynchronize(stream);
    SAY("%d", cuMemFreeAsync(memory, dead_stream()));
}

static void dead_event_record(void)
{
    SAY("%d", cuEventRecord(dead_event(), new_stream()));
}

static void dead_event_query(void)
{
    SAY("%d", cuEventQuery(dead_event()));
}

static void dead_event_wait(void)
{
    SAY("%d", cuStreamWaitEvent(new_stream(), dead_event(), 0));
}

static void same_handle_again(void)
{
    int count = 0;
    for (int i = 0; i < 100; i++) {
        CUstream first = dead_stream(), second = new_stream();
        count += first == second;
        cuStreamDestroy(second);
    }
    SAY("%d of 100 handles come again at once", count);
}

static void same_handle_ids(void)
{
    CUstream first = new_stream();
    const unsigned long long id = id_of_stream(first);
    cuStreamDestroy(first);
    CUstream second = new_stream();
    SAY("same handle %d, another id %d", first == second, id != id_of_stream(second));
}

/* --------------------------------------------------------------------------------------- cuCtxRecordEvent */

static void context_event_covers(void)
{
    CUstream stream = new_stream(), waiter = new_stream();
    CUevent event = new_event();
    keep_busy(stream);
    SAY("record %d", cuCtxRecordEvent(primary, event));
    SAY(", query while a non-blocking stream is busy %d", cuEventQuery(event));
    SAY(", wait %d", cuStreamWaitEvent(waiter, event, 0));
    SAY(", query of the stream that waits %d", cuStreamQuery(waiter));
    let_go();
    SAY(", after %d", cuEventQuery(event));
}

static void context_event_destroyed_stream(void)
{
    CUstream stream = new_stream();
    CUevent event = new_event();
    keep_busy(stream);
    cuStreamDestroy(stream);
    SAY("record %d", cuCtxRecordEvent(primary, event));
    SAY(", query while a destroyed stream has work %d", cuEventQuery(event));
    let_go();
}

static void context_event_beside(CUstreamCaptureMode mode, int relaxed)
{
    CUstream stream = new_stream();
    CUevent event = new_event();
    SAY("begin %d", cuStreamBeginCapture(stream, mode));
    if (relaxed) relax();
    SAY(", record %d", cuCtxRecordEvent(primary, event));
    SAY(", capture status %d", capture_of(stream));
    SAY(", end %d", end_capture(stream));
}

static void context_event_global(void)
{
    context_event_beside(CU_STREAM_CAPTURE_MODE_GLOBAL, 0);
}

static void context_event_global_relaxed(void)
{
    context_event_beside(CU_STREAM_CAPTURE_MODE_GLOBAL, 1);
}

static void context_event_relaxed(void)
{
    context_event_beside(CU_STREAM_CAPTURE_MODE_RELAXED, 0);
}

static void context_event_cost(void)
{
    static const int counts[] = {1, 16, 128};
    double microseconds[ELEMENTS(counts) + 1];
    CUevent event = new_event();
    spin(new_stream(), 0);
    for (size_t k = 0; k < ELEMENTS(counts); k++) {
        CUstream streams[128];
        for (int i = 0; i < counts[k]; i++) spin(streams[i] = new_stream(), 50);
        const double begin = seconds_now();
        const CUresult code = cuCtxRecordEvent(primary, event);
        microseconds[k] = (seconds_now() - begin) * 1e6;
        SAY("%d streams: record %d, query %d; ", counts[k], code, cuEventQuery(event));
        cuCtxSynchronize();
        for (int i = 0; i < counts[k]; i++) cuStreamDestroy(streams[i]);
    }
    const double begin = seconds_now();
    for (int i = 0; i < 1000; i++) cuCtxRecordEvent(primary, event);
    microseconds[ELEMENTS(counts)] = (seconds_now() - begin) * 1e3;
    SAY("| %.1f, %.1f, %.1f us", microseconds[0], microseconds[1], microseconds[2]);
    SAY("; idle %.2f us", microseconds[3]);
}

/* -------------------------------------------------------------------- calls while another thread captures */

struct beside {
    CUstream own;
    CUevent event;
    CUdeviceptr plain, ordered, pooled;
    CUmemoryPool pool;
};
typedef CUresult beside_call(struct beside *world);

static pthread_barrier_t meeting;
static CUresult their_end;
static CUstreamCaptureMode their_mode;
static unsigned their_flags = CU_STREAM_NON_BLOCKING;

static void *capture_thread(void *unused)
{
    (void)unused;
    cuCtxSetCurrent(primary);
    CUstream stream = stream_of(their_flags);
    cuStreamBeginCapture(stream, their_mode);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    their_end = end_capture(stream);
    return NULL;
}

static pthread_t begin_theirs(CUstreamCaptureMode mode)
{
    pthread_t thread;
    their_mode = mode;
    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&thread, NULL, capture_thread, NULL);
    pthread_barrier_wait(&meeting);
    return thread;
}

static void end_theirs(pthread_t thread)
{
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    SAY(", their capture ends with %d", their_end);
}

/* A pool of the device without reuse by events */
static CUmemoryPool new_pool(void)
{
    CUmemoryPool pool = NULL;
    CUmemPoolProps properties;
    int no = 0;
    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUresult code = cuMemPoolCreate(&pool, &properties);
    if (!code) code = cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &no);
    if (code) SAY("no pool: %d ", code);
    return pool;
}

static void ask_beside(beside_call *call, CUstreamCaptureMode mode, int relaxed)
{
    struct beside world;
    memset(&world, 0, sizeof world);
    world.own = new_stream();
    world.event = new_event();
    world.plain = new_memory();
    world.pool = new_pool();
    cuMemAllocAsync(&world.ordered, BYTES, world.own);
    cuEventRecord(world.event, world.own);
    cuStreamSynchronize(world.own);
    const pthread_t thread = begin_theirs(mode);
    if (relaxed) relax();
    SAY("%d", call(&world));
    end_theirs(thread);
}

static CUresult beside_context_event(struct beside *w)
{
    return cuCtxRecordEvent(primary, w->event);
}

static CUresult beside_context_synchronize(struct beside *w)
{
    (void)w;
    return cuCtxSynchronize();
}

static CUresult beside_other_context_synchronize(struct beside *w)
{
    (void)w;
    new_context();
    return cuCtxSynchronize();
}

static CUresult beside_record(struct beside *w)
{
    return cuEventRecord(w->event, w->own);
}

static CUresult beside_event_query(struct beside *w)
{
    return cuEventQuery(w->event);
}

static CUresult beside_event_create(struct beside *w)
{
    return cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING);
}

static CUresult beside_event_destroy(struct beside *w)
{
    return cuEventDestroy(w->event);
}

static CUresult beside_stream_query(struct beside *w)
{
    return cuStreamQuery(w->own);
}

static CUresult beside_stream_synchronize(struct beside *w)
{
    return cuStreamSynchronize(w->own);
}

static CUresult beside_stream_id(struct beside *w)
{
    unsigned long long id;
    return cuStreamGetId(w->own, &id);
}

static CUresult beside_free(struct beside *w)
{
    return cuMemFree(w->plain);
}

static CUresult beside_free_async(struct beside *w)
{
    return cuMemFreeAsync(w->ordered, w->own);
}

static CUresult beside_alloc_async(struct beside *w)
{
    return cuMemAllocAsync(&w->pooled, BYTES, w->own);
}

static CUresult beside_alloc_from_pool(struct beside *w)
{
    return cuMemAllocFromPoolAsync(&w->pooled, BYTES, w->pool, w->own);
}

static void beside_pageable_copies(void)
{
    const size_t nbytes = 1 << 22;
    CUstream stream = new_stream();
    CUdeviceptr memory = 0;
    char *host = (char *)calloc(1, nbytes);
    cuMemAlloc(&memory, nbytes);
    const pthread_t thread = begin_theirs(CU_STREAM_CAPTURE_MODE_GLOBAL);
    SAY("to the device, 4 MiB %d", cuMemcpyHtoDAsync(memory, host, nbytes, stream));
    SAY(", 1 KiB %d", cuMemcpyHtoDAsync(memory, host, 1024, stream));
    SAY(", from it %d", cuMemcpyDtoHAsync(host, memory, nbytes, stream));
    end_theirs(thread);
}

static void beside_legacy_free_async(void)
{
    CUdeviceptr memory = 0;
    CUstream stream = new_stream();
    cuMemAllocAsync(&memory, BYTES, stream);
    cuStreamSynchronize(stream);
    their_flags = CU_STREAM_DEFAULT;
    const pthread_t thread = begin_theirs(CU_STREAM_CAPTURE_MODE_GLOBAL);
    SAY("beside a blocking stream that captures %d", cuMemFreeAsync(memory, CU_STREAM_LEGACY));
    end_theirs(thread);
}

/* Another process exports memory, and lives until this one has asked. It is forked before CUDA starts. */
static CUipcMemHandle of_another_process(int done[2])
{
    int handles[2];
    CUipcMemHandle handle;
    memset(&handle, 0, sizeof handle);
    if (pipe(handles) || pipe(done)) exit(1);
    if (!fork()) {
        char ignored;
        start();
        cuIpcGetMemHandle(&handle, new_memory());
        const int sent = write(handles[1], &handle, sizeof handle) == (ssize_t)sizeof handle;
        _exit(sent && read(done[0], &ignored, 1) == 1 ? 0 : 1);
    }
    if (read(handles[0], &handle, sizeof handle) != (ssize_t)sizeof handle) exit(1);
    start();
    return handle;
}

static void let_the_other_process_end(const int done[2])
{
    if (write(done[1], "", 1) == 1) wait(NULL);
}

static void beside_ipc_open_global(void)
{
    int done[2];
    CUdeviceptr memory = 0;
    const CUipcMemHandle handle = of_another_process(done);
    const pthread_t thread = begin_theirs(CU_STREAM_CAPTURE_MODE_GLOBAL);
    SAY("open %d", cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    SAY(", close %d", cuIpcCloseMemHandle(memory));
    end_theirs(thread);
    let_the_other_process_end(done);
}

static void ipc_open_in_two_contexts(void)
{
    int done[2];
    CUdeviceptr first = 0, second = 0;
    const CUipcMemHandle handle = of_another_process(done);
    SAY("primary %d", cuIpcOpenMemHandle(&first, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    new_context();
    SAY(", another %d", cuIpcOpenMemHandle(&second, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    SAY(", kernel of the other on the memory %d", launch_and_wait(kernel("store"), new_stream(), first));
    let_the_other_process_end(done);
}

/* ----------------------------------------------------------------------------------- captures, one thread */

static void capturing_stream_id(void)
{
    unsigned long long id;
    CUstream stream = new_stream();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SAY("id %d", cuStreamGetId(stream, &id));
    SAY(", status %d", capture_of(stream));
    SAY(", end %d", end_capture(stream));
}

static void capturing_stream_flags(void)
{
    unsigned flags = 0;
    CUstream stream = new_stream();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SAY("flags %d", cuStreamGetFlags(stream, &flags));
    SAY(", status %d", capture_of(stream));
    SAY(", end %d", end_capture(stream));
}

static void capturing_stream_context(void)
{
    CUcontext context;
    CUstream stream = new_stream();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SAY("context %d", cuStreamGetCtx(stream, &context));
    SAY(", id of the context %d", id_of(primary) >= 100000);
    SAY(", status %d", capture_of(stream));
    SAY(", end %d", end_capture(stream));
}

static void capturing_synchronize(void)
{
    CUstream stream = new_stream();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SAY("first %d", cuStreamSynchronize(stream));
    SAY(", status %d", capture_of(stream));
    SAY(", second %d", cuStreamSynchronize(stream));
    SAY(", end %d", end_capture(stream));
}

static void captured_event_after_the_end(void)
{
    CUstream stream = new_stream();
    CUevent event = new_event();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuEventRecord(event, stream);
    SAY("end %d", end_capture(stream));
    SAY(", query %d", cuEventQuery(event));
    SAY(", synchronize %d", cuEventSynchronize(event));
    SAY(", wait %d", cuStreamWaitEvent(new_stream(), event, 0));
    SAY(", record again %d", cuEventRecord(event, stream));
}

static void end_on_another_stream(void)
{
    CUstream origin = new_stream(), other = new_stream();
    CUevent event = new_event();
    cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuEventRecord(event, origin);
    cuStreamWaitEvent(other, event, 0);
    SAY("end on the other %d", end_capture(other));
    SAY(", end of the origin %d", end_capture(origin));
    SAY(", status of the origin %d", capture_of(origin));
    SAY(", of the other %d", capture_of(other));
}

static CUstream to_end;

static void *end_it(void *code)
{
    cuCtxSetCurrent(primary);
    *(CUresult *)code = end_capture(to_end);
    return NULL;
}

static void end_on_another_thread(void)
{
    pthread_t thread;
    CUresult code = CUDA_SUCCESS;
    to_end = new_stream();
    cuStreamBeginCapture(to_end, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    pthread_create(&thread, NULL, end_it, &code);
    pthread_join(thread, NULL);
    SAY("end elsewhere %d", code);
    SAY(", status %d", capture_of(to_end));
    SAY(", end here %d", end_capture(to_end));
}

static void graph_in_a_capture(void)
{
    CUstream stream = new_stream(), other = new_stream();
    CUgraph graph = NULL;
    CUgraphExec executable = NULL;
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    cuLaunchHostFunc(stream, hold, NULL);
    cuStreamEndCapture(stream, &graph);
    SAY("instantiate %d", cuGraphInstantiate(&executable, graph, 0));
    cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED);
    SAY(", launch in a capture %d", cuGraphLaunch(executable, other));
    SAY(", status %d", capture_of(other));
    SAY(", end %d", end_capture(other));
}

/* Does the query of the legacy stream tell of a capture without harm? */
static void legacy_beside(unsigned flags)
{
    CUstream stream = stream_of(flags);
    CUevent event = new_event();
    cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SAY("query of the legacy stream %d", capture_of(CU_STREAM_LEGACY));
    SAY(", capture %d", capture_of(stream));
    SAY(", record in the legacy stream %d", cuEventRecord(event, CU_STREAM_LEGACY));
    SAY(", capture %d", capture_of(stream));
    SAY(", end %d", end_capture(stream));
}

static void legacy_beside_blocking(void)
{
    legacy_beside(CU_STREAM_DEFAULT);
}

static void legacy_beside_non_blocking(void)
{
    legacy_beside(CU_STREAM_NON_BLOCKING);
}

/* ------------------------------------------------------------------ what the default streams cover; waits */

static void legacy_covers(unsigned flags)
{
    CUstream stream = stream_of(flags);
    CUevent event = new_event();
    spin(stream, 300);
    cuStreamDestroy(stream);
    SAY("record %d", cuEventRecord(event, CU_STREAM_LEGACY));
    SAY(", query %d", cuEventQuery(event));
    cuCtxSynchronize();
}

static void legacy_covers_destroyed_blocking(void)
{
    legacy_covers(CU_STREAM_DEFAULT);
}

static void legacy_covers_destroyed_non_blocking(void)
{
    legacy_covers(CU_STREAM_NON_BLOCKING);
}

static CUevent of_next_thread;

static void *work_in_stream_2(void *unused)
{
    cuCtxSetCurrent(primary);
    spin(CU_STREAM_PER_THREAD, 300);
    return unused;
}

static void *record_in_stream_2(void *unused)
{
    cuCtxSetCurrent(primary);
    cuEventRecord(of_next_thread, CU_STREAM_PER_THREAD);
    return unused;
}

static void stream_2_of_an_ended_thread(void)
{
    pthread_t thread;
    CUevent legacy = new_event(), context = new_event();
    of_next_thread = new_event();
    spin(CU_STREAM_LEGACY, 0);
    const double begin = seconds_now();
    pthread_create(&thread, NULL, work_in_stream_2, NULL);
    pthread_join(thread, NULL);
    SAY("its end waits %d", seconds_now() - begin > 0.25);
    cuCtxRecordEvent(primary, context);
    cuEventRecord(legacy, CU_STREAM_LEGACY);
    pthread_create(&thread, NULL, record_in_stream_2, NULL);
    pthread_join(thread, NULL);
    SAY(", event of the context %d", cuEventQuery(context));
    SAY(", of the legacy stream %d", cuEventQuery(legacy));
    SAY(", of stream 2 of the next thread %d", cuEventQuery(of_next_thread));
    cuCtxSynchronize();
}

static void *let_go_later(void *unused)
{
    usleep(200000);
    held = 0;
    return unused;
}

static void free_waits(void)
{
    pthread_t thread;
    CUdeviceptr memory = new_memory();
    keep_busy(new_stream());
    pthread_create(&thread, NULL, let_go_later, NULL);
    const double begin = seconds_now();
    SAY("cuMemFree %d", cuMemFree(memory));
    const double took = seconds_now() - begin;
    SAY(", waits for a non-blocking stream %d | %.0f ms", took > 0.15, took * 1e3);
    cuCtxSynchronize();
}

static void *free_it(void *memory)
{
    cuCtxSetCurrent(primary);
    cuMemFree(*(CUdeviceptr *)memory);
    return NULL;
}

/* Does a thread that waits in cuMemFree hold back a record of another thread? */
static void free_holds_back(void)
{
    pthread_t thread;
    CUdeviceptr memory = new_memory();
    CUstream busy = new_stream(), free_one = new_stream();
    CUevent event = new_event();
    spin(busy, 0);
    cuCtxSynchronize();
    spin(busy, 300);
    pthread_create(&thread, NULL, free_it, &memory);
    usleep(20000);
    const double begin = seconds_now();
    SAY("record %d", cuEventRecord(event, free_one));
    const double took = seconds_now() - begin;
    SAY(", held back %d | %.0f ms", took > 0.1, took * 1e3);
    pthread_join(thread, NULL);
}

/* Does a wait behind a busy stream hold back a stream that has nothing to do with it? */
static void more_streams_than_queues(void)
{
    CUstream streams[256], busy = new_stream();
    CUevent event = new_event();
    int late = 0;
    spin(busy, 0);
    cuCtxSynchronize();
    spin(busy, 500);
    cuEventRecord(event, busy);
    for (int i = 0; i < 256; i++) {
        streams[i] = new_stream();
        if (i % 2) cuStreamWaitEvent(streams[i], event, 0);
        spin(streams[i], 0);
    }
    usleep(200000);
    for (int i = 0; i < 256; i += 2) late += cuStreamQuery(streams[i]) == CUDA_ERROR_NOT_READY;
    SAY("%d of 128 are held back", late);
    cuCtxSynchronize();
}

/* ---------------------------------------------------------------------------------- arguments; no context */

static void no_context(void)
{
    CUstream stream = new_stream();
    CUevent event = new_event(), other = NULL;
    CUdeviceptr memory = new_memory(), made = 0;
    CUcontext context;
    CUipcMemHandle handle;
    size_t free_bytes, all_bytes;
    void *pinned = NULL, *host = malloc(1 << 20), *mapped = NULL;
    cuMemHostAlloc(&pinned, BYTES, 0);
    cuCtxSetCurrent(NULL);
    SAY("alloc %d", cuMemAlloc(&made, BYTES));
    SAY(", free %d", cuMemFree(memory));
    SAY(", host alloc %d", cuMemHostAlloc(&mapped, BYTES, 0));
    SAY(", host free %d", cuMemFreeHost(pinned));
    SAY(", register %d", cuMemHostRegister(host, 1 << 20, 0));
    SAY(", managed %d", cuMemAllocManaged(&made, BYTES, CU_MEM_ATTACH_GLOBAL));
    SAY(", info %d", cuMemGetInfo(&free_bytes, &all_bytes));
    SAY(", IPC handle %d", cuIpcGetMemHandle(&handle, memory));
    SAY(", alloc async, legacy %d", cuMemAllocAsync(&made, BYTES, CU_STREAM_LEGACY));
    SAY(", record %d", cuEventRecord(event, stream));
    SAY(", wait %d", cuStreamWaitEvent(stream, event, 0));
    SAY(", query %d", cuEventQuery(event));
    SAY(", event create %d", cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    SAY(", context of the stream %d", cuStreamGetCtx(stream, &context));
    cuCtxGetCurrent(&context);
    SAY(", still none %d", context == NULL);
}

static void no_bytes(void)
{
    void *host = &host;
    CUdeviceptr ordered = 7, plain = 7;
    SAY("host alloc %d", cuMemHostAlloc(&host, 0, 0));
    SAY(" null %d", host == NULL);
    SAY(", alloc async %d", cuMemAllocAsync(&ordered, 0, new_stream()));
    SAY(" null %d", ordered == 0);
    SAY(", alloc %d", cuMemAlloc(&plain, 0));
}

static void peer_copy_without_contexts(void)
{
    CUdeviceptr a = new_memory(), b = new_memory();
    CUstream stream = new_stream();
    SAY("target's only %d", cuMemcpyPeerAsync(a, primary, b, NULL, 64, stream));
    SAY(", source's only %d", cuMemcpyPeerAsync(a, NULL, b, primary, 64, stream));
    SAY(", none %d", cuMemcpyPeerAsync(a, NULL, b, NULL, 64, stream));
}

/* ---------------------------------------------------------------------------------------- a broken device */

static void broken_device(void)
{
    CUstream stream = new_stream(), other = new_stream();
    CUevent passed = new_event(), event = new_event();
    CUdeviceptr memory = new_memory();
    CUcontext context;
    CUmemorytype type;
    unsigned long long id;
    unsigned flags;
    cuEventRecord(passed, other);
    SAY("trap %d", launch_and_wait(kernel("fail"), stream, 0));
    SAY(", synchronize the context %d", cuCtxSynchronize());
    SAY(", record %d", cuEventRecord(event, other));
    SAY(", wait %d", cuStreamWaitEvent(other, passed, 0));
    SAY(", query %d", cuEventQuery(passed));
    SAY(", context of a stream %d", cuStreamGetCtx(other, &context));
    SAY(", capture %d", capture_of(other));
    SAY(", legacy capture %d", capture_of(CU_STREAM_LEGACY));
    SAY(", id %d", cuStreamGetId(other, &id));
    SAY(", flags %d", cuStreamGetFlags(other, &flags));
    SAY(", id of the context %d", id_of(primary) >= 100000);
    SAY(", current %d", cuCtxGetCurrent(&context));
    SAY(", push %d", cuCtxPushCurrent(primary));
    SAY(", pop %d", cuCtxPopCurrent(&context));
    SAY(", event create %d", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    SAY(", event destroy %d", cuEventDestroy(passed));
    SAY(", free %d", cuMemFree(memory));
    SAY(", pointer %d", cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    SAY(", stream destroy %d", cuStreamDestroy(other));
    SAY(", device %d", cuCtxGetDevice(&device));
}

static void broken_device_other_context(void)
{
    CUcontext other = new_context();
    CUevent event = new_event();
    CUstream stream = new_stream();
    CUdeviceptr memory = 0;
    cuEventRecord(event, stream);
    cuCtxSetCurrent(primary);
    SAY("trap %d", launch_and_wait(kernel("fail"), new_stream(), 0));
    SAY(", query in another context %d", cuEventQuery(event));
    SAY(", capture %d", capture_of(stream));
    SAY(", record %d", cuEventRecord(event, stream));
    cuCtxSetCurrent(other);
    SAY(", synchronize %d", cuCtxSynchronize());
    SAY(", alloc %d", cuMemAlloc(&memory, BYTES));
}

/* ----------------------------------------------------------------------------------------------- contexts */

static void launch_in_another_context(void)
{
    CUstream stream = new_stream();
    new_context();
    CUfunction function = kernel("nothing");
    SAY("its own context current %d", launch(function, stream, 0));
    cuCtxSetCurrent(primary);
    SAY(", the stream's %d", launch(function, stream, 0));
    cuCtxSynchronize();
}

static void memory_of_another_context(void)
{
    CUdeviceptr memory = new_memory(), made = 0;
    CUcontext other = new_context();
    CUstream stream = new_stream();
    SAY("set %d", cuMemsetD8Async(memory, 1, BYTES, stream));
    SAY(", synchronize %d", cuStreamSynchronize(stream));
    SAY(", kernel %d", launch_and_wait(kernel("store"), stream, memory));
    cuCtxSetCurrent(other);
    SAY(", alloc after it %d", cuMemAlloc(&made, BYTES));
}

static void released_primary_context(void)
{
    CUcontext again = NULL;
    CUdeviceptr memory = 0;
    unsigned flags;
    int active = -1;
    SAY("id known %d", id_of(primary) < 100000);
    cuCtxSetCurrent(NULL);
    cuDevicePrimaryCtxRelease(device);
    SAY(", released %d", (int)(id_of(primary) % 100000));
    cuDevicePrimaryCtxGetState(device, &flags, &active);
    SAY(", active %d", active);
    SAY(", push %d", cuCtxPushCurrent(primary));
    SAY(", alloc %d", cuMemAlloc(&memory, BYTES));
    SAY(", retain %d", cuDevicePrimaryCtxRetain(&again, device));
    SAY(", same handle %d", again == primary);
    SAY(", alloc %d", cuMemAlloc(&memory, BYTES));
}

static CUcontext reset(void)
{
    CUcontext again = NULL;
    SAY("reset %d", cuDevicePrimaryCtxReset(device));
    cuDevicePrimaryCtxRetain(&again, device);
    cuCtxSetCurrent(again);
    return again;
}

static void reset_ids(void)
{
    const unsigned long long id = id_of(primary);
    CUcontext again = reset();
    SAY(", same handle %d, another id %d", again == primary, id != id_of(again));
}

static void reset_without_retain(void)
{
    SAY("reset %d", cuDevicePrimaryCtxReset(device));
    SAY(", id %d", (int)(id_of(primary) % 100000));
}

static void reset_event_record(void)
{
    CUevent event = new_event();
    reset();
    SAY(", record of an event of before %d", cuEventRecord(event, new_stream()));
}

static void reset_event_query(void)
{
    CUevent event = new_event();
    reset();
    SAY(", query of an event of before %d", cuEventQuery(event));
}

static void reset_event_destroy(void)
{
    CUevent event = new_event();
    reset();
    SAY(", destroy of an event of before %d", cuEventDestroy(event));
}

static CUcontext destroyed_context(CUevent *event)
{
    CUcontext context = new_context(), popped;
    if (event) *event = new_event();
    cuCtxPopCurrent(&popped);
    cuCtxDestroy(context);
    cuCtxSetCurrent(primary);
    return context;
}

static void destroyed_context_ids(void)
{
    CUcontext first = destroyed_context(NULL);
    SAY("id of the destroyed %d", (int)(id_of(first) % 100000));
    CUcontext second = new_context();
    SAY(", id of the next known %d", id_of(second) < 100000);
}

static void destroyed_context_query(void)
{
    CUevent event;
    destroyed_context(&event);
    SAY("%d", cuEventQuery(event));
}

static void destroyed_context_event_destroy(void)
{
    CUevent event;
    destroyed_context(&event);
    SAY("%d", cuEventDestroy(event));
}

static CUcontext pushed_elsewhere;

static void *push_elsewhere(void *code)
{
    CUcontext popped;
    *(CUresult *)code = cuCtxPushCurrent(pushed_elsewhere);
    if (!*(CUresult *)code) cuCtxPopCurrent(&popped);
    return NULL;
}

/* ----------------------------------------------------------------------------------------- green contexts */

static CUgreenCtx new_green(CUcontext *context)
{
    CUdevResource all, part[1];
    CUdevResourceDesc description;
    CUgreenCtx green = NULL;
    unsigned count = 1;
    CUresult code = cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (!code) code = cuDevSmResourceSplitByCount(part, &count, &all, NULL, 0, 8);
    if (!code) code = cuDevResourceGenerateDesc(&description, part, 1);
    if (!code) code = cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (!code) code = cuCtxFromGreenCtx(context, green);
    if (code) SAY("no green context: %d ", code);
    return green;
}

static CUstream green_stream(CUgreenCtx green)
{
    CUstream stream = NULL;
    const CUresult code = cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0);
    if (code) SAY("no stream: %d ", code);
    return stream;
}

static void green_handles(void)
{
    CUcontext green = NULL, of_stream = NULL, of_memory = NULL;
    CUstream stream = green_stream(new_green(&green));
    SAY("context of a stream %d", cuStreamGetCtx(stream, &of_stream));
    SAY(", is the green one %d", of_stream == green);
    cuCtxSetCurrent(green);
    cuPointerGetAttribute(&of_memory, CU_POINTER_ATTRIBUTE_CONTEXT, new_memory());
    SAY(", memory made there is of the primary one %d", of_memory == primary);
    SAY(", context of stream 1 %d", cuStreamGetCtx(CU_STREAM_LEGACY, &of_stream));
    SAY(", is the green one %d", of_stream == green);
    SAY(", record in stream 2 %d", cuEventRecord(new_event(), CU_STREAM_PER_THREAD));
}

static void green_events(void)
{
    CUcontext context = NULL;
    CUstream own = new_stream(), green = green_stream(new_green(&context));
    CUevent event = new_event();
    SAY("of the primary: record in green %d", cuEventRecord(event, green));
    SAY(", wait in primary %d", cuStreamWaitEvent(own, event, 0));
    cuCtxSetCurrent(context);
    event = new_event();
    SAY("; of the green: record in primary %d", cuEventRecord(event, own));
    SAY(", in green %d", cuEventRecord(event, green));
}

static void green_two_threads(void)
{
    pthread_t thread;
    CUresult code = CUDA_SUCCESS;
    new_green(&pushed_elsewhere);
    SAY("push here %d", cuCtxPushCurrent(pushed_elsewhere));
    pthread_create(&thread, NULL, push_elsewhere, &code);
    pthread_join(thread, NULL);
    SAY(", then on another thread %d", code);
}

static void green_legacy(void)
{
    const size_t nbytes = (size_t)64 << 20;
    CUcontext green = NULL;
    CUdeviceptr memory = 0;
    CUevent event = new_event();
    cuMemAlloc(&memory, nbytes);
    new_green(&green);
    cuCtxSetCurrent(green);
    for (int i = 0; i < 400; i++) cuMemsetD8Async(memory, 1, nbytes, CU_STREAM_LEGACY);
    SAY("query of the green stream 1 %d", cuStreamQuery(CU_STREAM_LEGACY));
    cuCtxSetCurrent(primary);
    SAY(", of the primary one %d", cuStreamQuery(CU_STREAM_LEGACY));
    SAY(", record there %d", cuEventRecord(event, CU_STREAM_LEGACY));
    SAY(", its query %d", cuEventQuery(event));
    cuCtxSynchronize();
}

static void green_destroyed(void)
{
    CUcontext context = NULL;
    CUgreenCtx green = new_green(&context);
    CUstream stream = green_stream(green);
    CUevent event = new_event();
    cuEventRecord(event, stream);
    SAY("destroy %d", cuGreenCtxDestroy(green));
    SAY(", query of an event recorded there %d", cuEventQuery(event));
    SAY(", capture %d", capture_of(stream));
    SAY(", context %d", cuStreamGetCtx(stream, &context));
    SAY(", record %d", cuEventRecord(event, stream));
    SAY(", wait %d", cuStreamWaitEvent(stream, event, 0));
}

/* -------------------------------------------------------------------------------- memory of several kinds */

static void show(const char *what, CUdeviceptr pointer)
{
    unsigned type = 0, managed = 0;
    int ordinal = -9;
    void *context = NULL, *pool = NULL, *out[5];
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    out[0] = &type;
    out[1] = &ordinal;
    out[2] = &context;
    out[3] = &managed;
    out[4] = &pool;
    const CUresult code = cuPointerGetAttributes(5, asked, out, pointer);
    const char *of = context == (void *)primary ? "the primary" : context ? "another" : "no";
    SAY("%s: %d, type %u, device %d, %s context, managed %u, pool %d; ", what, code, type, ordinal, of,
        managed & 255u, pool != NULL);
}

static void pointers(void)
{
    CUdeviceptr managed = 0;
    void *pinned = NULL, *plain = calloc(1, 1 << 22);
    cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL);
    show("managed", managed);
    show("malloc", (CUdeviceptr)(size_t)plain);
    cuMemHostAlloc(&pinned, BYTES, CU_MEMHOSTALLOC_WRITECOMBINED);
    show("write-combined", (CUdeviceptr)(size_t)pinned);
    cuMemHostRegister(plain, 1 << 22, 0);
    show("registered", (CUdeviceptr)(size_t)plain);
}

static void pool_of_the_host(void)
{
    CUmemPoolProps properties;
    CUmemoryPool pool = NULL;
    CUdeviceptr memory = 0;
    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
    SAY("create %d", cuMemPoolCreate(&pool, &properties));
    SAY(", alloc %d, ", cuMemAllocFromPoolAsync(&memory, BYTES, pool, new_stream()));
    show("memory", memory);
}

static void pool_of_ones_own(void)
{
    CUmemoryPool pool = new_pool();
    CUstream stream = new_stream();
    CUdeviceptr memory = 0;
    SAY("alloc %d", cuMemAllocFromPoolAsync(&memory, BYTES, pool, stream));
    SAY(", free %d", cuMemFreeAsync(memory, stream));
    SAY(", destroy %d", cuMemPoolDestroy(pool));
}

/* ---------------------------------------------------------------------------- the end of a process; costs */

static CUevent left_event;
static CUstream left_stream;

static void leave_something(void)
{
    left_event = new_event();
    left_stream = new_stream();
    cuEventRecord(left_event, left_stream);
}

static void at_exit(void)
{
    CUcontext context;
    SAY("current %d", cuCtxGetCurrent(&context));
    SAY(", capture %d", capture_of(left_stream));
    SAY(", query %d", cuEventQuery(left_event));
    SAY(", destroy %d", cuEventDestroy(left_event));
}

static void exit_handler_made_after_cuda(void)
{
    start();
    leave_something();
    atexit(at_exit);
    exit(0);
}

static void exit_handler_made_before_cuda(void)
{
    atexit(at_exit);
    start();
    leave_something();
    exit(0);
}

static void after_a_fork(void)
{
    if (!fork()) {
        CUcontext context;
        CUevent event;
        SAY("in the child: current %d", cuCtxGetCurrent(&context));
        SAY(", init %d", cuInit(0));
        SAY(", event create %d", cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        _exit(0);
    }
    wait(NULL);
}

#define COST(name, times, call)                                                                          \
    do {                                                                                                 \
        double best = 1e9;                                                                               \
        for (int turn = 0; turn < 3; turn++) {                                                           \
            const double begin = seconds_now();                                                          \
            for (int i = 0; i < (times); i++) call;                                                      \
            const double one = (seconds_now() - begin) / (times) * 1e9;                                  \
            if (one < best) best = one;                                                                  \
        }                                                                                                \
        SAY(" " name " %.0f", best);                                                                     \
    } while (0)

static void costs(void)
{
    CUstream stream = new_stream(), other = new_stream();
    CUevent event = new_event();
    CUdeviceptr memory = new_memory(), base;
    CUcontext context;
    CUmemorytype type;
    unsigned long long id;
    size_t nbytes;
    SAY("nanoseconds |");
    COST("current", 100000, cuCtxGetCurrent(&context));
    COST("context of a stream", 100000, cuStreamGetCtx(stream, &context));
    COST("capture", 100000, capture_of(stream));
    COST("capture of the legacy stream", 100000, capture_of(CU_STREAM_LEGACY));
    COST("id of a context", 100000, cuCtxGetId(primary, &id));
    COST("type of a pointer", 50000, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    COST("range", 50000, cuMemGetAddressRange(&base, &nbytes, memory));
    COST("mode", 100000, relax());
    COST("push and pop", 50000, (cuCtxPushCurrent(primary), cuCtxPopCurrent(&context)));
    COST("event create and destroy", 20000, cuEventDestroy(new_event()));
    COST("record", 5000, cuEventRecord(event, stream));
    COST("record and wait", 5000, (cuEventRecord(event, stream), cuStreamWaitEvent(other, event, 0)));
    COST("query", 50000, cuEventQuery(event));
}

/* ------------------------------------------------------------------------------------------ the questions */

struct question {
    const char *name;
    void (*ask)(void);
    beside_call *call; /* while another thread captures in this mode */
    CUstreamCaptureMode mode;
    int relaxed; /* the mode of the thread that calls */
    int own_start;
};

#define ASK(name) {#name, name, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 0}
#define STARTS(name) {#name, name, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 1}
#define GLOBAL(name) {#name "_global", NULL, name, CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 0}
#define RELAXED(name) {#name "_global_relaxed", NULL, name, CU_STREAM_CAPTURE_MODE_GLOBAL, 1, 0}
#define LOCAL(name) {#name "_thread_local", NULL, name, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0, 0}

static const struct question questions[] = {
    ASK(dead_stream_context), ASK(dead_stream_id), ASK(dead_stream_capture), ASK(dead_stream_record),
    ASK(dead_stream_wait), ASK(dead_stream_query), ASK(dead_stream_synchronize),
    ASK(dead_stream_free_async), ASK(dead_event_record), ASK(dead_event_query), ASK(dead_event_wait),
    ASK(same_handle_again), ASK(same_handle_ids), ASK(context_event_covers),
    ASK(context_event_destroyed_stream), ASK(context_event_global), ASK(context_event_global_relaxed),
    ASK(context_event_relaxed), ASK(context_event_cost), GLOBAL(beside_context_event),
    RELAXED(beside_context_event), LOCAL(beside_context_event), GLOBAL(beside_context_synchronize),
    RELAXED(beside_context_synchronize), LOCAL(beside_context_synchronize),
    GLOBAL(beside_other_context_synchronize), GLOBAL(beside_record), GLOBAL(beside_event_query),
    RELAXED(beside_event_query), GLOBAL(beside_event_create), GLOBAL(beside_event_destroy),
    GLOBAL(beside_stream_query), GLOBAL(beside_stream_synchronize), RELAXED(beside_stream_synchronize),
    GLOBAL(beside_stream_id), GLOBAL(beside_free), RELAXED(beside_free), GLOBAL(beside_free_async),
    RELAXED(beside_free_async), GLOBAL(beside_alloc_async), RELAXED(beside_alloc_async),
    GLOBAL(beside_alloc_from_pool), RELAXED(beside_alloc_from_pool), ASK(beside_pageable_copies),
    ASK(beside_legacy_free_async), STARTS(beside_ipc_open_global), ASK(capturing_stream_id),
    ASK(capturing_stream_flags), ASK(capturing_stream_context), ASK(capturing_synchronize),
    ASK(captured_event_after_the_end), ASK(end_on_another_stream), ASK(end_on_another_thread),
    ASK(graph_in_a_capture), ASK(legacy_beside_blocking), ASK(legacy_beside_non_blocking),
    ASK(legacy_covers_destroyed_blocking), ASK(legacy_covers_destroyed_non_blocking),
    ASK(stream_2_of_an_ended_thread), ASK(free_waits), ASK(free_holds_back), ASK(more_streams_than_queues),
    ASK(no_context), ASK(no_bytes), ASK(peer_copy_without_contexts), ASK(broken_device),
    ASK(broken_device_other_context), ASK(launch_in_another_context), ASK(memory_of_another_context),
    ASK(released_primary_context), ASK(reset_ids), ASK(reset_without_retain), ASK(reset_event_record),
    ASK(reset_event_query), ASK(reset_event_destroy), ASK(destroyed_context_ids),
    ASK(destroyed_context_query), ASK(destroyed_context_event_destroy), ASK(green_handles),
    ASK(green_events), ASK(green_two_threads), ASK(green_legacy), ASK(green_destroyed), ASK(pointers),
    ASK(pool_of_the_host), ASK(pool_of_ones_own), STARTS(ipc_open_in_two_contexts),
    STARTS(exit_handler_made_after_cuda), STARTS(exit_handler_made_before_cuda), ASK(after_a_fork),
    ASK(costs),
};

static void ask(const struct question *question)
{
    alarm(LIMIT);
    if (!question->own_start) start();
    if (question->call) ask_beside(question->call, question->mode, question->relaxed);
    else question->ask();
}

static void ask_in_a_process(const struct question *question)
{
    int status = 0;
    SAY("%s: ", question->name);
    const pid_t child = fork();
    if (!child) {
        ask(question);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) SAY(" signal %d", WTERMSIG(status));
    SAY("\n");
}

/* Asked in a process of its own: what is forked after cuInit cannot use CUDA. */
static int has_gpu(void)
{
    int status = 0;
    const pid_t child = fork();
    if (!child) {
        int count = 0;
        _exit(cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS && count ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

int main(int argc, char **argv)
{
    if (!has_gpu()) {
        puts("skipped: no GPU");
        return 77;
    }
    for (size_t i = 0; i < ELEMENTS(questions); i++) {
        int chosen = argc < 2;
        for (int k = 1; k < argc; k++) chosen |= !strcmp(argv[k], questions[i].name);
        if (chosen) ask_in_a_process(&questions[i]);
    }
    return 0;
}
