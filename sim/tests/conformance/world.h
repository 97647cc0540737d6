/* world.h - what a rule needs beside the table of cai_cuda: contexts, streams, kernels, memory, host threads.
 * SPDX-License-Identifier: MIT
 *
 * Two worlds implement it: world_sim.c on the simulation of sim, world_cuda.cu on the CUDA runtime.
 * What stands here acts in both like calls of the runtime: errors are CUDA's numbers, and stay behind as the
 * last error of the host thread. Nothing goes by a clock: a kernel is held back by a flag, and that another
 * one got through shows that there was time to. */
#ifndef CONFORMANCE_WORLD_H
#define CONFORMANCE_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WORLD_MARKS = 64, WORLD_FLAGS = 8, WORLD_THREADS = 2, WORLD_TEXT = 160 };

/* ----------------------------------------------------------------- the world */
/* 1: here it is. 0: there is none, no GPU for one. devices: as many as the simulation shall have. */
int world_open(int32_t devices);
void world_close(void);

int world_is_simulation(void);

/* One line without a newline: "the simulation", or device, driver and runtime. */
const char *world_about(void);

int32_t world_devices(void);

/* 1: further contexts can be made. */
int world_has_contexts(void);

const cai_cuda *world_cuda(void);

/* Where CUDA leaves the answer open, the simulation can give either. 0: one in all things; 1: the other; -1:
 * what the environment says (CAI_SIM_OPTIONS), as at first. From the next rule on; nothing on a GPU. */
void world_choose(int other);

/* Whether an option of the simulation is on, by its name there; -1: this is a GPU. */
int world_option(const char *name);

/* What the very first calls of the table said, before anything else had called CUDA; 0: no error. */
int32_t world_first_error(void);

/* ------------------------------------------------------------------- one rule */
/* Before each rule: the primary context of device 0 is current, flags and marks are clear, no last error.
 * plant: one of world_plants, or NULL. */
void world_begin(const char *rule, const char *plant);

/* After it: everything is released, what the rule left behind included. NULL, or what went wrong beside the
 * rule's own checks: a wait that does not end. */
const char *world_end(void);

/* ------------------------------------------------------------------- contexts */
int32_t world_set_device(int32_t device);  /* cudaSetDevice: its primary context is current then */
int32_t world_set_context(uint64_t context); /* cuCtxSetCurrent; 0: none */
uint64_t world_context_create(int32_t device); /* not current; 0: failed */
int32_t world_context_destroy(uint64_t context);

/* -------------------------------------------------------------------- streams */
uint64_t world_stream_create(int nonblocking); /* in the current context; 0: failed */
int32_t world_stream_destroy(uint64_t stream);

/* -------------------------------------------------------------------- kernels */
/* Launches a kernel that spins until flag `flag` (1, ...; 0: none) is set, notes which marks were set before
 * it, and sets mark `mark` (0, ...). Each mark and each flag serves once in a rule. */
int32_t world_launch(uint64_t stream, int32_t flag, int32_t mark);

/* The same of a kernel that also writes 1 to a byte of memory, once the flag is set. */
int32_t world_touch(uint64_t stream, int32_t flag, int32_t mark, uint64_t memory);

/* cudaLaunchHostFunc of a function that notes and sets marks as a kernel does. */
int32_t world_host_function(uint64_t stream, int32_t mark);

void world_set(int32_t flag);
int world_is_set(int32_t flag);

/* The flag is set by something else, once the host has had the time to wait. */
void world_set_while_waiting(int32_t flag);

/* Waits until a mark is set. 0: that does not happen. */
int world_reaches(int32_t mark);

int world_ran(int32_t mark);

/* 1: `mark` ran, and `earlier` had been set before. */
int world_saw(int32_t mark, int32_t earlier);

/* ------------------------------------------------------------------- captures */
enum { WORLD_GLOBAL = 0, WORLD_THREAD_LOCAL = 1, WORLD_RELAXED = 2 };

int32_t world_capture_begin(uint64_t stream, int32_t mode);
int32_t world_capture_end(uint64_t stream); /* the graph is thrown away */
int32_t world_capture_graph(uint64_t stream, uint64_t *graph); /* the same, but the graph is kept */

/* cudaGraphGetNodes, how many; cudaGraphInstantiate, 0: failed; and what ends them. */
int32_t world_graph_nodes(uint64_t graph);
uint64_t world_graph_instantiate(uint64_t graph);
int32_t world_graph_destroy(uint64_t graph);
int32_t world_graph_launch(uint64_t executable, uint64_t stream);
int32_t world_executable_destroy(uint64_t executable);

