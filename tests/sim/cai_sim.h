/* cai_sim.h - CUDA in host memory, behind the table of cai_stream.h: exchange code tested without a GPU
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_sim.h and cai_sim.c; they need the declarations of cai_stream.h. */
#ifndef CAI_SIM_H_INCLUDED
#define CAI_SIM_H_INCLUDED

/*
WHAT IT IS
    A simulated CUDA: devices, contexts, streams, events, capture, memory and error state, all in host
    memory. cai_sim_cuda() gives it as a `cai_cuda`, the table through which cai_stream.h calls CUDA, so that
    code which exchanges arrays can be tested on any machine: which calls it makes, in which order, what it
    does when one of them fails, and whether the work on both sides comes out in the right order.

    Nothing goes by a clock. Queued work runs when something waits for it, or when the test says so, one
    operation at a time, in an order that the test may choose: every order that the queued work allows can be
    run, and the same test always does the same.

DO THIS
    Compile cai_sim.c with your test (as C or as C++), and

        #include "cai_sim.h"

EXAMPLE
        static void fill(void *x) { *(float *)x = 1.0f; }

        static void test_consumer(void)
        {
            const int64_t shape[1] = {1};
            cai_sim *sim = cai_sim_create(1);
            uint64_t producer = cai_sim_stream_create(sim, 0), consumer = cai_sim_stream_create(sim, 0);
            uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 4);
            cai_sim_access write = cai_sim_writes(memory, 4);
            cai_stream_pool pool;
            cai_array x;
            // a producer: its kernel is queued, and has not run
            cai_sim_launch(sim, producer, "fill", fill, cai_sim_bytes(sim, memory), &write, 1);
            CHECK(!cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, cai_sim_bytes(sim, memory), NULL));
            CHECK(!cai_stream_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL));
            CHECK(!cai_stream_export(&x, &pool, producer, NULL, 0, NULL));
            // your code: begins an exchange, launches on `consumer`, ends the exchange
            CHECK(!your_consumer(&pool, &x, consumer));
            CHECK_INT(cai_sim_calls_of(sim, "event_record"), 2); // puts(cai_sim_log(sim)) shows the calls
            cai_sim_run(sim);
            CHECK(*(float *)cai_sim_bytes(sim, memory) == 2.0f); // fill, then yours
            CHECK(!cai_stream_pool_destroy(&pool, NULL));
            cai_sim_stream_destroy(sim, producer);
            cai_sim_stream_destroy(sim, consumer);
            cai_sim_free(sim, memory);
            CHECK_INT(cai_sim_leaks(sim, NULL, 0), 0);
            cai_sim_destroy(sim);
        }

TWO SIDES
    The table (cai_sim_cuda) is what the code under test calls. Its calls act like calls of the driver, are
    written to the log, are counted, and can be made to fail.
    The functions below are what the test calls: it plays producer, consumer and GPU. They are not logged and
    do not fail on request. Those that stand for calls of CUDA (streams, events, launches, memory, captures)
    act like calls of the runtime: without a current context the primary one of device 0 becomes current, and
    an error stays behind as the last error of the host thread. They return 0 or CUDA's error number; those
    that make something return 0 if they could not.

    The table is plain data: copy the struct and set slots to NULL, or change struct_size or flags, to have a
    CUDA that lacks something:

        cai_cuda poor = *cai_sim_cuda(sim);
        poor.stream_id = NULL;

HANDLES AND NAMES
    Contexts, streams and events are made-up numbers. Streams 1 and 2 are the default streams, relative to
    the current context, 2 also to the host thread; 0 is no stream. Addresses are host addresses: what a
    kernel may touch, the test may look at. In the log objects have names, numbered in order of creation:
    contexts c1 (the primary one of device 0), c2, ..., streams s1, events e1, allocations m1 (m1+256 is
    inside); the streams 1 and 2 are `legacy` and `per_thread`; what is unknown is written in hexadecimal.

HOST THREADS
    Each host thread has a stack of contexts, a last error, a capture mode and, in each context, a stream 2.
    The threads of the operating system are told apart, and all functions may be called by several at once.
    One of them can also play several host threads, in an order that the test determines:
    cai_sim_host_thread.

THE SCHEDULER
    A stream runs its operations one after the other: launches, records of events, waits for events. An
    operation is ready when all that it waits for has run: the one before it in its stream, the record that a
    wait waits for, and between the legacy stream and the blocking streams of its context those that CUDA's
    implicit synchronization names. Nothing runs when it is queued, not even in an idle stream, and a query
    never runs anything: a loop that polls an event needs cai_sim_step in it. A synchronization runs exactly
    what must have run, lowest id first. cai_sim_ready lists what may run now.

THE TRACE
    Every operation that was queued, every synchronization, and every access of the host is kept, in the order
    of the calls, with its stream, its context, its host thread and the operations that it waited for
    (cai_sim_operation_get). With the order of the calls of each host thread that is all of "happens before".
    Entries stay until the simulation is destroyed, some 250 bytes each: a test that makes millions of calls
    takes a new one now and then. Without memory a simulation ends the program.

WHAT IS CUDA AND WHAT IS NOT
    D: CUDA documents it. R: reported of real devices. S: so in the simulation only, where CUDA leaves it
    undefined, does not say, or is not modelled further.

    Streams and events
    D  Event and stream of a record are of one context, else 400; a wait may cross contexts and devices
       (R100).
    D  A wait for an event that was never recorded does nothing; recording again does not change waits made
       before; a query is 600 while the work is pending; an event may be destroyed all the same (R101).
    D  A launch needs a stream of the current context. S: else 400.
    D  The legacy stream waits for all blocking streams of its context, which then wait for it; to synchronize
       it is to synchronize them. Stream 2 is blocking; non-blocking streams take no part (R104).
    D  A destroyed stream still finishes its work. R: its handle may come back, its id does not (R85).
    S  Handles that never were, or were destroyed, give 400 (undefined in CUDA).
    S  stream_context, and what names a stream or an event by handle, works without a current context.

    Contexts
    D  Without a current context 201; current but destroyed 709; pushed or set after destruction 201.
    R  Streams and events of a context that was destroyed or reset: 709 (undefined in CUDA).

    Captures (R103)
    D  A capture query of the legacy stream while a blocking stream of its context captures, in any mode, is
       906 and invalidates nothing; any other use of it is 906 and does. It cannot be captured. S: 900.
    D  What captures, and its context, cannot be synchronized: 900. Events recorded in a capture cannot be
       queried or synchronized: 907. A stream that waits for one is pulled into the capture.
    D  A wait in a capture for an event from outside: 905; from another capture: 902, and both are
       invalidated. S: 902 also after that one ended, 905 also for an event that was never recorded.
    R  A wait outside for an event of an invalidated capture: 1. S: of one that ended, too.
    S  A wait of the legacy stream for an event of a capture of non-blocking streams only: 905.
    D  The end: on another stream 903, on another host thread 908 unless relaxed, with work that is not joined
       904, after invalidation 901. S: 903 and 908 change nothing; work means launches, so that a stream that
       was pulled in and did nothing need not be joined. S: not capturing, or capturing again, 401.
    D  Errors but those of the end and of queries invalidate the captures concerned; then all use is 901.
    D  The capture mode of the thread decides whether potentially unsafe calls fail, with 900: under `global`
       because of its own captures that are not relaxed and those of other threads that are global, under
       `thread_local` because of its own, under `relaxed` not. R: that invalidates these captures.
    D  event_query is such a call, and memory_alloc. S: so are event_synchronize, stream_synchronize,
       context_synchronize, memory_free, host_alloc, host_free, host_register, host_unregister, managed_alloc,
       and cai_sim_free and cai_sim_alloc of other than pool memory.
    S  stream_id of a capturing stream: 900, and invalidates nothing (disputed). Destroying a capturing stream
       invalidates its capture; the first one of a capture ends it. What was captured cannot be launched.

    Memory
    D  pointer_info of memory that CUDA does not know succeeds: CAI_MEMORY_HOST. S: without a current context
       too. pointer_range needs one (R), and gives 500 for memory that CUDA does not know (R).
    S  cai_sim_free does not wait for the device, as a caching allocator does not. Work with an access to
       memory that was freed, or over the end of its allocation, does not run; its context has error 700 from
       then on.
    D  Allocation through the table: without a current context 201, over the memory of the device 2, flags
       that are none 1; a handle of a stream brings its own context. Size 0 is 1 (S: also of host_alloc and
       memory_alloc_async).
    D  memory_free of pool memory does not wait. R: of other memory it waits for the work of the memory's
       context; so does host_free. S: host_unregister and ipc_close do not.
    D  memory_free_async is an operation of the stream: the memory ends when it runs. S: until then
       pointer_info knows it, but it can not be freed again.
    D  memory_alloc_async is an operation of the stream, too. S: the address is good at once for the host, and
       an immediate free waits for it; work that runs before the allocation has is work on memory that was
       freed. memory_free_async takes pool memory only (CUDA: that of memory_alloc as well). Both are 900 on a
       stream that captures: there are no graphs.
    S  An address that was not given out so, was freed, or is 0, cannot be freed: 1. A free reports a pending
       error, and works.
    D  Registered twice: 712 (S: pinned memory, too; 1 for other memory of CUDA). Unregistered without: 713.
    S  Registered memory has an address for devices with the flag DEVICEMAP (2) only. Work with an access to
       it after it was unregistered: 700.
    S  Only memory of CAI_SIM_MEM_DEVICE, _MANAGED and _POOL counts against that of the device.

    Other processes
    S  Another simulation plays another process. Its devices are the same: device n has the same UUID in each.
       A handle holds addresses in this process. The simulation that exported is destroyed last, and the two
       are used by one thread at a time.
    R  Pool memory cannot be exported: 1. S: other memory than CAI_SIM_MEM_DEVICE, and what was opened,
       neither. A pointer into an allocation has the handle of the allocation.
    R  A handle cannot be opened where it comes from: 201. S: what is none, or freed meanwhile: 1.
    D  Opened again in the same context it is the same address, to be closed as often. S: in another context
       208. Opened memory does not count against that of the device.
    S  Work on opened memory that the exporter has freed: 700 (undefined in CUDA).

    Errors
    D  An asynchronous error of the device is reported by later calls (G18). S: by all that name or need one
       of its contexts, except context_current, _push, _pop and _device, device_context, device_uuid,
       stream_context and capture queries. Destroying a stream or an event reports it, too, and works.
    S  No peer access, no pools beyond the kind of memory, no graphs, no timing, no copies: launch a function
       that copies.
*/

