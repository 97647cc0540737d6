/* cai_sim.h - CUDA in host memory, behind the table of cai_stream.h: exchange code tested without a GPU
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_sim.h and cai_sim.c; they need the declarations of cai_stream.h. */
#ifndef CAI_SIM_H_INCLUDED
#define CAI_SIM_H_INCLUDED

/*
WHAT IT IS
    A simulated CUDA: devices, contexts, streams, events, capture, memory and error state, all in host memory.
    cai_sim_cuda() returns it as a `cai_cuda`, the table through which cai_stream.h calls CUDA. So you can
    test code that exchanges arrays on any machine. A test sees which calls the code makes and in which order,
    what the code does if a call fails, and what the results are. To find missing waits, run the test under
    cai_check.h.

    Nothing depends on a clock. Queued work runs when something waits for it, or when the test runs it. One
    operation runs at a time, in an order that the test can choose. The same test always does the same.

DO THIS
    Compile cai_sim.c with your test (as C or as C++), and include cai_sim.h.

EXAMPLE
        static void fill(void *x) { *(float *)x = 1.0f; }

        static void test_consumer(void)
        {
            const int64_t shape[1] = {1};
            cai_sim *sim = cai_sim_create(1);
            uint64_t producer = cai_sim_stream_create(sim, 0), consumer = cai_sim_stream_create(sim, 0);
            uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4);
            cai_sim_access write = cai_sim_writes(memory, 4);
            cai_event_pool pool;
            cai_array x;
            // a producer: its kernel is queued, and has not run
            cai_sim_launch(sim, producer, "fill", fill, cai_sim_bytes(sim, memory), &write, 1);
            CHECK(!cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(sim, memory), NULL));
            CHECK(!cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL));
            CHECK(!cai_stream_export(&x, &pool, producer, NULL, 0, NULL));
            // your code: begins an exchange, launches on `consumer`, ends the exchange
            CHECK(!your_consumer(&pool, &x, consumer));
            CHECK_INT(cai_sim_calls_of(sim, "event_record"), 2); // puts(cai_sim_log(sim)) shows the calls
            cai_sim_run(sim);
            CHECK(*(float *)cai_sim_bytes(sim, memory) == 2.0f); // fill, then yours
            CHECK(!cai_event_pool_destroy(&pool, NULL));
            cai_sim_stream_destroy(sim, producer);
            cai_sim_stream_destroy(sim, consumer);
            cai_sim_free(sim, memory);
            CHECK_INT(cai_sim_leaks(sim, NULL, 0), 0);
            cai_sim_destroy(sim);
        }

TWO SIDES
    The code under test calls the table (cai_sim_cuda). Calls of the table act like calls of the driver. They
    are logged and counted, and a test can make them fail.
    The test calls the functions of this header, as producer, consumer and GPU. These calls are not logged,
    and a test cannot make them fail. A function that stands for a call of CUDA (streams, events, launches,
    memory, captures) acts like a call of the runtime. If no context is current, the primary context of device
    0 becomes current. An error becomes the last error of the host thread. Such a function returns 0 or CUDA's
    error number. A function that makes something returns 0 if it fails.

    The table is plain data. To test with a CUDA that lacks something, copy the struct. Then set slots to
    NULL, or change struct_size or flags:

        cai_cuda poor = *cai_sim_cuda(sim);
        poor.stream_id = NULL;

HANDLES AND NAMES
    Contexts, streams and events are numbers of the simulation. Stream 1 is the legacy default stream of the
    current context. Stream 2 is the default stream of the host thread in that context. 0 is no stream.
    Addresses are host addresses, so the test can read what a kernel writes. The log gives each object a name,
    numbered in order of creation: contexts c1 (the primary context of device 0), c2, ..., streams s1, events
    e1, allocations m1 (m1+256 is inside), graphs g1, their executables x1. Streams 1 and 2 are `legacy` and
    `per_thread`. A handle that is unknown is written in hexadecimal.

HOST THREADS
    Each host thread has a stack of contexts, a last error, a capture mode and, in each context, a stream 2.
    Each thread of the operating system is a host thread. Several threads may call all functions at once. One
    thread can also play several host threads, in an order that the test determines (cai_sim_host_thread).

THE SCHEDULER
    A stream runs its operations one after the other: launches, copies, host functions, records of events,
    waits for events. An operation waits for the operation before it in its stream. A wait for an event also
    waits for the record. The nodes of a graph wait as the graph says. The legacy stream and the blocking
    streams of its context also wait for each other (CUDA's implicit synchronization). An operation is ready
    when all that it waits for has run. cai_sim_ready lists the ready operations.

    Nothing runs when it is queued, also in an idle stream. A query runs nothing either, so a loop that polls
    needs cai_sim_step, or the option CAI_SIM_PROGRESS. A synchronization runs what it must wait for and
    nothing else, lowest id first.

THE TRACE
    The trace has every operation that was queued, every synchronization, and every access of the host, in the
    order of the calls. Each entry has its stream, context, host thread and the operations that it waited for
    (cai_sim_operation_get). Together with the order of the calls of each host thread, this is the whole
    relation "happens before". Entries stay until the simulation is destroyed, some 250 bytes each. If a test
    makes millions of calls, let it make a new simulation now and then. If the simulation gets no memory, it
    ends the program.

WHAT IS CUDA AND WHAT IS NOT
    D: CUDA documents it. R: real devices were seen to do it. S: only the simulation does it, because CUDA
    leaves it undefined or open, or because the simulation goes no further. Options choose where CUDA's
    documentation writes "may" (>>options). A number is the error that a call returns.

    Streams and events
    D  Event and stream of a record are of one context, else 400. A wait may cross contexts and devices
       (R100).
    D  A wait for an event that was never recorded does nothing. Recording again does not change waits made
       before. A query is 600 while the work is pending. A pending event may be destroyed (R101).
    D  A launch needs a stream of the current device. S: else 400. R: a stream of another context of that
       device works.
    D  The legacy stream waits for all blocking streams of its context, and they wait for it. A
       synchronization of the legacy stream synchronizes all of them. Stream 2 is blocking. Non-blocking
       streams take no part (R104).
    D  A destroyed stream still finishes its work. R: its handle may be used again, its id not (R85).
    S  A call with a handle that never was one, or that was destroyed, ends the program with a report. If
       cai_sim_on_undefined was called, a function of the test gets the report, and the call then returns 400
       (graphs and pools: 1, contexts: 201). R: CUDA's driver crashes. For the handle 0 there is no report.
    S  stream_context, and every call with the handle of a stream or an event, works without a current
       context.
    D  stream_flags is 1 for a non-blocking stream. R: for a stream that captures it is 900, and invalidates.

    Contexts
    R  context_record covers all work that is queued in a context, also in non-blocking and in destroyed
       streams. If a stream of the context captures, in any mode, it is 900 and invalidates that capture.
    R  context_id of a context that was destroyed is 709 (option CAI_SIM_LIVING_CONTEXTS). A primary context
       that was reset keeps its handle and gets a new id.
    D  Without a current context: 201. Current but destroyed: 709. Pushed or set after that: 201. Primary
       contexts: option CAI_SIM_PRIMARY_INACTIVE.
    S  Streams and events of a context that was destroyed or reset are destroyed. After the report: 709.
    R  An inactive primary context is not a destroyed one: it can be pushed. Calls are 709 then.

    Captures (R103)
    D  A capture query of the legacy stream while a blocking stream of its context captures, in any mode, is
       906 and invalidates nothing. Any other use is 906 and invalidates. The legacy stream cannot be
       captured. S: 900.
    D  A stream that captures, and its context, cannot be synchronized: 900. R: also after an invalidation. An
       event that was recorded in a capture cannot be queried or synchronized: 907. R: 1 after the end of the
       capture. A stream that waits for such an event is pulled into the capture.
    D  A wait in a capture for an event from outside: 905. From another capture: 902, and both are
       invalidated. S: 902 also after that one ended, 905 also for an event that was never recorded.
    R  A wait outside for an event of an invalidated capture: 1. S: of one that ended, too.
    S  A wait of the legacy stream for an event of a capture of non-blocking streams only: 905.
    D  The end of a capture: 903 on another stream, 908 on another host thread unless relaxed, 904 with work
       that is not joined, 901 after an invalidation. R: each of these errors ends the capture. After a 903
       its own end is 901, after a 908 it is 401. Work means launches. So a stream that was pulled in and did
       nothing need not be joined. S: 401 for the end of no capture, and for a second begin.
    D  An error invalidates the captures concerned, unless it is an error of the end or of a query. Then all
       use is 901.
    D  A potentially unsafe call is 900 if the capture mode of the thread forbids it. `global`: the thread has
       a capture that is not relaxed, or another thread has a global one. `thread_local`: the thread has a
       capture that is not relaxed. `relaxed`: never. R: the 900 invalidates these captures.
    D  event_query and memory_alloc are potentially unsafe. R: so are event_synchronize, stream_synchronize,
       memory_free, memory_alloc_async, memory_alloc_from_pool and memory_free_async. context_synchronize is
       not, if nothing captures in its context. S: host_alloc, host_free, host_register, host_unregister,
       managed_alloc, and cai_sim_free and cai_sim_alloc of other memory than that of pools are.
    R  stream_id of a capturing stream: 900, and invalidates. S: destroying a capturing stream invalidates its
       capture. Destroying the first stream of a capture ends it.

    Graphs
    D  The end of a capture gives a graph. Its nodes are the launches, copies, sets and host functions of the
       capture. Records and waits are edges. A graph can be instantiated any number of times, and destroyed
       then.
    D  A launch comes after all work before it in its stream, and after all earlier launches of the same
       executable, in any stream. Later work in the stream waits for all nodes. Inside a launch only the edges
       of the graph order, so two branches may run in either order.
    R  A launch into a stream that captures is 900. S: it invalidates the capture.
    D  700 if memory is freed before the nodes run. If an address was allocated again, the nodes use the new
       memory.
    D  An executable that is destroyed while it runs is freed when it is done. S: 1 if a handle is no graph or
       no executable, or was destroyed. 709 for a launch with a node whose context was destroyed.
    D  A graph and its executables keep what capture_retain gave to the graph, also while they run. S: `gone`
       is called before the call that ends the last of them returns. An executable that is updated keeps the
       old and the new. cai_sim_destroy does not call `gone`.
    D  The graph of a capture can be asked for its nodes before the end. S: it cannot be destroyed then.
    S  Each node runs in the context of the stream that captured it. Graphs grow by captures alone, not node
       by node. No nodes for allocations, frees or events.

    Memory
    D  pointer_info of memory that CUDA does not know succeeds: CAI_MEMORY_HOST. S: without a current context
       too (options CAI_SIM_NEED_CONTEXT, CAI_SIM_ZERO_ANSWERS). pointer_range needs one (R), and gives 500
       for memory that CUDA does not know (R).
    S  cai_sim_free does not wait for the device, as a caching allocator does not. Work with an access to
       memory that was freed, or over the end of its allocation, does not run. Its context has error 700 from
       then on.
    D  Allocation through the table: 201 without a current context, 2 if the device has too little memory, 1
       for unknown flags. A stream handle brings its own context. Size 0 is 1. R: for host_alloc and
       memory_alloc_async size 0 succeeds and gives the address 0. memory_free and host_free need no context.
    D  memory_free of pool memory does not wait. R: for other memory memory_free and host_free may wait
       (options CAI_SIM_FREE_RETURNS, CAI_SIM_FREE_OWN_CONTEXT). S: host_unregister and ipc_close do not wait.
    D  memory_free_async is an operation of the stream: the memory ends when it runs. S: until then
       pointer_info knows the memory, but it cannot be freed again.
    D  memory_alloc_async is an operation of the stream, too. S: the address is good at once for the host, and
       an immediate free waits for it. Work that runs before the allocation is work on memory that was
       freed. D: memory_free_async takes memory of memory_alloc as well. S: both are 900 on a stream that
       captures.
    S  A free is 1 if the address was allocated by another kind of call, was freed, or is 0. A free reports a
       pending error, and works.
    D  712 if memory is registered twice (S: also pinned memory; 1 for other memory of CUDA). 713 if memory is
       unregistered that was not registered.
    S  Registered memory has an address for devices with the flag DEVICEMAP (2) only. Work with an access to
       it after it was unregistered: 700.
    S  Only memory of CAI_SIM_MEM_DEVICE, _MANAGED and _POOL, and of cai_sim_physical_create, counts against
       that of the device. Pools count with what they hold.
    S  On Linux a block of 1 MiB or more costs no memory until it is touched. When it is freed its pages go
       back to the system, and cai_sim_fingerprint forgets them. With a hook `choose` they stay.

    Pools
    D  A device has a default pool, which cannot be destroyed. memory_alloc_async takes from the current pool
       of the device of the stream. A pool of cai_sim_pool_create can be accessed from its own device alone.
       S: a default pool from all devices that have peer access, until cai_sim_pool_set_access.
    D  The attributes of a pool (CAI_SIM_POOL_...) say which memory it may use again. S: it uses memory again
       with the option CAI_SIM_POOL_REUSE, or if the device has no memory left. It takes the smallest block
       that is less than twice as large as the request, and never divides a block. The new memory is zeroed
       when its allocation runs. Until then the address is that of the memory before it.
    D  A pool holds memory that was freed. At stream_synchronize, event_synchronize and context_synchronize it
       gives back what it holds above its threshold. cai_sim_pool_trim does so at once. S: memory is freed
       when the operation has run. If the device has no memory left, its pools hold nothing.
    D  A pool that is destroyed keeps its memory until all of it is freed.
    S  There are no pools of host memory, no maximum size, and no pools that processes share.

    Virtual memory
    D  A mapping begins without access. Physical memory keeps its bytes while it has a handle or a mapping.
       Only whole mappings can be unmapped, or get access.
    S  700 for work without access, or on reserved addresses without a mapping. A copy needs the access of its
       own device or of the device of the memory. virtual_unmap waits for all contexts, as memory_free does.
       With CAI_SIM_FREE_RETURNS it does not wait. Reserved addresses are not given out again.
    S  Accesses through two mappings of the same bytes are no race. Virtual memory is for Linux. Elsewhere
       cai_sim_virtual_reserve and cai_sim_physical_create give error 2.

    Other processes
    S  Another simulation plays another process. Its devices are the same: device n has the same UUID in each.
       A handle holds addresses in this process. Destroy the simulation that exported last. One thread at a
       time may use the two simulations.
    R  Pool memory cannot be exported: 1. S: neither can other memory than CAI_SIM_MEM_DEVICE, and memory that
       was opened. A pointer into an allocation has the handle of the allocation.
    R  A handle cannot be opened in the process that it comes from: 201. S: 1 for bytes that are no handle,
       or if the memory was freed meanwhile.
    D  A handle that is opened again in the same context gives the same address, to be closed as often. S: 208
       in another context. Opened memory does not count against the memory of the device.
    S  Work on opened memory that the exporter has freed: 700 (undefined in CUDA).

    Errors
    D  Later calls report an asynchronous error of the device. R: so do all calls that name or need one of its
       contexts, except context_current, _push, _pop, _device and _id, device_context, device_uuid,
       primary_retain, primary_release, capture_mode and pointer_info. A call that destroys a stream or an
       event reports it, too, and works.
    S  Peer access is there or not (cai_sim_set_peer_access). No timing.

    Copies
    D  What a copy waits for, and what the host waits for, is as "API synchronization behavior" says. Where
       that page writes "may" or "might", the option CAI_SIM_COPY_RETURNS chooses.
    D  A copy may be queued in a stream of another context than the current one. It needs no peer access:
       without it CUDA copies by way of the host. S: for memory of pools see CAI_SIM_COPY_NEEDS_ACCESS.
    D  copy_peer_async and copy_3d_peer_async copy "from device memory in one context to device memory in
       another context" (cuMemcpyPeerAsync). They need no access to pools. R: 0 means the context of the
       memory. S: 1 for another context, and for memory of the host. Memory of pools and mapped memory have no
       context. For these any context of their device works.
    S  1, at once, if a range leaves its allocation, or if the memory was freed. 700 if memory is freed before
       a queued copy runs. An address in no allocation is pageable host memory, and is not checked.
    S  Copies that wait are potentially unsafe calls. 1 for a pitch that is smaller than a row, and for a set
       of pageable memory.
*/

