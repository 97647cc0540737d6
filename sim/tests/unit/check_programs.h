/* check_programs.h - programs with and without races, most of them after reports of bugs, for test_check.c
 * SPDX-License-Identifier: MIT
 *
 * Each program is a cai_check_program. Most come twice: with argument NULL as it was reported, and with
 * another argument as it is right, which differs in nothing but the order that was missing. Where a
 * repository and a number stand, that issue or pull request tells of the bug; the names of the work are ours.
 *
 * The scene of a program: streams s[0], s[1], ... are called s1, s2, ... in the log, memory m[0] is m1. */
#ifndef CHECK_PROGRAMS_H
#define CHECK_PROGRAMS_H

#include "sim/cai_check.h"

#include <string.h>

enum { BYTES = 256, HALF = 128, SCENE_MOST = 8 };

typedef struct scene {
    cai_sim *sim;
    const cai_cuda *cuda;
    uint64_t s[SCENE_MOST], m[SCENE_MOST], e[SCENE_MOST];
    int32_t streams, memories, events, fixed;
} scene;

/* ------------------------------------------------------------------ scenes */

/* A letter for each stream: n non-blocking, b blocking, N and B the same on device 1. */
static scene scene_open(cai_sim *sim, const char *letters, const void *fixed)
{
    scene x;
    memset(&x, 0, sizeof x);
    x.sim = sim;
    x.cuda = cai_sim_cuda(sim);
    x.fixed = fixed != NULL;
    for (; *letters; letters++) {
        const int32_t device = *letters == 'N' || *letters == 'B';
        cai_sim_set_context(sim, cai_sim_primary(sim, device));
        x.s[x.streams++] = cai_sim_stream_create(sim, *letters == 'n' || *letters == 'N');
    }
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    return x;
}

static uint64_t scene_memory(scene *x, int32_t kind, uint64_t bytes)
{
    return x->m[x->memories++] = cai_sim_alloc(x->sim, kind, bytes);
}

static uint64_t scene_pool(scene *x, uint64_t stream)
{
    uint64_t made = 0;
    x->cuda->memory_alloc_async(x->cuda->self, &made, BYTES, stream);
    return x->m[x->memories++] = made;
}

static uint64_t scene_event(scene *x)
{
    return x->e[x->events++] = cai_sim_event_create(x->sim);
}

/* The program frees this memory itself. */
static void scene_forget(scene *x, uint64_t memory)
{
    int32_t i;
    for (i = 0; i < x->memories; i++)
        if (x->m[i] == memory) x->m[i] = 0;
}

/* Waits for both devices, so that nothing here races with the work of the program. */
static void scene_close(scene *x)
{
    int32_t i;
    for (i = 1; i >= 0; i--) {
        if (cai_sim_primary(x->sim, i) == 0) continue;
        cai_sim_set_context(x->sim, cai_sim_primary(x->sim, i));
        cai_sim_context_synchronize(x->sim);
    }
    for (i = 0; i < x->memories; i++) cai_sim_free(x->sim, x->m[i]);
    for (i = 0; i < x->events; i++) cai_sim_event_destroy(x->sim, x->e[i]);
    for (i = 0; i < x->streams; i++) cai_sim_stream_destroy(x->sim, x->s[i]);
}

static void does(scene *x, uint64_t stream, const char *name, cai_sim_access access)
{
    cai_sim_touch(x->sim, stream, name, &access, 1);
}

static void copies(scene *x, uint64_t stream, const char *name, uint64_t to, uint64_t from)
{
    cai_sim_access both[2];
    both[0] = cai_sim_reads(from, BYTES);
    both[1] = cai_sim_writes(to, BYTES);
    cai_sim_touch(x->sim, stream, name, both, 2);
}

static void host(scene *x, const char *name, cai_sim_access access)
{
    if (access.write) cai_sim_host_touch(x->sim, name, &access, 1);
    else cai_sim_host_access(x->sim, name, &access, 1);
}

static cai_sim_access reads(uint64_t memory)
{
    return cai_sim_reads(memory, BYTES);
}

static cai_sim_access writes(uint64_t memory)
{
    return cai_sim_writes(memory, BYTES);
}

/* `then` waits for what is in `first` by now. The event goes at once: what waits for it does so all the
 * same. */
