/* driver.h - what the sources of the simulated libcuda.so.1 share
 * SPDX-License-Identifier: MIT */
#ifndef DRIVER_H_INCLUDED
#define DRIVER_H_INCLUDED

#define __CUDA_API_VERSION_INTERNAL /* all versions of all functions and structs, and no renaming */
#include <cuda.h>
#include <cudaProfiler.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "cai_driver.h"
#include "cai_kernel.h"
#include "cai_sim.h"
#include "driver_names.h"

typedef void (*driver_pointer)(void);

/* One exported symbol. */
typedef struct driver_row {
    const char *base; /* "cuMemAlloc" */
    const char *name; /* "cuMemAlloc_v2" */
    int version;      /* the CUDA version that brought it: 3020 */
    int per_thread;   /* 1: stream 0 is the per-thread stream */
    int served;
    int asked;
    int64_t calls;
    int64_t failed; /* calls of a form that is not served; of the recorder: that the simulation could not follow */
    driver_pointer function;
    driver_pointer real; /* of the recorder: that of the real driver, or NULL */
} driver_row;

/* One error number, by its enumerator, and as words. */
typedef struct driver_error {
    int number;
    const char *name;
    const char *text;
} driver_error;

extern const driver_error driver_errors[]; /* the last one has no name */
extern driver_row driver_table[];
extern const int driver_rows;

/* >>calls: entry.c */
/* Begins a call. flags: 1 the per-thread form, 2 it queues or waits, 4 it needs no cuInit. Returns
 * CUDA_SUCCESS, or why it fails. */
CUresult driver_begin(int row, const void *caller, int flags);
CUresult driver_end(int row, CUresult result);
CUresult driver_missing(int row, const void *caller);
/* Of the recorder: the real driver did the call, and the simulation said `own` to it. */
void driver_followed(int row, CUresult own);
/* The row of the newest function of a name that `version` has, or NULL. *known: there is one for any version. A
 * per-thread form comes first if it is as new. */
driver_row *driver_find(const char *name, int version, int per_thread, int *known);
/* Writes to the log why a call that is served otherwise fails here. Returns `result`. */
CUresult driver_refuse(CUresult result, const char *reason);
/* The call of this thread launches a kernel. `kernel` must stay valid. */
void driver_call_launches(const char *kernel, int opaque, int32_t follows);
/* The table of the simulation, whose log is emptied now and then. */
const cai_cuda *driver_cuda(void);

/* The number of a stream argument: 0 is 1, or 2 in a per-thread form. */
uint64_t driver_stream(CUstream stream);
/* Why a stream argument is none, else 0. A dead one is told. */
CUresult driver_need_stream(CUstream stream); /* stream.c */
/* 201 without a current context, else 0. */
CUresult driver_need_context(void);
uint64_t driver_memory_bytes(void); /* of each device */
CUresult driver_need_device(CUdevice device);
/* The device of a context, or -1. */
int32_t driver_device_of(uint64_t context);
/* The device that is current, or -1. */
int32_t driver_current_device(void);

/* Writes this process into a handle for other processes, of 64 bytes, and checks that it is the one. */
void driver_mark_handle(void *handle); /* memory.c */
CUresult driver_check_handle(const void *handle);

/* 1: the edges have no data, which a port or a programmatic launch would need. `edges` may be NULL. */
int driver_edges_are_plain(const CUgraphEdgeData *edges, size_t count); /* graph.c */

/* >>user objects: object.c. An executable has references of its own to what its graph has. */
CUresult driver_objects_copy(uint64_t graph, uint64_t executable);
/* A graph or an executable is gone. may_run: its launches may still run, so its references stay until then. */
void driver_objects_drop(uint64_t owner, int may_run);

/* >>the recorder: record/record.c */
extern int driver_recorder; /* 1: a real driver does the work (entry.c) */
/* The simulation's handle for one of the real driver. `unknown`: if there is none. */
uint64_t record_handle(uint64_t real, uint64_t unknown);
void record_bind(uint64_t real, uint64_t own); /* own: 0: it is not known any more */
/* The context that is current in the simulation is from now on that of the real driver. */
void record_agree(void);
/* Tells of a handle that was destroyed. */
void record_look(const char *kind, uint64_t real);
void record_adopt(uint64_t address); /* of the next allocation */
void CUDA_CB record_no_function(void *argument);
void CUDA_CB record_no_callback(CUstream stream, CUresult status, void *argument);

/* >>the dead: dead.c */
void driver_dead_handle(void *context, const cai_sim_undefined *what);
/* Adds what was found to that which is kept. */
void driver_dead_add(const cai_driver_dead *said, const char *name);
/* The function that this thread is in, and the number of its call, or 0: driver_dead_number will tell. entry.c */
const char *driver_dead_call(uint64_t *tag, const void **thread);
void driver_dead_number(const void *thread, uint64_t tag);
/* A launch is given memory that is freed, or that its device cannot reach. argument: 1, 2, ...; 0: it is a copy. */
void driver_dead_argument(uint64_t address, int32_t argument);
/* Memory of a graph whose capture has freed it: *freed is that call. Its addresses stay, as a launch uses them again. */
int driver_graph_freed(uint64_t address, uint64_t *freed); /* memory.c */
/* Returns `result`, or 1 (invalid value) if a graph freed the memory. Then, memory that was freed is told; 0: no memory. */
CUresult driver_dead_memory(CUresult result, uint64_t first, uint64_t second);

/* >>the host's accesses: watch.c */
void driver_watch_begin(cai_sim *sim);
/* Work was perhaps queued: its use of memory is watched from now on. */
void driver_watch_queued(void);
/* What the host accessed since the last look, and should not have: *found, to be freed. Returns how many. */
int32_t driver_watch_look(cai_sim_access **found);
/* Memory of the program is registered, or, without bytes, is not any more. */
void driver_watch_registered(uint64_t address, uint64_t bytes);
void driver_watch_counts(cai_driver_host *out);

/* >>replaced kernels: replace.c */
/* What runs in place of a kernel, for cai_sim_launch: driver_replaced_run and *argument. `kernel` may be
 * NULL. Leaves *argument NULL if nothing runs. */
CUresult driver_replaced(const char *name, const CUlaunchConfig *config, const cai_kernel *kernel,
                         void **arguments, const void *buffer, size_t bytes, void **argument);
void driver_replaced_run(void *argument);

/* >>maps: map.c. Numbers to what belongs to them. A map begins as zeros. */
typedef struct driver_map {
    uint64_t *keys;
    void **values;
    size_t capacity; /* a power of two */
    size_t used;
} driver_map;

/* Sets the value of a number. NULL forgets it. Returns the value before, or NULL. */
void *driver_map_set(driver_map *map, uint64_t key, void *value);
void *driver_map_get(driver_map *map, uint64_t key);

static inline uint64_t driver_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

static inline void *driver_handle(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

#define DRIVER_TRY(expression)                              \
    do {                                                    \
        CUresult driver_tried = (CUresult)(expression); \
        if (driver_tried != CUDA_SUCCESS)                   \
            return driver_tried;                            \
    } while (0)

#define DRIVER_NEED(condition)                \
    do {                                      \
        if (!(condition))                     \
            return CUDA_ERROR_INVALID_VALUE;  \
    } while (0)

#endif /* DRIVER_H_INCLUDED */