#include <stddef.h>
#include <stdint.h>

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/** CUDA's error numbers, as far as the simulation uses them. Driver and runtime share them. */
enum {
    CAI_SIM_SUCCESS = 0,
    CAI_SIM_ERROR_INVALID_VALUE = 1,
    CAI_SIM_ERROR_OUT_OF_MEMORY = 2,
    CAI_SIM_ERROR_DEINITIALIZED = 4,
    CAI_SIM_ERROR_INVALID_DEVICE = 101,
    CAI_SIM_ERROR_INVALID_CONTEXT = 201,
    CAI_SIM_ERROR_ALREADY_MAPPED = 208,
    CAI_SIM_ERROR_CONTEXT_IN_USE = 216,
    CAI_SIM_ERROR_INVALID_HANDLE = 400,
    CAI_SIM_ERROR_ILLEGAL_STATE = 401,
    CAI_SIM_ERROR_NOT_FOUND = 500,
    CAI_SIM_ERROR_NOT_READY = 600,
    CAI_SIM_ERROR_ILLEGAL_ADDRESS = 700,
    CAI_SIM_ERROR_CONTEXT_IS_DESTROYED = 709,
    CAI_SIM_ERROR_ALREADY_REGISTERED = 712,
    CAI_SIM_ERROR_NOT_REGISTERED = 713,
    CAI_SIM_ERROR_LAUNCH_FAILED = 719,
    CAI_SIM_ERROR_NOT_PERMITTED = 800,
    CAI_SIM_ERROR_CAPTURE_UNSUPPORTED = 900,
    CAI_SIM_ERROR_CAPTURE_INVALIDATED = 901,
    CAI_SIM_ERROR_CAPTURE_MERGE = 902,
    CAI_SIM_ERROR_CAPTURE_UNMATCHED = 903,
    CAI_SIM_ERROR_CAPTURE_UNJOINED = 904,
    CAI_SIM_ERROR_CAPTURE_ISOLATION = 905,
    CAI_SIM_ERROR_CAPTURE_IMPLICIT = 906,
    CAI_SIM_ERROR_CAPTURED_EVENT = 907,
    CAI_SIM_ERROR_CAPTURE_WRONG_THREAD = 908,
    CAI_SIM_ERROR_GRAPH_UPDATE = 910
};