static void edge(scene *x, uint64_t first, uint64_t then)
{
    const uint64_t event = cai_sim_event_create(x->sim);
    cai_sim_event_record(x->sim, event, first);
    cai_sim_stream_wait_event(x->sim, then, event);
    cai_sim_event_destroy(x->sim, event);
}

/* -------------------------------------------- a consumer that does not wait */

/* mpi4py/mpi4py#60: MPI got the pointer through the CUDA Array Interface and read the array in streams of
 * its own before it was filled; tests failed now and then. Right: synchronize the producer's stream first. */
static void consumer_ignores_stream(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "arange", writes(m));
    if (x.fixed) x.cuda->stream_synchronize(x.cuda->self, x.s[0]);
    does(&x, x.s[1], "MPI_Send", reads(m));
    scene_close(&x);
}

/* meta-pytorch/torchrec#4231, pytorch/pytorch#179863: a block that a side stream copies to the host goes
 * back to the caching allocator without record_stream, and the next tensor of the main stream gets it.
 * Right: the main stream waits. That the side stream waits for the main one is in both. */
static void reused_while_read(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t block = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "first tensor", writes(block));
    edge(&x, x.s[0], x.s[1]);
    does(&x, x.s[1], "copy to host", reads(block));
    if (x.fixed) edge(&x, x.s[1], x.s[0]);
    does(&x, x.s[0], "next tensor", writes(block));
    scene_close(&x);
}

/* jax-ml/jax, jaxlib/py_array.cc (CudaArrayInterfaceToBuffer, read at 01cd8cc7): a stream of 1 or 2
 * becomes "no stream", so that an array of the legacy stream is taken over without an order. */
static void legacy_means_no_order(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, CAI_STREAM_LEGACY, "producer", writes(m));
    if (x.fixed) edge(&x, CAI_STREAM_LEGACY, x.s[0]);
    does(&x, x.s[0], "xla", reads(m));
    scene_close(&x);
}

/* sony/nnabla-ext-cuda#188: thrust::async::sort works in a non-blocking stream, which does not wait for
 * the default stream in which the data was made. Right, too, without any event: a blocking stream
 * (NVIDIA/warp#159). */
static void sort_in_other_stream(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, argument ? "b" : "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, CAI_STREAM_LEGACY, "forward", writes(m));
    does(&x, x.s[0], "sort", writes(m));
    does(&x, CAI_STREAM_LEGACY, "backward", reads(m));
    scene_close(&x);
}

/* vortex-data/vortex#6157: the copy to the host runs in the default stream and does not wait for the
 * stream of the buffer. It waits for the copy: the host may read its own memory, but what is in it? */
static void copied_in_default_stream(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t pinned = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    does(&x, x.s[0], "decode", writes(m));
    if (x.fixed) cai_sim_stream_synchronize(sim, x.s[0]);
    copies(&x, CAI_STREAM_LEGACY, "memcpy", pinned, m);
    cai_sim_stream_synchronize(sim, CAI_STREAM_LEGACY);
    host(&x, "read", reads(pinned));
    scene_close(&x);
}

/* ghex-org/GHEX#224: the halo is unpacked in a non-blocking stream as soon as the message is there, while
 * kernels of the user's stream still read it. They meet in the halo, the first 32 bytes, and not in the
 * rest. */
static void halo_unpacked_early(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t field = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    cai_sim_access stencil[2];
    stencil[0] = cai_sim_reads(field, 64);
    stencil[1] = cai_sim_writes(field + 64, BYTES - 64);
    cai_sim_touch(sim, x.s[0], "stencil", stencil, 2);
    if (x.fixed) edge(&x, x.s[0], x.s[1]);
    does(&x, x.s[1], "unpack", cai_sim_writes(field, 32));
    scene_close(&x);
}

/* ---------------------------------------------------------- events gone wrong */

/* sgl-project/sglang#14214: one stream waits for the event before the other records it, which waits for
 * nothing. */
static void wait_before_record(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t ready = scene_event(&x);
    does(&x, x.s[0], "prefill", writes(m));
    if (x.fixed) cai_sim_event_record(sim, ready, x.s[0]);
    cai_sim_stream_wait_event(sim, x.s[1], ready);
    if (!x.fixed) cai_sim_event_record(sim, ready, x.s[0]);
    does(&x, x.s[1], "decode", reads(m));
    scene_close(&x);
}