#include <stddef.h>
#include <stdint.h>

#include "cai_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/** CUDA's error numbers, as far as they are used here. Driver and runtime share them. */
enum {
    CAI_SIM_SUCCESS = 0,
    CAI_SIM_ERROR_INVALID_VALUE = 1,
    CAI_SIM_ERROR_OUT_OF_MEMORY = 2,
    CAI_SIM_ERROR_DEINITIALIZED = 4,
    CAI_SIM_ERROR_INVALID_DEVICE = 101,
    CAI_SIM_ERROR_INVALID_CONTEXT = 201,
    CAI_SIM_ERROR_ALREADY_MAPPED = 208,
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
    CAI_SIM_ERROR_CAPTURE_WRONG_THREAD = 908
};

enum { CAI_SIM_DEVICES = 64 /* at most */ };

/** A simulated CUDA. Any number of them live beside one another. */
typedef struct cai_sim cai_sim;

/* ------------------------------------------------------------------- >>making */
/** A CUDA with `devices` devices (1 to 64), each with its primary context. NULL: out of memory, or an
 *  argument out of range. Destroy it with cai_sim_destroy. */
cai_sim *cai_sim_create(int32_t devices);

/** Frees everything, also what was leaked; work that is still queued does not run. NULL is fine. */
void cai_sim_destroy(cai_sim *sim);