enum { CAI_SIM_DEVICES = 64 /* at most */ };

/** A simulated CUDA. A program may have any number of them at once. */
typedef struct cai_sim cai_sim;

/* ------------------------------------------------------------------- >>making */
/** Makes a simulation with `devices` devices (1 to 64), each with its primary context. NULL: out of memory,
 *  or an argument out of range. Destroy it with cai_sim_destroy. */
cai_sim *cai_sim_create(int32_t devices);

/** Frees everything, also what was leaked. Work that is still queued does not run. `sim` may be NULL. */
void cai_sim_destroy(cai_sim *sim);

/** Returns the table, valid until the simulation is destroyed. All slots are set. `self` is `sim`. */
const cai_cuda *cai_sim_cuda(cai_sim *sim);

/* ---------------------------------------------------------------- >>undefined */
/** A call was given a handle that never was one, or that was destroyed. */
typedef struct cai_sim_undefined {
    const char *call;      /* that was given it: "event_record"; without the prefix "cai_sim_" */
    int32_t of_table;      /* 1: it is an operation of the table; 0: a function of this header */
    const char *kind;      /* what it should be: "stream", "event", "context", "graph", "memory pool", ... */
    uint64_t handle;
    const char *name;      /* of the object, "s3"; or the handle in hexadecimal, if it never was one */
    const char *made;      /* the call that made it, or NULL: it never was a handle */
    const char *destroyed; /* the call that destroyed it, or NULL. That of its context counts */
    const char *text;      /* all of this in a sentence, with the numbers of the calls */
    uint64_t made_tag, destroyed_tag; /* of the host threads in these calls (cai_sim_set_tag) */
} cai_sim_undefined;

/** Called on the thread of the call. It must not call the simulation. What it is given is valid until it
 *  returns. Then the call fails with 400, 709 or another error, and changes nothing. */
typedef void (*cai_sim_undefined_function)(void *context, const cai_sim_undefined *what);

/** Sets what is called then. NULL, as at first: the text goes to stderr, and the program aborts. */
void cai_sim_on_undefined(cai_sim *sim, cai_sim_undefined_function function, void *context);

/* ------------------------------------------------------------------ >>options */
/** Where CUDA's documentation writes "may", or writes nothing, a driver can do one thing or another. An
 *  option chooses the thing that the caller likes least. Code is right if it is right under both. The quoted
 *  sentences are of cuda.h 13.0, if no other source is named. */
enum {
    /** Frees never wait: memory_free, host_free, host_unregister. cuMemFree: "this API may perform implicit
     *  synchronization", of pool memory: "will not". cuMemFreeHost and cuMemHostUnregister promise nothing.
     *  kokkos/kokkos#9307: no program can rely on it. */
    CAI_SIM_FREE_RETURNS = 1 << 0,
    /** A free that waits does so only for the context of its memory, and not for the kernels of a peer
     *  (pytorch/pytorch#196257). Off: it waits for all contexts of all devices. On at first. */
    CAI_SIM_FREE_OWN_CONTEXT = 1 << 1,
    /** A primary context exists while it is retained, and not at first. cuDevicePrimaryCtxRelease: "The
     *  context is automatically reset once the last reference to it is released."; "this method does not pop
     *  the context from stack in any circumstances". Off: the runtime retains each from the beginning. On at
     *  first. */
    CAI_SIM_PRIMARY_INACTIVE = 1 << 2,
    /** Queries that need a current context fail without one. pointer_info leaves the device pointer open
     *  (CAI_POINTER_NO_CONTEXT). cuPointerGetAttribute, DEVICE_POINTER: "If there is no current CUcontext
     *  then CUDA_ERROR_INVALID_CONTEXT is returned." Other queries return 201 with the option and without:
     *  pointer_range (cuMemGetAddressRange lists it; NVIDIA/cuda-samples#96), memory_info, context_device,
     *  ipc_export, and stream_context, _capture and _id of the streams 1 and 2. */
    CAI_SIM_NEED_CONTEXT = 1 << 3,
    /** The opposite: without a current context these queries succeed, and all results are 0. Some
     *  replacements of the driver do this (lupinemachines/lupine#444). cuPointerGetAttributes: "the
     *  attributes are assigned default NULL values and CUDA_SUCCESS is returned" (for pointers that CUDA does
     *  not know). This overrides CAI_SIM_NEED_CONTEXT, and is not in CAI_SIM_ADVERSARIAL. */
    CAI_SIM_ZERO_ANSWERS = 1 << 4,
    /** pointer_range of memory of the kind CAI_SIM_MEM_VIRTUAL returns the segment around the pointer, not
     *  the mapping (cai_sim_set_segment). cuMemGetAddressRange names only "the allocation by cuMemAlloc() or
     *  cuMemAllocPitch()". openucx/ucx#11461, ofiwg/libfabric#12473: one physical segment. */
    CAI_SIM_SEGMENTS = 1 << 5,
    /** A context of cai_sim_context_create is current on one host thread at a time. A push or set on another
     *  one returns 216. cuGreenCtxCreate: "a green context can be current to only one thread at a time".
     *  CUDA_ERROR_CONTEXT_ALREADY_IN_USE: "can only be bound to a single CPU thread at a time but is already
     *  bound to a CPU thread". */
    CAI_SIM_ONE_THREAD_CONTEXTS = 1 << 6,
    /** Handles of destroyed streams and events, addresses of freed memory, and numbers of host threads that
     *  ended are used again at once. CUDA promises nothing of this except for stream ids. cuStreamGetId: "The
     *  Id is unique for the life of the program." */
    CAI_SIM_REUSE = 1 << 7,
    /** A query of an event or a stream that is not ready runs one operation before it returns, the oldest
     *  that is ready. So a loop that polls ends. In CUDA work continues without queries. If there is a hook
     *  `choose`, it chooses what runs. */
    CAI_SIM_PROGRESS = 1 << 8,
    /** event_record, _synchronize, _destroy, stream_wait_event and stream_synchronize need a current context,
     *  also for handles. Without one they return 201. cuda.h lists 201 among the errors of each, but not when
     *  it is returned. eyalroz/cuda-api-wrappers#779 expects it. The Programming Guide names the current
     *  device as a condition of launches alone. cai relies on this in places (sim/docs/results/conformance.md),
     *  so the option is not in CAI_SIM_ADVERSARIAL. It changes calls of the table only. */
    CAI_SIM_HANDLES_NEED_CONTEXT = 1 << 9,
    /** A copy with pageable host memory returns before it is done. cai_sim_copy from such memory to a device
     *  returns once the memory was read, and cai_sim_copy_async before it is read or written. "API
     *  synchronization behavior": "The function will return once the pageable buffer has been copied to the
     *  staging memory for DMA transfer to device memory, but the DMA to final destination may not have
     *  completed." "For transfers between device memory and pageable host memory, the function might be
     *  synchronous with respect to host." Managed memory counts as memory of a device. The page says nothing
     *  of it any more. Off: the copy is done when the call returns, and managed memory counts as pinned.
     *  CUDA 11.1: "All transfers involving Unified Memory regions are fully synchronous with respect to the
     *  host." */
    CAI_SIM_COPY_RETURNS = 1 << 10,
    /** Pools use memory that was freed again as soon as their attributes allow it, so an access after a free
     *  meets the memory of another one. CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: "Allow reuse of already
     *  completed frees when there is no dependency between the free and allocation." Off: a pool uses no
     *  address again while the device has memory. */
    CAI_SIM_POOL_REUSE = 1 << 11,
    /** copy_async and copy_3d_async of memory of a pool that the device of the current context cannot access,
     *  or without a current context, are 1. Programming Guide, "cudaMemcpyAsync Current Context/Device
     *  Sensitivity": "any async memcpy involving memory from cudaMallocAsync should be done using the
     *  specified stream's context as the calling thread's current context. This is not necessary for
     *  cudaMemcpyPeerAsync". It does not say what happens otherwise, nor what access such a copy needs.
     *  PyTorch (Copy.cu): copies "between devices that aren't peer-to-peer-capable need
     *  cudaMemcpyPeerAsync"; ggml-org/llama.cpp#4620: 1. This changes calls of the table only. */
    CAI_SIM_COPY_NEEDS_ACCESS = 1 << 12,
    /** context_id of a context that was destroyed ends the program with a report, as all other calls with it
     *  do. cuCtxDestroy: the context must not be "passed in subsequent API calls", which "will result in
     *  undefined behavior". UCX asked, and stopped (openucx/ucx#10852: "It's not safe to check that context is
     *  alive using cuCtxGetId"). Off: 709, the first error that cuCtxGetId lists, as on an H100 and an H200. A
     *  primary context that was reset has an id in any case. */
    CAI_SIM_LIVING_CONTEXTS = 1 << 13,
    /** A wait on an event is known to the pools before the stream has it. If another thread records an event
     *  in that stream meanwhile, a pool that follows events believes that the record comes after the wait. It
     *  then gives memory to a second owner while the first one still uses it. Two calls of two threads are
     *  simultaneous here if the thread that waits made no call in between. An H100 with driver 580 does this
     *  by CUDA's calls alone: 6,921 of 176,495 blocks of a default pool came early, and 0 with
     *  CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES off. CUDA's documentation allows no such thing. It
     *  needs CAI_SIM_POOL_REUSE, and threads that share a stream. */
    CAI_SIM_POOL_EARLY_WAITS = 1 << 16,
    /** The options of a new simulation. */
    CAI_SIM_DEFAULT = CAI_SIM_FREE_OWN_CONTEXT | CAI_SIM_PRIMARY_INACTIVE,
    /** A driver that does the least that CUDA's documentation promises, and what a GPU was seen to do. */
    CAI_SIM_ADVERSARIAL = CAI_SIM_FREE_RETURNS | CAI_SIM_FREE_OWN_CONTEXT | CAI_SIM_PRIMARY_INACTIVE |
                          CAI_SIM_NEED_CONTEXT | CAI_SIM_SEGMENTS | CAI_SIM_ONE_THREAD_CONTEXTS |
                          CAI_SIM_REUSE | CAI_SIM_PROGRESS | CAI_SIM_COPY_RETURNS | CAI_SIM_POOL_REUSE |
                          CAI_SIM_COPY_NEEDS_ACCESS | CAI_SIM_LIVING_CONTEXTS | CAI_SIM_POOL_EARLY_WAITS
};