/* torch/cutorch#222: one event is recorded in all streams to wait for, and waited for once: the wait is
 * for the last of them only. Right: a wait after each record. */
static void one_event_for_all(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t event = scene_event(&x);
    does(&x, x.s[0], "left", cai_sim_writes(m, HALF));
    does(&x, x.s[1], "right", cai_sim_writes(m + HALF, HALF));
    cai_sim_event_record(sim, event, x.s[0]);
    if (x.fixed) cai_sim_stream_wait_event(sim, x.s[2], event);
    cai_sim_event_record(sim, event, x.s[1]);
    cai_sim_stream_wait_event(sim, x.s[2], event);
    does(&x, x.s[2], "sum", reads(m));
    scene_close(&x);
}

/* rapidsai/rmm#2489: memory goes from the free list of s1 to that of s2, which waits for s1, but the event
 * of the list of s2 is older than that wait; s3 takes the memory and waits for that event. Right: record
 * it again. */
static void stale_event(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnn", argument);
    const uint64_t block = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t list = scene_event(&x);
    cai_sim_event_record(sim, list, x.s[1]);
    does(&x, x.s[0], "first owner", writes(block));
    edge(&x, x.s[0], x.s[1]);
    if (x.fixed) cai_sim_event_record(sim, list, x.s[1]);
    cai_sim_stream_wait_event(sim, x.s[2], list);
    does(&x, x.s[2], "third owner", writes(block));
    scene_close(&x);
}

/* NVIDIA/cuCascade#189: one pool of events for all devices. The record of an event of device 0 in a stream
 * of device 1 fails, nobody looks, and the slab is used again during the transfer. Right: an event of the
 * stream's device. */
static void event_of_other_device(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nN", argument);
    const uint64_t slab = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    const uint64_t made = x.fixed ? cai_sim_primary(sim, 1) : cai_sim_primary(sim, 0);
    uint64_t event;
    cai_sim_set_context(sim, made);
    event = scene_event(&x);
    cai_sim_set_context(sim, cai_sim_primary(sim, 1));
    does(&x, x.s[1], "upload", reads(slab));
    x.cuda->event_record(x.cuda->self, event, x.s[1]);
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    cai_sim_stream_wait_event(sim, x.s[0], event);
    does(&x, x.s[0], "download", writes(slab));
    scene_close(&x);
}

/* smol-machines/smolvm#932: a query that says "done" of everything, so that buffers are used again in
 * flight. The program is right and the query lies, where the check is told to omit it. */
static void query_then_reuse(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t pinned = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    const uint64_t copied = scene_event(&x);
    does(&x, x.s[0], "upload", reads(pinned));
    cai_sim_event_record(sim, copied, x.s[0]);
    if (x.cuda->event_query(x.cuda->self, copied) != 0) cai_sim_event_synchronize(sim, copied);
    host(&x, "refill", writes(pinned));
    scene_close(&x);
}

/* Who asks again and again gets the answer at last, and knows then that the work is done. */
static void polls(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t pinned = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    const uint64_t copied = scene_event(&x);
    does(&x, x.s[0], "download", writes(pinned));
    cai_sim_event_record(sim, copied, x.s[0]);
    while (x.cuda->event_query(x.cuda->self, copied) == CAI_SIM_ERROR_NOT_READY) cai_sim_step(sim, x.s[0]);
    host(&x, "read", reads(pinned));
    scene_close(&x);
}

/* ------------------------------------------------------ allocation and release */

/* numba/numba#5162 (jrhemstad): memory is allocated in the order of s1; to synchronize the default stream
 * does not make it good elsewhere. */
static void allocated_elsewhere(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_pool(&x, x.s[0]);
    x.cuda->stream_synchronize(x.cuda->self, x.fixed ? x.s[0] : (uint64_t)CAI_STREAM_LEGACY);
    does(&x, x.s[1], "kernel", writes(m));
    scene_close(&x);
}

/* rapidsai/rmm#2156: allocate_sync allocates in the default stream and does not wait; the memory is freed
 * in a non-blocking stream, perhaps before it is allocated. */
