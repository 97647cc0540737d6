/* cai_driver.h - what the simulated libcuda.so.1 exports beside CUDA's functions
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Link libcuda.so.1, or find the functions with dlsym. */
#ifndef CAI_DRIVER_H_INCLUDED
#define CAI_DRIVER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cai_sim;
struct cai_sim_access;

/** Returns the simulation behind the driver. The first call makes it. The environment variables
 *  CAI_SIM_DEVICES (1), CAI_SIM_MEMORY (bytes of each device, 8 GiB) and CAI_SIM_OPTIONS (cai_sim.h) say how.
 *  The option CAI_SIM_PROGRESS is always added. NULL: no memory. */
struct cai_sim *cai_driver_sim(void);

/** Chooses the simulation before it is made, in place of the environment. 0 keeps a default. `options` are
 *  added to those of the environment. Returns 1, or 0 if the simulation exists or an argument is bad. */
int32_t cai_driver_configure(int32_t devices, uint64_t memory_bytes, uint32_t options);

/** A library above the driver begins a function of its own. Until cai_driver_leave, calls of the driver on
 *  this thread are part of it. `name` must stay valid. `caller` is the return address of the function. Pairs
 *  may nest: the outermost counts. */
void cai_driver_enter(const char *name, const void *caller);
void cai_driver_leave(void);

/** Names the place in the program that calls: a number of the caller, or 0 if it is not known. */
typedef uint64_t (*cai_driver_site_function)(void *context);

/** Sets the function that names places. It is called at each call that queues or waits, on the calling
 *  thread and without a lock. NULL removes it. */
void cai_driver_set_site(cai_driver_site_function site, void *context);

/** One call of the program. */
typedef struct cai_driver_call {
    const char *name;   /* "cuMemcpyHtoDAsync_v2", or what cai_driver_enter was given */
    const void *caller; /* the return address: dladdr tells the library */
    uint64_t site;      /* what the site function returned */
    const char *kernel; /* the name of the kernel of a launch, else NULL */
    int32_t opaque;     /* 1: a launch whose accesses are not known */
    int32_t follows;    /* of a launch: what it may access that its arguments do not tell. CAI_KERNEL_ bits: 1 pointers
                           in memory, 2 global variables, 4 not known, as its code is not read, 8 none, but it may begin
                           before the work in front of it has ended (a programmatic launch), 16 what an address points
                           to that is of no memory of CUDA */
} cai_driver_call;

/** Reads the call that made an operation. `tag` is of cai_sim_operation. Returns 1, or 0 if there is no such
 *  call, or `out` is NULL. */
int32_t cai_driver_call_of(uint64_t tag, cai_driver_call *out);

/** Says what a cubin was made from: PTX, which tells what its kernels read and write. It is used when a cubin with
 *  the same bytes is loaded. Both are copied. Compilers of the process are asked for it by stand-ins of their
 *  libraries (sim/driver/compilers). Returns 1, or 0: an argument is bad, or there is no memory. */
int32_t cai_driver_source(const void *image, size_t bytes, const void *ptx, size_t ptx_bytes);

/** Adds a named point to the trace. */
void cai_driver_mark(const char *text);

enum {
    CAI_DRIVER_DESTROYED = 1,  /* it was destroyed, or freed, or its free is queued */
    CAI_DRIVER_NEVER_MADE = 2, /* it never was a handle */
    CAI_DRIVER_OUT_OF_REACH = 3 /* memory that the device of the launch cannot access */
};

/** Something that a call was given and should not have been. CUDA's driver may crash then, or use something else.
 *  Here the call fails, or its work does, and the program goes on. */
typedef struct cai_driver_dead {
    int32_t what;       /* CAI_DRIVER_... */
    int32_t argument;   /* of a launch: the parameter of the kernel, 1, 2, ...; else 0 */
    int32_t device;     /* of a launch: its device */
    int32_t of_device;  /* of memory: its device */
    const char *kind;   /* "stream", "event", "graph", "executable graph", "memory", "context", "memory pool" */
    const char *name;   /* "s3"; in hexadecimal if it never was a handle */
    const char *call;   /* the function that was given it */
    uint64_t made, destroyed, used; /* these calls, for cai_driver_call_of; 0: not known */
} cai_driver_dead;