/** Sets the options in place of those before. Do this before anything else is made. If
 *  CAI_SIM_PRIMARY_INACTIVE is new, primary contexts that nobody retained or made current become inactive.
 *  cai_sim_create begins with CAI_SIM_DEFAULT and the options that the environment variable CAI_SIM_OPTIONS
 *  adds. Its names are joined by commas, in lower case and without the prefix
 *  ("free_returns,primary_inactive", "adversarial"). An unknown name ends the program with exit status 2 and
 *  a sentence on stderr. So the same test program runs under each setting. */
void cai_sim_set_options(cai_sim *sim, uint32_t options);

/** Returns the options that are set, for tests whose result depends on them. */
uint32_t cai_sim_options(cai_sim *sim);

/* ------------------------------------------------------------- >>host threads */
/** The calling thread plays host thread `number` from now on, with the context stack, last error, capture
 *  mode and per-thread streams of that thread. If `number` is 0, it is itself again. The operation
 *  `host_thread` returns `number`. Threads that play none have the numbers 2^32 + 1, + 2, ... in the order of
 *  their first call. */
void cai_sim_host_thread(cai_sim *sim, uint64_t number);

/** Ends host thread `number`. Nothing is current there, and its stream 2 has no handle, but work queued in it
 *  still runs. A thread that plays it is itself again. The number is not played again. With CAI_SIM_REUSE,
 *  host_thread returns it for the next new host thread. */
void cai_sim_host_thread_end(cai_sim *sim, uint64_t number);

/* ----------------------------------------------------------------- >>contexts */
/** Returns the handle of the primary context of a device, which never changes. 0: no such device. While it is
 *  inactive (CAI_SIM_PRIMARY_INACTIVE) the handle is that of a destroyed one, and device_context gives 0. */
uint64_t cai_sim_primary(cai_sim *sim, int32_t device);

/** cuDevicePrimaryCtxRetain. The context is active until it was released as often. 0: no such device. */
uint64_t cai_sim_primary_retain(cai_sim *sim, int32_t device);

/** cuDevicePrimaryCtxRelease. The last release destroys the context with its streams, events and memory.
 *  Where it is current, or is pushed, calls return 709. Returns 201 if it was not
 *  retained. A primary context that cai_sim_set_context made current is also retained by the runtime from
 *  then on (cudaSetDevice). So is one that a function of this header made current on a host thread without a
 *  current context. */
int32_t cai_sim_primary_release(cai_sim *sim, int32_t device);

/** Makes a further context on a device. It does not become current. */
uint64_t cai_sim_context_create(cai_sim *sim, int32_t device);

/** Destroys a context with its streams, events and memory (not pool or virtual memory). Work queued in it
 *  does not run any more and counts as having run. The context is popped if it is current here. Elsewhere it
 *  stays current, and calls return 709. A primary context is reset instead: emptied in the same way, with its
 *  handle valid and no error. */
int32_t cai_sim_context_destroy(cai_sim *sim, uint64_t context);

/** Makes a context current on this host thread in place of the current one (cuCtxSetCurrent). 0: none. A
 *  primary context becomes active (cudaSetDevice). */
int32_t cai_sim_set_context(cai_sim *sim, uint64_t context);

/** Returns the context that is current on this host thread, or 0. */
uint64_t cai_sim_current(cai_sim *sim);

/* ------------------------------------------------------------------ >>streams */
/** Makes a stream in the current context. `nonblocking`: it does not wait for the legacy stream. */
uint64_t cai_sim_stream_create(cai_sim *sim, int32_t nonblocking);

/** Destroys a stream. Work queued in it still runs. Not for 1 and 2. */
int32_t cai_sim_stream_destroy(cai_sim *sim, uint64_t stream);

/** Returns 0 if all work of a stream has run, else 600 (cuStreamQuery). 0 orders as a synchronization does.
 *  What runs meanwhile is as for event_query (CAI_SIM_PROGRESS). */
int32_t cai_sim_stream_query(cai_sim *sim, uint64_t stream);

/** From now on a new stream or event gets the handle of the one destroyed last, as CUDA may do (R85), and as
 *  with CAI_SIM_REUSE. Otherwise handles are never used twice. The stream id is new in either case. */
void cai_sim_recycle_handles(cai_sim *sim, int32_t on);

/* ------------------------------------------------------------------- >>events */
/* The operations of the table by the same names, not logged, for the test's own events and waits. */
uint64_t cai_sim_event_create(cai_sim *sim);
int32_t cai_sim_event_destroy(cai_sim *sim, uint64_t event);
int32_t cai_sim_event_record(cai_sim *sim, uint64_t event, uint64_t stream);
int32_t cai_sim_event_query(cai_sim *sim, uint64_t event);
int32_t cai_sim_event_synchronize(cai_sim *sim, uint64_t event);
int32_t cai_sim_stream_wait_event(cai_sim *sim, uint64_t stream, uint64_t event);
int32_t cai_sim_stream_synchronize(cai_sim *sim, uint64_t stream);
int32_t cai_sim_context_synchronize(cai_sim *sim);

/* --------------------------------------------------------------------- >>work */
/** A range of memory that work reads or writes. */
typedef struct cai_sim_access {
    uint64_t address;
    uint64_t bytes;
    int32_t write;  /* 0: reads it; 1: writes it, or reads and writes it; CAI_SIM_MAY_... */
    int32_t memory; /* in the trace: the number of the allocation, as another one may have the address later
                       on; 0: none. The caller's value is ignored */
} cai_sim_access;

/** `write` of an access of which something is not known. A race is certain if one of its accesses is known to
 *  write, and the other one at least reads (cai_check.h). Memory that was freed ends no context for them.
 *  cai_sim_touch does all of them as a read. */
enum {
    CAI_SIM_MAY_WRITE = 2, /* reads, and may write */
    CAI_SIM_MAY_READ = 3,  /* may read, or do nothing. It does not write */
    CAI_SIM_MAY_ACCESS = 4 /* may read, write, or do nothing */
};

/** A "kernel": a function of the test, called when the operation runs. It must not call CUDA. In it,
 *  operations of the table and functions of this header that stand for calls of CUDA return 800. */
typedef void (*cai_sim_function)(void *argument);

static inline cai_sim_access cai_sim_reads(uint64_t address, uint64_t bytes)
{
    cai_sim_access access;
    access.address = address;
    access.bytes = bytes;
    access.write = 0;
    access.memory = 0;
    return access;
}

static inline cai_sim_access cai_sim_writes(uint64_t address, uint64_t bytes)
{
    cai_sim_access access = cai_sim_reads(address, bytes);
    access.write = 1;
    return access;
}

/** Queues a function in a stream of the current context. `name` is for the trace and copied, and NULL means
 *  "". `function` may be NULL. `argument` must exist until the operation has run. `accesses` are the `count`
 *  ranges that the work accesses, and they are copied. Memory that is no allocation of the simulation is
 *  accepted unchecked. While the stream captures, the operation is added to the capture and does not run. It
 *  runs at each launch of the graph, and `argument` must exist until the last one has run. */
int32_t cai_sim_launch(cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function,
                       void *argument, const cai_sim_access *accesses, int32_t count);

/** Queues work without a function, which really does its declared accesses. What it writes depends on all
 *  that it reads, on what was there, on its name and on its stream. So another order leaves other contents.
 *  What it read is added to the fingerprint, too. */
int32_t cai_sim_touch(cai_sim *sim, uint64_t stream, const char *name, const cai_sim_access *accesses,
                      int32_t count);