/** The table, valid until the simulation is destroyed. All slots are filled; `self` is the simulation. */
const cai_cuda *cai_sim_cuda(cai_sim *sim);

/* ------------------------------------------------------------- >>host threads */
/** The calling thread plays host thread `number` from now on, with that one's context stack, last error,
 *  capture mode and per-thread streams; 0: is itself again. The operation `host_thread` answers `number`;
 *  threads that play none have the numbers 2^32 + 1, + 2, ... in the order in which they first came. */
void cai_sim_host_thread(cai_sim *sim, uint64_t number);

/* ----------------------------------------------------------------- >>contexts */
/** The primary context of a device; 0: no such device. */
uint64_t cai_sim_primary(cai_sim *sim, int32_t device);

/** A further context on a device; does not make it current. */
uint64_t cai_sim_context_create(cai_sim *sim, int32_t device);

/** Destroys a context with its streams, events and memory (not pool or virtual memory); what is queued in it
 *  does not run any more and counts as having run. Popped if it is current here; elsewhere it stays current
 *  and gives 709. A primary context is reset instead: emptied the same way, and its handle stays good. A
 *  pending error goes. */
int32_t cai_sim_context_destroy(cai_sim *sim, uint64_t context);

/** Makes a context current on this host thread in place of the current one (cuCtxSetCurrent); 0: none. */
int32_t cai_sim_set_context(cai_sim *sim, uint64_t context);