/** Reads a finding. All of a run are kept. Returns 1, or 0 if `index` is behind the last one. `out` may be NULL. */
int32_t cai_driver_undefined(int32_t index, cai_driver_dead *out);

/** The host's own accesses to pinned and managed memory. Each call looks whether there was one since the call before
 *  which work may race with that no host thread has waited for. If so, the trace gets an entry
 *  CAI_SIM_OP_HOST_ACCESS, named CAI_DRIVER_HOST_ACCESS, with the tag of the call. The access came some time before the
 *  call. Pages are told apart, and not bytes. */
#define CAI_DRIVER_HOST_ACCESS "access before this call"

typedef struct cai_driver_host {
    int64_t watched;     /* blocks of memory */
    int64_t not_watched; /* blocks: the system did not give what it needs */
    int64_t forgotten;   /* uses by work: too many at once, or the program locked the memory */
    int64_t registered;  /* registrations of the program's own memory that work was queued on: not watched */
} cai_driver_host;

/** Looks once more, and reads what is known. Then the tag of an entry is 0. */
void cai_driver_host_get(cai_driver_host *out);

/** Reads the file of a library that asked for private tables of the driver, as a static libcudart does. It got none.
 *  The first 32 are kept. Returns 1, or 0 if `index` is behind the last one. `file` may be NULL; it is cut to
 *  `capacity` bytes. */
int32_t cai_driver_turned_away(int32_t index, char *file, size_t capacity);

/** Queues what a function of a library above the driver would launch. Nothing runs.
 *
 *  name: of the function, which stands for its kernels. It must stay valid. caller: its return address.
 *  stream: a CUstream. NULL is the legacy default stream.
 *  accesses: `count` ranges, copied. opaque: 1: it accesses other memory, too, that is not known.
 *
 *  Returns a CUresult. */
int32_t cai_driver_work(const char *name, const void *caller, const void *stream,
                        const struct cai_sim_access *accesses, int32_t count, int32_t opaque);

/** A launch, for the function of the host that stands for its kernel. */
typedef struct cai_driver_launch {
    const char *kernel;           /* its name, as the image has it */
    const void *const *arguments; /* one pointer for each parameter, to a copy of its value */
    int32_t argument_count;
    uint32_t grid[3], block[3];
    void *context;
} cai_driver_launch;

/** Does what a kernel would do. It may read and write memory of devices. It must not call CUDA. */
typedef void (*cai_driver_kernel_function)(const cai_driver_launch *launch);

/** Kernels do not run. From now on `function` runs in place of those of this name, in the order of their
 *  stream.
 *
 *  kernel: the name in the source, which is also found in a mangled name; or the whole name. Copied.
 *  argument_bytes: of each of the `count` parameters, copied. NULL: as the image says. If the image is
 *  compressed and cannot be read, they must be given. If the arguments of a launch are one block, the image must say them.
 *  function: NULL: none from now on. context: any, for the function.
 *
 *  Returns 1, or 0: `kernel` is NULL or empty, `count` is not 0 to 256, there is no memory, or this is the recorder. */
int32_t cai_driver_replace_kernel(const char *kernel, const uint32_t *argument_bytes, int32_t count,
                                  cai_driver_kernel_function function, void *context);

/** Of the recorder alone: opens the real libcuda.so.1 at `path`, before any other call. From now on each call goes
 *  to it, and then to the simulation. Returns 1; or 0 with why not in `text`, cut to `capacity` bytes. No argument
 *  is NULL. */
int32_t cai_driver_record(const char *path, char *text, size_t capacity);

/** One name of the driver API. */
typedef struct cai_driver_function {
    const char *name; /* the symbol: "cuMemcpyHtoDAsync_v2", also "cuMemcpyHtoDAsync_v2_ptsz" */
    int64_t calls;    /* how often it was called */
    int32_t asked;    /* 1: cuGetProcAddress returned it */
    int32_t served;   /* 1: implemented; 0: it returns CUDA_ERROR_NOT_SUPPORTED */
    int64_t failed;   /* how many calls were of a form that is not served; of the recorder: that it could not follow */
} cai_driver_function;

/** Reads the name with this index. Names are sorted. Returns 1, or 0 if `index` is behind the last one. */
int32_t cai_driver_function_get(int32_t index, cai_driver_function *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_DRIVER_H_INCLUDED */