static void freed_before_allocated(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_pool(&x, CAI_STREAM_LEGACY);
    if (x.fixed) cai_sim_stream_synchronize(sim, CAI_STREAM_LEGACY);
    x.cuda->memory_free_async(x.cuda->self, m, x.s[0]);
    scene_forget(&x, m);
    scene_close(&x);
}

/* NVlabs/cuda-oxide#619: a buffer is freed in the stream in which it was allocated, and was last used in
 * another. */
static void freed_in_first_stream(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_pool(&x, x.s[0]);
    does(&x, x.s[0], "fill", writes(m));
    edge(&x, x.s[0], x.s[1]);
    does(&x, x.s[1], "last use", reads(m));
    if (x.fixed) edge(&x, x.s[1], x.s[0]);
    x.cuda->memory_free_async(x.cuda->self, m, x.s[0]);
    scene_forget(&x, m);
    scene_close(&x);
}

/* chelsea0x3b/cudarc#77: memory is freed in a stream of its own that waits for the default stream. Left
 * out, the free overtakes the work: the stream does not block. */
static void freed_in_stream_for_frees(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_pool(&x, CAI_STREAM_LEGACY);
    does(&x, CAI_STREAM_LEGACY, "gradient", writes(m));
    if (x.fixed) edge(&x, CAI_STREAM_LEGACY, x.s[0]);
    x.cuda->memory_free_async(x.cuda->self, m, x.s[0]);
    scene_forget(&x, m);
    scene_close(&x);
}

/* roastduck/FreeTensor#566: a buffer is freed while a kernel in a stream still uses it. */
static void owner_dies(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "kernel", writes(m));
    if (x.fixed) x.cuda->stream_synchronize(x.cuda->self, x.s[0]);
    cai_sim_free(sim, m);
    scene_forget(&x, m);
    scene_close(&x);
}

/* The same, left to the free: right only where it waits. argument: NULL, or uint32_t options. */
static void freed_by_cuda(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", NULL);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    if (argument != NULL) cai_sim_set_options(sim, *(const uint32_t *)argument);
    does(&x, x.s[0], "kernel", writes(m));
    x.cuda->memory_free(x.cuda->self, m);
    scene_forget(&x, m);
    scene_close(&x);
}

/* Copies. to, from: kinds of memory, -1 for pageable. What was copied to is read by the host at the end, and
 * what was copied from is written by it. */
typedef struct copy_case {
    int32_t to, from;
    int32_t async;     /* 1: cai_sim_copy_async, on a stream of its own */
    int32_t waits;     /* 1: the host waits for the stream before it goes on */
    uint32_t options;  /* of the simulation */
} copy_case;

static uint64_t copy_side(scene *x, int32_t kind, unsigned char *pageable)
{
    if (kind >= 0) return scene_memory(x, kind, BYTES);
    memset(pageable, 0, BYTES);
    return (uint64_t)(uintptr_t)pageable;
}

static void copied(cai_sim *sim, void *argument)
{
    static unsigned char pageable[2][BYTES];
    const copy_case *c = (const copy_case *)argument;
    scene x = scene_open(sim, "n", NULL);
    const uint64_t to = copy_side(&x, c->to, pageable[0]), from = copy_side(&x, c->from, pageable[1]);
    const uint64_t stream = c->async ? x.s[0] : CAI_STREAM_LEGACY;
    const cai_sim_access reads_to = reads(to), writes_from = writes(from);
    cai_sim_set_options(sim, c->options);
    if (c->from == CAI_SIM_MEM_DEVICE) does(&x, stream, "kernel", writes(from));
    if (c->async) cai_sim_copy_async(sim, to, from, BYTES, stream);
    else cai_sim_copy(sim, to, from, BYTES, stream);
    if (c->waits) cai_sim_stream_synchronize(sim, stream);
    if (c->to != CAI_SIM_MEM_DEVICE) cai_sim_host_touch(sim, "read", &reads_to, 1);
    if (c->from != CAI_SIM_MEM_DEVICE) cai_sim_host_touch(sim, "write", &writes_from, 1);
    cai_sim_stream_synchronize(sim, stream);
    scene_close(&x);
}

/* Two streams copy into rows of the same memory that lie between one another. argument: NULL, or anything: the
 * second is one byte too wide. */