/** The context that is current on this host thread, or 0. */
uint64_t cai_sim_current(cai_sim *sim);

/* ------------------------------------------------------------------ >>streams */
/** A stream in the current context, blocking or not (with respect to the legacy stream). */
uint64_t cai_sim_stream_create(cai_sim *sim, int32_t nonblocking);

/** Destroys a stream; what is queued in it still runs. Not for 1 and 2. */
int32_t cai_sim_stream_destroy(cai_sim *sim, uint64_t stream);

/** From now on a new stream or event takes the handle of the one destroyed last, as CUDA does when it feels
 *  like it (R85, W39); otherwise handles are never used twice. The stream id is new in either case. */
void cai_sim_recycle_handles(cai_sim *sim, int32_t on);

/* ------------------------------------------------------------------- >>events */
/* The operations of the table by the same names, unlogged, for the test's own events and waits. */
uint64_t cai_sim_event_create(cai_sim *sim);
int32_t cai_sim_event_destroy(cai_sim *sim, uint64_t event);
int32_t cai_sim_event_record(cai_sim *sim, uint64_t event, uint64_t stream);
int32_t cai_sim_event_query(cai_sim *sim, uint64_t event);
int32_t cai_sim_event_synchronize(cai_sim *sim, uint64_t event);
int32_t cai_sim_stream_wait_event(cai_sim *sim, uint64_t stream, uint64_t event);
int32_t cai_sim_stream_synchronize(cai_sim *sim, uint64_t stream);
int32_t cai_sim_context_synchronize(cai_sim *sim);

/* --------------------------------------------------------------------- >>work */
/** A stretch of memory that work reads or writes. */
typedef struct cai_sim_access {
    uint64_t address;
    uint64_t bytes;
    int32_t write; /* 1: writes it, or reads and writes it */
    int32_t reserved;
} cai_sim_access;

/** A "kernel": a function of the test, called when the operation runs. It must not call CUDA: operations of
 *  the table and functions of this header that stand for calls of CUDA answer 800 in it. */
typedef void (*cai_sim_function)(void *argument);

static inline cai_sim_access cai_sim_reads(uint64_t address, uint64_t bytes)
{
    cai_sim_access access;
    access.address = address;
    access.bytes = bytes;
    access.write = 0;
    access.reserved = 0;
    return access;
}

static inline cai_sim_access cai_sim_writes(uint64_t address, uint64_t bytes)
{
    cai_sim_access access = cai_sim_reads(address, bytes);
    access.write = 1;
    return access;
}

/** Queues a function in a stream of the current context. name: for the trace, copied, NULL is "". function:
 *  NULL for none. argument: lives until the operation has run. accesses: what it touches, `count` of them,
 *  copied; memory that is no allocation of the simulation is taken as it is. While the stream captures, the
 *  operation goes to the capture and never runs. */
int32_t cai_sim_launch(cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function,
                       void *argument, const cai_sim_access *accesses, int32_t count);

/** Queues work that does what it says: what it leaves in the memory that it writes depends on all that it
 *  reads, on what was there, on its name and on its stream, so that another order leaves something else. What
 *  it read goes to the fingerprint, too. */
int32_t cai_sim_touch(cai_sim *sim, uint64_t stream, const char *name, const cai_sim_access *accesses,
                      int32_t count);

/** Says that the host itself touches memory now; goes to the trace, changes nothing. */
int32_t cai_sim_host_access(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count);

/** The same of a host that does what it says, as cai_sim_touch does. */
int32_t cai_sim_host_touch(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count);

/** Runs the next operation of a stream if it is ready. 1: ran one; 0: none is queued, or it is not ready. */
int32_t cai_sim_step(cai_sim *sim, uint64_t stream);

/** The operations that may run now, at most one of each stream, lowest id first: their number, and the first
 *  `capacity` of them. Destroyed streams that have work left are among them. */
int32_t cai_sim_ready(cai_sim *sim, uint64_t *operations, int32_t capacity);

