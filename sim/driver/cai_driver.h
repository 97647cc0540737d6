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
    int32_t reserved;   /* 0 */
} cai_driver_call;

/** Reads the call that made an operation. `tag` is of cai_sim_operation. Returns 1, or 0 if there is no such
 *  call, or `out` is NULL. */
int32_t cai_driver_call_of(uint64_t tag, cai_driver_call *out);

/** Adds a named point to the trace. */
void cai_driver_mark(const char *text);

/** Reads what is said of a call that was given a handle which was destroyed, or never was one. CUDA's driver
 *  crashes then. Here the call fails, and the program goes on. The first 64 are kept. Returns 1, or 0 if
 *  `index` is behind the last one. `text` may be NULL; it is cut to `capacity` bytes. */
int32_t cai_driver_undefined(int32_t index, char *text, size_t capacity);

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
 *  compressed, they must be given. If the arguments of a launch are one block, the image must say them.
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
    int64_t failed;   /* of the recorder: how many calls the simulation could not follow */
} cai_driver_function;

/** Reads the name with this index. Names are sorted. Returns 1, or 0 if `index` is behind the last one. */
int32_t cai_driver_function_get(int32_t index, cai_driver_function *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_DRIVER_H_INCLUDED */