/** The same as cai_sim_launch and cai_sim_touch, for a kernel that takes views (cai_kernel_view_of makes the
 *  view of an array). The work reads and writes the elements of the first `writes` of the `count` views, and
 *  reads those of the others. The bytes between elements are not accessed. The trace has one access for each
 *  run of bytes, so a view of every second element has as many accesses as elements. Return 1 for a view that
 *  cai_kernel_view_of would not make. */
int32_t cai_sim_launch_views(cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function,
                             void *argument, const cai_kernel_view *views, int32_t count, int32_t writes);
int32_t cai_sim_touch_views(cai_sim *sim, uint64_t stream, const char *name, const cai_kernel_view *views,
                            int32_t count, int32_t writes);

/** Queues a host function in any stream (cuLaunchHostFunc). It is called without a lock of the simulation, so
 *  other threads may call CUDA meanwhile, and it may wait for a lock that such a thread has. Work behind it
 *  waits until it returns. In it, calls of CUDA return 800: "Attempting to use a CUDA API may result in
 *  CUDA_ERROR_NOT_PERMITTED, but this is not required." If the context has an error, it is not called. The
 *  other parameters are as of cai_sim_launch. */
int32_t cai_sim_host_function(cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function,
                              void *argument, const cai_sim_access *accesses, int32_t count);

/** Sets the tag of this host thread. What it queues or traces from now on has it in
 *  cai_sim_operation.tag. 0 at first. So a program finds its own record of a call from the trace. */
void cai_sim_set_tag(cai_sim *sim, uint64_t tag);

/** Records in the trace that the host itself accesses memory now. Changes nothing. */
int32_t cai_sim_host_access(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count);

/** The same, but the host really does the accesses, as cai_sim_touch does. */
int32_t cai_sim_host_touch(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count);

/** Runs the next operation of a stream if it is ready. Returns 1; 0: none is queued, or it is not ready. */
int32_t cai_sim_step(cai_sim *sim, uint64_t stream);

/** Lists the operations that may run now, at most one of each stream and each branch of a graph, lowest id
 *  first. Returns their number, and writes the first `capacity` of them. Destroyed streams that have work
 *  left are included. */
int32_t cai_sim_ready(cai_sim *sim, uint64_t *operations, int32_t capacity);

/** Runs an operation that is ready. Returns 1, or 0 if it is not ready or has run. */
int32_t cai_sim_run_operation(cai_sim *sim, uint64_t operation);

/** Runs all that is queued, lowest id first. Returns the number of operations that ran. */
int32_t cai_sim_run(cai_sim *sim);

/** Returns the number of operations that are queued and have not run. */
int32_t cai_sim_pending(cai_sim *sim);

/* ------------------------------------------------------------------- >>copies */
/** Memory in rows. From one row to the next there are `pitch` bytes, from one plane to the next `plane`
 *  bytes. `pitch` is not read if there is one row, `plane` not if there is one plane. */
typedef struct cai_sim_rows {
    uint64_t address;
    uint64_t pitch;
    uint64_t plane;
} cai_sim_rows;

/** The size of what is copied. If one of the three is 0, nothing is copied. */
typedef struct cai_sim_extent {
    uint64_t width;  /* bytes of a row */
    uint64_t height; /* rows of a plane */
    uint64_t depth;  /* planes */
} cai_sim_extent;

/** Copies bytes in `stream` (cuMemcpy, whose stream is 1 or 2). Both addresses may be of a device, of pinned
 *  or of pageable host memory. The host does not wait for a copy between device memory. It waits for any
 *  other copy until it is done, and also before a copy from pageable memory to a device, for `stream`. */
int32_t cai_sim_copy(cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream);

/** The same, and the host does not wait (cuMemcpyAsync). But a copy between host memory is done when this
 *  returns. So is one between pageable memory and a device, without CAI_SIM_COPY_RETURNS. In a capture the
 *  copy is added to the capture and never runs. */
int32_t cai_sim_copy_async(cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream);

/** The same for memory in rows (cuMemcpy2D, cuMemcpy3D, cuMemcpy3DPeer and their asynchronous forms). The
 *  trace has the bytes of the rows, and not those between them. */
int32_t cai_sim_copy_rows(cai_sim *sim, const cai_sim_rows *to, const cai_sim_rows *from,
                          const cai_sim_extent *extent, uint64_t stream);
int32_t cai_sim_copy_rows_async(cai_sim *sim, const cai_sim_rows *to, const cai_sim_rows *from,
                                const cai_sim_extent *extent, uint64_t stream);

/** Fills memory with the lowest `unit` bytes of `value`, 1, 2 or 4 (cuMemsetD8, _D16, _D32 and the 2-D
 *  forms). The address, the width, the pitch and the plane are multiples of `unit`, or the result is 1. The
 *  host waits if the memory is pinned or managed. The asynchronous form never waits. */
int32_t cai_sim_set(cai_sim *sim, const cai_sim_rows *to, const cai_sim_extent *extent, uint32_t value,
                    uint32_t unit, uint64_t stream);
int32_t cai_sim_set_async(cai_sim *sim, const cai_sim_rows *to, const cai_sim_extent *extent, uint32_t value,
                          uint32_t unit, uint64_t stream);

/* -------------------------------------------------------------------- >>trace */
enum {
    CAI_SIM_OP_LAUNCH = 1,
    CAI_SIM_OP_RECORD = 2,
    CAI_SIM_OP_WAIT = 3,
    CAI_SIM_OP_SYNCHRONIZE = 4, /* the host waited for `waits`, or a query returned that they had run */
    CAI_SIM_OP_HOST_ACCESS = 5, /* the host accessed `accesses` */
    CAI_SIM_OP_ALLOC = 6,       /* `accesses[0]` is allocated, by the host or, with a stream, in its order */
    CAI_SIM_OP_FREE = 7,        /* `accesses[0]` is freed, by the host or, with a stream, in its order */
    CAI_SIM_OP_PUBLISH = 8,     /* the host publishes what it did so far */
    CAI_SIM_OP_OBSERVE = 9,     /* the host observed what another one published in `waits` */
    CAI_SIM_OP_COPY = 10,       /* a copy, named "copy", or "set" */
    CAI_SIM_OP_HOST_FUNCTION = 11,
    CAI_SIM_OP_GRAPH = 12 /* "graph_begin" and "graph_end" of a launch of a graph, its nodes between them */
};

enum {
    CAI_SIM_STATE_QUEUED = 0,
    CAI_SIM_STATE_DONE = 1,
    CAI_SIM_STATE_CAPTURED = 2, /* added to a capture; never runs itself, but as a node of a graph */
    CAI_SIM_STATE_DROPPED = 3,  /* did not run, and will not: its context was destroyed, or has an error */
    CAI_SIM_STATE_RUNNING = 4   /* a host function that has not returned */
};

/** One entry of the trace. The pointers are valid until the simulation is destroyed. */
typedef struct cai_sim_operation {
    uint64_t id;      /* 1, 2, 3, ... in the order of the calls */
    int32_t kind;     /* CAI_SIM_OP_... */
    int32_t state;    /* CAI_SIM_STATE_... */
    uint64_t stream;  /* its id, as stream_id returns it, never used again; 0: the host */
    uint64_t context; /* handle */
    uint64_t thread;  /* the host thread that called */
    uint64_t event;   /* handle, of records and waits */
    uint64_t capture; /* the capture that it was added to, or 0 */
    uint64_t order;   /* 1, 2, 3, ... in the order of running; 0: it has not run */
    const char *name;
    const uint64_t *waits; /* ids of those it waits for; indirect ones may be left out */
    const cai_sim_access *accesses;
    int32_t wait_count;
    int32_t access_count;
    int32_t declared; /* 1: it does what `accesses` declare and no more; 0: it has a function */
    int32_t event_number; /* of the name of `event`: 1 of "e1"; another event may have the handle later on */
    uint64_t tag;         /* of the host thread when it called (cai_sim_set_tag) */
    uint64_t executable;  /* handle, of all that a launch of a graph queued; else 0 */
    uint64_t node;        /* the captured operation that it does, or 0 */
    uint64_t newest;      /* the newest entry when it began to run, or 0. Host functions tell others */
    int32_t branch;       /* of a launch of a graph: unordered with other branches. 0: as all other work */
    int32_t reserved;
} cai_sim_operation;

/** Returns the number of entries. The last entry has this id. */
uint64_t cai_sim_operation_count(cai_sim *sim);

/** Reads an entry. Returns 1, or 0 if no entry has this id. */
int32_t cai_sim_operation_get(cai_sim *sim, uint64_t id, cai_sim_operation *out);

/** For two host threads that are ordered without CUDA. cai_sim_publish publishes what this host thread did so
 *  far, and returns a number, never 0. All of that comes before what another one does after it observed the
 *  number. cai_sim_observe returns 1 if there is no such number. */
uint64_t cai_sim_publish(cai_sim *sim);
int32_t cai_sim_observe(cai_sim *sim, uint64_t published);

/* Write the names of the log. A stream, by its id: "s1", "legacy", "legacy c2" of another context than c1,
 * "per_thread", "per_thread 3" of another host thread than the first. Memory: "m1[0, 1024)". `text` gets at
 * most `capacity` bytes, and ends in 0. */