/** Runs an operation that is ready. 1: ran; 0: it is not ready, or has run. */
int32_t cai_sim_run_operation(cai_sim *sim, uint64_t operation);

/** Runs all that is queued, lowest id first. Returns how many operations that were. */
int32_t cai_sim_run(cai_sim *sim);

/** How many operations are queued and have not run. */
int32_t cai_sim_pending(cai_sim *sim);

/* -------------------------------------------------------------------- >>trace */
enum {
    CAI_SIM_OP_LAUNCH = 1,
    CAI_SIM_OP_RECORD = 2,
    CAI_SIM_OP_WAIT = 3,
    CAI_SIM_OP_SYNCHRONIZE = 4, /* the host waited for `waits`, or learned from a query that they had run */
    CAI_SIM_OP_HOST_ACCESS = 5, /* the host touched `accesses` */
    CAI_SIM_OP_ALLOC = 6,       /* `accesses[0]` is allocated, by the host or, with a stream, in its order */
    CAI_SIM_OP_FREE = 7,        /* `accesses[0]` is freed, by the host or, with a stream, in its order */
    CAI_SIM_OP_PUBLISH = 8,     /* the host lets another host thread know that it came this far */
    CAI_SIM_OP_OBSERVE = 9      /* the host learned that another one came as far as `waits` */
};

enum {
    CAI_SIM_STATE_QUEUED = 0,
    CAI_SIM_STATE_DONE = 1,
    CAI_SIM_STATE_CAPTURED = 2, /* went to a capture; never runs */
    CAI_SIM_STATE_DROPPED = 3   /* did not run, and will not: its context was destroyed, or has an error */
};

/** One entry of the trace. The pointers are valid until the simulation is destroyed. */
typedef struct cai_sim_operation {
    uint64_t id;      /* 1, 2, 3, ... in the order of the calls */
    int32_t kind;     /* CAI_SIM_OP_... */
    int32_t state;    /* CAI_SIM_STATE_... */
    uint64_t stream;  /* its id, as stream_id answers it, unlike a handle unique for ever; 0: the host */
    uint64_t context; /* handle */
    uint64_t thread;  /* the host thread that called */
    uint64_t event;   /* handle, of records and waits */
    uint64_t capture; /* the capture that it went to, or 0 */
    uint64_t order;   /* 1, 2, 3, ... in the order of running; 0: it has not run */
    const char *name;
    const uint64_t *waits; /* ids of those it waits for; those that they wait for may be left out */
    const cai_sim_access *accesses;
    int32_t wait_count;
    int32_t access_count;
    int32_t declared; /* 1: it does what `accesses` say and no more; 0: it has a function */
    int32_t reserved;
} cai_sim_operation;

/** The number of entries; the last one has this id. */
uint64_t cai_sim_operation_count(cai_sim *sim);

/** Reads an entry. 1: done; 0: there is none with this id. */
int32_t cai_sim_operation_get(cai_sim *sim, uint64_t id, cai_sim_operation *out);

/** Two host threads that are ordered by something that is not CUDA: what this one did so far is published
 *  (returns a number, never 0), and comes before what another one does after it observed that. 1: there is no
 *  such number. */
uint64_t cai_sim_publish(cai_sim *sim);
int32_t cai_sim_observe(cai_sim *sim, uint64_t published);

/* The names of the log. A stream by its id: "s1", "legacy", "legacy c2" of another context than c1,
 * "per_thread", "per_thread 3" of another host thread than the first. Memory: "m1[0, 1024)". `text` gets at
 * most `capacity` bytes, ended by 0. */
void cai_sim_stream_name(cai_sim *sim, uint64_t id, char *text, size_t capacity);
void cai_sim_event_name(cai_sim *sim, uint64_t event, char *text, size_t capacity);
void cai_sim_memory_name(cai_sim *sim, uint64_t address, uint64_t bytes, char *text, size_t capacity);

/** The allocation around an address of the host or of a device: its number, 1, 2, ... in the order in which
 *  they were made, and the offset in it. 0: there never was one. */
int32_t cai_sim_memory_at(cai_sim *sim, uint64_t address, uint64_t *offset);

/** A number made of the contents of all memory, freed or not, of what cai_sim_touch and the host read,
 *  and of the errors of all contexts. If two runs of a test have different ones, they came out
 *  differently. */
uint64_t cai_sim_fingerprint(cai_sim *sim);