static void copied_rows(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", NULL);
    const uint64_t from = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t to = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const cai_sim_rows rows = {from, 16, 0}, even = {to, 16, 0}, odd = {to + 8, 16, 0};
    const cai_sim_extent first = {8, 8, 1}, second = {(uint64_t)8 + (argument != NULL), 8, 1};
    does(&x, CAI_STREAM_LEGACY, "fill", writes(from));
    cai_sim_context_synchronize(sim);
    cai_sim_copy_rows_async(sim, &even, &rows, &first, x.s[0]);
    cai_sim_copy_rows_async(sim, &odd, &rows, &second, x.s[1]);
    cai_sim_context_synchronize(sim);
    scene_close(&x);
}

/* Memory is freed in order, and its address used again on another stream. argument: NULL, or anything: freed
 * too early. */
static void address_again(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", NULL);
    const uint64_t first = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    uint64_t second;
    cai_sim_set_options(sim, cai_sim_options(sim) | CAI_SIM_REUSE);
    does(&x, x.s[0], "first", writes(first));
    if (argument == NULL) cai_sim_stream_synchronize(sim, x.s[0]);
    cai_sim_free(sim, first);
    scene_forget(&x, first);
    second = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    if (second != first) cai_check_fail(sim, "another address");
    does(&x, x.s[1], "second", writes(second));
    scene_close(&x);
}

/* --------------------------------------------------------------------- the host */

/* cupy/cupy#5155, pytorch/pytorch#126946: pinned memory is overwritten while it is still copied to the
 * device. */
static void pinned_overwritten(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t pinned = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t copied = scene_event(&x);
    host(&x, "fill", writes(pinned));
    copies(&x, x.s[0], "upload", m, pinned);
    cai_sim_event_record(sim, copied, x.s[0]);
    if (x.fixed) cai_sim_event_synchronize(sim, copied);
    host(&x, "overwrite", writes(pinned));
    scene_close(&x);
}

/* pytorch/pytorch#86264: to("cpu", non_blocking=True), and the host reads before the copy has ended. */
static void read_too_early(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t pinned = scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    does(&x, x.s[0], "kernel", writes(m));
    copies(&x, x.s[0], "download", pinned, m);
    if (x.fixed) cai_sim_stream_synchronize(sim, x.s[0]);
    host(&x, "print", reads(pinned));
    scene_close(&x);
}

/* The same through memory that the device sees at another address than the host. */
static void mapped_at_two_addresses(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_ALIASED, BYTES);
    cai_cuda_pointer info;
    memset(&info, 0, sizeof info);
    x.cuda->pointer_info(x.cuda->self, m, &info);
    does(&x, x.s[0], "kernel", cai_sim_writes(info.device_pointer + HALF, HALF));
    if (x.fixed) cai_sim_stream_synchronize(sim, x.s[0]);
    host(&x, "print", reads(m));
    scene_close(&x);
}

/* ----------------------------------------------------------------- two devices */

/* ROCm/rocm-systems#10229: a copy between devices in the default stream of the target does not wait for
 * the kernel in the default stream of the source: they are of different contexts. Right, as
 * torch/cutorch#192 says: an event. */
static void copied_between_devices(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    const uint64_t event = scene_event(&x);
    const uint64_t source = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    uint64_t target;
    does(&x, CAI_STREAM_LEGACY, "fill", writes(source));
    if (x.fixed) cai_sim_event_record(sim, event, CAI_STREAM_LEGACY);
    cai_sim_set_context(sim, cai_sim_primary(sim, 1));
    target = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    cai_sim_stream_wait_event(sim, CAI_STREAM_LEGACY, event);
    copies(&x, CAI_STREAM_LEGACY, "peer copy", target, source);
    scene_close(&x);
}

/* --------------------------------------------------------------------- threads */

/* cupy/cupy#5069: the memory pool keeps blocks by the number of the stream, which is 2 in every thread,
 * and hands a block of one thread to another, whose stream 2 is not the same. */
static void pool_thread_first(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    does(x, CAI_STREAM_PER_THREAD, "fill 123", writes(x->m[0]));
    if (x->fixed) cai_sim_event_record(sim, x->e[0], CAI_STREAM_PER_THREAD);
    cai_check_pass(sim, 0);
}