void cai_sim_stream_name(cai_sim *sim, uint64_t id, char *text, size_t capacity);
void cai_sim_event_name(cai_sim *sim, uint64_t event, char *text, size_t capacity);
void cai_sim_memory_name(cai_sim *sim, uint64_t address, uint64_t bytes, char *text, size_t capacity);

/** The same for an access of the trace. Its memory may be freed, and another may have the address. */
void cai_sim_access_name(cai_sim *sim, const cai_sim_access *access, char *text, size_t capacity);

/** The number of the allocation of an access of the trace, and the offset in it. 0: none, *offset stays. */
int32_t cai_sim_access_memory(cai_sim *sim, const cai_sim_access *access, uint64_t *offset);

/** Returns the number of the allocation around an address of the host or of a device, and the offset in it.
 *  Numbers are 1, 2, ... in order of allocation. If several had the address, the last counts. 0: none had
 *  it. */
int32_t cai_sim_memory_at(cai_sim *sim, uint64_t address, uint64_t *offset);

/** Returns a number made of the contents of all memory, freed or not, of what cai_sim_touch and the host
 *  read, and of the errors of all contexts. If it differs between two runs of a test, the runs differ. */
uint64_t cai_sim_fingerprint(cai_sim *sim);

/** Returns the number of errors that exist. These are the errors of contexts, and for each host thread the
 *  error of the last function of this header that failed there, except 600 of a query. `text` is as of
 *  cai_sim_leaks, a line like "context c1: error 700; host: error 400". */
int32_t cai_sim_errors(cai_sim *sim, char *text, size_t capacity);

/** Call this before streams and events are made. `salt` is 0 to 4095. The handles then differ from those of a
 *  simulation with another salt. A handle that is kept from one to the other is not valid there. */
void cai_sim_salt_handles(cai_sim *sim, uint32_t salt);

/** Hooks by which a test takes part. A hook may be NULL. */
typedef struct cai_sim_hooks {
    void *context;
    /* Called before a call of the table (of_table: 1; not of host_thread), before the functions of this
       header that stand for calls of CUDA, and before cai_sim_host_access and _touch, both "host_access".
       call: the name as in the log, or without "cai_sim_". Other threads continue meanwhile. */
    void (*before)(void *context, const char *call, int32_t of_table);
    /* Chooses which of `count` operations that are ready, lowest id first, runs now. Returns its index; -1:
       none. needed: the host waits, or queries an event for the fifth time while nothing happens, and -1
       counts as 0. Called when the host waits, and when it can notice what has run: in a query, an access,
       an immediate free. Work without accesses runs before, without a call. The hook must only call
       functions of this header that change nothing. */
    int32_t (*choose)(void *context, const uint64_t *ready, int32_t count, int32_t needed);
} cai_sim_hooks;

/** Sets the hooks. NULL removes them. The struct is copied. */
void cai_sim_set_hooks(cai_sim *sim, const cai_sim_hooks *hooks);

/** Returns the hooks as they were set. */
void cai_sim_get_hooks(cai_sim *sim, cai_sim_hooks *out);

/* ------------------------------------------------------------------- >>memory */
enum {
    CAI_SIM_MEM_NONE = -1,      /* of cai_sim_pointer: no memory of CUDA */
    CAI_SIM_MEM_DEVICE = 0,     /* cudaMalloc */
    CAI_SIM_MEM_MANAGED = 1,    /* cudaMallocManaged */
    CAI_SIM_MEM_PINNED = 2,     /* cudaMallocHost, mapped: devices use the same address */
    CAI_SIM_MEM_ALIASED = 3,    /* pinned, but devices use another address, which is not backed here */
    CAI_SIM_MEM_REGISTERED = 4, /* cudaHostRegister without mapping: no address for devices */
    CAI_SIM_MEM_POOL = 5,       /* cudaMallocAsync: of the device, no context, CAI_POINTER_POOL */
    CAI_SIM_MEM_VIRTUAL = 6,    /* cuMemMap: of the device, no context */
    CAI_SIM_MEM_ARRAY = 7       /* a CUDA array: CAI_POINTER_ARRAY */
};

/** Allocates zeroed memory of a kind, aligned to 256 bytes, in the current context. Managed and pinned memory
 *  report the device of this context, too. Returns 0 if `bytes` is 0, or on an error. */
uint64_t cai_sim_alloc(cai_sim *sim, int32_t kind, uint64_t bytes);

/** Frees an allocation by its first address, at once. The memory is kept, unused, so that late accesses are
 *  found. Its address is not given out again, but with CAI_SIM_REUSE at once. 0 does nothing. Returns 1
 *  (invalid value) for any other address that is no allocation. */
int32_t cai_sim_free(cai_sim *sim, uint64_t address);

/** For a simulation that repeats the calls of a real driver: the next allocation of this host thread, or the next
 *  reservation of addresses, is at `address`, where the real driver made it. 0 takes that back. An allocation of
 *  a pool comes after each free that is queued of what was at these addresses: the real driver gives them again
 *  only so.
 *
 *  From the first call on no bytes are moved or looked at: copies, sets and cai_sim_touch are in the trace alone.
 *  Whether an access is good is not checked either. The real driver does all that. */
void cai_sim_adopt(cai_sim *sim, uint64_t address);

/** For a program that wants to know what the host accesses (sim/driver/watch.c): it makes the memory that host and
 *  devices use, of the kinds CAI_SIM_MEM_MANAGED, _PINNED and _ALIASED. None of the functions may call the
 *  simulation. */
typedef struct cai_sim_host_memory {
    void *context;
    /* Makes a block of zeros, aligned to 256 bytes, which is never given back. *second: the same bytes at another
       address, by which the simulation accesses them. NULL: the simulation makes the block itself. */
    void *(*make)(void *context, uint64_t bytes, void **second);
    /* Sets a block to zeros. */
    void (*clear)(void *context, void *block, uint64_t bytes);
    /* A function of an operation begins (1) or ended (0) on this thread: it accesses memory in the order of its
       stream. NULL: nothing. */
    void (*function)(void *context, int32_t begins);
} cai_sim_host_memory;

/** Sets the functions, which are copied, before memory is made. */
void cai_sim_set_host_memory(cai_sim *sim, const cai_sim_host_memory *functions);

/** Returns where the test can access an address. NULL if it is in no live allocation, or after cai_sim_adopt. */
void *cai_sim_bytes(cai_sim *sim, uint64_t address);

/** Sets the memory of a device, 2^40 bytes at first, for memory_info and allocations. */
void cai_sim_set_memory(cai_sim *sim, int32_t device, uint64_t total_bytes);

/** Sets whether a device can access memory of another one (cudaDeviceEnablePeerAccess, cudaMemPoolSetAccess,
 *  cuMemSetAccess). It can at first. If it cannot, work there with such an access is 700. With a current
 *  context of the device, pointer_info then leaves the device pointer open (CAI_POINTER_NO_CONTEXT). CUDA's
 *  documentation of cuPointerGetAttribute, DEVICE_POINTER: "If there exists no device pointer value through
 *  which kernels running in the current CUcontext may access ptr then CUDA_ERROR_INVALID_VALUE is
 *  returned." */
void cai_sim_set_peer_access(cai_sim *sim, int32_t device, int32_t owner, int32_t yes);

/** Sets the bytes of each segment of a mapping (CAI_SIM_MEM_VIRTUAL) around an address, 2^21 at first. */
void cai_sim_set_segment(cai_sim *sim, uint64_t address, uint64_t bytes);

/** Sets an attribute of a device: CAI_ATTRIBUTE_PAGEABLE_ACCESS, 0 at first, or
 *  CAI_ATTRIBUTE_CONCURRENT_MANAGED, 1 at first. Other attributes are not known: device_attribute returns 1 (invalid value). */
void cai_sim_set_device_attribute(cai_sim *sim, int32_t device, int32_t attribute, int32_t yes);

/** How a device can access memory. CUmemAccess_flags. */
enum { CAI_SIM_ACCESS_NONE = 0, CAI_SIM_ACCESS_READ = 1, CAI_SIM_ACCESS_READ_WRITE = 3 };

/** What CUDA tells of a pointer (cuPointerGetAttribute). */
typedef struct cai_sim_pointer {
    uint64_t context;        /* handle; 0: of none */
    uint64_t first;          /* RANGE_START_ADDR: of the allocation, or of the reserved addresses */
    uint64_t bytes;          /* RANGE_SIZE */
    uint64_t mapping;        /* MAPPING_BASE_ADDR; of other than virtual memory `first`; 0: not mapped */
    uint64_t mapping_bytes;  /* MAPPING_SIZE */
    uint64_t buffer;         /* BUFFER_ID: 1, 2, ... "guaranteed to be unique over the process lifetime" */
    uint64_t device_address; /* of the pointer, for devices; 0: none */
    uint64_t host_address;   /* of the pointer, for the host; 0: none */
    uint64_t pool;           /* handle; 0: of none */
    uint64_t physical;       /* handle of the memory behind a mapping, also if it was released; else 0 */
    int32_t kind;            /* CAI_SIM_MEM_..., _NONE if CUDA does not know the pointer */
    int32_t device;          /* CAI_DEVICE_UNKNOWN: of none */
    int32_t managed;         /* 1: IS_MANAGED */
    int32_t mapped;          /* 1: MAPPED. 0: reserved addresses alone */
    int32_t exportable;      /* 1: IS_LEGACY_CUDA_IPC_CAPABLE */
    int32_t access;          /* CAI_SIM_ACCESS_...: of the device of the current context */
    int32_t ending;          /* 1: its free is queued */
    int32_t reserved;        /* 0 */
} cai_sim_pointer;