/** Errors that are there: of contexts, and what the last function of this header that failed on each host
 *  thread left behind, but for 600 of a query. Their number; text: as of cai_sim_leaks, a line like "context
 *  c1: error 700; host: error 400". */
int32_t cai_sim_errors(cai_sim *sim, char *text, size_t capacity);

/** Before streams and events are made: their handles are not those of a simulation with another salt, 0 to
 *  4095. A handle that is kept from one to the other is none there. */
void cai_sim_salt_handles(cai_sim *sim, uint32_t salt);

/** How a test takes part in what happens. NULL where it does not want to. */
typedef struct cai_sim_hooks {
    void *context;
    /* Before a call of the table (of_table: 1; not of host_thread), of the functions of this header that
       stand for calls of CUDA, and of cai_sim_host_access and _touch, both "host_access". call: its name, as
       in the log or without "cai_sim_". Other threads go on meanwhile. */
    void (*before)(void *context, const char *call, int32_t of_table);
    /* Which of `count` operations that are ready, lowest id first, runs now: its index; -1: none. needed: the
       host waits, or it queries an event for the fifth time while nothing happens, and none is no answer.
       Asked where the host waits, and where it may notice what has run: by a query, an access, an immediate
       free. What touches nothing runs before, unasked. Of the functions of this header it may call those
       that only look. */
    int32_t (*choose)(void *context, const uint64_t *ready, int32_t count, int32_t needed);
} cai_sim_hooks;

/** Sets the hooks; NULL: none any more. The struct is copied. */
void cai_sim_set_hooks(cai_sim *sim, const cai_sim_hooks *hooks);

/** The hooks as they were set. */
void cai_sim_get_hooks(cai_sim *sim, cai_sim_hooks *out);

/* ------------------------------------------------------------------- >>memory */
enum {
    CAI_SIM_MEM_DEVICE = 0,     /* cudaMalloc */
    CAI_SIM_MEM_MANAGED = 1,    /* cudaMallocManaged */
    CAI_SIM_MEM_PINNED = 2,     /* cudaMallocHost, mapped: devices use the same address */
    CAI_SIM_MEM_ALIASED = 3,    /* pinned, but devices use another address, which is not backed here */
    CAI_SIM_MEM_REGISTERED = 4, /* cudaHostRegister without mapping: no address for devices */
    CAI_SIM_MEM_POOL = 5,       /* cudaMallocAsync: of the device, no context, CAI_POINTER_POOL */
    CAI_SIM_MEM_VIRTUAL = 6,    /* cuMemMap: of the device, no context */
    CAI_SIM_MEM_ARRAY = 7       /* a CUDA array: CAI_POINTER_ARRAY */
};

/** Memory of a kind, zeroed, aligned to 256 bytes, of the context that is current (and its device, which is
 *  also what managed and pinned memory report). 0: bytes is 0, or an error. */
uint64_t cai_sim_alloc(cai_sim *sim, int32_t kind, uint64_t bytes);

/** Frees an allocation by its first address; at once. The memory is kept, unused, so that late accesses are
 *  found; its address is not given out again. 0 is fine; 1 (invalid value) for anything else that is none. */
int32_t cai_sim_free(cai_sim *sim, uint64_t address);

/** Where the test can look at an address; NULL if it is in no live allocation. */
void *cai_sim_bytes(cai_sim *sim, uint64_t address);

/** The memory of a device, 2^40 bytes at first: what memory_info tells, and allocations have. */
void cai_sim_set_memory(cai_sim *sim, int32_t device, uint64_t total_bytes);

/** What pageable_access answers of a device; 0 at first. */
void cai_sim_set_pageable_access(cai_sim *sim, int32_t device, int32_t yes);

/* ------------------------------------------------------------------ >>capture */
enum { CAI_SIM_MODE_GLOBAL = 0, CAI_SIM_MODE_THREAD_LOCAL = 1, CAI_SIM_MODE_RELAXED = 2 };

/** cudaStreamBeginCapture. Streams that wait for an event of the capture are pulled into it. */
int32_t cai_sim_capture_begin(cai_sim *sim, uint64_t stream, int32_t mode);

/** cudaStreamEndCapture: all streams of the capture are out of it, also if it fails, except for 903 and 908
 *  and where the stream does not capture. */
int32_t cai_sim_capture_end(cai_sim *sim, uint64_t stream);