static void pool_thread_second(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    cai_check_take(sim, 0);
    if (x->fixed) cai_sim_stream_wait_event(sim, CAI_STREAM_PER_THREAD, x->e[0]);
    does(x, CAI_STREAM_PER_THREAD, "fill 456", writes(x->m[0]));
}

static void two_threads(cai_sim *sim, scene *x, cai_check_program first, cai_check_program second)
{
    cai_check_program functions[2];
    void *arguments[2];
    functions[0] = first;
    functions[1] = second;
    arguments[0] = arguments[1] = x;
    cai_check_threads(sim, functions, arguments, 2);
}

static void pool_of_stream_two(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_event(&x);
    two_threads(sim, &x, pool_thread_first, pool_thread_second);
    scene_close(&x);
}

/* vllm-project/vllm#37601: an event alone does not order two threads: where the wait comes first, it is
 * for nothing. Right: the host waits until the other thread has recorded it. */
static void recording_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    does(x, x->s[0], "weights", writes(x->m[0]));
    cai_sim_event_record(sim, x->e[0], x->s[0]);
    if (x->fixed) cai_check_pass(sim, 3);
}

static void waiting_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    if (x->fixed) cai_check_take(sim, 3);
    cai_sim_stream_wait_event(sim, x->s[1], x->e[0]);
    does(x, x->s[1], "forward", reads(x->m[0]));
}

static void event_between_threads(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_event(&x);
    two_threads(sim, &x, recording_thread, waiting_thread);
    scene_close(&x);
}

/* NVIDIA/cub#156: DeviceFree put the block into the free list, and recorded its event only then; in
 * between another thread found the block, asked the event, which was done or never recorded, and took it.
 * Right: record first. The baton is the lock around the list. */
static void freeing_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    does(x, x->s[0], "kernel", writes(x->m[0]));
    if (x->fixed) cai_sim_event_record(sim, x->e[0], x->s[0]);
    cai_check_pass(sim, 0);
    if (!x->fixed) cai_sim_event_record(sim, x->e[0], x->s[0]);
}

static void allocating_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    cai_check_take(sim, 0);
    if (cai_sim_event_query(sim, x->e[0]) != 0) cai_sim_event_synchronize(sim, x->e[0]);
    does(x, x->s[1], "reuse", writes(x->m[0]));
}

static void listed_before_recorded(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_event(&x);
    two_threads(sim, &x, freeing_thread, allocating_thread);
    scene_close(&x);
}

/* Two threads and the host's own memory. Right: the baton goes there. */
static void writing_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    host(x, "write", writes(x->m[0]));
    if (x->fixed) cai_check_pass(sim, 15);
}

static void reading_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    if (x->fixed) cai_check_take(sim, 15);
    host(x, "read", reads(x->m[0]));
}

static void host_threads(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    two_threads(sim, &x, writing_thread, reading_thread);
    scene_close(&x);
}

/* NiobiumInc/FIDESlib-fork, ConfigurePoolForConcurrentOps; seen on an H100: one thread makes a shared stream wait
 * for a free, while another one records there, waits for that in its own stream, and allocates. CUDA's pool
 * gives it the block too early. Right: the pool does not follow events. */
static void waits_in_shared_stream(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    does(x, x->s[0], "first owner", writes(x->m[0]));
    cai_sim_pool_free(sim, x->m[0], x->s[0]);
    cai_sim_event_record(sim, x->e[0], x->s[0]);
    cai_sim_stream_wait_event(sim, x->s[1], x->e[0]);
}

static void records_in_shared_stream(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    uint64_t memory;
    cai_sim_event_record(sim, x->e[1], x->s[1]);
    cai_sim_stream_wait_event(sim, x->s[2], x->e[1]);
    memory = cai_sim_pool_alloc(sim, 0, BYTES, x->s[2]);
    does(x, x->s[2], "second owner", writes(memory));
    cai_sim_pool_free(sim, memory, x->s[2]);
}

static void pool_of_shared_stream(cai_sim *sim, void *argument)
{
    scene x;
    cai_sim_set_options(sim, CAI_SIM_DEFAULT | CAI_SIM_POOL_REUSE | CAI_SIM_POOL_EARLY_WAITS);
    x = scene_open(sim, "nnn", argument);
    if (x.fixed) cai_sim_pool_set(sim, cai_sim_pool_default(sim, 0), CAI_SIM_POOL_FOLLOW_EVENTS, 0);
    scene_pool(&x, x.s[0]);
    scene_event(&x);
    scene_event(&x);
    two_threads(sim, &x, waits_in_shared_stream, records_in_shared_stream);
    scene_forget(&x, x.m[0]);
    scene_close(&x);
}