/** Returns what CUDA knows of a pointer of the host or of a device, in any context or none. Returns 1 if it
 *  knows nothing. `*out` then has the kind CAI_SIM_MEM_NONE. */
int32_t cai_sim_pointer_get(cai_sim *sim, uint64_t address, cai_sim_pointer *out);

/** From when to when memory or a stream was there. */
typedef struct cai_sim_lifetime {
    uint64_t made, ended; /* the tags of the host threads in these calls; 0: no such call, or without a tag */
    uint64_t before;      /* of a stream: the id of the newest one that had the handle before; 0: none */
    uint64_t after;       /* of a stream: the id of the next one that had the handle; 0: none */
    int32_t number;       /* of the name: 3 of "m3" or "s3" */
    int32_t live;         /* 0: it was destroyed, or its free is queued */
    int32_t kind;         /* of memory: CAI_SIM_MEM_... */
    int32_t device;
} cai_sim_lifetime;

/** Of the last allocation around an address of the host or of a device, and of a stream by its id. Return 1, or 0:
 *  there is none. */
int32_t cai_sim_memory_lifetime(cai_sim *sim, uint64_t address, cai_sim_lifetime *out);
int32_t cai_sim_stream_lifetime(cai_sim *sim, uint64_t id, cai_sim_lifetime *out);

/** Does no more than to tell the function of cai_sim_on_undefined of a handle that is dead, or none. kind: "stream",
 *  "event", "graph" or "executable graph". */
void cai_sim_look(cai_sim *sim, const char *kind, uint64_t handle);

/* -------------------------------------------------------------------- >>pools */
/** Attributes of pools, with the numbers of CUmemPool_attribute. The quotes are of cuda.h 13.0. */
enum {
    CAI_SIM_POOL_FOLLOW_EVENTS = 1,  /* "as long as a stream ordering dependency of the allocating stream on
                                        the free action exists"; 1 at first, as the next two */
    CAI_SIM_POOL_OPPORTUNISTIC = 2,  /* "Allow reuse of already completed frees" */
    CAI_SIM_POOL_INTERNAL_WAITS = 3, /* "Allow cuMemAllocAsync to insert new stream dependencies" */
    CAI_SIM_POOL_THRESHOLD = 4,      /* "Amount of reserved memory in bytes to hold onto"; 0 at first */
    CAI_SIM_POOL_RESERVED = 5,       /* bytes that the pool has from the device */
    CAI_SIM_POOL_RESERVED_HIGH = 6,  /* the most there were, "can only be reset to zero" */
    CAI_SIM_POOL_USED = 7,           /* bytes that are allocated from it */
    CAI_SIM_POOL_USED_HIGH = 8
};

/** cuMemPoolCreate, on a device. Returns the handle, or 0. */
uint64_t cai_sim_pool_create(cai_sim *sim, int32_t device);

/** cuMemPoolDestroy. Returns 1 for a default pool: "A device's default memory pool cannot be destroyed."
 *  "Destroying the current mempool of a device sets the default mempool of that device as the current
 *  mempool for that device." */
int32_t cai_sim_pool_destroy(cai_sim *sim, uint64_t pool);

/** The default and the current pool of a device. 0: no such device. */
uint64_t cai_sim_pool_default(cai_sim *sim, int32_t device);
uint64_t cai_sim_pool_current(cai_sim *sim, int32_t device);

/** cuDeviceSetMemPool. "The memory pool must be local to the specified device.", else 1. */
int32_t cai_sim_pool_set_current(cai_sim *sim, int32_t device, uint64_t pool);

/** cuMemAllocFromPoolAsync. pool: 0 is the current one of the device of the stream. Returns 0 on an error. */
uint64_t cai_sim_pool_alloc(cai_sim *sim, uint64_t pool, uint64_t bytes, uint64_t stream);

/** cuMemFreeAsync, as memory_free_async of the table. */
int32_t cai_sim_pool_free(cai_sim *sim, uint64_t address, uint64_t stream);

/** cuMemPoolTrimTo. Gives back what is free, but keeps `keep` bytes: "the pool will be guaranteed to have at
 *  least minBytesToKeep bytes reserved after the operation". */
int32_t cai_sim_pool_trim(cai_sim *sim, uint64_t pool, uint64_t keep);

/** cuMemPoolGetAttribute and cuMemPoolSetAttribute. Return 1 for what is no attribute, or cannot be set. */
int32_t cai_sim_pool_get(cai_sim *sim, uint64_t pool, int32_t attribute, uint64_t *value);
int32_t cai_sim_pool_set(cai_sim *sim, uint64_t pool, int32_t attribute, uint64_t value);

/** cuMemPoolSetAccess, of one device. Returns 1 if the own device shall lose access. */
int32_t cai_sim_pool_set_access(cai_sim *sim, uint64_t pool, int32_t device, int32_t yes);

/** Returns 1 if a device can access the memory of a pool (cuMemPoolGetAccess). */
int32_t cai_sim_pool_access(cai_sim *sim, uint64_t pool, int32_t device);

/* ----------------------------------------------------------- >>virtual memory */
/** Of addresses and sizes that are mapped, the smallest and the recommended one. */
enum { CAI_SIM_GRANULARITY = 2 << 20 };

/** cuMemAddressReserve. bytes: "a multiple of the host page size", 4096. alignment: "a power of two or zero
 *  for default alignment". Returns the first address, or 0. */
uint64_t cai_sim_virtual_reserve(cai_sim *sim, uint64_t bytes, uint64_t alignment);

/** cuMemAddressFree. "The size must match what was given to memAddressReserve and the ptr given must match
 *  what was returned", and nothing is mapped there, else 1. */
int32_t cai_sim_virtual_free(cai_sim *sim, uint64_t address, uint64_t bytes);

/** cuMemCreate, on a device. Returns the handle, or 0. */
uint64_t cai_sim_physical_create(cai_sim *sim, int32_t device, uint64_t bytes);

/** cuMemRetainAllocationHandle: the handle of the memory that is mapped at an address, released once more. */
uint64_t cai_sim_physical_retain(cai_sim *sim, uint64_t address);

/** cuMemRelease. "The generic memory handle can be freed when there are still outstanding mappings made with
 *  this handle." */
int32_t cai_sim_physical_release(cai_sim *sim, uint64_t physical);

/** cuMemMap, "on VA range reservations that are not currently mapped". offset: "currently must be zero". */
int32_t cai_sim_virtual_map(cai_sim *sim, uint64_t address, uint64_t bytes, uint64_t offset,
                            uint64_t physical);

/** cuMemUnmap. "cuMemUnmap cannot unmap a sub-range of an address range mapped": 1. */
int32_t cai_sim_virtual_unmap(cai_sim *sim, uint64_t address, uint64_t bytes);

/** cuMemSetAccess, of one device. "The range must be a fully mapped address range containing all
 *  allocations", else 1. access: CAI_SIM_ACCESS_... */
int32_t cai_sim_virtual_set_access(cai_sim *sim, uint64_t address, uint64_t bytes, int32_t device,
                                   int32_t access);

/** cuMemGetAccess. */
int32_t cai_sim_virtual_access(cai_sim *sim, uint64_t address, int32_t device);

/* ------------------------------------------------------------------ >>capture */
enum { CAI_SIM_MODE_GLOBAL = 0, CAI_SIM_MODE_THREAD_LOCAL = 1, CAI_SIM_MODE_RELAXED = 2 };

/** cudaStreamBeginCapture. Streams that wait for an event of the capture are pulled into it. */
int32_t cai_sim_capture_begin(cai_sim *sim, uint64_t stream, int32_t mode);

/** cuStreamBeginCaptureToGraph: nodes are added to a graph that exists, the first one after `count` of its
 *  nodes. "The graph will not be instantiable until the user calls cuStreamEndCapture." The end returns the
 *  same graph. S: it stays if the capture fails, with the nodes that were added and asked for. */
int32_t cai_sim_capture_begin_to(cai_sim *sim, uint64_t stream, int32_t mode, uint64_t graph,
                                 const uint64_t *nodes, int32_t count);

/** cudaStreamEndCapture. All streams of the capture leave it, also if this fails, except for 903 and 908 and
 *  if the stream does not capture. `graph` gets the handle of a new graph, 0 if this fails: "If capture was
 *  invalidated, due to a violation of the rules of stream capture, then a NULL graph will be returned." If
 *  `graph` is NULL, no graph is made. */
int32_t cai_sim_capture_end(cai_sim *sim, uint64_t stream, uint64_t *graph);

/** cuStreamGetCaptureInfo, graph_out: the graph that a stream captures into. "All operations other than
 *  destroy and node removal are permitted on the graph while the capture sequence is in progress." S: to
 *  destroy it is 1. Returns 0 if the stream does not capture, or its capture was invalidated. */