/* --------------------------------------------------------------------- memory */
enum {
    WORLD_DEVICE = 0,     /* cudaMalloc */
    WORLD_MANAGED = 1,    /* cudaMallocManaged */
    WORLD_PINNED = 2,     /* cudaHostAlloc, mapped */
    WORLD_REGISTERED = 3, /* malloc and cudaHostRegister */
    WORLD_POOL = 4,       /* cudaMallocAsync */
    WORLD_VIRTUAL = 5,    /* cuMemCreate and cuMemMap */
    WORLD_PLAIN = 6,      /* malloc */
    WORLD_UNMAPPED = 7,   /* registered, and no device has an address for it (before unified addressing) */
    WORLD_TEXTURE = 8,    /* a CUDA array */
    WORLD_SEGMENTS = 9    /* WORLD_VIRTUAL of two pieces of physical memory, one behind the other */
};

enum { WORLD_NO_SUCH_MEMORY = -1 };

/* Memory of the current device. 0, an error, or WORLD_NO_SUCH_MEMORY. */
int32_t world_alloc(int32_t kind, uint64_t bytes, uint64_t *address);
int32_t world_free(uint64_t address);

/* cudaMemcpy, in stream 1, and cudaMemcpyAsync; of any memory (cudaMemcpyDefault). */
int32_t world_copy(uint64_t to, uint64_t from, uint64_t bytes);
int32_t world_copy_async(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream);

/* cudaMemset, in stream 1, and cudaMemsetAsync. */
int32_t world_fill(uint64_t to, int value, uint64_t bytes);
int32_t world_fill_async(uint64_t to, int value, uint64_t bytes, uint64_t stream);

/* Pools, by handles, and attributes by the numbers of CUDA. 0: there are none. */
uint64_t world_pool_create(int32_t device);
uint64_t world_pool_default(int32_t device);
uint64_t world_pool_current(int32_t device);
int32_t world_pool_destroy(uint64_t pool);
int32_t world_pool_set_current(int32_t device, uint64_t pool);
int32_t world_pool_alloc(uint64_t pool, uint64_t bytes, uint64_t stream, uint64_t *address);
int32_t world_pool_free(uint64_t address, uint64_t stream);
int32_t world_pool_trim(uint64_t pool, uint64_t keep);
int32_t world_pool_get(uint64_t pool, int32_t attribute, uint64_t *value);
int32_t world_pool_set(uint64_t pool, int32_t attribute, uint64_t value);

/* cuMemAddressReserve and _Free, cuMemCreate and _Release, on device 0, cuMemMap and _Unmap. Sizes are
 * multiples of ENOUGH / 2. world_reserve may return WORLD_NO_SUCH_MEMORY. */
int32_t world_reserve(uint64_t bytes, uint64_t *address);
int32_t world_unreserve(uint64_t address, uint64_t bytes);
int32_t world_create(uint64_t bytes, uint64_t *handle);
int32_t world_release(uint64_t handle);
int32_t world_map(uint64_t address, uint64_t bytes, uint64_t handle);
int32_t world_unmap(uint64_t address, uint64_t bytes);
int32_t world_set_access(uint64_t address, uint64_t bytes, int32_t yes); /* of device 0, to read and write */

/* What device_attribute should answer for plain host memory. */
int32_t world_pageable_access(int32_t device);

/* --------------------------------------------------------------------- errors */
int32_t world_last_error(void);  /* cudaPeekAtLastError */
int32_t world_clear_error(void); /* cudaGetLastError */

/* Leaves device 0 with an asynchronous error for good. */
void world_break_device(void);

/* The process is ending, as CUDA sees it. 0: cannot be had. */
int world_teardown(void);

/* --------------------------------------------------------------- host threads */
/* Calls call(a, b) on host thread `thread` (0, ...) and waits for it. The threads are new in each rule. */
int32_t world_on_thread(int32_t thread, int32_t (*call)(uint64_t a, uint64_t b), uint64_t a, uint64_t b);

/* For the worlds: ends the threads; what a new one does first. */
void world_threads_end(void);
void world_thread_begins(void);
void world_thread_ends(void);

/* -------------------------------------------------------------- planted bugs */
typedef struct world_plant {
    const char *name, *what;
    const char *rule; /* the one that must fail; NULL: any */
    int coarse;       /* 1: so much fails that it says little of each rule */
} world_plant;

/* Ended by a NULL name; empty where none can be planted. */
const world_plant *world_plants(void);

#ifdef __cplusplus
}
#endif

#endif