/* One thread waits for the work, and the other one reads what it left: that it looks later is luck. */
static void synchronizing_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    does(x, x->s[0], "kernel", writes(x->m[0]));
    cai_sim_stream_synchronize(sim, x->s[0]);
    if (x->fixed) cai_check_pass(sim, 7);
}

static void looking_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    if (x->fixed) cai_check_take(sim, 7);
    host(x, "look", reads(x->m[0]));
}

static void other_thread_waited(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    scene_memory(&x, CAI_SIM_MEM_MANAGED, BYTES);
    two_threads(sim, &x, synchronizing_thread, looking_thread);
    scene_close(&x);
}

/* Three threads of one call each that others can notice; the rest are questions. */
static void asking_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    const cai_cuda *cuda = cai_sim_cuda(sim);
    cai_cuda_pointer info;
    uint64_t id = 0, context = 0;
    int32_t mode = CAI_SIM_MODE_RELAXED;
    cuda->stream_id(cuda->self, x->s[0], &id);
    cuda->context_current(cuda->self, &context);
    cuda->pointer_info(cuda->self, x->m[0], &info);
    cuda->context_push(cuda->self, context);
    does(x, x->s[0], "one", cai_sim_writes(x->m[0], 16));
    cuda->context_pop(cuda->self);
    cuda->capture_mode(cuda->self, &mode);
}

static void plain_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    (void)sim;
    does(x, x->s[0], "other", cai_sim_writes(x->m[0] + 16, 16));
}

static void three_threads(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    cai_check_program functions[3];
    void *arguments[3];
    scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    functions[0] = asking_thread;
    functions[1] = functions[2] = plain_thread;
    arguments[0] = arguments[1] = arguments[2] = &x;
    cai_check_threads(sim, functions, arguments, 3);
    scene_close(&x);
}

/* Two threads that write in turns, each after the other: the batons order all of it. */
static void ping(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    host(x, "ping", writes(x->m[0]));
    cai_check_pass(sim, 0);
    cai_check_take(sim, 1);
    host(x, "ping again", writes(x->m[0]));
}

static void pong(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    cai_check_take(sim, 0);
    host(x, "pong", writes(x->m[0]));
    cai_check_pass(sim, 1);
}

static void in_turns(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    two_threads(sim, &x, ping, pong);
    scene_close(&x);
}

/* -------------------------------------------------------- no race, by themselves */

/* Two streams read the same weights. */
static void both_read(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "one", reads(m));
    does(&x, x.s[1], "other", reads(m));
    host(&x, "third", reads(m));
    scene_close(&x);
}

/* Two kernels of one name, which is all that tells them apart but for their streams. */
static void both_add(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "add", writes(m));
    if (x.fixed) edge(&x, x.s[0], x.s[1]);
    does(&x, x.s[1], "add", writes(m));
    scene_close(&x);
}

/* Two views that meet in nothing, to the byte; and work that touches no byte at the same place. */
static void neighbours(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnnn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "first half", cai_sim_writes(m, HALF));
    does(&x, x.s[1], "second half", cai_sim_writes(m + HALF, HALF - 1));
    does(&x, x.s[2], "last byte", cai_sim_writes(m + BYTES - 1, 1));
    does(&x, x.s[3], "no byte", cai_sim_writes(m + 10, 0));
    scene_close(&x);
}

/* The same with one byte in common, on each side. */
static void neighbours_that_meet(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "middle", cai_sim_writes(m + 64, 64));
    does(&x, x.s[1], "up to it", cai_sim_reads(m, 65));
    does(&x, x.s[2], "from its last", cai_sim_reads(m + 127, 129));
    scene_close(&x);
}