uint64_t cai_sim_capture_graph(cai_sim *sim, uint64_t stream);

/** cuStreamGetCaptureInfo, dependencies_out: "The next node to be captured in the stream will depend on this
 *  set of nodes, absent operations such as event wait which modify this set." Returns how many there are, and
 *  writes the first `capacity` of them. -1: as 0 of cai_sim_capture_graph. */
int32_t cai_sim_capture_nodes(cai_sim *sim, uint64_t stream, uint64_t *nodes, int32_t capacity);

/** cuStreamUpdateCaptureDependencies: adds nodes to the set that cai_sim_capture_nodes returns, or, with
 *  `set`, puts them in its place. "Nodes that are removed from the dependency set via this API do not result
 *  in CUDA_ERROR_STREAM_CAPTURE_UNJOINED if they are unreachable from the stream at cuStreamEndCapture."
 *  Returns 401 if the stream does not capture, 1 for what is no node of its graph. */
int32_t cai_sim_capture_depend(cai_sim *sim, uint64_t stream, const uint64_t *nodes, int32_t count,
                               int32_t set);

/* -------------------------------------------------------------------- >>graph */
/** cuGraphCreate: a graph without nodes. Returns the handle, or 0. */
uint64_t cai_sim_graph_create(cai_sim *sim);

/** cuGraphInstantiate. Returns an executable, or 0. The graph may be destroyed then. */
uint64_t cai_sim_graph_instantiate(cai_sim *sim, uint64_t graph);

/** cuGraphLaunch: "Only one instance of hGraphExec may be executing at a time. Each launch is ordered behind
 *  both any previous work in hStream and any previous launches of hGraphExec." Queues an operation for each
 *  node, between one at the begin and one at the end that do nothing. 900 if the stream captures. */
int32_t cai_sim_graph_launch(cai_sim *sim, uint64_t executable, uint64_t stream);

/** cuGraphExecUpdate: launches do what the nodes of another graph do from now on. It must be "a topologically
 *  identical graph", else 910. S: that is one with nodes of the same kinds, captured in the same order. */
int32_t cai_sim_graph_update(cai_sim *sim, uint64_t executable, uint64_t graph);

/** cuGraphDestroy. What was instantiated from the graph stays. */
int32_t cai_sim_graph_destroy(cai_sim *sim, uint64_t graph);

/** cuGraphExecDestroy: "If the executable graph is in-flight, it will not be terminated, but rather freed
 *  asynchronously on completion." */
int32_t cai_sim_graph_executable_destroy(cai_sim *sim, uint64_t executable);

/** Returns the number of nodes of a graph (cuGraphGetNodes). -1: there is no such. */
int32_t cai_sim_graph_node_count(cai_sim *sim, uint64_t graph);

/** The same, and writes the handles of the first `capacity` nodes, in the order of their capture. */
int32_t cai_sim_graph_nodes(cai_sim *sim, uint64_t graph, uint64_t *nodes, int32_t capacity);

/** A node of a graph. */
typedef struct cai_sim_graph_node {
    uint64_t graph;            /* handle */
    uint64_t operation;        /* the entry of the trace that was captured */
    int32_t kind;              /* CAI_SIM_OP_LAUNCH, _COPY, _HOST_FUNCTION */
    int32_t dependencies;      /* the number of nodes that it comes after */
    cai_sim_function function; /* of a launch or a host function */
    void *argument;
} cai_sim_graph_node;

/** Reads a node. Returns 1, or 0 if there is none, or its graph was destroyed. */
int32_t cai_sim_node_get(cai_sim *sim, uint64_t node, cai_sim_graph_node *out);

/** cuGraphNodeGetDependencies. Returns how many there are, and writes the first `capacity`. -1: no node. */
int32_t cai_sim_node_dependencies(cai_sim *sim, uint64_t node, uint64_t *nodes, int32_t capacity);

/* ------------------------------------------------------------------- >>errors */
/** Sets an asynchronous error. Every later call in a context of the device reports it, and work in
 *  these contexts does not run. Queued work is dropped when it would run. 0 clears it, unlike a real
 *  device. */
void cai_sim_set_device_error(cai_sim *sim, int32_t device, int32_t error);

/** Returns the last error of this host thread (cudaPeekAtLastError), or else the pending error of the current
 *  context. Operations of the table never set it. */
int32_t cai_sim_last_error(cai_sim *sim);

/** Clears the last error (cudaGetLastError), and returns it. */
int32_t cai_sim_clear_error(cai_sim *sim);

/** Begins the end of the process. From now on every operation of the table returns 4 (R105). */
void cai_sim_teardown(cai_sim *sim);

/* ---------------------------------------------------------------- >>call log */
/* One line for each call of the table but host_thread: the operation, its arguments, and its result.

       context_current -> c1          stream_context s1 -> c1         event_create -> e1
       context_push c2                stream_capture s1 -> active 1   event_destroy e1
       context_pop                    stream_id s1 -> 7               event_record e1 s1
       context_synchronize            stream_wait_event s2 e1         event_query e1 -> not_ready
       context_device -> 0            stream_synchronize s1           event_synchronize e1
       device_context 1 -> c2         device_attribute 0 88 -> 0        capture_mode relaxed -> global
       pointer_info m1 -> device 0 c1                                 pointer_range m1 -> m1 1024
       memory_alloc 1024 -> m1        memory_free m1                  memory_info -> 1000 2000
       memory_alloc_async 1024 s1 -> m1                               memory_free_async m1 s1
       host_alloc 1024 flags 3 -> m1  host_free m1                    device_uuid 0
       host_register 1024 flags 2 -> m1                               host_unregister m1
       managed_alloc 1024 flags 1 -> m1                               ipc_export m1
       ipc_open -> m1                 ipc_close m1
       copy_async m1 m2 64 s1         copy_3d_async m1 m2 64 8 2 s1 (to, from, width, height, depth)
       set_async m1 0 64 s1           set_2d_async m1 0 64 8 s1 (value, width, height)
       copy_peer_async m1 c1 m2 c2 64 s1                              copy_3d_peer_async m1 c1 m2 c2 64 8 2 s1
       context_id c1 -> 1             context_record c1 e1           stream_flags s1 -> 1
       pool_create 0 reuse 7 -> p2    pool_destroy p2
       memory_alloc_from_pool 1024 p2 s1 -> m1
       primary_retain 1 -> c2         primary_release 1
       capture_retain s1

   event_query returns `done` or `not_ready`, stream_capture `none`, `active` with the id, or `invalidated`;
   plain memory is `host -1 none`, no context `none`. A failure ends in ` ! 400` in place of the result, a
   call that was omitted in ` (omitted)`. A call without a place for its result fails with 1. */

/** Returns the lines since the last cai_sim_log_clear, each with a newline. Valid until the next call. */
const char *cai_sim_log(cai_sim *sim);

/** Empties the log and sets the counts to 0. */
void cai_sim_log_clear(cai_sim *sim);

/** Returns the number of calls in the log. */
int32_t cai_sim_calls(cai_sim *sim);

/** Returns the number of calls of one operation in the log, such as "event_record". */
int32_t cai_sim_calls_of(cai_sim *sim, const char *operation);

/** Returns the number of calls in the log that order work: event_create, _destroy, _record, _synchronize,
 *  stream_wait_event, stream_synchronize, context_record and context_synchronize. Others query, or change
 *  context or mode. */
int32_t cai_sim_ordering_calls(cai_sim *sim);

/* ------------------------------------------------------------------- >>faults */
/** The n-th call of the table from now (1: the next) does nothing and returns `error`. Up to 16 faults wait
 *  at a time, and each is used once. Returns 1, or 0 if refused (too many, n < 1, no such operation). */
int32_t cai_sim_fail(cai_sim *sim, int32_t n, int32_t error);

/** The same for the n-th call of one operation, such as "event_record". */
int32_t cai_sim_fail_op(cai_sim *sim, const char *operation, int32_t n, int32_t error);

/** The n-th call succeeds and does nothing. Its results are 0. */
int32_t cai_sim_omit(cai_sim *sim, int32_t n);

/** The same for the n-th call of one operation. */
int32_t cai_sim_omit_op(cai_sim *sim, const char *operation, int32_t n);

/** The device breaks before the n-th call: from then on it has this asynchronous error, as by
 *  cai_sim_set_device_error. */
int32_t cai_sim_break(cai_sim *sim, int32_t n, int32_t device, int32_t error);

/** Returns the number of faults that were not used yet. A loop over n ends when one is left over. */
int32_t cai_sim_faults(cai_sim *sim);

/** Removes the faults that were not used. */
void cai_sim_faults_clear(cai_sim *sim);

/* -------------------------------------------------------------------- >>leaks */
/** Returns the number of things that had to be destroyed and exist: streams, events, graphs, executables of
 *  graphs, allocations, captures that did not end, and contexts that are not primary. A context that a host
 *  thread pushed and did not pop, or popped and did not push, also counts. `text` is NULL, or gets a line
 *  like "streams: s1 s3; events: e2", or "". */
int32_t cai_sim_leaks(cai_sim *sim, char *text, size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SIM_H_INCLUDED */