/* ------------------------------------------------------------------- >>errors */
/** An asynchronous error: every later call in a context of the device reports it (G18), and work in them does
 *  not run. Queued work is dropped as it would run. 0: it is healed, which real devices never are. */
void cai_sim_set_device_error(cai_sim *sim, int32_t device, int32_t error);

/** The last error of this host thread (cudaPeekAtLastError), or else the pending error of the current
 *  context. Operations of the table never set it. */
int32_t cai_sim_last_error(cai_sim *sim);

/** Forgets the last error (cudaGetLastError); returns it. */
int32_t cai_sim_clear_error(cai_sim *sim);

/** The process is ending: from now on every operation of the table answers 4 (R105). */
void cai_sim_teardown(cai_sim *sim);

/* ---------------------------------------------------------------- >>call log */
/* One line for each call of the table but host_thread: the operation, its arguments, and what came back.

       context_current -> c1          stream_context s1 -> c1         event_create -> e1
       context_push c2                stream_capture s1 -> active 1   event_destroy e1
       context_pop                    stream_id s1 -> 7               event_record e1 s1
       context_synchronize            stream_wait_event s2 e1         event_query e1 -> not_ready
       context_device -> 0            stream_synchronize s1           event_synchronize e1
       device_context 1 -> c2         pageable_access 0 -> no         capture_mode relaxed -> global
       pointer_info m1 -> device 0 c1                                 pointer_range m1 -> m1 1024
       memory_alloc 1024 -> m1        memory_free m1                  memory_info -> 1000 2000
       memory_alloc_async 1024 s1 -> m1                               memory_free_async m1 s1
       host_alloc 1024 flags 3 -> m1  host_free m1                    device_uuid 0
       host_register 1024 flags 2 -> m1                               host_unregister m1
       managed_alloc 1024 flags 1 -> m1                               ipc_export m1
       ipc_open -> m1                 ipc_close m1

   event_query answers `done` or `not_ready`, stream_capture `none`, `active` with the id, or `invalidated`;
   plain memory is `host -1 none`, no context `none`. A failure ends in ` ! 400` in place of the answer, a
   call that was omitted in ` (omitted)`. A call with nowhere to put its answer fails with 1. */

/** The lines since the last cai_sim_log_clear, each ended by a newline; valid until the next call. */
const char *cai_sim_log(cai_sim *sim);

/** Empties the log and sets the counts to 0. */
void cai_sim_log_clear(cai_sim *sim);

/** How many calls the log has. */
int32_t cai_sim_calls(cai_sim *sim);

/** How many of them are of one operation: "event_record". */
int32_t cai_sim_calls_of(cai_sim *sim, const char *operation);

/** How many of them order work: event_create, _destroy, _record, _synchronize, stream_wait_event,
 *  stream_synchronize and context_synchronize. The others are queries and changes of context or mode. */
int32_t cai_sim_ordering_calls(cai_sim *sim);

/* ------------------------------------------------------------------- >>faults */
/** The n-th call of the table from now (1: the next) does nothing and returns `error`. Up to 16 faults wait
 *  at a time; each strikes once. Returns 1, or 0 if it was not taken (too many, n < 1, no such operation). */
int32_t cai_sim_fail(cai_sim *sim, int32_t n, int32_t error);

/** The same of the n-th call of one operation: "event_record". */
int32_t cai_sim_fail_op(cai_sim *sim, const char *operation, int32_t n, int32_t error);

/** The n-th call succeeds and does nothing; what it should answer is 0. */
int32_t cai_sim_omit(cai_sim *sim, int32_t n);

/** The same of the n-th call of one operation. */
int32_t cai_sim_omit_op(cai_sim *sim, const char *operation, int32_t n);

/** How many faults have not struck yet: a loop over n ends when one is left over. */
int32_t cai_sim_faults(cai_sim *sim);

/** Forgets the faults that have not struck. */
void cai_sim_faults_clear(cai_sim *sim);

/* -------------------------------------------------------------------- >>leaks */
/** How many things are alive that had to be destroyed: streams, events, allocations, contexts that are not
 *  primary, captures that did not end, and contexts that were pushed and not popped (or popped and not
 *  pushed) on a host thread. text: NULL, or gets a line like "streams: s1 s3; events: e2", or "". */
int32_t cai_sim_leaks(cai_sim *sim, char *text, size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SIM_H_INCLUDED */