/* Two arrays over the same memory, rows and columns of it, as a view and its transpose. */
static void views_that_overlap(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    cai_sim_access rows[2], columns[2];
    rows[0] = cai_sim_reads(m, 16);
    rows[1] = cai_sim_writes(m + 32, 16);
    columns[0] = cai_sim_reads(m + 8, 16);
    columns[1] = cai_sim_reads(m + 40, 4);
    cai_sim_touch(sim, x.s[0], "rows", rows, 2);
    if (x.fixed) edge(&x, x.s[0], x.s[1]);
    cai_sim_touch(sim, x.s[1], "columns", columns, 2);
    scene_close(&x);
}

/* intel/llvm#5099: a wait of a stream for an event of itself changes nothing; the stream orders its work. */
static void same_stream(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "write", writes(m));
    edge(&x, x.s[0], x.s[0]);
    does(&x, x.s[0], "add", writes(m));
    does(&x, x.s[0], "read", reads(m));
    scene_close(&x);
}

/* NVIDIA/warp#159: one library in the legacy stream, the other in blocking streams: nothing to be done.
 * The legacy stream orders the two blocking ones as well. */
static void legacy_orders(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "bb", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "warp", writes(m));
    does(&x, CAI_STREAM_LEGACY, "torch", writes(m));
    does(&x, x.s[1], "warp again", writes(m));
    does(&x, CAI_STREAM_LEGACY, "torch again", writes(m));
    does(&x, CAI_STREAM_PER_THREAD, "blocking, too", writes(m));
    does(&x, CAI_STREAM_LEGACY, "torch", reads(m));
    scene_close(&x);
}

/* The last blocking stream does not wait for the one before it unless the legacy stream is in between. */
static void blocking_streams_alone(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "bb", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "warp", writes(m));
    if (x.fixed) does(&x, CAI_STREAM_LEGACY, "nothing", cai_sim_reads(m, 0));
    does(&x, x.s[1], "warp again", writes(m));
    scene_close(&x);
}

/* An order by way of a third stream, and of the host. */
static void by_a_chain(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnnn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "first", writes(m));
    edge(&x, x.s[0], x.s[1]);
    edge(&x, x.s[1], x.s[2]);
    does(&x, x.s[2], "third", writes(m));
    cai_sim_stream_synchronize(sim, x.s[2]);
    does(&x, x.s[3], "fourth", writes(m));
    cai_sim_context_synchronize(sim);
    host(&x, "host", writes(m));
    does(&x, x.s[0], "first again", reads(m));
    scene_close(&x);
}

/* An event that is recorded again, or destroyed, after a wait was made: the wait stays. */
static void recorded_again(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t event = cai_sim_event_create(sim);
    does(&x, x.s[0], "first", writes(m));
    cai_sim_event_record(sim, event, x.s[0]);
    cai_sim_stream_wait_event(sim, x.s[1], event);
    cai_sim_event_record(sim, event, x.s[2]);
    cai_sim_event_destroy(sim, event);
    does(&x, x.s[1], "second", writes(m));
    scene_close(&x);
}

/* A fork and a join inside of a capture; in the racy form the fork is there and the join comes too late.
 * What was captured never runs, so that this is for the first oracle alone. */
static void captured(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nn", argument);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    const uint64_t fork = scene_event(&x), join = scene_event(&x);
    does(&x, x.s[1], "before", writes(m));
    cai_sim_capture_begin(sim, x.s[0], CAI_SIM_MODE_GLOBAL);
    cai_sim_event_record(sim, fork, x.s[0]);
    cai_sim_stream_wait_event(sim, x.s[1], fork);
    does(&x, x.s[1], "branch", writes(m));
    cai_sim_event_record(sim, join, x.s[1]);
    if (x.fixed) cai_sim_stream_wait_event(sim, x.s[0], join);
    does(&x, x.s[0], "trunk", writes(m));
    if (!x.fixed) cai_sim_stream_wait_event(sim, x.s[0], join);
    cai_sim_capture_end(sim, x.s[0], NULL);
    scene_close(&x);
}

/* What threads did comes before what their caller does then, and after what it did before. */
static void joined_first(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    (void)sim;
    host(x, "part", cai_sim_writes(x->m[0], HALF));
}

static void joined_second(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    (void)sim;
    host(x, "part", cai_sim_writes(x->m[0] + HALF, HALF));
}

static void threads_and_caller(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    host(&x, "before", writes(x.m[0]));
    two_threads(sim, &x, joined_first, joined_second);
    host(&x, "after", writes(x.m[0]));
    scene_close(&x);
}

#endif
