/* cai_sim.c - the simulated CUDA of cai_sim.h
 * SPDX-License-Identifier: MIT
 *
 *   >>objects     what a simulation consists of
 *   >>support     growing arrays, text, host threads and the lock
 *   >>lookup      handles and addresses to objects
 *   >>operations  the trace, and what an operation waits for
 *   >>scheduler   running them
 *   >>captures    >>graphs  >>contexts  >>streams  >>events  >>memory  >>pools  >>virtual memory
 *   >>copies      what the calls of CUDA do, under the lock
 *   >>table       the same behind cai_cuda, with log and faults
 *   >>test side   the functions of cai_sim.h
 *
 * Two invariants carry the scheduler: an operation waits only for operations with lower ids, so that ids are
 * an order in which everything can run; and it waits for the one before it in its stream, so that of each
 * stream at most one operation is ready. In the launch of a graph the nodes wait as the graph says, and that
 * holds for each branch. Ids are never reused, and nothing is freed before the simulation. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mmap, memfd_create */
#endif

#include "cai_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(CAI_SIM_NO_THREADS) && defined(_WIN32)
#include <windows.h>
#elif !defined(CAI_SIM_NO_THREADS)
#include <pthread.h>
#endif

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#if defined(MAP_ANONYMOUS) && defined(MADV_REMOVE) && defined(MFD_CLOEXEC)
#define SIM_HAS_PAGES
#endif
#endif

/* ------------------------------------------------------------------ >>objects */
enum { SIM_ALIGNMENT = 256, SIM_HANDLE_STEP = 16, SIM_NAME = 32, SIM_FAULTS = 16 };
enum { SIM_PATIENCE = 3 /* who asks more often, nothing having happened, waits in a loop */ };
enum { SIM_IPC_BYTES = 64, SIM_UUID_BYTES = 16 };
enum { SIM_SEGMENT = CAI_SIM_GRANULARITY /* of a mapping of cai_sim_alloc */ };
enum { SIM_LARGE = 1 << 20 /* a block of so many bytes costs no memory until it is touched */ };
#define SIM_ALL_KINDS (~(uint32_t)0)
#define SIM_FREED_BY_MEMORY_FREE \
    (1u << CAI_SIM_MEM_DEVICE | 1u << CAI_SIM_MEM_MANAGED | 1u << CAI_SIM_MEM_POOL)
#define SIM_FREED_IN_STREAMS (1u << CAI_SIM_MEM_DEVICE | 1u << CAI_SIM_MEM_POOL)
#define SIM_FREED_BY_HOST_FREE (1u << CAI_SIM_MEM_PINNED | 1u << CAI_SIM_MEM_ALIASED)
enum { SIM_DEAD = 0, SIM_LIVE = 1, SIM_ORPHAN = 2 /* its context was destroyed, or reset */ };
enum { SIM_CAPTURE_ENDED = 3 /* beside CAI_CAPTURE_ACTIVE and _INVALIDATED */ };
#define SIM_NODES ((uint64_t)0x80000000) /* handles of nodes begin here */

typedef struct sim_text {
    char *data;
    size_t length, capacity;
} sim_text;

typedef struct sim_moment { /* a call, of the table or of cai_sim.h */
    const char *call; /* NULL: it is none that stands for CUDA */
    uint64_t number;  /* 1, 2, ... in the order of all calls */
    uint64_t tag;     /* of the host thread */
    int32_t of_table;
} sim_moment;

typedef struct sim_object { /* a context, stream or event: the first member of each */
    sim_moment made, ended;
    uint64_t handle;
    uint64_t destroyed; /* 1, 2, ... in the order of destruction */
    struct sim_context *context;
    int32_t number, state; /* for the log, 0: a default stream; SIM_LIVE... */
} sim_object;

typedef struct sim_kind { /* all objects of a kind, and the one that each handle means */
    sim_object **all, **slots;
    int32_t count, slot_count, named;
    uint64_t base;
    const char *letter, *noun;
} sim_kind;

typedef struct sim_context {
    sim_object o;
    struct sim_stream *legacy;
    struct sim_stream *whole; /* where context_record puts its records; NULL: not yet */
    uint64_t id;              /* 0: nobody asked for it yet */
    int32_t device, error, primary;
    int32_t retained, of_runtime; /* who holds a primary one */
} sim_context;

typedef struct sim_capture {
    uint64_t id, thread;
    struct sim_stream *origin;
    struct sim_graph *graph; /* that the nodes go to; NULL: nobody asked for it yet */
    uint64_t looked;         /* the last entry of the trace that was looked at for nodes */
    int32_t mode, status;
    int32_t given; /* the graph is of the caller, and stays when the capture fails */
} sim_capture;

typedef struct sim_patience { /* of who queries one thing again and again */
    uint64_t order, count; /* what had run, and been called for, when it was last not ready */
    int32_t asked;         /* how often in a row nothing had changed */
} sim_patience;

typedef struct sim_stream {
    sim_object o;
    sim_patience patience;
    uint64_t id;
    uint64_t thread;        /* of a per-thread stream, else 0 */
    uint64_t last;          /* the operation queued last, not those that were captured */
    uint64_t captured_last; /* the same in `capture`; 0: none, or no capture */
    sim_capture *capture;
    int32_t nonblocking;
    int32_t lost; /* its capture was ended on another stream, and its own end is still to come */
} sim_stream;

typedef struct sim_event {
    sim_object o;
    uint64_t record;      /* the operation that recorded it last, 0: none */
    sim_capture *capture; /* that it was recorded in, NULL: in none */
    sim_patience patience;
} sim_event;

typedef struct sim_pool {
    sim_object o; /* of no context */
    uint64_t values[CAI_SIM_POOL_USED_HIGH + 1]; /* by CAI_SIM_POOL_... */
    uint64_t no_access; /* bits: devices that cannot access its memory */
    struct sim_allocation **free; /* memory that is freed, or will be, and has its block; oldest first */
    int32_t device, free_count;
} sim_pool;

typedef struct sim_physical { /* memory of cai_sim_physical_create */
    sim_object o; /* of no context; destroyed: no handle is left */
    uint64_t bytes, at; /* at: in the file of the simulation */
    int32_t device, handles, mappings;
} sim_physical;

typedef struct sim_range { /* addresses of cai_sim_virtual_reserve */
    uint64_t address, bytes;
    void *block; /* what the system reserved */
    uint64_t space;
    int32_t live;
} sim_range;

typedef struct sim_allocation {
    void *block; /* NULL: memory of somebody else, registered or opened; or another one has it now */
    uint64_t address, bytes, device_offset;
    uint64_t space;   /* bytes at `address` in the block */
    uint64_t made_tag, freed_tag;
    uint64_t apart;   /* from the address to where the simulation has the same bytes; 0: there */
    uint64_t segment; /* bytes of physical memory behind each stretch of a mapping */
    uint64_t ended;   /* 1, 2, ... in the order of the ends, as `destroyed`; 0: live */
    uint64_t digest;  /* of what was in the block when another one took it */
    sim_context *context;                /* NULL: none */
    const struct sim_allocation *origin; /* of another simulation, opened `opened` times; NULL: not so */
    int32_t number, kind, device, live, opened;
    int32_t unmapped; /* registered, and devices have no address of it */
    int32_t freeing;  /* the operation that ends it is queued */
    int32_t held;     /* it ended, and its pool keeps the block */
    int32_t emptied;  /* it ended, and its pages went back to the system */
    uint64_t maker;   /* the operation that makes it; 0: it was there at once */
    uint64_t ender;   /* the one that ends it, in the order of the stream `ender_stream`; 0: none */
    uint64_t ender_stream;
    sim_pool *pool;                /* NULL: of none */
    struct sim_allocation *before; /* whose block it took over, in the order of streams; NULL: nobody's */
    void *place;                   /* that block, also when the next one has taken it over */
    int32_t shares; /* the number of the one whose memory it also is: two owners at once; 0: none */
    sim_physical *physical;        /* of a mapping of cai_sim_virtual_map, else NULL */
    uint64_t can_read, can_write;  /* bits: devices that can access the mapping */
} sim_allocation;

typedef struct sim_ipc { /* the beginning of a handle of ipc_export */
    char magic[8];
    const cai_sim *sim;
    const sim_allocation *allocation;
} sim_ipc;

typedef struct sim_copy { /* what a copy, or a set, does when it runs */
    cai_sim_rows to, from;
    cai_sim_extent extent;
    unsigned char *staged; /* the bytes as they were at the call, row by row; NULL: they are at `from` */
    uint32_t value, unit;  /* of a set; unit 0: a copy */
} sim_copy;

typedef struct sim_operation {
    cai_sim_operation info;
    sim_context *context;
    cai_sim_function function;
    void *argument;
    sim_allocation *frees; /* what ends when it runs */
    sim_allocation *makes; /* what is there when it has run */
    sim_copy *copy;        /* NULL: it is none */
    uint64_t digest;       /* of what it read when it ran, if it is one of cai_sim_touch */
    int32_t touches;
    int32_t released; /* the end of a capture does not ask whether this is joined */
    uint64_t *waits;
    cai_sim_access *accesses;
    char name[SIM_NAME];
} sim_operation;

typedef struct sim_node { /* of a graph */
    const sim_operation *captured; /* what it does */
    int32_t *edges;                /* the nodes that it comes after, by their places in the graph */
    int32_t edge_count;
    int32_t branch;
} sim_node;

typedef struct sim_graph { /* grows while a capture has it, and does not change then */
    sim_object o;
    sim_node *nodes; /* in the order of the operations that were captured */
    uint64_t *branches; /* by number: the stream that had it in the capture */
    const sim_capture *capture; /* the last one that made nodes, or NULL */
    int32_t count, branch_count;
} sim_graph;

typedef struct sim_executable {
    sim_object o;
    const sim_graph *graph; /* outlives its handle */
    int32_t count;          /* its nodes, when this was made */
    uint64_t last;          /* the end of the launch that was queued last */
} sim_executable;

typedef struct sim_user { /* a user object: a graph and its executables keep it */
    void (*gone)(void *user); /* NULL: it was called */
    void *user;
} sim_user;

typedef struct sim_kept { /* a reference of a graph or of an executable; owner NULL: it ended */
    const sim_object *owner;
    const sim_executable *executable; /* that is the owner, or NULL */
    int32_t user;
} sim_kept;

typedef struct sim_entry {
    sim_context *context;
    int32_t pushed; /* by context_push, not by cai_sim_set_context */
} sim_entry;

typedef struct sim_thread { /* a host thread */
    uint64_t number;
    uint64_t answer; /* of host_thread: the number, or that of one that ended */
    int32_t ended, reused;
    sim_entry *stack;
    int32_t depth, unbalanced; /* pops of what was not pushed */
    int32_t last_error, mode;
    uint64_t tag;
    uint64_t adopted; /* where the next allocation is; 0: anywhere */
    uint64_t seen;    /* the newest operation when its last call returned */
} sim_thread;

typedef struct sim_os { /* a thread of the operating system */
    sim_thread *itself, *plays;
    sim_moment now; /* the call that it is in */
    int32_t in_function;
} sim_os;

typedef struct sim_belief { /* POOL_EARLY_WAITS: pools believe that `record` comes after `first` */
    uint64_t record, first;
} sim_belief;

typedef struct sim_fault {
    int32_t operation; /* -1: any */
    int32_t left, error, omit;
    int32_t device; /* that breaks; -1: the call fails, or is left out */
} sim_fault;

#define SIM_OPERATIONS(X) \
    X(context_current) X(context_push) X(context_pop) X(context_synchronize) X(context_device) \
    X(device_context) X(stream_context) X(stream_capture) X(stream_id) X(stream_wait_event) \
    X(stream_synchronize) X(event_create) X(event_destroy) X(event_record) X(event_query) \
    X(event_synchronize) X(capture_mode) X(pointer_info) X(pointer_range) X(device_attribute) \
    X(memory_alloc) X(memory_free) X(memory_alloc_async) X(memory_free_async) X(host_alloc) X(host_free) \
    X(host_register) X(host_unregister) X(managed_alloc) X(memory_info) X(ipc_export) X(ipc_open) \
    X(ipc_close) X(device_uuid) X(copy_async) X(copy_3d_async) X(set_async) X(set_2d_async) \
    X(copy_peer_async) X(copy_3d_peer_async) X(context_id) X(context_record) X(stream_flags) X(pool_create) \
    X(pool_destroy) X(memory_alloc_from_pool) X(primary_retain) X(primary_release) \
    X(capture_retain)
#define SIM_ENUM(name) SIM_##name,
#define SIM_STRING(name) #name,
enum { SIM_OPERATIONS(SIM_ENUM) SIM_OPERATION_COUNT };
static const char *const sim_operation_names[] = {SIM_OPERATIONS(SIM_STRING)};

#if defined(CAI_SIM_NO_THREADS)
typedef sim_os *sim_key; /* what the thread has of its own, and the lock */
typedef int sim_mutex;
typedef int sim_condition;
#define SIM_LOCK_MAKE(sim) 1
#define SIM_LOCK_FREE(sim) ((void)(sim))
#define SIM_LOCK(sim) ((void)(sim))
#define SIM_UNLOCK(sim) ((void)(sim))
#define SIM_SLEEP(sim) ((void)(sim))
#define SIM_WAKE(sim) ((void)(sim))
#define SIM_OWN(sim) (sim)->key
#define SIM_OWN_SET(sim, os) ((sim)->key = (os))
#elif defined(_WIN32)
typedef DWORD sim_key;
typedef CRITICAL_SECTION sim_mutex;
typedef CONDITION_VARIABLE sim_condition;
#define SIM_LOCK_MAKE(sim) \
    (InitializeCriticalSection(&(sim)->mutex), InitializeConditionVariable(&(sim)->returned), \
     ((sim)->key = TlsAlloc()) != TLS_OUT_OF_INDEXES)
#define SIM_LOCK_FREE(sim) (TlsFree((sim)->key), DeleteCriticalSection(&(sim)->mutex))
#define SIM_LOCK(sim) EnterCriticalSection(&(sim)->mutex)
#define SIM_UNLOCK(sim) LeaveCriticalSection(&(sim)->mutex)
#define SIM_SLEEP(sim) SleepConditionVariableCS(&(sim)->returned, &(sim)->mutex, INFINITE)
#define SIM_WAKE(sim) WakeAllConditionVariable(&(sim)->returned)
#define SIM_OWN(sim) ((sim_os *)TlsGetValue((sim)->key))
#define SIM_OWN_SET(sim, os) TlsSetValue((sim)->key, (os))
#else
typedef pthread_key_t sim_key;
typedef pthread_mutex_t sim_mutex;
typedef pthread_cond_t sim_condition;
#define SIM_LOCK_MAKE(sim) \
    (pthread_mutex_init(&(sim)->mutex, NULL) == 0 && pthread_cond_init(&(sim)->returned, NULL) == 0 && \
     pthread_key_create(&(sim)->key, NULL) == 0)
#define SIM_LOCK_FREE(sim) \
    (pthread_key_delete((sim)->key), pthread_cond_destroy(&(sim)->returned), \
     pthread_mutex_destroy(&(sim)->mutex))
#define SIM_LOCK(sim) pthread_mutex_lock(&(sim)->mutex)
#define SIM_UNLOCK(sim) pthread_mutex_unlock(&(sim)->mutex)
#define SIM_SLEEP(sim) pthread_cond_wait(&(sim)->returned, &(sim)->mutex)
#define SIM_WAKE(sim) pthread_cond_broadcast(&(sim)->returned)
#define SIM_OWN(sim) ((sim_os *)pthread_getspecific((sim)->key))
#define SIM_OWN_SET(sim, os) pthread_setspecific((sim)->key, (os))
#endif

struct cai_sim {
    cai_cuda cuda;
    int32_t device_count, teardown, recycle, queued, fault_count;
    int32_t running; /* host functions */
    int32_t adopts;  /* memory is of a real driver, and no bytes are moved */
    int32_t allocation_count, capture_count, thread_count, os_count;
    uint32_t options;
    uint64_t operation_count, first_queued, order, stream_ids, context_ids, destroyed;
    sim_kind contexts, streams, events, graphs, executables;
    sim_user *users;
    sim_kept *kept;
    int32_t user_count, kept_count;
    sim_kind pools, physicals;
    sim_pool *current_pool[CAI_SIM_DEVICES];
    sim_belief *beliefs;
    int32_t belief_count;
    sim_range **ranges;
    int32_t range_count;
    int file; /* of all physical memory; -1: not yet */
    uint64_t file_bytes;
    sim_allocation **allocations;
    sim_capture **captures;
    sim_operation **operations;
    sim_thread **threads;
    sim_os **oses;
    sim_thread *self; /* who calls, while the lock is held */
    sim_os *os;
    cai_sim_hooks hooks;
    cai_sim_undefined_function undefined; /* NULL: the program ends */
    void *undefined_context;
    cai_sim_host_memory host_memory;
    uint64_t call_number;
    sim_text log;
    int32_t calls[SIM_OPERATION_COUNT];
    int32_t pageable[CAI_SIM_DEVICES], no_concurrent[CAI_SIM_DEVICES];
    uint64_t no_peer[CAI_SIM_DEVICES]; /* bits: the devices whose memory it cannot access */
    uint64_t memory[CAI_SIM_DEVICES], memory_used[CAI_SIM_DEVICES]; /* bytes */
    sim_fault faults[SIM_FAULTS];
    sim_key key;
    sim_mutex mutex;
    sim_condition returned; /* a host function */
};

/* ------------------------------------------------------------------ >>support */
/* Room for one more of `count` items; capacities are powers of two. A test that has no memory left ends. */
static void *sim_grow(void *items, uint64_t count, size_t size)
{
    if (count & (count - 1)) return items;
    items = realloc(items, (count ? 2 * (size_t)count : 1) * size);
    if (items == NULL) abort();
    return items;
}

static void *sim_new(size_t size)
{
    void *made = calloc(1, size);
    if (made == NULL) abort();
    return made;
}

/* A zeroed block. A large one is of pages that the system gives when they are touched. */
#if defined(SIM_HAS_PAGES)
static void *sim_block_pages(void *at, size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == NULL ? 0 : MAP_FIXED);
    void *pages = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}
#endif

static void *sim_block_make(uint64_t space)
{
#if defined(SIM_HAS_PAGES)
    if (space >= SIM_LARGE) return sim_block_pages(NULL, (size_t)space + SIM_ALIGNMENT);
#endif
    return calloc(1, (size_t)space + SIM_ALIGNMENT);
}

/* Makes it as it was at first. */
static void sim_block_clear(void *block, uint64_t space)
{
#if defined(SIM_HAS_PAGES)
    if (space >= SIM_LARGE && sim_block_pages(block, (size_t)space + SIM_ALIGNMENT) != NULL) return;
#endif
    memset(block, 0, (size_t)space + SIM_ALIGNMENT);
}

/* The same for the block of an allocation, which may be of cai_sim_set_host_memory. */
static void sim_memory_clear(cai_sim *sim, void *block, uint64_t space, uint64_t apart)
{
    if (apart) sim->host_memory.clear(sim->host_memory.context, block, space);
    else sim_block_clear(block, space);
}

static void sim_block_free(void *block, uint64_t space)
{
#if defined(SIM_HAS_PAGES)
    if (block != NULL && space >= SIM_LARGE) {
        (void)munmap(block, (size_t)space + SIM_ALIGNMENT);
        return;
    }
#endif
    (void)space;
    free(block);
}

#define SIM_APPEND(type, array, count, item) \
    ((array) = (type *)sim_grow((array), (uint64_t)(count), sizeof *(array)), (array)[(count)++] = (item))

static void sim_put(sim_text *text, const char *more)
{
    const size_t size = strlen(more) + 1;
    if (text->length + size > text->capacity) {
        text->capacity = 2 * (text->length + size);
        text->data = (char *)realloc(text->data, text->capacity);
        if (text->data == NULL) abort();
    }
    memcpy(text->data + text->length, more, size);
    text->length += size - 1;
}

static void sim_put_number(sim_text *text, uint64_t number, unsigned base)
{
    char digits[24];
    char *at = digits + sizeof digits;
    *--at = 0;
    do *--at = "0123456789abcdef"[number % base];
    while (number /= base);
    sim_put(text, at);
}

/* A set of options, or a single one: is it on? */
static int sim_is_on(const cai_sim *sim, uint32_t option)
{
    return (sim->options & option) != 0;
}

/* What host_thread answers in a new host thread: its number, or that of one that ended. */
static uint64_t sim_thread_answer(cai_sim *sim, uint64_t number)
{
    int32_t i;
    for (i = sim->thread_count - 1; i >= 0 && sim_is_on(sim, CAI_SIM_REUSE); i--) {
        sim_thread *old = sim->threads[i];
        if (!old->ended || old->reused) continue;
        old->reused = 1;
        return old->answer;
    }
    return number;
}

static sim_thread *sim_thread_of(cai_sim *sim, uint64_t number)
{
    sim_thread *thread;
    int32_t i;
    for (i = 0; i < sim->thread_count; i++)
        if (sim->threads[i]->number == number && !sim->threads[i]->ended) return sim->threads[i];
    thread = (sim_thread *)sim_new(sizeof *thread);
    thread->number = number;
    thread->answer = sim_thread_answer(sim, number);
    thread->seen = sim->operation_count;
    SIM_APPEND(sim_thread *, sim->threads, sim->thread_count, thread);
    return thread;
}

/* Takes the lock. 0: this thread has it, as it is inside a function of cai_sim_launch. */
static int sim_enter(cai_sim *sim)
{
    sim_os *os = SIM_OWN(sim);
    if (os != NULL && os->in_function) return 0;
    SIM_LOCK(sim);
    if (os == NULL) {
        os = (sim_os *)sim_new(sizeof *os);
        SIM_APPEND(sim_os *, sim->oses, sim->os_count, os);
        os->itself = os->plays = sim_thread_of(sim, ((uint64_t)1 << 32) + (uint64_t)sim->os_count);
        SIM_OWN_SET(sim, os);
    }
    sim->os = os;
    sim->self = os->plays;
    return 1;
}

/* Tells the hook of a call, but for one from inside a function of cai_sim_launch, which fails. */
static void sim_before(cai_sim *sim, const char *call, int32_t of_table)
{
    const sim_os *os = SIM_OWN(sim);
    if (sim->hooks.before == NULL || (os != NULL && os->in_function)) return;
    sim->hooks.before(sim->hooks.context, call, of_table);
}

/* Has an owner ended, and have its launches? */
static int sim_lets_go(const cai_sim *sim, const sim_kept *kept)
{
    const uint64_t last = kept->executable == NULL ? 0 : kept->executable->last;
    if (kept->owner == NULL || kept->owner->state == SIM_LIVE) return 0;
    return last == 0 || sim->operations[last - 1]->info.state == CAI_SIM_STATE_DONE ||
           sim->operations[last - 1]->info.state == CAI_SIM_STATE_DROPPED;
}

/* Ends the user objects that nothing keeps. */
static void sim_end_users(cai_sim *sim)
{
    int32_t i, k;
    for (k = 0; k < sim->kept_count; k++)
        if (sim_lets_go(sim, &sim->kept[k])) sim->kept[k].owner = NULL;
    for (i = 0; i < sim->user_count; i++) {
        sim_user *user = &sim->users[i];
        void (*const gone)(void *) = user->gone;
        for (k = 0; k < sim->kept_count; k++)
            if (sim->kept[k].owner != NULL && sim->kept[k].user == i) break;
        if (gone == NULL || k < sim->kept_count) continue;
        user->gone = NULL;
        gone(user->user);
    }
}

static void sim_leave(cai_sim *sim, int entered)
{
    if (entered && sim->user_count > 0) sim_end_users(sim);
    if (!entered) return;
    if (sim->os->now.call != NULL) sim->self->seen = sim->operation_count;
    memset(&sim->os->now, 0, sizeof sim->os->now);
    SIM_UNLOCK(sim);
}

/* The host thread is in a call that stands for one of CUDA from now on, until sim_leave. */
static void sim_is_in(cai_sim *sim, const char *call, int32_t of_table)
{
    sim->os->now.call = call;
    sim->os->now.of_table = of_table;
    sim->os->now.number = ++sim->call_number;
    sim->os->now.tag = sim->self->tag;
}

/* ------------------------------------------------------------------- >>lookup */
static void sim_kind_set(sim_kind *kind, uint64_t base, const char *letter, const char *noun)
{
    kind->base = base;
    kind->letter = letter;
    kind->noun = noun;
}

static int32_t sim_operation_named(const char *name)
{
    int32_t i;
    for (i = 0; i < SIM_OPERATION_COUNT; i++)
        if (strcmp(sim_operation_names[i], name) == 0) return i;
    return -1;
}

/* The object that a handle means or last meant; NULL: it never was one of this kind. */
static sim_object *sim_object_of(const sim_kind *kind, uint64_t handle)
{
    const uint64_t slot = (handle - kind->base) / SIM_HANDLE_STEP;
    if (handle < kind->base || handle % SIM_HANDLE_STEP || slot >= (uint64_t)kind->slot_count) return NULL;
    return kind->slots[slot];
}

/* "cai_sim_event_destroy (call 7)" */
static void sim_put_moment(sim_text *text, const sim_moment *moment)
{
    if (!moment->of_table) sim_put(text, "cai_sim_");
    sim_put(text, moment->call == NULL ? "create" : moment->call);
    if (moment->number == 0) return;
    sim_put(text, " (call ");
    sim_put_number(text, moment->number, 10);
    sim_put(text, ")");
}

/* "event_query (call 7) is given event e1, which ... has destroyed." object: NULL, or what the handle was. */
static void sim_put_undefined(sim_text *text, const sim_kind *kind, const char *name, const sim_moment *now,
                              const sim_object *object)
{
    sim_put_moment(text, now);
    sim_put(text, " is given ");
    if (object == NULL) {
        sim_put(text, name);
        sim_put(text, ", which never was the handle of a");
        sim_put(text, *kind->noun == 'e' ? "n " : " ");
        sim_put(text, kind->noun);
        sim_put(text, ".");
    } else {
        sim_put(text, kind->noun);
        sim_put(text, " ");
        sim_put(text, name);
        sim_put(text, ", which ");
        sim_put_moment(text, &object->ended);
        sim_put(text, " has destroyed. ");
        sim_put_moment(text, &object->made);
        sim_put(text, " had made it.");
    }
    sim_put(text, " CUDA leaves undefined what follows.");
}

/* The call of this host thread is given a handle that is none, or none any more. CUDA leaves it undefined,
 * and its driver reads memory that was freed. object: NULL, or what the handle was. */
static void sim_is_undefined(cai_sim *sim, const sim_kind *kind, uint64_t handle, const sim_object *object)
{
    const sim_moment *now = &sim->os->now;
    cai_sim_undefined what;
    sim_text text = {NULL, 0, 0}, name = {NULL, 0, 0};
    sim_put(&name, object == NULL ? "0x" : kind->letter);
    sim_put_number(&name, object == NULL ? handle : (uint64_t)object->number, object == NULL ? 16 : 10);
    sim_put_undefined(&text, kind, name.data, now, object);
    if (sim->undefined == NULL) {
        fprintf(stderr, "cai_sim: %s\n", text.data);
        abort();
    }
    memset(&what, 0, sizeof what);
    what.call = now->call;
    what.of_table = now->of_table;
    what.kind = kind->noun;
    what.handle = handle;
    what.name = name.data;
    what.text = text.data;
    if (object != NULL) {
        what.made = object->made.call == NULL ? "create" : object->made.call;
        what.destroyed = object->ended.call;
        what.made_tag = object->made.tag;
        what.destroyed_tag = object->ended.tag;
    }
    sim->undefined(sim->undefined_context, &what);
    free(text.data);
    free(name.data);
}

/* What is done with a dead handle is undefined. A primary context may be inactive, and 0 is refused. */
static sim_object *sim_lookup(cai_sim *sim, const sim_kind *kind, uint64_t handle)
{
    sim_object *object = sim_object_of(kind, handle);
    const int primary = object != NULL && kind == &sim->contexts && object->number <= sim->device_count;
    const int good = handle == 0 || primary || (object != NULL && object->state == SIM_LIVE);
    if (!good && sim->os->now.call != NULL) sim_is_undefined(sim, kind, handle, object);
    return object;
}

static int32_t sim_find(cai_sim *sim, const sim_kind *kind, uint64_t handle, sim_object **found)
{
    *found = sim_lookup(sim, kind, handle);
    if (*found == NULL || (*found)->state == SIM_DEAD) return CAI_SIM_ERROR_INVALID_HANDLE;
    return (*found)->state == SIM_LIVE ? 0 : CAI_SIM_ERROR_CONTEXT_IS_DESTROYED;
}

/* state: SIM_DEAD, or SIM_ORPHAN */
static void sim_end_as(cai_sim *sim, sim_object *object, int32_t state)
{
    object->state = state;
    object->ended = sim->os->now;
    if (state == SIM_DEAD) object->destroyed = ++sim->destroyed;
}

/* Gives a new object its handle: where they are recycled, that of the one destroyed last. */
static uint64_t sim_place(cai_sim *sim, sim_kind *kind, sim_object *object)
{
    const int recycle = sim->recycle || sim_is_on(sim, CAI_SIM_REUSE);
    int32_t i, slot = -1;
    for (i = 0; recycle && i < kind->slot_count; i++)
        if (kind->slots[i]->state == SIM_DEAD &&
            (slot < 0 || kind->slots[i]->destroyed > kind->slots[slot]->destroyed))
            slot = i;
    if (slot < 0) {
        slot = kind->slot_count;
        SIM_APPEND(sim_object *, kind->slots, kind->slot_count, object);
    }
    kind->slots[slot] = object;
    object->number = ++kind->named;
    object->handle = kind->base + (uint64_t)slot * SIM_HANDLE_STEP;
    if (sim->os != NULL) object->made = sim->os->now;
    return object->handle;
}

static void *sim_object_make(sim_kind *kind, sim_context *context, size_t size)
{
    sim_object *object = (sim_object *)sim_new(size);
    object->context = context;
    object->state = SIM_LIVE;
    SIM_APPEND(sim_object *, kind->all, kind->count, object);
    return object;
}

static sim_context *sim_context_of(cai_sim *sim, uint64_t handle)
{
    sim_object *object;
    return sim_find(sim, &sim->contexts, handle, &object) ? NULL : object->context;
}

/* Why a handle is no context to do something with. */
static int32_t sim_no_context(const cai_sim *sim, uint64_t handle)
{
    return sim_object_of(&sim->contexts, handle) == NULL ? CAI_SIM_ERROR_INVALID_CONTEXT
                                                         : CAI_SIM_ERROR_CONTEXT_IS_DESTROYED;
}

static sim_context *sim_current_context(cai_sim *sim)
{
    return sim->self->depth ? sim->self->stack[sim->self->depth - 1].context : NULL;
}

/* Does a query that needs a current context, and has none, succeed and answer zeros? */
static int sim_answers_zero(cai_sim *sim)
{
    return sim_is_on(sim, CAI_SIM_ZERO_ANSWERS) && sim_current_context(sim) == NULL;
}

/* What a query answers that failed so: an error, or zeros. */
static int32_t sim_answer(cai_sim *sim, int32_t error)
{
    return error == CAI_SIM_ERROR_INVALID_CONTEXT && sim_answers_zero(sim) ? 0 : error;
}

/* The current context for a call that needs one; not yet its pending error. */
static int32_t sim_need_context(cai_sim *sim, sim_context **context)
{
    *context = sim_current_context(sim);
    if (*context == NULL) return CAI_SIM_ERROR_INVALID_CONTEXT;
    return (*context)->o.state == SIM_LIVE ? 0 : CAI_SIM_ERROR_CONTEXT_IS_DESTROYED;
}

static int32_t sim_use_context(cai_sim *sim, sim_context **context)
{
    const int32_t error = sim_need_context(sim, context);
    return error ? error : (*context)->error;
}

static sim_stream *sim_stream_at(cai_sim *sim, int32_t i)
{
    return (sim_stream *)sim->streams.all[i];
}

static sim_stream *sim_stream_make(cai_sim *sim, sim_context *context)
{
    sim_stream *stream = (sim_stream *)sim_object_make(&sim->streams, context, sizeof *stream);
    stream->id = ++sim->stream_ids;
    return stream;
}

static sim_stream *sim_per_thread(cai_sim *sim, sim_context *context)
{
    sim_stream *stream;
    int32_t i;
    for (i = 0; i < sim->streams.count; i++) {
        stream = sim_stream_at(sim, i);
        if (stream->o.context == context && stream->thread == sim->self->number) return stream;
    }
    stream = sim_stream_make(sim, context);
    stream->thread = sim->self->number;
    return stream;
}

static int32_t sim_find_stream(cai_sim *sim, uint64_t handle, sim_stream **stream)
{
    sim_object *object;
    sim_context *context;
    int32_t error;
    if (handle != CAI_STREAM_LEGACY && handle != CAI_STREAM_PER_THREAD) {
        error = sim_find(sim, &sim->streams, handle, &object);
        *stream = (sim_stream *)object;
        return error;
    }
    error = sim_need_context(sim, &context);
    if (error) return error;
    *stream = handle == CAI_STREAM_LEGACY ? context->legacy : sim_per_thread(sim, context);
    return 0;
}

/* A stream or an event to do something with: the pending error of its context counts. */
static int32_t sim_use_stream(cai_sim *sim, uint64_t handle, sim_stream **stream)
{
    const int32_t error = sim_find_stream(sim, handle, stream);
    return error ? error : (*stream)->o.context->error;
}

static int32_t sim_use_event(cai_sim *sim, uint64_t handle, sim_event **event)
{
    sim_object *object;
    const int32_t error = sim_find(sim, &sim->events, handle, &object);
    *event = (sim_event *)object;
    return error ? error : object->context->error;
}

/* The last allocation around an address, if freed too: host memory may be registered again, memory of others
 * opened again, and with REUSE a block used again. */
static sim_allocation *sim_allocation_of(cai_sim *sim, uint64_t address)
{
    int32_t i;
    for (i = sim->allocation_count - 1; i >= 0; i--) {
        sim_allocation *a = sim->allocations[i];
        if (address >= a->address && address - a->address < a->bytes) return a;
    }
    return NULL;
}

/* The offset of an address of the host or of a device in an allocation. */
static uint64_t sim_offset_in(const sim_allocation *a, uint64_t address)
{
    const uint64_t offset = address - a->address;
    return offset < a->bytes ? offset : offset - a->device_offset;
}

/* The same of an address of the host or of a device, with the offset in it. */
static sim_allocation *sim_allocation_at(cai_sim *sim, uint64_t address, uint64_t *offset)
{
    sim_allocation *a = sim_allocation_of(sim, address);
    int32_t i;
    for (i = sim->allocation_count - 1; a == NULL && i >= 0; i--) {
        sim_allocation *other = sim->allocations[i];
        if (address - other->device_offset - other->address < other->bytes) a = other;
    }
    if (a != NULL) *offset = sim_offset_in(a, address);
    return a;
}

/* Is an address, with the last allocation around it, plain memory of the host? It may have been registered. */
static int sim_is_plain(const sim_allocation *a)
{
    return a == NULL || (a->kind == CAI_SIM_MEM_REGISTERED && !a->live);
}

/* Does a kind take memory of its device? */
static int sim_is_on_device(int32_t kind)
{
    return kind == CAI_SIM_MEM_DEVICE || kind == CAI_SIM_MEM_MANAGED || kind == CAI_SIM_MEM_POOL;
}

/* The block of memory that is free is taken, or released. */
static void sim_pool_forget(sim_allocation *a)
{
    sim_allocation **all = a->pool->free;
    int32_t i = 0;
    while (i < a->pool->free_count && all[i] != a) i++;
    if (i == a->pool->free_count) return;
    a->pool->free_count--;
    memmove(&all[i], &all[i + 1], (size_t)(a->pool->free_count - i) * sizeof *all);
}

/* The pool gives a block that it holds back to the system. */
static void sim_pool_release(cai_sim *sim, sim_allocation *a)
{
    sim_pool_forget(a);
    a->held = 0;
    a->pool->values[CAI_SIM_POOL_RESERVED] -= a->space;
    sim->memory_used[a->device] -= a->space;
}

/* Memory of a pool ends. Somebody else may have the block already. */
static void sim_pool_take_back(cai_sim *sim, sim_allocation *a)
{
    a->pool->values[CAI_SIM_POOL_USED] -= a->bytes;
    a->held = a->block != NULL;
    if (a->held && !a->freeing) SIM_APPEND(sim_allocation *, a->pool->free, a->pool->free_count, a);
    if (a->held && a->pool->o.state == SIM_DEAD) sim_pool_release(sim, a);
}

/* Can the contents of so large a block be forgotten? While a search compares them they cannot. */
static int sim_forgets(const cai_sim *sim, uint64_t space)
{
    return space >= SIM_LARGE && sim->hooks.choose == NULL;
}

static void sim_memory_end(cai_sim *sim, sim_allocation *a)
{
    if (!a->live) return;
    if (!a->freeing && sim->self != NULL) a->freed_tag = sim->self->tag;
    a->ended = ++sim->destroyed;
    a->live = 0;
    if (a->pool != NULL) sim_pool_take_back(sim, a);
    else if (a->block != NULL && sim_is_on_device(a->kind)) sim->memory_used[a->device] -= a->bytes;
    if (a->block == NULL || !sim_forgets(sim, a->space)) return;
    sim_memory_clear(sim, a->block, a->space, a->apart);
    a->emptied = 1;
}

/* --------------------------------------------------------------- >>operations */
static sim_operation *sim_operation_of(cai_sim *sim, uint64_t id)
{
    return sim->operations[id - 1];
}

static void sim_copy_name(char *to, const char *name)
{
    size_t length = name == NULL ? 0 : strlen(name);
    if (length >= SIM_NAME) length = SIM_NAME - 1;
    if (length) memcpy(to, name, length);
    to[length] = 0;
}

/* An access, in pieces if it goes from one mapping into the next. */
static void sim_describe_access(cai_sim *sim, sim_operation *op, cai_sim_access access)
{
    uint64_t left = access.bytes;
    if (access.write < 0 || access.write > CAI_SIM_MAY_ACCESS) access.write = 1;
    do {
        uint64_t offset = 0;
        const sim_allocation *a = sim_allocation_at(sim, access.address, &offset);
        access.bytes = left;
        if (a != NULL && a->physical != NULL && left > a->bytes - offset) access.bytes = a->bytes - offset;
        access.memory = sim_is_plain(a) ? 0 : a->number;
        SIM_APPEND(cai_sim_access, op->accesses, op->info.access_count, access);
        access.address += access.bytes;
        left -= access.bytes;
    } while (left);
}

static void sim_describe(cai_sim *sim, sim_operation *op, const char *name, const cai_sim_access *accesses,
                         int32_t count)
{
    int32_t i;
    sim_copy_name(op->name, name);
    for (i = 0; i < count; i++) sim_describe_access(sim, op, accesses[i]);
    op->info.accesses = op->accesses;
}

/* A new entry of the trace, as an operation of the host. */
static sim_operation *sim_trace(cai_sim *sim, int32_t kind, const char *name,
                                const cai_sim_access *accesses, int32_t count)
{
    sim_operation *op = (sim_operation *)sim_new(sizeof *op);
    op->context = sim_current_context(sim);
    SIM_APPEND(sim_operation *, sim->operations, sim->operation_count, op);
    op->info.id = sim->operation_count;
    op->info.kind = kind;
    op->info.state = CAI_SIM_STATE_DONE;
    op->info.context = op->context == NULL ? 0 : op->context->o.handle;
    op->info.thread = sim->self->number;
    op->info.tag = sim->self->tag;
    op->info.name = op->name;
    sim_describe(sim, op, name, accesses, count);
    return op;
}

static void sim_wait_for(sim_operation *op, uint64_t id)
{
    int32_t i;
    if (id == 0) return;
    for (i = 0; i < op->info.wait_count; i++)
        if (op->waits[i] == id) return;
    SIM_APPEND(uint64_t, op->waits, op->info.wait_count, id);
    op->info.waits = op->waits;
}

/* Implicit synchronization. What is older than the last operation of the stream, that one waits for. */
static void sim_wait_implicitly(cai_sim *sim, sim_operation *op, const sim_stream *stream)
{
    const sim_stream *legacy = stream->o.context->legacy;
    int32_t i;
    if (stream->nonblocking) return;
    if (stream != legacy) {
        if (legacy->last > stream->last) sim_wait_for(op, legacy->last);
        return;
    }
    for (i = 0; i < sim->streams.count; i++) {
        const sim_stream *other = sim_stream_at(sim, i);
        if (other->o.context == stream->o.context && !other->nonblocking && other->last > stream->last)
            sim_wait_for(op, other->last);
    }
}

/* Puts an operation at the end of a stream, or of its capture. */
static sim_operation *sim_queue(cai_sim *sim, int32_t kind, sim_stream *stream, uint64_t event)
{
    sim_operation *op = sim_trace(sim, kind, NULL, NULL, 0);
    op->context = stream->o.context;
    op->info.context = stream->o.context->o.handle;
    op->info.stream = stream->id;
    op->info.event = event;
    if (event) op->info.event_number = sim_object_of(&sim->events, event)->number;
    if (stream->capture != NULL) {
        op->info.state = CAI_SIM_STATE_CAPTURED;
        op->info.capture = stream->capture->id;
        sim_wait_for(op, stream->captured_last);
        stream->captured_last = op->info.id;
        return op;
    }
    op->info.state = CAI_SIM_STATE_QUEUED;
    sim_wait_for(op, stream->last);
    sim_wait_implicitly(sim, op, stream);
    stream->last = op->info.id;
    sim->queued++;
    return op;
}

/* ---------------------------------------------------------------- >>scheduler */
/* Must what waits for an operation still wait? */
static int sim_is_ahead(cai_sim *sim, uint64_t id)
{
    const int32_t state = sim_operation_of(sim, id)->info.state;
    return state == CAI_SIM_STATE_QUEUED || state == CAI_SIM_STATE_RUNNING;
}

/* Has all that an operation, or an entry of the host, waits for been done? */
static int sim_is_free(cai_sim *sim, const sim_operation *op)
{
    int32_t i;
    for (i = 0; i < op->info.wait_count; i++)
        if (sim_is_ahead(sim, op->waits[i])) return 0;
    return 1;
}

static int sim_is_ready(cai_sim *sim, const sim_operation *op)
{
    return op->info.state == CAI_SIM_STATE_QUEUED && sim_is_free(sim, op);
}

static int sim_is_queued(cai_sim *sim, uint64_t id)
{
    return id && sim_operation_of(sim, id)->info.state == CAI_SIM_STATE_QUEUED;
}

/* What is at an address at this point of the work: memory that is not made yet may still be that of the one
 * before it. */
static sim_allocation *sim_now_at(cai_sim *sim, uint64_t address, uint64_t *offset)
{
    sim_allocation *a = sim_allocation_at(sim, address, offset);
    while (a != NULL && a->before != NULL && sim_is_queued(sim, a->maker) && *offset < a->before->bytes)
        a = a->before;
    return a;
}

static const sim_range *sim_range_of(const cai_sim *sim, uint64_t address)
{
    int32_t i;
    for (i = 0; i < sim->range_count; i++)
        if (address >= sim->ranges[i]->address && address - sim->ranges[i]->address < sim->ranges[i]->bytes)
            return sim->ranges[i];
    return NULL;
}

/* Can a device not access an allocation: memory of another device, without peer access? */
static int sim_lacks_access(const cai_sim *sim, int32_t device, const sim_allocation *a)
{
    const int host = a->kind == CAI_SIM_MEM_MANAGED || a->kind == CAI_SIM_MEM_PINNED ||
                     a->kind == CAI_SIM_MEM_ALIASED || a->kind == CAI_SIM_MEM_REGISTERED;
    if (a->physical != NULL) return !(a->can_read >> device & 1);
    if (host || device == a->device) return 0;
    return (sim->no_peer[device] >> a->device & 1) || (a->pool != NULL && (a->pool->no_access >> device & 1));
}

/* A copy needs no access of the device that it runs on, but a mapping that the device of the memory has. */
static int sim_may_access(const cai_sim *sim, const sim_operation *op, const cai_sim_access *x,
                          const sim_allocation *a)
{
    const uint64_t devices = (uint64_t)1 << op->context->device | (uint64_t)1 << a->device;
    if (op->copy != NULL && a->physical == NULL) return 1;
    if (op->copy != NULL) return ((x->write ? a->can_write : a->can_read) & devices) != 0;
    if (sim_lacks_access(sim, op->context->device, a)) return 0;
    return a->physical == NULL || x->write != 1 || (a->can_write >> op->context->device & 1);
}

static int sim_access_is_good(cai_sim *sim, const sim_operation *op, const cai_sim_access *x)
{
    uint64_t offset;
    const sim_allocation *a = sim_now_at(sim, x->address, &offset);
    if (x->bytes == 0 || sim->adopts) return 1;
    if (a == NULL || (op->copy != NULL && !x->memory && sim_is_plain(a)))
        return sim_range_of(sim, x->address) == NULL;
    if (!a->live || sim_is_queued(sim, a->maker) || (a->origin != NULL && !a->origin->live))
        return x->write >= CAI_SIM_MAY_WRITE; /* a pointer that was left in a struct is not always used */
    return x->bytes <= a->bytes - offset && sim_may_access(sim, op, x, a);
}

/* Memory that was freed, or an access over the end of an allocation, ends the context as on a device. */
static int sim_accesses_are_good(cai_sim *sim, const sim_operation *op)
{
    int32_t i;
    for (i = 0; i < op->info.access_count; i++)
        if (!sim_access_is_good(sim, op, &op->accesses[i])) return 0;
    return 1;
}

/* Mixes 64 bits into a digest, so that the order counts. */
static uint64_t sim_mix(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * 0x9E3779B97F4A7C15u;
    return digest ^ digest >> 29;
}

/* The bytes of an access; NULL: there are none of the simulation. */
static unsigned char *sim_bytes_of(cai_sim *sim, const cai_sim_access *access)
{
    uint64_t offset;
    const sim_allocation *a = sim_now_at(sim, access->address, &offset);
    if (a == NULL || a->unmapped || !access->bytes || access->bytes > a->bytes - offset) return NULL;
    if (a->physical != NULL && !a->live) return NULL;
    return (unsigned char *)(uintptr_t)(a->address + offset + a->apart);
}

static uint64_t sim_digest_of(cai_sim *sim, uint64_t digest, const cai_sim_access *accesses, int32_t count)
{
    uint64_t k;
    int32_t i;
    for (i = 0; i < count; i++) {
        const unsigned char *bytes = sim_bytes_of(sim, &accesses[i]);
        for (k = 0; bytes != NULL && k < accesses[i].bytes; k++) digest = sim_mix(digest, bytes[k]);
    }
    return digest;
}

/* Empties a block that another allocation takes. */
static void sim_empty_block(cai_sim *sim, sim_allocation *old, void *block, uint64_t space)
{
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)(old->address + old->apart);
    uint64_t k, digest = old->bytes;
    if (old->emptied || sim->adopts) return;
    for (k = 0; k < old->bytes && !sim_forgets(sim, space); k++) digest = sim_mix(digest, bytes[k]);
    old->digest = digest;
    sim_memory_clear(sim, block, space, old->apart);
}

/* Leaves in what it writes something of all that was there, and of who it is: unordered work is of different
 * streams, or host threads. */
static void sim_touch(cai_sim *sim, sim_operation *op)
{
    uint64_t k, digest = sim_mix(op->info.stream, op->info.stream ? 0 : op->info.thread);
    int32_t i;
    const char *c;
    if (op->info.branch) digest = sim_mix(digest, (uint64_t)op->info.branch);
    for (c = op->name; *c; c++) digest = sim_mix(digest, (unsigned char)*c);
    digest = op->digest = sim_digest_of(sim, digest, op->accesses, op->info.access_count);
    for (i = 0; i < op->info.access_count; i++) {
        unsigned char *bytes = op->accesses[i].write == 1 ? sim_bytes_of(sim, &op->accesses[i]) : NULL;
        for (k = 0; bytes != NULL && k < op->accesses[i].bytes; k++) {
            digest = sim_mix(digest, k);
            bytes[k] = (unsigned char)(digest >> 32);
        }
    }
}

/* Where the bytes of an address are, of the host or of a device. */
static unsigned char *sim_place_of(cai_sim *sim, uint64_t address)
{
    uint64_t offset = 0;
    const sim_allocation *a = sim_allocation_at(sim, address, &offset);
    return (unsigned char *)(uintptr_t)(a == NULL ? address : a->address + offset + a->apart);
}

/* The first byte of row `y` of plane `z`. */
static uint64_t sim_row(const cai_sim_rows *rows, uint64_t y, uint64_t z)
{
    return rows->address + z * rows->plane + y * rows->pitch;
}

static void sim_set_row(unsigned char *to, const sim_copy *copy)
{
    uint64_t i;
    for (i = 0; i < copy->extent.width; i++) to[i] = (unsigned char)(copy->value >> 8 * (i % copy->unit));
}

static void sim_do_rows(cai_sim *sim, sim_copy *copy)
{
    const cai_sim_extent *e = &copy->extent;
    uint64_t y, z;
    for (z = 0; z < e->depth; z++) {
        for (y = 0; y < e->height; y++) {
            unsigned char *to = sim_place_of(sim, sim_row(&copy->to, y, z));
            const unsigned char *from = copy->staged;
            if (copy->unit) {
                sim_set_row(to, copy);
                continue;
            }
            if (from != NULL) from += (z * e->height + y) * e->width;
            else from = sim_place_of(sim, sim_row(&copy->from, y, z));
            memmove(to, from, (size_t)e->width);
        }
    }
}

/* Calls a function. A host function is called without the lock: it may wait for a thread that wants it. */
static void sim_call_function(cai_sim *sim, sim_operation *op)
{
    sim_os *os = sim->os;
    const int of_host = op->info.kind == CAI_SIM_OP_HOST_FUNCTION;
    const cai_sim_host_memory memory = sim->host_memory;
    os->in_function = 1;
    if (of_host) {
        op->info.state = CAI_SIM_STATE_RUNNING;
        sim->running++;
        SIM_UNLOCK(sim);
    }
    if (memory.function != NULL) memory.function(memory.context, 1);
    op->function(op->argument);
    if (memory.function != NULL) memory.function(memory.context, 0);
    if (of_host) {
        SIM_LOCK(sim);
        sim->os = os;
        sim->self = os->plays;
        sim->running--;
        SIM_WAKE(sim);
    }
    os->in_function = 0;
}

/* Waits until a host function that another thread runs has returned. */
static void sim_wait_for_function(cai_sim *sim)
{
    sim_os *os = sim->os;
    SIM_SLEEP(sim);
    sim->os = os;
    sim->self = os->plays;
}

static void sim_execute(cai_sim *sim, sim_operation *op)
{
    sim->queued--;
    op->info.state = CAI_SIM_STATE_DROPPED;
    if (op->context->error) return;
    if (op->info.kind != CAI_SIM_OP_ALLOC && !sim_accesses_are_good(sim, op)) {
        op->context->error = CAI_SIM_ERROR_ILLEGAL_ADDRESS;
        return;
    }
    op->info.newest = sim->operation_count;
    if (op->touches && !sim->adopts) sim_touch(sim, op);
    if (op->copy != NULL && !sim->adopts) sim_do_rows(sim, op->copy);
    if (op->function != NULL) sim_call_function(sim, op);
    if (op->frees != NULL) sim_memory_end(sim, op->frees);
    if (op->makes != NULL && op->makes->before != NULL)
        sim_empty_block(sim, op->makes->before, op->makes->place, op->makes->space);
    op->info.state = CAI_SIM_STATE_DONE;
    op->info.order = ++sim->order;
}

/* The lowest id that may be queued. */
static uint64_t sim_first(cai_sim *sim)
{
    uint64_t id = sim->first_queued;
    while (id < sim->operation_count && sim->operations[id]->info.state != CAI_SIM_STATE_QUEUED) id++;
    sim->first_queued = id;
    return id + 1;
}

/* Does an operation do anything that another one, or the host, may notice? */
static int sim_matters(const sim_operation *op)
{
    return op->info.access_count > 0 || op->function != NULL;
}

/* Runs what is ready and does not matter. */
static void sim_run_quiet(cai_sim *sim)
{
    uint64_t id;
    for (id = sim_first(sim); id <= sim->operation_count; id++) {
        sim_operation *op = sim_operation_of(sim, id);
        if (!sim_matters(op) && sim_is_ready(sim, op)) sim_execute(sim, op);
    }
}

/* Those that are ready, once what does not matter has run. */
static int32_t sim_offers(cai_sim *sim, uint64_t **offers)
{
    uint64_t id;
    int32_t count = 0;
    *offers = NULL;
    sim_run_quiet(sim);
    for (id = sim_first(sim); id <= sim->operation_count; id++)
        if (sim_is_ready(sim, sim_operation_of(sim, id))) SIM_APPEND(uint64_t, *offers, count, id);
    return count;
}

/* Lets the hook choose what runs next. 0: nothing runs. */
static int sim_choose(cai_sim *sim, int32_t needed)
{
    uint64_t *offers;
    const int32_t count = sim_offers(sim, &offers);
    int32_t chosen = -1;
    sim->os->in_function = 1;
    if (count) chosen = sim->hooks.choose(sim->hooks.context, offers, count, needed);
    sim->os->in_function = 0;
    if (needed && count && (chosen < 0 || chosen >= count)) chosen = 0;
    if (chosen >= 0 && chosen < count) sim_execute(sim, sim_operation_of(sim, offers[chosen]));
    free(offers);
    if (needed && !count && sim->running) sim_wait_for_function(sim);
    return chosen >= 0 && chosen < count;
}

/* The host may notice what has run so far: what else has? */
static void sim_offer(cai_sim *sim)
{
    if (sim->hooks.choose == NULL) return;
    while (sim->queued && sim_choose(sim, 0)) {}
}

static int sim_is_done(cai_sim *sim, const sim_operation *sync)
{
    sim_run_quiet(sim);
    return sim_is_free(sim, sync);
}

/* Executes an operation whose predecessors have lower ids and were executed, or run on another thread. */
static int32_t sim_execute_next(cai_sim *sim, uint64_t id)
{
    sim_operation *op = sim_operation_of(sim, id);
    while (op->info.state == CAI_SIM_STATE_QUEUED && !sim_is_free(sim, op)) sim_wait_for_function(sim);
    if (op->info.state != CAI_SIM_STATE_QUEUED) return 0;
    sim_execute(sim, op);
    return 1;
}

static int32_t sim_run_all(cai_sim *sim)
{
    uint64_t id;
    int32_t count = sim->queued;
    while (sim->hooks.choose != NULL && sim->queued) (void)sim_choose(sim, 1);
    if (sim->hooks.choose == NULL) count = 0;
    for (id = sim_first(sim); sim->hooks.choose == NULL && id <= sim->operation_count; id++)
        count += sim_execute_next(sim, id);
    while (sim->running) sim_wait_for_function(sim);
    return count;
}

/* Runs what `sync` waits for, and what that waits for. */
static void sim_run_needed(cai_sim *sim, const sim_operation *sync)
{
    const uint64_t first = sim_first(sim), end = sync->info.id;
    char *needed;
    uint64_t id;
    int32_t i;
    if (first > end) return;
    needed = (char *)sim_new((size_t)(end - first + 1));
    needed[end - first] = 1;
    for (id = end; id >= first; id--) {
        const sim_operation *op = sim_operation_of(sim, id);
        if (!needed[id - first]) continue;
        for (i = 0; i < op->info.wait_count; i++)
            if (op->waits[i] >= first) needed[op->waits[i] - first] = 1;
    }
    for (id = first; id < end; id++)
        if (needed[id - first]) (void)sim_execute_next(sim, id);
    free(needed);
}

/* Runs what `sync`, an entry of the host, waits for, and nothing else. */
static void sim_run_for(cai_sim *sim, const sim_operation *sync)
{
    while (sim->hooks.choose != NULL && !sim_is_done(sim, sync)) (void)sim_choose(sim, 1);
    if (sim->hooks.choose == NULL && sim->queued) sim_run_needed(sim, sync);
    while (!sim_is_free(sim, sync)) sim_wait_for_function(sim);
}

/* ----------------------------------------------------------------- >>captures */
static void sim_invalidate(sim_capture *capture)
{
    if (capture->status == CAI_CAPTURE_ACTIVE) capture->status = CAI_CAPTURE_INVALIDATED;
}

/* Do streams of a context capture: any, or only blocking ones? Can invalidate the captures. */
static int sim_capturing_in(cai_sim *sim, const sim_context *context, int blocking_only, int invalidate)
{
    int32_t i;
    int found = 0;
    for (i = 0; i < sim->streams.count; i++) {
        sim_stream *stream = sim_stream_at(sim, i);
        if (stream->capture == NULL || stream->o.context != context) continue;
        if (blocking_only && stream->nonblocking) continue;
        if (invalidate) sim_invalidate(stream->capture);
        found = 1;
    }
    return found;
}

/* What all work in a stream needs: the legacy stream cannot be used while a blocking stream of its context
 * captures (R103), and nothing can be done in a capture that was invalidated. */
static int32_t sim_may_queue(cai_sim *sim, sim_stream *stream)
{
    if (stream == stream->o.context->legacy && sim_capturing_in(sim, stream->o.context, 1, 1))
        return CAI_SIM_ERROR_CAPTURE_IMPLICIT;
    if (stream->capture != NULL && stream->capture->status == CAI_CAPTURE_INVALIDATED)
        return CAI_SIM_ERROR_CAPTURE_INVALIDATED;
    return 0;
}

/* The same of what cannot be captured. */
static int32_t sim_may_not_capture(cai_sim *sim, sim_stream *stream)
{
    if (stream->capture == NULL) return sim_may_queue(sim, stream);
    sim_invalidate(stream->capture);
    return CAI_SIM_ERROR_CAPTURE_UNSUPPORTED;
}

/* The rule of cuThreadExchangeStreamCaptureMode for calls that are potentially unsafe. */
static int32_t sim_unsafe_call(cai_sim *sim)
{
    const sim_thread *self = sim->self;
    int32_t i, error = 0;
    if (self->mode == CAI_SIM_MODE_RELAXED) return 0;
    for (i = 0; i < sim->capture_count; i++) {
        sim_capture *capture = sim->captures[i];
        const int own = capture->thread == self->number && capture->mode != CAI_SIM_MODE_RELAXED;
        const int other = capture->thread != self->number && capture->mode == CAI_SIM_MODE_GLOBAL &&
                          self->mode == CAI_SIM_MODE_GLOBAL;
        if (capture->status == SIM_CAPTURE_ENDED || (!own && !other)) continue;
        sim_invalidate(capture);
        error = CAI_SIM_ERROR_CAPTURE_UNSUPPORTED;
    }
    return error;
}

static void sim_capture_finish(cai_sim *sim, sim_capture *capture)
{
    int32_t i;
    capture->status = SIM_CAPTURE_ENDED;
    for (i = 0; i < sim->streams.count; i++) {
        sim_stream *stream = sim_stream_at(sim, i);
        if (stream->capture != capture) continue;
        stream->capture = NULL;
        stream->captured_last = 0;
    }
}

/* Is a captured operation a node of the graph? */
static int sim_is_node(const sim_operation *op)
{
    return op->info.kind == CAI_SIM_OP_LAUNCH || op->info.kind == CAI_SIM_OP_COPY ||
           op->info.kind == CAI_SIM_OP_HOST_FUNCTION;
}

/* Is all captured work before the end of the origin? CUDA judges the nodes of the graph: a stream that was
 * pulled in and did nothing need not be joined. */
static int sim_capture_is_joined(cai_sim *sim, const sim_capture *capture)
{
    char *reached = (char *)sim_new((size_t)sim->operation_count + 1);
    uint64_t id;
    int32_t i;
    int joined = 1;
    reached[capture->origin->captured_last] = 1;
    for (id = sim->operation_count; id > 0; id--) {
        const sim_operation *op = sim_operation_of(sim, id);
        if (op->info.capture != capture->id) continue;
        if (op->released) reached[id] = 1;
        if (!reached[id] && sim_is_node(op)) joined = 0;
        for (i = 0; reached[id] && i < op->info.wait_count; i++) reached[op->waits[i]] = 1;
    }
    free(reached);
    return joined;
}

/* The number of a branch of a graph. What is in one is in one order, from launch to launch, too. */
static int32_t sim_branch_of(sim_graph *graph, const sim_operation *captured)
{
    int32_t i;
    for (i = 0; i < graph->branch_count; i++)
        if (graph->branches[i] == captured->info.stream) return i;
    SIM_APPEND(uint64_t, graph->branches, graph->branch_count, captured->info.stream);
    return graph->branch_count - 1;
}

/* The place of the node of a captured operation, or -1. */
static int32_t sim_place_in(const sim_graph *graph, uint64_t id)
{
    int32_t low = 0, high = graph->count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (graph->nodes[middle].captured->info.id < id) low = middle + 1;
        else high = middle;
    }
    return low < graph->count && graph->nodes[low].captured->info.id == id ? low : -1;
}

/* The nodes that captured operations are, or come after: records and waits are none, but what they wait for
 * is. seen: a byte for each operation, all 0, and so afterwards. */
static void sim_find_nodes(cai_sim *sim, const sim_graph *graph, const uint64_t *ids, int32_t id_count,
                           char *seen, int32_t **places, int32_t *count)
{
    uint64_t id = 0;
    int32_t i, place, left = 0;
    for (i = 0; i < id_count; i++) {
        left += !seen[ids[i]];
        seen[ids[i]] = 1;
        if (ids[i] > id) id = ids[i];
    }
    for (; left > 0; id--) {
        const sim_operation *op = sim_operation_of(sim, id);
        if (!seen[id]) continue;
        seen[id] = 0;
        left--;
        place = sim_place_in(graph, id);
        if (place >= 0) SIM_APPEND(int32_t, *places, *count, place);
        for (i = 0; place < 0 && i < op->info.wait_count; i++) {
            left += !seen[op->waits[i]];
            seen[op->waits[i]] = 1;
        }
    }
}

/* The graph of a capture, with all nodes there are by now. */
static sim_graph *sim_graph_of(cai_sim *sim, sim_capture *capture)
{
    char *seen = (char *)sim_new((size_t)sim->operation_count + 1);
    sim_node node;
    if (capture->graph == NULL) {
        capture->graph = (sim_graph *)sim_object_make(&sim->graphs, NULL, sizeof *capture->graph);
        capture->graph->capture = capture;
        sim_place(sim, &sim->graphs, &capture->graph->o);
    }
    while (capture->looked < sim->operation_count) {
        const sim_operation *op = sim_operation_of(sim, ++capture->looked);
        if (op->info.capture != capture->id || !sim_is_node(op)) continue;
        memset(&node, 0, sizeof node);
        node.captured = op;
        node.branch = sim_branch_of(capture->graph, op);
        sim_find_nodes(sim, capture->graph, op->waits, op->info.wait_count, seen, &node.edges,
                       &node.edge_count);
        SIM_APPEND(sim_node, capture->graph->nodes, capture->graph->count, node);
    }
    free(seen);
    return capture->graph;
}

static void sim_end_object(cai_sim *sim, sim_object *object)
{
    sim_end_as(sim, object, SIM_DEAD);
}

/* graph: NULL, or the one that the nodes go to. */
static int32_t sim_do_capture_begin(cai_sim *sim, uint64_t handle, int32_t mode, sim_graph *graph)
{
    sim_stream *stream;
    sim_capture *capture;
    const int32_t error = sim_use_stream(sim, handle, &stream);
    if (error) return error;
    if (mode < CAI_SIM_MODE_GLOBAL || mode > CAI_SIM_MODE_RELAXED) return CAI_SIM_ERROR_INVALID_VALUE;
    if (stream == stream->o.context->legacy) return CAI_SIM_ERROR_CAPTURE_UNSUPPORTED;
    if (stream->capture != NULL) return CAI_SIM_ERROR_ILLEGAL_STATE;
    capture = (sim_capture *)sim_new(sizeof *capture);
    SIM_APPEND(sim_capture *, sim->captures, sim->capture_count, capture);
    capture->id = (uint64_t)sim->capture_count;
    capture->looked = sim->operation_count;
    capture->thread = sim->self->number;
    capture->origin = stream;
    capture->mode = mode;
    capture->status = CAI_CAPTURE_ACTIVE;
    capture->graph = graph;
    capture->given = graph != NULL;
    if (graph != NULL) graph->capture = capture;
    stream->capture = capture;
    stream->lost = 0;
    return 0;
}

/* The end of a capture that a stream does not have, or has no more. */
static int32_t sim_end_of_none(sim_stream *stream)
{
    const int32_t lost = stream->lost;
    stream->lost = 0;
    return lost ? CAI_SIM_ERROR_CAPTURE_INVALIDATED : CAI_SIM_ERROR_ILLEGAL_STATE;
}

/* graph: NULL, or gets a handle. The capture is over, whatever is wrong. */
static int32_t sim_do_capture_end(cai_sim *sim, uint64_t handle, uint64_t *graph)
{
    sim_stream *stream;
    sim_capture *capture;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (error) return error;
    capture = stream->capture;
    if (capture == NULL) return sim_end_of_none(stream);
    if (capture->origin != stream) {
        capture->origin->lost = 1;
        error = CAI_SIM_ERROR_CAPTURE_UNMATCHED;
    } else if (capture->mode != CAI_SIM_MODE_RELAXED && capture->thread != sim->self->number)
        error = CAI_SIM_ERROR_CAPTURE_WRONG_THREAD;
    else if (capture->status == CAI_CAPTURE_INVALIDATED) error = CAI_SIM_ERROR_CAPTURE_INVALIDATED;
    else if (!sim_capture_is_joined(sim, capture)) error = CAI_SIM_ERROR_CAPTURE_UNJOINED;
    if (!error && graph != NULL) *graph = sim_graph_of(sim, capture)->o.handle;
    else if (capture->graph != NULL && !capture->given) sim_end_object(sim, &capture->graph->o);
    sim_capture_finish(sim, capture);
    return error;
}

static int32_t sim_do_stream_capture(cai_sim *sim, uint64_t handle, cai_cuda_capture *capture)
{
    sim_stream *stream;
    const int32_t error = sim_use_stream(sim, handle, &stream);
    if (error) return sim_answer(sim, error);
    if (stream == stream->o.context->legacy && sim_capturing_in(sim, stream->o.context, 1, 0))
        return CAI_SIM_ERROR_CAPTURE_IMPLICIT;
    if (stream->capture == NULL) return 0;
    capture->status = stream->capture->status;
    if (capture->status == CAI_CAPTURE_ACTIVE) capture->id = stream->capture->id;
    return 0;
}

static int32_t sim_do_capture_mode(cai_sim *sim, int32_t *mode)
{
    const int32_t before = sim->self->mode;
    if (*mode < CAI_SIM_MODE_GLOBAL || *mode > CAI_SIM_MODE_RELAXED) return CAI_SIM_ERROR_INVALID_VALUE;
    sim->self->mode = *mode;
    *mode = before;
    return 0;
}

/* ------------------------------------------------------------------- >>graphs */
static int32_t sim_find_graph(cai_sim *sim, const sim_kind *kind, uint64_t handle, sim_object **found)
{
    return sim_find(sim, kind, handle, found) ? CAI_SIM_ERROR_INVALID_VALUE : 0;
}

/* Does a capture add nodes to a graph now? */
static int sim_is_captured_into(const sim_graph *graph)
{
    return graph->capture != NULL && graph->capture->status != SIM_CAPTURE_ENDED;
}

/* Launches that are queued still run. */
static int32_t sim_do_graph_destroy(cai_sim *sim, const sim_kind *kind, uint64_t handle)
{
    sim_object *object;
    const int32_t error = sim_find_graph(sim, kind, handle, &object);
    if (error) return error;
    if (kind == &sim->graphs && sim_is_captured_into((const sim_graph *)object))
        return CAI_SIM_ERROR_INVALID_VALUE;
    sim_end_object(sim, object);
    return 0;
}

/* The node of an operation that was captured. */
static uint64_t sim_node_handle(const sim_operation *captured)
{
    return SIM_NODES + captured->info.id * SIM_HANDLE_STEP;
}

/* What was captured for a node, and its graph. */
static const sim_operation *sim_find_node(cai_sim *sim, uint64_t handle, const sim_graph **graph)
{
    const uint64_t id = (handle - SIM_NODES) / SIM_HANDLE_STEP;
    const sim_operation *op;
    if (handle <= SIM_NODES || handle % SIM_HANDLE_STEP || id > sim->operation_count) return NULL;
    op = sim_operation_of(sim, id);
    if (!op->info.capture || !sim_is_node(op)) return NULL;
    *graph = sim->captures[op->info.capture - 1]->graph;
    return *graph != NULL && (*graph)->o.state == SIM_LIVE && sim_place_in(*graph, id) >= 0 ? op : NULL;
}

/* Writes the nodes at some places. Returns how many there are. */
static int32_t sim_list_nodes(const sim_graph *graph, const int32_t *places, int32_t count, uint64_t *nodes,
                              int32_t capacity)
{
    int32_t i, found = 0;
    for (i = 0; i < count; i++) {
        const sim_operation *op = graph->nodes[places == NULL ? i : places[i]].captured;
        if (nodes != NULL && found < capacity) nodes[found] = sim_node_handle(op);
        found++;
    }
    return found;
}

static int32_t sim_do_graph_nodes(cai_sim *sim, uint64_t handle, uint64_t *nodes, int32_t capacity)
{
    sim_object *object;
    sim_graph *graph;
    if (sim_find_graph(sim, &sim->graphs, handle, &object)) return -1;
    graph = (sim_graph *)object;
    if (sim_is_captured_into(graph)) sim_graph_of(sim, sim->captures[graph->capture->id - 1]);
    return sim_list_nodes(graph, NULL, graph->count, nodes, capacity);
}

static int32_t sim_do_node_get(cai_sim *sim, uint64_t handle, cai_sim_graph_node *out)
{
    const sim_graph *graph = NULL;
    const sim_operation *op = sim_find_node(sim, handle, &graph);
    if (op == NULL || out == NULL) return 0;
    out->graph = graph->o.handle;
    out->operation = op->info.id;
    out->kind = op->info.kind;
    out->dependencies = graph->nodes[sim_place_in(graph, op->info.id)].edge_count;
    out->function = op->function;
    out->argument = op->argument;
    return 1;
}

static int32_t sim_do_node_dependencies(cai_sim *sim, uint64_t handle, uint64_t *nodes, int32_t capacity)
{
    const sim_graph *graph = NULL;
    const sim_operation *op = sim_find_node(sim, handle, &graph);
    const sim_node *node;
    if (op == NULL) return -1;
    node = &graph->nodes[sim_place_in(graph, op->info.id)];
    return sim_list_nodes(graph, node->edges, node->edge_count, nodes, capacity);
}

static sim_stream *sim_active_stream(cai_sim *sim, uint64_t handle)
{
    sim_stream *stream;
    if (sim_find_stream(sim, handle, &stream) || stream->capture == NULL) return NULL;
    return stream->capture->status == CAI_CAPTURE_ACTIVE ? stream : NULL;
}

static uint64_t sim_do_capture_graph(cai_sim *sim, uint64_t handle)
{
    const sim_stream *stream = sim_active_stream(sim, handle);
    return stream == NULL ? 0 : sim_graph_of(sim, stream->capture)->o.handle;
}

static int32_t sim_do_capture_nodes(cai_sim *sim, uint64_t handle, uint64_t *nodes, int32_t capacity)
{
    const sim_stream *stream = sim_active_stream(sim, handle);
    const sim_graph *graph;
    int32_t *places = NULL, count = 0, found;
    char *seen;
    if (stream == NULL) return -1;
    graph = sim_graph_of(sim, stream->capture);
    seen = (char *)sim_new((size_t)sim->operation_count + 1);
    sim_find_nodes(sim, graph, &stream->captured_last, stream->captured_last != 0, seen, &places, &count);
    found = sim_list_nodes(graph, places, count, nodes, capacity);
    free(seen);
    free(places);
    return found;
}

static int32_t sim_check_nodes(cai_sim *sim, const sim_graph *graph, const uint64_t *nodes, int32_t count)
{
    const sim_graph *found = NULL;
    int32_t i;
    if (count < 0 || (count > 0 && nodes == NULL)) return CAI_SIM_ERROR_INVALID_VALUE;
    for (i = 0; i < count; i++)
        if (sim_find_node(sim, nodes[i], &found) == NULL || found != graph)
            return CAI_SIM_ERROR_INVALID_VALUE;
    return 0;
}

/* The next work of a stream that captures comes after these nodes, and after what it had if `set` is 0. */
static int32_t sim_do_capture_depend(cai_sim *sim, uint64_t handle, const uint64_t *nodes, int32_t count,
                                     int32_t set)
{
    sim_stream *stream;
    sim_operation *op;
    const sim_graph *graph = NULL;
    int32_t i, error = sim_use_stream(sim, handle, &stream);
    if (error) return error;
    if (stream->capture == NULL) return CAI_SIM_ERROR_ILLEGAL_STATE;
    error = sim_may_queue(sim, stream);
    if (error) return error;
    error = sim_check_nodes(sim, stream->capture->graph, nodes, count);
    if (error) return error;
    if (set && stream->captured_last) {
        sim_operation_of(sim, stream->captured_last)->released = 1;
        stream->captured_last = 0;
    }
    op = sim_queue(sim, CAI_SIM_OP_WAIT, stream, 0);
    sim_describe(sim, op, "capture_depend", NULL, 0);
    for (i = 0; i < count; i++) sim_wait_for(op, sim_find_node(sim, nodes[i], &graph)->info.id);
    return 0;
}

/* An executable keeps what its graph keeps. */
static void sim_keep_too(cai_sim *sim, const sim_object *graph, const sim_executable *executable)
{
    const int32_t count = sim->kept_count;
    int32_t i;
    sim_kept kept;
    for (i = 0; i < count; i++) {
        if (sim->kept[i].owner != graph) continue;
        kept = sim->kept[i];
        kept.owner = &executable->o;
        kept.executable = executable;
        SIM_APPEND(sim_kept, sim->kept, sim->kept_count, kept);
    }
}

static int32_t sim_do_capture_retain(cai_sim *sim, uint64_t handle, void (*gone)(void *), void *argument)
{
    sim_stream *stream;
    sim_user user;
    sim_kept kept;
    const int32_t error = sim_use_stream(sim, handle, &stream);
    if (error) return error;
    if (gone == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    if (stream->capture == NULL || stream->capture->status != CAI_CAPTURE_ACTIVE)
        return CAI_SIM_ERROR_ILLEGAL_STATE;
    kept.owner = &sim_graph_of(sim, stream->capture)->o;
    kept.executable = NULL;
    kept.user = sim->user_count;
    user.gone = gone;
    user.user = argument;
    SIM_APPEND(sim_user, sim->users, sim->user_count, user);
    SIM_APPEND(sim_kept, sim->kept, sim->kept_count, kept);
    return 0;
}

static int32_t sim_do_graph_instantiate(cai_sim *sim, uint64_t handle, uint64_t *made)
{
    sim_object *graph;
    sim_executable *executable;
    const int32_t error = sim_find_graph(sim, &sim->graphs, handle, &graph);
    if (error) return error;
    if (sim_is_captured_into((const sim_graph *)graph)) return CAI_SIM_ERROR_INVALID_VALUE;
    executable = (sim_executable *)sim_object_make(&sim->executables, NULL, sizeof *executable);
    executable->graph = (const sim_graph *)graph;
    executable->count = executable->graph->count;
    *made = sim_place(sim, &sim->executables, &executable->o);
    sim_keep_too(sim, graph, executable);
    return 0;
}

static int32_t sim_do_graph_create(cai_sim *sim, uint64_t *made)
{
    sim_graph *graph = (sim_graph *)sim_object_make(&sim->graphs, NULL, sizeof *graph);
    *made = sim_place(sim, &sim->graphs, &graph->o);
    return 0;
}

static int32_t sim_do_capture_begin_to(cai_sim *sim, uint64_t stream, int32_t mode, uint64_t handle,
                                       const uint64_t *nodes, int32_t count)
{
    sim_object *object;
    sim_graph *graph;
    int32_t error = sim_find_graph(sim, &sim->graphs, handle, &object);
    graph = (sim_graph *)object;
    if (!error && sim_is_captured_into(graph)) error = CAI_SIM_ERROR_INVALID_VALUE;
    if (!error) error = sim_check_nodes(sim, graph, nodes, count);
    if (!error) error = sim_do_capture_begin(sim, stream, mode, graph);
    return error || count == 0 ? error : sim_do_capture_depend(sim, stream, nodes, count, 1);
}

/* Does a graph have the same nodes as another one, in the same order, with the same edges? */
static int sim_is_alike(const sim_graph *graph, const sim_executable *executable)
{
    const size_t size = sizeof *graph->nodes->edges;
    int32_t i;
    if (graph->count != executable->count) return 0;
    for (i = 0; i < graph->count; i++) {
        const sim_node *new_node = &graph->nodes[i], *old = &executable->graph->nodes[i];
        if (new_node->captured->info.kind != old->captured->info.kind) return 0;
        if (new_node->edge_count != old->edge_count) return 0;
        if (memcmp(new_node->edges, old->edges, (size_t)old->edge_count * size) != 0) return 0;
    }
    return 1;
}

static int32_t sim_do_graph_update(cai_sim *sim, uint64_t executable_handle, uint64_t handle)
{
    sim_object *object, *graph;
    sim_executable *executable;
    if (sim_find_graph(sim, &sim->executables, executable_handle, &object))
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (sim_find_graph(sim, &sim->graphs, handle, &graph)) return CAI_SIM_ERROR_INVALID_VALUE;
    executable = (sim_executable *)object;
    if (sim_is_captured_into((const sim_graph *)graph)) return CAI_SIM_ERROR_INVALID_VALUE;
    if (!sim_is_alike((const sim_graph *)graph, executable)) return CAI_SIM_ERROR_GRAPH_UPDATE;
    executable->graph = (const sim_graph *)graph;
    sim_keep_too(sim, graph, executable);
    return 0;
}

/* Can all nodes run, as far as is known now? */
static int32_t sim_may_launch(const sim_executable *executable)
{
    const sim_node *nodes = executable->graph->nodes;
    int32_t i;
    for (i = 0; i < executable->count; i++)
        if (nodes[i].captured->context->o.state != SIM_LIVE) return CAI_SIM_ERROR_CONTEXT_IS_DESTROYED;
    return 0;
}

/* The begin and the end of a launch have no effect. They order it in the stream. */
static sim_operation *sim_queue_mark(cai_sim *sim, const sim_executable *executable, sim_stream *stream,
                                     const char *name)
{
    sim_operation *op = sim_queue(sim, CAI_SIM_OP_GRAPH, stream, 0);
    sim_describe(sim, op, name, NULL, 0);
    op->info.executable = executable->o.handle;
    return op;
}

/* ids: of the nodes before it. */
static uint64_t sim_queue_node(cai_sim *sim, const sim_stream *stream, const sim_node *node,
                               const sim_operation *begin, const uint64_t *ids)
{
    const sim_operation *from = node->captured;
    sim_operation *op = sim_trace(sim, from->info.kind, from->name, from->accesses, from->info.access_count);
    int32_t i;
    op->context = from->context;
    op->info.context = from->info.context;
    op->info.stream = stream->id;
    op->info.state = begin->info.state;
    op->info.capture = begin->info.capture;
    op->info.executable = begin->info.executable;
    op->info.node = from->info.id;
    op->info.branch = node->branch;
    op->function = from->function;
    op->argument = from->argument;
    op->touches = from->touches;
    if (from->copy != NULL) {
        op->copy = (sim_copy *)sim_new(sizeof *op->copy);
        *op->copy = *from->copy;
    }
    for (i = 0; i < node->edge_count; i++) sim_wait_for(op, ids[node->edges[i]]);
    if (node->edge_count == 0) sim_wait_for(op, begin->info.id);
    sim->queued++;
    return op->info.id;
}

static void sim_queue_graph(cai_sim *sim, sim_executable *executable, sim_stream *stream)
{
    const sim_node *nodes = executable->graph->nodes;
    uint64_t *ids = (uint64_t *)sim_new(((size_t)executable->count + 1) * sizeof *ids);
    char *followed = (char *)sim_new((size_t)executable->count + 1);
    sim_operation *begin = sim_queue_mark(sim, executable, stream, "graph_begin"), *end;
    int32_t i, k;
    sim_wait_for(begin, executable->last);
    for (i = 0; i < executable->count; i++) {
        ids[i] = sim_queue_node(sim, stream, &nodes[i], begin, ids);
        for (k = 0; k < nodes[i].edge_count; k++) followed[nodes[i].edges[k]] = 1;
    }
    end = sim_queue_mark(sim, executable, stream, "graph_end");
    for (i = 0; i < executable->count; i++)
        if (!followed[i]) sim_wait_for(end, ids[i]);
    executable->last = end->info.id;
    free(ids);
    free(followed);
}

static int32_t sim_do_graph_launch(cai_sim *sim, uint64_t handle, uint64_t stream_handle)
{
    sim_stream *stream;
    sim_object *object;
    sim_executable *executable;
    int32_t error = sim_use_stream(sim, stream_handle, &stream);
    if (!error) error = sim_find_graph(sim, &sim->executables, handle, &object);
    if (error) return error;
    executable = (sim_executable *)object;
    error = sim_may_launch(executable);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (!error) sim_queue_graph(sim, executable, stream);
    return error;
}

/* ----------------------------------------------------------------- >>contexts */
static void sim_settle_pools(cai_sim *sim);

static sim_context *sim_context_make(cai_sim *sim, int32_t device, int32_t primary)
{
    sim_context *context = (sim_context *)sim_object_make(&sim->contexts, NULL, sizeof *context);
    sim_place(sim, &sim->contexts, &context->o);
    context->o.context = context;
    context->device = device;
    context->primary = primary;
    context->legacy = sim_stream_make(sim, context);
    return context;
}

static void sim_push(sim_thread *thread, sim_context *context, int32_t pushed)
{
    sim_entry entry;
    entry.context = context;
    entry.pushed = pushed;
    SIM_APPEND(sim_entry, thread->stack, thread->depth, entry);
}

static int32_t sim_do_context_current(cai_sim *sim, uint64_t *handle)
{
    const sim_context *context = sim_current_context(sim);
    *handle = context == NULL ? 0 : context->o.handle;
    return 0;
}

static int32_t sim_do_context_device(cai_sim *sim, int32_t *device)
{
    sim_context *context;
    const int32_t error = sim_need_context(sim, &context);
    if (!error) *device = context->device;
    return sim_answer(sim, error);
}

static int32_t sim_do_device_context(cai_sim *sim, int32_t device, uint64_t *handle)
{
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    if (sim->contexts.all[device]->state == SIM_LIVE) *handle = sim->contexts.all[device]->handle;
    return 0;
}

/* The runtime holds a primary context that it makes current. */
static void sim_runtime_retain(sim_context *context)
{
    if (!context->primary) return;
    context->of_runtime = 1;
    context->o.state = SIM_LIVE;
}

/* Is a context that can be current on one host thread only current on another one? */
static int sim_is_in_use(const cai_sim *sim, const sim_context *context)
{
    int32_t i;
    for (i = 0; i < sim->thread_count && !context->primary; i++) {
        const sim_thread *other = sim->threads[i];
        if (other == sim->self || other->depth == 0) continue;
        if (other->stack[other->depth - 1].context == context)
            return sim_is_on(sim, CAI_SIM_ONE_THREAD_CONTEXTS);
    }
    return 0;
}

static int32_t sim_do_context_push(cai_sim *sim, uint64_t handle)
{
    sim_object *object = sim_lookup(sim, &sim->contexts, handle);
    sim_context *context = object == NULL ? NULL : object->context;
    if (context == NULL || (object->state != SIM_LIVE && !context->primary))
        return CAI_SIM_ERROR_INVALID_CONTEXT;
    if (sim_is_in_use(sim, context)) return CAI_SIM_ERROR_CONTEXT_IN_USE;
    sim_push(sim->self, context, 1);
    return 0;
}

static int32_t sim_do_context_pop(cai_sim *sim)
{
    sim_thread *self = sim->self;
    if (self->depth == 0) return CAI_SIM_ERROR_INVALID_CONTEXT;
    self->depth--;
    if (!self->stack[self->depth].pushed) self->unbalanced++;
    return 0;
}

static int32_t sim_do_set_context(cai_sim *sim, uint64_t handle)
{
    sim_object *object = sim_object_of(&sim->contexts, handle);
    sim_thread *self = sim->self;
    sim_context *context;
    if (handle == 0) {
        if (self->depth) self->depth--;
        return 0;
    }
    if (object != NULL) sim_runtime_retain(object->context);
    context = sim_context_of(sim, handle);
    if (context == NULL) return CAI_SIM_ERROR_INVALID_CONTEXT;
    if (sim_is_in_use(sim, context)) return CAI_SIM_ERROR_CONTEXT_IN_USE;
    if (self->depth) self->stack[self->depth - 1].context = context;
    else sim_push(self, context, 0);
    return 0;
}

/* What a record waits for that covers a context: all its streams, also those that were destroyed. */
static void sim_wait_for_all_of(cai_sim *sim, sim_operation *op, const sim_context *context)
{
    int32_t i;
    for (i = 0; i < sim->streams.count; i++)
        if (sim_stream_at(sim, i)->o.context == context && sim_stream_at(sim, i)->last != op->info.id)
            sim_wait_for(op, sim_stream_at(sim, i)->last);
}

/* The number that no other context ever has. A primary context that was reset gets a new one. */
static int32_t sim_do_context_id(cai_sim *sim, uint64_t handle, uint64_t *id)
{
    const sim_object *object = sim_object_of(&sim->contexts, handle);
    if (object == NULL || sim_is_on(sim, CAI_SIM_LIVING_CONTEXTS))
        object = sim_lookup(sim, &sim->contexts, handle);
    if (object == NULL || object->state != SIM_LIVE) return sim_no_context(sim, handle);
    if (object->context->id == 0) object->context->id = ++sim->context_ids;
    *id = object->context->id;
    return 0;
}

/* The host waits for all that is queued in a context. */
static void sim_wait_for_context(cai_sim *sim, const sim_context *context, const char *name)
{
    sim_operation *sync = sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, name, NULL, 0);
    sim_wait_for_all_of(sim, sync, context);
    sim_run_for(sim, sync);
}

static int32_t sim_do_context_synchronize(cai_sim *sim)
{
    sim_context *context;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    if (sim_capturing_in(sim, context, 0, 1)) return CAI_SIM_ERROR_CAPTURE_UNSUPPORTED;
    sim_wait_for_context(sim, context, "context_synchronize");
    sim_settle_pools(sim);
    return context->error;
}

/* What belongs to a context goes; what was queued in it counts as having run. */
static void sim_context_empty(cai_sim *sim, sim_context *context)
{
    uint64_t id;
    int32_t i;
    for (id = sim_first(sim); id <= sim->operation_count; id++) {
        sim_operation *op = sim_operation_of(sim, id);
        if (op->context != context || op->info.state != CAI_SIM_STATE_QUEUED) continue;
        op->info.state = CAI_SIM_STATE_DROPPED;
        sim->queued--;
        if (op->frees != NULL) sim_memory_end(sim, op->frees);
    }
    for (i = 0; i < sim->streams.count; i++) {
        sim_stream *stream = sim_stream_at(sim, i);
        if (stream->o.context != context) continue;
        if (stream->capture != NULL) sim_capture_finish(sim, stream->capture);
        if (stream->o.number && stream->o.state == SIM_LIVE) sim_end_as(sim, &stream->o, SIM_ORPHAN);
    }
    for (i = 0; i < sim->events.count; i++)
        if (sim->events.all[i]->context == context && sim->events.all[i]->state == SIM_LIVE)
            sim_end_as(sim, sim->events.all[i], SIM_ORPHAN);
    for (i = 0; i < sim->allocation_count; i++)
        if (sim->allocations[i]->context == context) sim_memory_end(sim, sim->allocations[i]);
    context->error = 0;
    context->id = 0;
}

static int32_t sim_do_context_destroy(cai_sim *sim, uint64_t handle)
{
    sim_context *context = sim_context_of(sim, handle);
    if (context == NULL) return CAI_SIM_ERROR_INVALID_CONTEXT;
    sim_context_empty(sim, context);
    if (context->primary) return 0;
    sim_end_as(sim, &context->o, SIM_ORPHAN); /* not recycled */
    if (sim_current_context(sim) == context) sim->self->depth--;
    return 0;
}

static int32_t sim_do_primary_retain(cai_sim *sim, int32_t device, uint64_t *handle)
{
    sim_context *context;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    context = sim->contexts.all[device]->context;
    context->retained++;
    context->o.state = SIM_LIVE;
    *handle = context->o.handle;
    return 0;
}

static int32_t sim_do_primary_release(cai_sim *sim, int32_t device)
{
    sim_context *context;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    context = sim->contexts.all[device]->context;
    if (context->retained == 0) return CAI_SIM_ERROR_INVALID_CONTEXT;
    if (--context->retained || context->of_runtime) return 0;
    sim_context_empty(sim, context);
    sim_end_as(sim, &context->o, SIM_ORPHAN);
    return 0;
}

static int sim_is_current_somewhere(const cai_sim *sim, const sim_context *context)
{
    int32_t i, k;
    for (i = 0; i < sim->thread_count; i++)
        for (k = 0; k < sim->threads[i]->depth; k++)
            if (sim->threads[i]->stack[k].context == context) return 1;
    return 0;
}

/* With PRIMARY_INACTIVE, primary contexts that nobody uses go; without, the runtime holds all. */
static void sim_do_set_options(cai_sim *sim, uint32_t options)
{
    const uint32_t changed = sim->options ^ options;
    int32_t i;
    sim->options = options;
    for (i = 0; i < sim->device_count && (changed & CAI_SIM_PRIMARY_INACTIVE); i++) {
        sim_context *context = sim->contexts.all[i]->context;
        context->of_runtime = !sim_is_on(sim, CAI_SIM_PRIMARY_INACTIVE) ||
                              sim_is_current_somewhere(sim, context);
        context->o.state = context->of_runtime || context->retained ? SIM_LIVE : SIM_ORPHAN;
    }
}

/* ------------------------------------------------------------------ >>streams */
static int32_t sim_do_stream_create(cai_sim *sim, int32_t nonblocking, uint64_t *handle)
{
    sim_context *context;
    sim_stream *stream;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    stream = sim_stream_make(sim, context);
    stream->nonblocking = nonblocking != 0;
    *handle = sim_place(sim, &sim->streams, &stream->o);
    return 0;
}

/* A pending error of the context is reported, but the stream goes all the same. */
static int32_t sim_do_stream_destroy(cai_sim *sim, uint64_t handle)
{
    sim_stream *stream;
    const int32_t error = sim_find_stream(sim, handle, &stream);
    if (error) return error;
    if (stream->o.number == 0) return CAI_SIM_ERROR_INVALID_HANDLE;
    if (stream->capture != NULL) {
        sim_invalidate(stream->capture);
        if (stream->capture->origin == stream) sim_capture_finish(sim, stream->capture);
    }
    sim_end_object(sim, &stream->o);
    return stream->o.context->error;
}

static int32_t sim_do_stream_context(cai_sim *sim, uint64_t handle, uint64_t *context)
{
    sim_stream *stream;
    const int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error) *context = stream->o.context->o.handle;
    return sim_answer(sim, error);
}

static int32_t sim_do_stream_id(cai_sim *sim, uint64_t handle, uint64_t *id)
{
    sim_stream *stream;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error && stream->capture != NULL) error = sim_may_not_capture(sim, stream);
    if (error) return sim_answer(sim, error);
    *id = stream->id;
    return 0;
}

static int32_t sim_do_stream_flags(cai_sim *sim, uint64_t handle, uint32_t *flags)
{
    sim_stream *stream;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (error) return sim_answer(sim, error);
    *flags = stream->nonblocking ? 1 : 0;
    return 0;
}

/* A wait of a stream that captures, or for an event of a capture (R103). */
static int32_t sim_wait_captured(sim_stream *stream, const sim_event *event)
{
    if (stream->capture == event->capture) return 0;
    if (stream->capture == NULL) {
        if (event->capture->status != CAI_CAPTURE_ACTIVE) return CAI_SIM_ERROR_INVALID_VALUE;
        if (stream != stream->o.context->legacy) {
            stream->capture = event->capture; /* pulled in */
            return 0;
        }
        sim_invalidate(event->capture);
        return CAI_SIM_ERROR_CAPTURE_ISOLATION;
    }
    sim_invalidate(stream->capture);
    if (event->capture == NULL) return CAI_SIM_ERROR_CAPTURE_ISOLATION;
    sim_invalidate(event->capture);
    return CAI_SIM_ERROR_CAPTURE_MERGE;
}

/* With POOL_EARLY_WAITS: a record of another thread in this stream, since this thread's last call, may be
 * made during this call. Pools know of the wait before the stream has it, so they believe that the record
 * comes after `first`. */
static void sim_book_wait(cai_sim *sim, const sim_stream *stream, uint64_t first)
{
    uint64_t id = sim->self->seen;
    if (!sim_is_on(sim, CAI_SIM_POOL_EARLY_WAITS)) return;
    for (id++; id <= sim->operation_count; id++) {
        const sim_operation *op = sim_operation_of(sim, id);
        sim_belief belief = {0, 0};
        if (op->info.kind != CAI_SIM_OP_RECORD || op->info.stream != stream->id) continue;
        belief.record = id;
        belief.first = first;
        SIM_APPEND(sim_belief, sim->beliefs, sim->belief_count, belief);
    }
}

static int32_t sim_do_stream_wait_event(cai_sim *sim, uint64_t stream_handle, uint64_t event_handle)
{
    sim_stream *stream;
    sim_event *event;
    int32_t error = sim_use_stream(sim, stream_handle, &stream);
    if (!error) error = sim_use_event(sim, event_handle, &event);
    if (!error) error = sim_may_queue(sim, stream);
    if (!error) error = sim_wait_captured(stream, event);
    if (error || event->record == 0) return error; /* never recorded: nothing to wait for (R101) */
    if (stream->capture == NULL) sim_book_wait(sim, stream, event->record);
    sim_wait_for(sim_queue(sim, CAI_SIM_OP_WAIT, stream, event_handle), event->record);
    return 0;
}

/* The operations that the host waits for with a stream. The legacy stream stands for the blocking streams of
 * its context. */
static void sim_wait_for_lasts(cai_sim *sim, sim_operation *sync, const sim_stream *stream)
{
    int32_t i;
    sim_wait_for(sync, stream->last);
    for (i = 0; stream == stream->o.context->legacy && i < sim->streams.count; i++) {
        const sim_stream *other = sim_stream_at(sim, i);
        if (other->o.context == stream->o.context && !other->nonblocking) sim_wait_for(sync, other->last);
    }
}

/* An entry of the host, which waited for a stream, or found that it has passed. */
static sim_operation *sim_trace_wait(cai_sim *sim, const sim_stream *stream, const char *name)
{
    sim_operation *sync = sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, name, NULL, 0);
    sim_wait_for_lasts(sim, sync, stream);
    return sync;
}

static void sim_wait_for_stream(cai_sim *sim, const sim_stream *stream, const char *name)
{
    sim_run_for(sim, sim_trace_wait(sim, stream, name));
}

static int32_t sim_do_stream_synchronize(cai_sim *sim, uint64_t handle)
{
    sim_stream *stream;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (!error) error = sim_unsafe_call(sim);
    if (error) return error;
    sim_wait_for_stream(sim, stream, "stream_synchronize");
    sim_settle_pools(sim);
    return stream->o.context->error;
}

/* What may have run when something that is `pending` is queried: what the hook says. Without one: with
 * PROGRESS the oldest operation that is ready, else nothing. */
static void sim_run_meanwhile(cai_sim *sim, const sim_patience *patience, int pending)
{
    uint64_t id;
    if (sim->hooks.choose != NULL) {
        if (patience->asked < SIM_PATIENCE) sim_offer(sim);
        else (void)sim_choose(sim, 1);
        return;
    }
    if (!sim_is_on(sim, CAI_SIM_PROGRESS) || !pending) return;
    for (id = sim_first(sim); id <= sim->operation_count; id++) {
        if (!sim_is_ready(sim, sim_operation_of(sim, id))) continue;
        sim_execute(sim, sim_operation_of(sim, id));
        return;
    }
}

static int32_t sim_not_ready(const cai_sim *sim, sim_patience *patience)
{
    const int again = patience->order == sim->order && patience->count == sim->operation_count;
    patience->asked = again ? patience->asked + 1 : 0;
    patience->order = sim->order;
    patience->count = sim->operation_count;
    return CAI_SIM_ERROR_NOT_READY;
}

static int sim_is_busy(cai_sim *sim, const sim_stream *stream)
{
    sim_operation would; /* the entry of a wait, which is not made */
    int busy;
    memset(&would, 0, sizeof would);
    sim_wait_for_lasts(sim, &would, stream);
    busy = !sim_is_free(sim, &would);
    free(would.waits);
    return busy;
}

static int32_t sim_do_stream_query(cai_sim *sim, uint64_t handle)
{
    sim_stream *stream;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (!error) error = sim_unsafe_call(sim);
    if (error) return error;
    sim_run_meanwhile(sim, &stream->patience, sim_is_busy(sim, stream));
    if (sim_is_busy(sim, stream)) return sim_not_ready(sim, &stream->patience);
    sim_trace_wait(sim, stream, "stream_query");
    return stream->o.context->error;
}

static int32_t sim_do_launch(cai_sim *sim, int32_t kind, uint64_t handle, const char *name,
                             cai_sim_function function, void *argument, const cai_sim_access *accesses,
                             int32_t count, int32_t touches)
{
    sim_stream *stream;
    sim_operation *op;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (error) return error;
    if (count < 0 || (count > 0 && accesses == NULL)) return CAI_SIM_ERROR_INVALID_VALUE;
    if (kind == CAI_SIM_OP_LAUNCH && stream->o.context->device != sim_current_context(sim)->device)
        return CAI_SIM_ERROR_INVALID_HANDLE;
    error = sim_may_queue(sim, stream);
    if (error) return error;
    op = sim_queue(sim, kind, stream, 0);
    sim_describe(sim, op, name, accesses, count);
    op->function = function;
    op->argument = argument;
    op->touches = touches;
    return 0;
}

/* The axes of a view that has elements: those that matter, the longest step first. Negative steps are turned,
 * and axes whose elements follow or overlap one another become longer runs. */
typedef struct sim_view {
    uint64_t first, run; /* the lowest address, the bytes of a run */
    uint64_t step[CAI_MAX_KERNEL_NDIM];
    int64_t extent[CAI_MAX_KERNEL_NDIM];
    int32_t ndim;
} sim_view;

static void sim_view_of(const cai_kernel_view *from, sim_view *view)
{
    int32_t axis, at;
    view->first = (uint64_t)(uintptr_t)from->data;
    view->run = (uint64_t)from->itemsize;
    view->ndim = 0;
    for (axis = 0; axis < from->ndim; axis++) {
        const int backward = from->strides[axis] < 0;
        const int64_t extent = from->shape[axis];
        const uint64_t stride = (uint64_t)from->strides[axis], step = backward ? 0 - stride : stride;
        if (extent == 1 || step == 0) continue;
        if (backward) view->first -= step * (uint64_t)(extent - 1);
        for (at = view->ndim++; at > 0 && view->step[at - 1] < step; at--) {
            view->step[at] = view->step[at - 1];
            view->extent[at] = view->extent[at - 1];
        }
        view->step[at] = step;
        view->extent[at] = extent;
    }
    while (view->ndim > 0 && view->step[view->ndim - 1] <= view->run) {
        view->ndim--;
        view->run += view->step[view->ndim] * (uint64_t)(view->extent[view->ndim] - 1);
    }
}

/* A view that leaves its allocation becomes one run, so that the access which leaves it begins inside. */
static void sim_keep_inside(cai_sim *sim, sim_view *view)
{
    uint64_t offset = 0, span = view->run;
    const sim_allocation *a = sim_allocation_at(sim, view->first, &offset);
    int32_t axis;
    for (axis = 0; axis < view->ndim; axis++) span += view->step[axis] * (uint64_t)(view->extent[axis] - 1);
    if (sim_is_plain(a) || a->physical != NULL || span <= a->bytes - offset) return;
    view->run = span;
    view->ndim = 0;
}

/* The elements of a view as accesses, one for each run of bytes. Returns their number. */
static int32_t sim_view_accesses(cai_sim *sim, cai_sim_access **accesses, int32_t count,
                                 const cai_kernel_view *from, int32_t write)
{
    int64_t index[CAI_MAX_KERNEL_NDIM] = {0};
    cai_sim_access run;
    sim_view view;
    int32_t axis;
    for (axis = 0; axis < from->ndim; axis++)
        if (from->shape[axis] == 0) return count;
    sim_view_of(from, &view);
    sim_keep_inside(sim, &view);
    run = cai_sim_reads(view.first, view.run);
    run.write = write;
    do {
        SIM_APPEND(cai_sim_access, *accesses, count, run);
        for (axis = view.ndim; axis-- > 0;) {
            run.address += view.step[axis];
            if (++index[axis] < view.extent[axis]) break;
            run.address -= view.step[axis] * (uint64_t)view.extent[axis];
            index[axis] = 0;
        }
    } while (axis >= 0);
    return count;
}

static int sim_view_is_good(const cai_kernel_view *view)
{
    int32_t axis;
    if (view->ndim < 0 || view->ndim > CAI_MAX_KERNEL_NDIM || view->itemsize < 0) return 0;
    for (axis = 0; axis < view->ndim; axis++)
        if (view->shape[axis] < 0) return 0;
    return 1;
}

static int32_t sim_do_launch_views(cai_sim *sim, uint64_t handle, const char *name, cai_sim_function function,
                                   void *argument, const cai_kernel_view *views, int32_t count, int32_t writes,
                                   int32_t touches)
{
    cai_sim_access *accesses = NULL;
    int32_t i, error, found = 0, good = writes >= 0 && writes <= count && (count == 0 || views != NULL);
    for (i = 0; good && i < count; i++) good = sim_view_is_good(&views[i]);
    for (i = 0; good && i < count; i++)
        found = sim_view_accesses(sim, &accesses, found, &views[i], i < writes);
    error = sim_do_launch(sim, CAI_SIM_OP_LAUNCH, handle, name, function, argument, accesses, good ? found : -1,
                          touches);
    free(accesses);
    return error;
}

/* ------------------------------------------------------------------- >>events */
static int32_t sim_do_event_create(cai_sim *sim, uint64_t *handle)
{
    sim_context *context;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    *handle = sim_place(sim, &sim->events,
                        (sim_object *)sim_object_make(&sim->events, context, sizeof(sim_event)));
    return 0;
}

/* As of a stream: it goes, whatever is pending on the device or waits for it. */
static int32_t sim_do_event_destroy(cai_sim *sim, uint64_t handle)
{
    sim_event *event = NULL;
    const int32_t error = sim_use_event(sim, handle, &event);
    if (event == NULL || event->o.state != SIM_LIVE) return error;
    sim_end_object(sim, &event->o);
    return error;
}

static int32_t sim_do_event_record(cai_sim *sim, uint64_t event_handle, uint64_t stream_handle)
{
    sim_stream *stream;
    sim_event *event;
    int32_t error = sim_use_event(sim, event_handle, &event);
    if (!error) error = sim_use_stream(sim, stream_handle, &stream);
    if (error) return error;
    if (event->o.context != stream->o.context) return CAI_SIM_ERROR_INVALID_HANDLE; /* R100 */
    error = sim_may_queue(sim, stream);
    if (error) return error;
    event->record = sim_queue(sim, CAI_SIM_OP_RECORD, stream, event_handle)->info.id;
    event->capture = stream->capture;
    return 0;
}

/* A record behind all work of a context, also that of streams which were destroyed. */
static int32_t sim_do_context_record(cai_sim *sim, uint64_t context_handle, uint64_t event_handle)
{
    sim_context *context = sim_context_of(sim, context_handle);
    sim_event *event;
    sim_operation *op;
    int32_t error;
    if (context == NULL) return sim_no_context(sim, context_handle);
    error = context->error;
    if (!error) error = sim_use_event(sim, event_handle, &event);
    if (error) return error;
    if (event->o.context != context) return CAI_SIM_ERROR_INVALID_HANDLE;
    if (sim_capturing_in(sim, context, 0, 1)) return CAI_SIM_ERROR_CAPTURE_UNSUPPORTED;
    if (context->whole == NULL) {
        context->whole = sim_stream_make(sim, context);
        context->whole->nonblocking = 1;
    }
    op = sim_queue(sim, CAI_SIM_OP_RECORD, context->whole, event_handle);
    sim_wait_for_all_of(sim, op, context);
    event->record = op->info.id;
    event->capture = NULL;
    return 0;
}

/* What query and synchronize have in common. */
static int32_t sim_look_at_event(cai_sim *sim, uint64_t handle, sim_event **event)
{
    const int32_t error = sim_use_event(sim, handle, event);
    if (error) return error;
    if ((*event)->capture == NULL) return sim_unsafe_call(sim);
    if ((*event)->capture->status == SIM_CAPTURE_ENDED) return CAI_SIM_ERROR_INVALID_VALUE;
    sim_invalidate((*event)->capture);
    return CAI_SIM_ERROR_CAPTURED_EVENT;
}

static int32_t sim_do_event_query(cai_sim *sim, uint64_t handle)
{
    sim_event *event;
    const int32_t error = sim_look_at_event(sim, handle, &event);
    if (error || event->record == 0) return error;
    sim_run_meanwhile(sim, &event->patience, sim_is_queued(sim, event->record));
    if (sim_is_queued(sim, event->record)) return sim_not_ready(sim, &event->patience);
    sim_wait_for(sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, "event_query", NULL, 0), event->record);
    return 0;
}

static int32_t sim_do_event_synchronize(cai_sim *sim, uint64_t handle)
{
    sim_event *event;
    sim_operation *sync;
    const int32_t error = sim_look_at_event(sim, handle, &event);
    if (error || event->record == 0) return error;
    sync = sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, "event_synchronize", NULL, 0);
    sim_wait_for(sync, event->record);
    sim_run_for(sim, sync);
    sim_settle_pools(sim);
    return event->o.context->error;
}

/* ------------------------------------------------------------------- >>memory */
/* A new allocation, at an address where there is memory. Made by the host, or in the order of a stream. */
static sim_allocation *sim_memory_at(cai_sim *sim, sim_context *context, int32_t kind, uint64_t address,
                                     uint64_t bytes, const char *name, sim_stream *stream)
{
    const cai_sim_access whole = cai_sim_writes(address, bytes);
    sim_operation *op;
    sim_allocation *a = (sim_allocation *)sim_new(sizeof *a);
    SIM_APPEND(sim_allocation *, sim->allocations, sim->allocation_count, a);
    a->number = sim->allocation_count;
    a->made_tag = sim->self->tag;
    a->address = address;
    a->bytes = bytes;
    a->kind = kind;
    a->device = context->device;
    a->context = kind == CAI_SIM_MEM_POOL || kind == CAI_SIM_MEM_VIRTUAL ? NULL : context;
    a->live = 1;
    if (stream == NULL) {
        sim_trace(sim, CAI_SIM_OP_ALLOC, name, &whole, 1);
        return a;
    }
    op = sim_queue(sim, CAI_SIM_OP_ALLOC, stream, 0);
    sim_describe(sim, op, name, &whole, 1);
    op->makes = a;
    a->maker = op->info.id;
    return a;
}

static uint64_t sim_memory_left(const cai_sim *sim, int32_t device)
{
    const uint64_t total = sim->memory[device], used = sim->memory_used[device];
    return used < total ? total - used : 0;
}

static uint64_t sim_aligned(uint64_t number)
{
    return (number + SIM_ALIGNMENT - 1) / SIM_ALIGNMENT * SIM_ALIGNMENT;
}

/* With REUSE: takes the block that was freed last from its allocation, if there is one of so many bytes.
 * watched: of cai_sim_set_host_memory. */
static void *sim_take_block(cai_sim *sim, uint64_t *space, int watched, uint64_t *apart)
{
    sim_allocation *old = NULL;
    void *block;
    int32_t i;
    for (i = 0; i < sim->allocation_count && sim_is_on(sim, CAI_SIM_REUSE); i++) {
        sim_allocation *a = sim->allocations[i];
        if (a->live || a->block == NULL || a->held || a->space < *space || watched != (a->apart != 0)) continue;
        if (old == NULL || a->ended > old->ended) old = a;
    }
    if (old == NULL) return NULL;
    block = old->block;
    old->block = NULL;
    *space = old->space;
    *apart = old->apart;
    sim_empty_block(sim, old, block, *space);
    return block;
}

/* Memory that the host uses, too, is of cai_sim_set_host_memory, if that gives any. */
static void *sim_new_block(cai_sim *sim, int32_t kind, uint64_t *space, uint64_t *apart)
{
    const int of_host = kind == CAI_SIM_MEM_MANAGED || kind == CAI_SIM_MEM_PINNED || kind == CAI_SIM_MEM_ALIASED;
    const int watched = of_host && sim->host_memory.make != NULL;
    void *second, *block = sim_take_block(sim, space, watched, apart);
    if (block == NULL && watched) {
        block = sim->host_memory.make(sim->host_memory.context, *space, &second);
        if (block != NULL) *apart = (uint64_t)(uintptr_t)second - (uint64_t)(uintptr_t)block;
    }
    return block != NULL ? block : sim_block_make(*space);
}

/* The address that cai_sim_adopt gave this thread, once; or 0. */
static uint64_t sim_take_adopted(cai_sim *sim)
{
    const uint64_t address = sim->self->adopted;
    sim->self->adopted = 0;
    return address;
}

static int32_t sim_memory_new(cai_sim *sim, sim_context *context, int32_t kind, uint64_t bytes,
                              const char *name, sim_stream *stream, uint64_t *address)
{
    uint64_t apart = 0, space = kind == CAI_SIM_MEM_ALIASED ? 2 * (bytes + SIM_ALIGNMENT) : bytes;
    const int on_device = sim_is_on_device(kind);
    sim_allocation *a;
    void *block;
    *address = sim_take_adopted(sim);
    if (*address) {
        sim_memory_at(sim, context, kind, *address, bytes, name, stream)->segment = SIM_SEGMENT;
        return 0;
    }
    if (bytes > SIZE_MAX / 4) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    if (on_device && bytes > sim_memory_left(sim, context->device)) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    block = sim_new_block(sim, kind, &space, &apart);
    if (block == NULL) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    a = sim_memory_at(sim, context, kind, sim_aligned((uint64_t)(uintptr_t)block), bytes, name, stream);
    a->block = block;
    a->space = space;
    a->apart = apart;
    a->segment = SIM_SEGMENT;
    a->unmapped = kind == CAI_SIM_MEM_REGISTERED;
    if (on_device) sim->memory_used[a->device] += bytes;
    if (kind == CAI_SIM_MEM_ALIASED) a->device_offset = sim_aligned(bytes);
    *address = a->address;
    return 0;
}

/* --------------------------------------------------------------------- >>pools */
static int32_t sim_find_pool(cai_sim *sim, uint64_t handle, sim_pool **pool)
{
    sim_object *object = sim_lookup(sim, &sim->pools, handle);
    *pool = (sim_pool *)object;
    return object == NULL || object->state != SIM_LIVE ? CAI_SIM_ERROR_INVALID_VALUE : 0;
}

static sim_pool *sim_pool_make(cai_sim *sim, int32_t device)
{
    sim_pool *pool = (sim_pool *)sim_object_make(&sim->pools, NULL, sizeof *pool);
    sim_place(sim, &sim->pools, &pool->o);
    pool->device = device;
    pool->values[CAI_SIM_POOL_FOLLOW_EVENTS] = 1;
    pool->values[CAI_SIM_POOL_OPPORTUNISTIC] = 1;
    pool->values[CAI_SIM_POOL_INTERNAL_WAITS] = 1;
    return pool;
}

/* Adds to an amount, or takes from it (modulo 2^64); the highest one is kept behind it. */
static void sim_pool_add(sim_pool *pool, int32_t attribute, uint64_t bytes)
{
    uint64_t *value = &pool->values[attribute];
    value[0] += bytes;
    if (value[1] < value[0]) value[1] = value[0];
}

/* Releases blocks that the pool holds, as long as it keeps so many bytes. */
static void sim_pool_trim(cai_sim *sim, sim_pool *pool, uint64_t keep)
{
    int32_t i = 0;
    while (i < pool->free_count) {
        sim_allocation *a = pool->free[i];
        if (!a->held || pool->values[CAI_SIM_POOL_RESERVED] - a->space < keep) i++;
        else sim_pool_release(sim, a);
    }
}

static sim_pool *sim_pool_at(const cai_sim *sim, int32_t i)
{
    return (sim_pool *)sim->pools.all[i];
}

/* What each pool does when the host synchronizes. */
static void sim_settle_pools(cai_sim *sim)
{
    int32_t i;
    for (i = 0; i < sim->pools.count; i++) {
        sim_pool *pool = sim_pool_at(sim, i);
        const uint64_t keep = pool->values[CAI_SIM_POOL_THRESHOLD];
        if (pool->values[CAI_SIM_POOL_RESERVED] > keep) sim_pool_trim(sim, pool, keep);
    }
}

/* The device has no memory left: its pools hold on to nothing. */
static void sim_empty_pools(cai_sim *sim, int32_t device)
{
    int32_t i;
    for (i = 0; i < sim->pools.count; i++)
        if (sim_pool_at(sim, i)->device == device) sim_pool_trim(sim, sim_pool_at(sim, i), 0);
}

/* Marks what comes before the marked operations, and what pools believe to come before them. Returns true if
 * a belief marked anything that the next pass must look at. */
static int sim_reach_back(cai_sim *sim, char *reached, int believed)
{
    uint64_t id;
    int32_t i, more = 0;
    for (id = sim->operation_count; id > 0; id--) {
        const sim_operation *op = sim_operation_of(sim, id);
        if (op->info.kind == CAI_SIM_OP_SYNCHRONIZE) reached[id] = 1;
        for (i = 0; reached[id] && i < op->info.wait_count; i++) reached[op->waits[i]] = 1;
    }
    for (i = 0; believed && i < sim->belief_count; i++) {
        if (!reached[sim->beliefs[i].record] || reached[sim->beliefs[i].first]) continue;
        reached[sim->beliefs[i].first] = 1;
        more = 1;
    }
    return more;
}

/* Marks the operations that are known to come before one that is queued in a stream now: those that the host
 * waited for, and, where events count, those that the stream waits for. */
static char *sim_reach(cai_sim *sim, const sim_stream *stream, int events, int believed)
{
    char *reached = (char *)sim_new((size_t)sim->operation_count + 1);
    sim_operation would; /* which is not made */
    int32_t i;
    memset(&would, 0, sizeof would);
    sim_wait_for(&would, stream->last);
    sim_wait_implicitly(sim, &would, stream);
    for (i = 0; events && i < would.info.wait_count; i++) reached[would.waits[i]] = 1;
    free(would.waits);
    while (sim_reach_back(sim, reached, believed)) {}
    return reached;
}

/* How memory that is free, or will be, may be used again: the pool wrongly believes that the free comes
 * before; it does in any case; it has run; or the allocation is made to wait for it. */
enum { SIM_AGAIN_BELIEVED, SIM_AGAIN_ORDERED, SIM_AGAIN_DONE, SIM_AGAIN_WAITING };

static int sim_may_take(const sim_allocation *a, const sim_stream *stream, const char *reached, int how)
{
    const uint64_t *allowed = a->pool->values;
    if (how == SIM_AGAIN_WAITING) return stream != NULL && allowed[CAI_SIM_POOL_INTERNAL_WAITS];
    if (a->ender == 0 || stream == NULL) return !a->live;
    if (how == SIM_AGAIN_DONE) return !a->live && allowed[CAI_SIM_POOL_OPPORTUNISTIC];
    return a->ender_stream == stream->id || (reached != NULL && reached[a->ender]);
}

/* The smallest block of a pool that may be used again for so many bytes, and is less than twice as large. */
static sim_allocation *sim_find_free(cai_sim *sim, const sim_pool *pool, uint64_t bytes,
                                     const sim_stream *stream, int how)
{
    const int events = pool->values[CAI_SIM_POOL_FOLLOW_EVENTS] != 0;
    char *reached = NULL;
    sim_allocation *best = NULL;
    int32_t i;
    for (i = 0; i < pool->free_count; i++) {
        sim_allocation *a = pool->free[i];
        if (a->space < bytes || a->space / 2 >= bytes || (best != NULL && best->space < a->space)) continue;
        if (reached == NULL && how <= SIM_AGAIN_ORDERED && stream != NULL && a->ender_stream != stream->id)
            reached = sim_reach(sim, stream, events, events && how == SIM_AGAIN_BELIEVED);
        if (sim_may_take(a, stream, reached, how)) best = a;
    }
    free(reached);
    return best;
}

/* The same of a block whose free is not before: two owners at once, also if the free has run this time. */
static sim_allocation *sim_find_believed(cai_sim *sim, const sim_pool *pool, uint64_t bytes,
                                         const sim_stream *stream)
{
    sim_allocation *a;
    char *reached;
    int wrong;
    if (sim->belief_count == 0 || stream == NULL) return NULL;
    a = sim_find_free(sim, pool, bytes, stream, SIM_AGAIN_BELIEVED);
    if (a == NULL || a->ender == 0 || a->ender_stream == stream->id) return NULL;
    reached = sim_reach(sim, stream, 1, 0);
    wrong = !reached[a->ender];
    free(reached);
    return wrong ? a : NULL;
}

/* An allocation comes after the free of the one before it. That of another stream that has run is known to
 * the driver alone. */
static void sim_wait_for_free(cai_sim *sim, uint64_t maker, const sim_allocation *old)
{
    if (old->live && old->ender) sim_wait_for(sim_operation_of(sim, maker), old->ender);
}

/* A new allocation in the block of one that was freed, or is believed to be. */
static void sim_pool_again(cai_sim *sim, sim_context *context, sim_allocation *old, uint64_t bytes,
                           const char *name, sim_stream *stream, int believed, uint64_t *address)
{
    sim_allocation *a = sim_memory_at(sim, context, CAI_SIM_MEM_POOL, old->address, bytes, name, stream);
    if (believed) a->shares = old->shares ? old->shares : old->number;
    else if (stream != NULL) sim_wait_for_free(sim, a->maker, old);
    a->block = a->place = old->block;
    a->space = old->space;
    a->segment = SIM_SEGMENT;
    a->device = old->device;
    a->pool = old->pool;
    a->before = old;
    sim_pool_forget(old);
    old->block = NULL;
    old->held = 0;
    if (stream == NULL) sim_empty_block(sim, old, a->block, a->space);
    sim_pool_add(a->pool, CAI_SIM_POOL_USED, bytes);
    *address = a->address;
}

/* The same in a block of its own. */
static int32_t sim_pool_fresh(cai_sim *sim, sim_pool *pool, sim_context *context, uint64_t bytes,
                              const char *name, sim_stream *stream, uint64_t *address)
{
    uint64_t space = bytes, apart = 0;
    sim_allocation *a;
    void *block;
    if (bytes > SIZE_MAX / 4 || bytes > sim_memory_left(sim, pool->device))
        return CAI_SIM_ERROR_OUT_OF_MEMORY;
    block = sim_new_block(sim, CAI_SIM_MEM_POOL, &space, &apart);
    if (block == NULL) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    a = sim_memory_at(sim, context, CAI_SIM_MEM_POOL, sim_aligned((uint64_t)(uintptr_t)block), bytes, name,
                      stream);
    a->block = block;
    a->space = space;
    a->segment = SIM_SEGMENT;
    a->device = pool->device;
    a->pool = pool;
    sim->memory_used[pool->device] += space;
    sim_pool_add(pool, CAI_SIM_POOL_RESERVED, space);
    sim_pool_add(pool, CAI_SIM_POOL_USED, bytes);
    *address = a->address;
    return 0;
}

/* The same of memory that the real driver chose. It comes after each free that is queued of what was there: CUDA
 * gives memory again only so. */
static void sim_pool_adopt(cai_sim *sim, sim_pool *pool, sim_context *context, uint64_t bytes,
                           const char *name, sim_stream *stream, uint64_t address)
{
    sim_allocation *a = sim_memory_at(sim, context, CAI_SIM_MEM_POOL, address, bytes, name, stream);
    int32_t i;
    for (i = 0; i < sim->allocation_count && stream != NULL; i++) {
        const sim_allocation *old = sim->allocations[i];
        if (old != a && old->pool != NULL && old->address < address + bytes && address < old->address + old->bytes)
            sim_wait_for_free(sim, a->maker, old);
    }
    a->segment = SIM_SEGMENT;
    a->device = pool->device;
    a->pool = pool;
    sim_pool_add(pool, CAI_SIM_POOL_USED, bytes);
}

static int32_t sim_pool_new(cai_sim *sim, sim_pool *pool, sim_context *context, uint64_t bytes,
                            const char *name, sim_stream *stream, uint64_t *address)
{
    sim_allocation *old = NULL;
    int32_t error = 0;
    int believed = 0;
    *address = sim_take_adopted(sim);
    if (*address) {
        sim_pool_adopt(sim, pool, context, bytes, name, stream, *address);
        return 0;
    }
    if (sim_is_on(sim, CAI_SIM_POOL_REUSE)) {
        old = sim_find_believed(sim, pool, bytes, stream);
        believed = old != NULL;
        if (old == NULL) old = sim_find_free(sim, pool, bytes, stream, SIM_AGAIN_ORDERED);
        if (old == NULL) old = sim_find_free(sim, pool, bytes, stream, SIM_AGAIN_DONE);
    }
    if (old == NULL) error = sim_pool_fresh(sim, pool, context, bytes, name, stream, address);
    if (error) {
        sim_empty_pools(sim, pool->device);
        error = sim_pool_fresh(sim, pool, context, bytes, name, stream, address);
    }
    if (error) old = sim_find_free(sim, pool, bytes, stream, SIM_AGAIN_ORDERED);
    if (error && old == NULL) old = sim_find_free(sim, pool, bytes, stream, SIM_AGAIN_WAITING);
    if (old == NULL) return error;
    sim_pool_again(sim, context, old, bytes, name, stream, believed, address);
    return 0;
}

static int32_t sim_do_pool_create(cai_sim *sim, int32_t device, uint64_t *handle)
{
    sim_pool *pool;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    pool = sim_pool_make(sim, device);
    pool->no_access = ~((uint64_t)1 << device);
    *handle = pool->o.handle;
    return 0;
}

/* As the slot of the table makes one: reuse has a bit for each of the first attributes. It keeps its memory. */
static int32_t sim_do_pool_create_reusing(cai_sim *sim, int32_t device, uint32_t reuse, uint64_t *handle)
{
    sim_pool *pool;
    int32_t i, error = reuse > 7 ? CAI_SIM_ERROR_INVALID_VALUE : sim_do_pool_create(sim, device, handle);
    if (error) return error;
    pool = (sim_pool *)sim_object_of(&sim->pools, *handle);
    for (i = CAI_SIM_POOL_FOLLOW_EVENTS; i <= CAI_SIM_POOL_INTERNAL_WAITS; i++)
        pool->values[i] = reuse >> (i - CAI_SIM_POOL_FOLLOW_EVENTS) & 1;
    pool->values[CAI_SIM_POOL_THRESHOLD] = UINT64_MAX;
    return 0;
}

/* Its memory stays until it is freed. */
static int32_t sim_do_pool_destroy(cai_sim *sim, uint64_t handle)
{
    sim_pool *pool;
    const int32_t error = sim_find_pool(sim, handle, &pool);
    if (error || pool == sim_pool_at(sim, pool->device)) return CAI_SIM_ERROR_INVALID_VALUE;
    sim_end_object(sim, &pool->o);
    if (sim->current_pool[pool->device] == pool)
        sim->current_pool[pool->device] = sim_pool_at(sim, pool->device);
    sim_pool_trim(sim, pool, 0);
    return 0;
}

static int32_t sim_do_pool_set_current(cai_sim *sim, int32_t device, uint64_t handle)
{
    sim_pool *pool;
    const int32_t error = sim_find_pool(sim, handle, &pool);
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    if (error || pool->device != device) return CAI_SIM_ERROR_INVALID_VALUE;
    sim->current_pool[device] = pool;
    return 0;
}

static int32_t sim_do_pool_trim(cai_sim *sim, uint64_t handle, uint64_t keep)
{
    sim_pool *pool;
    const int32_t error = sim_find_pool(sim, handle, &pool);
    if (!error) sim_pool_trim(sim, pool, keep);
    return error;
}

static int32_t sim_do_pool_get(cai_sim *sim, uint64_t handle, int32_t attribute, uint64_t *value)
{
    sim_pool *pool;
    const int32_t error = sim_find_pool(sim, handle, &pool);
    if (error || value == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    if (attribute < CAI_SIM_POOL_FOLLOW_EVENTS || attribute > CAI_SIM_POOL_USED_HIGH)
        return CAI_SIM_ERROR_INVALID_VALUE;
    *value = pool->values[attribute];
    return 0;
}

static int32_t sim_do_pool_set(cai_sim *sim, uint64_t handle, int32_t attribute, uint64_t value)
{
    sim_pool *pool;
    const int high = attribute == CAI_SIM_POOL_RESERVED_HIGH || attribute == CAI_SIM_POOL_USED_HIGH;
    if (sim_find_pool(sim, handle, &pool)) return CAI_SIM_ERROR_INVALID_VALUE;
    if (attribute < CAI_SIM_POOL_FOLLOW_EVENTS || attribute > CAI_SIM_POOL_THRESHOLD) {
        if (!high || value != 0) return CAI_SIM_ERROR_INVALID_VALUE;
        value = pool->values[attribute - 1]; /* the highest one since now */
    } else if (attribute != CAI_SIM_POOL_THRESHOLD)
        value = value != 0;
    pool->values[attribute] = value;
    return 0;
}

static int32_t sim_do_pool_set_access(cai_sim *sim, uint64_t handle, int32_t device, int32_t yes)
{
    sim_pool *pool;
    if (sim_find_pool(sim, handle, &pool)) return CAI_SIM_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    if (device == pool->device) return yes ? 0 : CAI_SIM_ERROR_INVALID_VALUE;
    if (yes) pool->no_access &= ~((uint64_t)1 << device);
    else pool->no_access |= (uint64_t)1 << device;
    return 0;
}

static int32_t sim_pool_can(cai_sim *sim, uint64_t handle, int32_t device)
{
    sim_pool *pool;
    if (sim_find_pool(sim, handle, &pool) || device < 0 || device >= sim->device_count) return 0;
    return device == pool->device ||
           (!(pool->no_access >> device & 1) && !(sim->no_peer[device] >> pool->device & 1));
}

static int32_t sim_do_alloc(cai_sim *sim, int32_t kind, uint64_t bytes, uint64_t *address)
{
    sim_context *context;
    int32_t error = sim_use_context(sim, &context);
    if (!error && kind != CAI_SIM_MEM_POOL) error = sim_unsafe_call(sim);
    if (error) return error;
    if (kind < CAI_SIM_MEM_DEVICE || kind > CAI_SIM_MEM_ARRAY) return CAI_SIM_ERROR_INVALID_VALUE;
    if (bytes == 0) return 0;
    if (kind == CAI_SIM_MEM_POOL)
        return sim_pool_new(sim, sim->current_pool[context->device], context, bytes, "alloc", NULL, address);
    return sim_memory_new(sim, context, kind, bytes, "alloc", NULL, address);
}

/* The allocation that begins at an address and can be freed: of one of the kinds in a mask, and not mapped
 * here by ipc_open. */
static int32_t sim_find_memory(cai_sim *sim, uint64_t address, uint32_t kinds, sim_allocation **found)
{
    sim_allocation *a = sim_allocation_of(sim, address);
    *found = a;
    if (a == NULL || !a->live || a->freeing || a->origin != NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    return a->address == address && (kinds >> a->kind & 1) ? 0 : CAI_SIM_ERROR_INVALID_VALUE;
}

/* The host frees; memory that is not there yet is waited for. */
static void sim_memory_release(cai_sim *sim, sim_allocation *a, const char *name)
{
    const cai_sim_access whole = cai_sim_writes(a->address, a->bytes);
    if (a->maker) {
        sim_operation *sync = sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, name, NULL, 0);
        sim_wait_for(sync, a->maker);
        sim_run_for(sim, sync);
    }
    sim_offer(sim);
    sim_memory_end(sim, a);
    sim_trace(sim, CAI_SIM_OP_FREE, name, &whole, 1);
}

static int32_t sim_do_free(cai_sim *sim, uint64_t address)
{
    sim_allocation *a;
    int32_t error;
    if (address == 0) return 0;
    error = sim_find_memory(sim, address, SIM_ALL_KINDS, &a);
    if (!error && a->physical != NULL) error = CAI_SIM_ERROR_INVALID_VALUE;
    if (!error && a->kind != CAI_SIM_MEM_POOL) error = sim_unsafe_call(sim);
    if (!error) sim_memory_release(sim, a, "free");
    return error;
}

static int32_t sim_do_memory_alloc(cai_sim *sim, int32_t kind, uint64_t bytes, int flags_are_good,
                                   const char *name, uint64_t *address)
{
    sim_context *context;
    int32_t error = sim_use_context(sim, &context);
    const int empty = bytes == 0 && kind == CAI_SIM_MEM_PINNED; /* that is 0, and works */
    if (!error && ((bytes == 0 && !empty) || !flags_are_good)) error = CAI_SIM_ERROR_INVALID_VALUE;
    if (!error) error = sim_unsafe_call(sim);
    return error || empty ? error : sim_memory_new(sim, context, kind, bytes, name, NULL, address);
}

/* A free that waits does so for the context of the memory, or for all there are. */
static void sim_wait_to_free(cai_sim *sim, const sim_allocation *a, const char *name)
{
    int32_t i;
    if (a->context == NULL || sim_is_on(sim, CAI_SIM_FREE_RETURNS)) return;
    if (sim_is_on(sim, CAI_SIM_FREE_OWN_CONTEXT)) {
        sim_wait_for_context(sim, a->context, name);
        return;
    }
    for (i = 0; i < sim->contexts.count; i++) sim_wait_for_context(sim, sim->contexts.all[i]->context, name);
}

/* Pool memory has no context, and is not waited for. A pending error is reported, but it goes. */
static int32_t sim_do_memory_free(cai_sim *sim, uint64_t address, uint32_t kinds, const char *name)
{
    sim_context *context;
    sim_allocation *a;
    int32_t error = sim_need_context(sim, &context);
    if (context == NULL || !error) error = sim_find_memory(sim, address, kinds, &a);
    if (!error) error = sim_unsafe_call(sim);
    if (error) return error;
    sim_wait_to_free(sim, a, name);
    sim_memory_release(sim, a, name);
    if (a->context != NULL && a->context->error) return a->context->error;
    return context == NULL ? 0 : context->error;
}

static int32_t sim_do_pool_alloc(cai_sim *sim, uint64_t pool_handle, uint64_t bytes, uint64_t handle,
                                 uint64_t *address)
{
    sim_stream *stream;
    sim_pool *pool = NULL;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error && pool_handle) error = sim_find_pool(sim, pool_handle, &pool);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (!error) error = sim_unsafe_call(sim);
    if (error || bytes == 0) return error;
    if (pool == NULL) pool = sim->current_pool[stream->o.context->device];
    return sim_pool_new(sim, pool, stream->o.context, bytes, "memory_alloc_async", stream, address);
}

static int32_t sim_do_memory_alloc_async(cai_sim *sim, uint64_t bytes, uint64_t handle, uint64_t *address)
{
    return sim_do_pool_alloc(sim, 0, bytes, handle, address);
}

static int32_t sim_do_memory_free_async(cai_sim *sim, uint64_t address, uint64_t handle)
{
    sim_stream *stream;
    sim_allocation *a;
    sim_operation *op;
    cai_sim_access whole;
    int32_t error = sim_use_stream(sim, handle, &stream);
    if (!error) error = sim_find_memory(sim, address, SIM_FREED_IN_STREAMS, &a);
    if (!error) error = sim_may_not_capture(sim, stream);
    if (!error) error = sim_unsafe_call(sim);
    if (error) return error;
    whole = cai_sim_writes(address, a->bytes);
    op = sim_queue(sim, CAI_SIM_OP_FREE, stream, 0);
    sim_describe(sim, op, "memory_free_async", &whole, 1);
    op->frees = a;
    a->freeing = 1;
    a->freed_tag = sim->self->tag;
    if (a->pool != NULL && a->block != NULL)
        SIM_APPEND(sim_allocation *, a->pool->free, a->pool->free_count, a);
    a->ender = op->info.id;
    a->ender_stream = stream->id;
    return 0;
}

/* May host memory be registered? Pinned memory is registered already. */
static int32_t sim_may_register(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    int32_t i;
    for (i = 0; i < sim->allocation_count; i++) {
        const sim_allocation *a = sim->allocations[i];
        if (!a->live || address >= a->address + a->bytes || a->address >= address + bytes) continue;
        return a->kind == CAI_SIM_MEM_PINNED || a->kind == CAI_SIM_MEM_ALIASED ||
                       a->kind == CAI_SIM_MEM_REGISTERED
                   ? CAI_SIM_ERROR_ALREADY_REGISTERED
                   : CAI_SIM_ERROR_INVALID_VALUE;
    }
    return 0;
}

static int32_t sim_do_host_register(cai_sim *sim, uint64_t address, uint64_t bytes, uint32_t flags)
{
    enum { DEVICEMAP = 2, ALL_FLAGS = 15 };
    sim_context *context;
    int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    if (address == 0 || bytes == 0 || bytes > UINT64_MAX - address || flags > ALL_FLAGS)
        return CAI_SIM_ERROR_INVALID_VALUE;
    error = sim_may_register(sim, address, bytes);
    if (!error) error = sim_unsafe_call(sim);
    if (error) return error;
    sim_memory_at(sim, context, CAI_SIM_MEM_REGISTERED, address, bytes, "host_register", NULL)
        ->unmapped = !(flags & DEVICEMAP);
    return 0;
}

static int32_t sim_do_host_unregister(cai_sim *sim, uint64_t address)
{
    sim_context *context;
    sim_allocation *a;
    int32_t error = sim_need_context(sim, &context);
    if (error) return error;
    if (sim_find_memory(sim, address, 1u << CAI_SIM_MEM_REGISTERED, &a))
        return CAI_SIM_ERROR_NOT_REGISTERED;
    error = sim_unsafe_call(sim);
    if (error) return error;
    sim_memory_release(sim, a, "host_unregister");
    return context->error;
}

static int32_t sim_do_memory_info(cai_sim *sim, uint64_t *free_bytes, uint64_t *total_bytes)
{
    sim_context *context;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return sim_answer(sim, error);
    *free_bytes = sim_memory_left(sim, context->device);
    *total_bytes = sim->memory[context->device];
    return 0;
}

static const char sim_ipc_magic[8] = {'c', 'a', 'i', '_', 's', 'i', 'm', 0};

static int32_t sim_do_ipc_export(cai_sim *sim, uint64_t address, void *handle)
{
    const sim_allocation *a = sim_allocation_of(sim, address);
    sim_context *context;
    sim_ipc ipc;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    if (a == NULL || !a->live || a->kind != CAI_SIM_MEM_DEVICE || a->origin != NULL)
        return CAI_SIM_ERROR_INVALID_VALUE;
    memcpy(ipc.magic, sim_ipc_magic, sizeof ipc.magic);
    ipc.sim = sim;
    ipc.allocation = a;
    memcpy(handle, &ipc, sizeof ipc);
    return 0;
}

/* What maps an allocation of another simulation here, or NULL. */
static sim_allocation *sim_opened(cai_sim *sim, const sim_allocation *origin)
{
    int32_t i;
    for (i = 0; i < sim->allocation_count; i++)
        if (sim->allocations[i]->live && sim->allocations[i]->origin == origin) return sim->allocations[i];
    return NULL;
}

static int32_t sim_do_ipc_open(cai_sim *sim, const void *handle, uint64_t *address)
{
    sim_context *context;
    sim_allocation *a;
    sim_ipc ipc;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return error;
    memcpy(&ipc, handle, sizeof ipc);
    if (memcmp(ipc.magic, sim_ipc_magic, sizeof ipc.magic) != 0) return CAI_SIM_ERROR_INVALID_VALUE;
    if (ipc.sim == sim) return CAI_SIM_ERROR_INVALID_CONTEXT;
    if (!ipc.allocation->live) return CAI_SIM_ERROR_INVALID_VALUE;
    if (ipc.allocation->device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    a = sim_opened(sim, ipc.allocation);
    if (a != NULL && a->context != context) return CAI_SIM_ERROR_ALREADY_MAPPED;
    if (a == NULL) {
        a = sim_memory_at(sim, context, CAI_SIM_MEM_DEVICE, ipc.allocation->address, ipc.allocation->bytes,
                          "ipc_open", NULL);
        a->origin = ipc.allocation;
        a->device = ipc.allocation->device;
    }
    a->opened++;
    *address = a->address;
    return 0;
}

static int32_t sim_do_ipc_close(cai_sim *sim, uint64_t address)
{
    sim_allocation *a = sim_allocation_of(sim, address);
    sim_context *context;
    const int32_t error = sim_need_context(sim, &context);
    if (error) return error;
    if (a == NULL || !a->live || a->origin == NULL || a->address != address)
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (--a->opened == 0) sim_memory_release(sim, a, "ipc_close");
    return context->error;
}

/* "cai_sim device " and the number. */
static int32_t sim_do_device_uuid(cai_sim *sim, int32_t device, void *uuid)
{
    unsigned char bytes[SIM_UUID_BYTES + 1] = "cai_sim device ";
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    bytes[SIM_UUID_BYTES - 1] = (unsigned char)device;
    memcpy(uuid, bytes, SIM_UUID_BYTES);
    return 0;
}

/* ------------------------------------------------------------ >>virtual memory */
/* The system's part. Physical memory is a stretch of one file without a name, so that a mapping shows what
 * was in it before. Addresses without a mapping cannot be accessed. Addresses are never given back. */
#if defined(SIM_HAS_PAGES)
static void *sim_system_reserve(void *at, uint64_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at == NULL ? 0 : MAP_FIXED);
    void *pages = mmap(at, (size_t)bytes, PROT_NONE, flags, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static int sim_system_grow(cai_sim *sim, uint64_t bytes)
{
    if (sim->file < 0) sim->file = memfd_create("cai_sim", MFD_CLOEXEC);
    if (sim->file < 0 || ftruncate(sim->file, (off_t)(sim->file_bytes + bytes))) return 0;
    sim->file_bytes += bytes;
    return 1;
}

static void *sim_system_map(cai_sim *sim, void *to, uint64_t at, uint64_t bytes)
{
    const int flags = MAP_SHARED | (to == NULL ? 0 : MAP_FIXED);
    void *pages = mmap(to, (size_t)bytes, PROT_READ | PROT_WRITE, flags, sim->file, (off_t)at);
    return pages == MAP_FAILED ? NULL : pages;
}

static void sim_system_discard(cai_sim *sim, uint64_t at, uint64_t bytes)
{
    void *pages = sim_system_map(sim, NULL, at, bytes);
    if (pages == NULL) return;
    (void)madvise(pages, (size_t)bytes, MADV_REMOVE);
    (void)munmap(pages, (size_t)bytes);
}

static void sim_system_free(void *block, uint64_t bytes)
{
    (void)munmap(block, (size_t)bytes);
}

static void sim_system_close(int file)
{
    if (file >= 0) (void)close(file);
}
#else
enum { SIM_NO_VIRTUAL_MEMORY };
#define sim_system_reserve(at, bytes) ((void)(at), (void)(bytes), (void *)NULL)
#define sim_system_grow(sim, bytes) ((void)(sim), (void)(bytes), 0)
#define sim_system_map(sim, to, at, bytes) ((void)(sim), (void)(to), (void)(at), (void)(bytes), (void *)NULL)
#define sim_system_discard(sim, at, bytes) ((void)(sim), (void)(at), (void)(bytes))
#define sim_system_free(block, bytes) ((void)(block), (void)(bytes))
#define sim_system_close(file) ((void)(file))
#endif

static void sim_virtual_end(cai_sim *sim)
{
    int32_t i;
    for (i = 0; i < sim->range_count; i++) {
        if (sim->ranges[i]->block != NULL) sim_system_free(sim->ranges[i]->block, sim->ranges[i]->space);
        free(sim->ranges[i]);
    }
    free(sim->ranges);
    free(sim->beliefs);
    sim_system_close(sim->file);
}

/* The live mapping around an address, or NULL. */
static sim_allocation *sim_mapping_of(cai_sim *sim, uint64_t address)
{
    sim_allocation *a = sim_allocation_of(sim, address);
    return a != NULL && a->live && a->physical != NULL ? a : NULL;
}

/* How many of the bytes from an address on are mapped without a gap. */
static uint64_t sim_mapped(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    uint64_t count = 0;
    while (count < bytes) {
        const sim_allocation *a = sim_mapping_of(sim, address + count);
        if (a == NULL) break;
        count = a->address + a->bytes - address;
    }
    return count < bytes ? count : bytes;
}

/* Does a stretch consist of whole mappings? */
static int sim_is_whole(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    const sim_allocation *first = sim_mapping_of(sim, address), *last;
    if (bytes == 0 || first == NULL || first->address != address) return 0;
    if (bytes > UINT64_MAX - address || sim_mapped(sim, address, bytes) != bytes) return 0;
    last = sim_mapping_of(sim, address + bytes - 1);
    return last->address + last->bytes == address + bytes;
}

static int32_t sim_do_virtual_reserve(cai_sim *sim, uint64_t bytes, uint64_t alignment, uint64_t *address)
{
    enum { PAGE = 4096 };
    sim_range *range;
    void *block;
    uint64_t step = alignment < CAI_SIM_GRANULARITY ? (uint64_t)CAI_SIM_GRANULARITY : alignment;
    if (bytes == 0 || bytes % PAGE || (alignment & (alignment - 1))) return CAI_SIM_ERROR_INVALID_VALUE;
    if (bytes > SIZE_MAX / 4 || step > SIZE_MAX / 4) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    *address = sim_take_adopted(sim);
    block = *address ? NULL : sim_system_reserve(NULL, bytes + step);
    if (block == NULL && !*address) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    range = (sim_range *)sim_new(sizeof *range);
    SIM_APPEND(sim_range *, sim->ranges, sim->range_count, range);
    range->block = block;
    range->space = bytes + step;
    range->address = block == NULL ? *address : ((uint64_t)(uintptr_t)block + step - 1) / step * step;
    range->bytes = bytes;
    range->live = 1;
    *address = range->address;
    return 0;
}

/* Is anything mapped in a stretch? */
static int sim_has_mapping(const cai_sim *sim, uint64_t address, uint64_t bytes)
{
    int32_t i;
    for (i = 0; i < sim->allocation_count; i++) {
        const sim_allocation *a = sim->allocations[i];
        if (a->live && a->physical != NULL && a->address < address + bytes && address < a->address + a->bytes)
            return 1;
    }
    return 0;
}

static int32_t sim_do_virtual_free(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    int32_t i;
    for (i = 0; i < sim->range_count; i++) {
        sim_range *range = sim->ranges[i];
        if (!range->live || range->address != address || range->bytes != bytes) continue;
        if (sim_has_mapping(sim, address, bytes)) return CAI_SIM_ERROR_INVALID_VALUE;
        range->live = 0;
        return 0;
    }
    return CAI_SIM_ERROR_INVALID_VALUE;
}

static int32_t sim_find_physical(const cai_sim *sim, uint64_t handle, sim_physical **physical)
{
    sim_object *object = sim_object_of(&sim->physicals, handle);
    *physical = (sim_physical *)object;
    return object == NULL || object->state != SIM_LIVE ? CAI_SIM_ERROR_INVALID_VALUE : 0;
}

static int32_t sim_do_physical_create(cai_sim *sim, int32_t device, uint64_t bytes, uint64_t *handle)
{
    sim_physical *physical;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    if (bytes == 0 || bytes % CAI_SIM_GRANULARITY) return CAI_SIM_ERROR_INVALID_VALUE;
    if (bytes > sim_memory_left(sim, device)) sim_empty_pools(sim, device);
    if (bytes > sim_memory_left(sim, device)) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    if (!sim->adopts && !sim_system_grow(sim, bytes)) return CAI_SIM_ERROR_OUT_OF_MEMORY;
    physical = (sim_physical *)sim_object_make(&sim->physicals, NULL, sizeof *physical);
    *handle = sim_place(sim, &sim->physicals, &physical->o);
    physical->device = device;
    physical->bytes = bytes;
    physical->at = sim->adopts ? 0 : sim->file_bytes - bytes;
    physical->handles = 1;
    sim->memory_used[device] += bytes;
    return 0;
}

static int32_t sim_do_physical_retain(cai_sim *sim, uint64_t address, uint64_t *handle)
{
    const sim_allocation *a = sim_mapping_of(sim, address);
    if (a == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    a->physical->handles++;
    a->physical->o.state = SIM_LIVE;
    *handle = a->physical->o.handle;
    return 0;
}

/* The memory goes with its last handle or its last mapping. */
static void sim_physical_settle(cai_sim *sim, sim_physical *physical)
{
    if (physical->handles || physical->mappings) return;
    physical->o.state = SIM_DEAD;
    physical->o.destroyed = ++sim->destroyed;
    sim->memory_used[physical->device] -= physical->bytes;
    if (!sim->adopts) sim_system_discard(sim, physical->at, physical->bytes);
}

static int32_t sim_do_physical_release(cai_sim *sim, uint64_t handle)
{
    sim_physical *physical;
    const int32_t error = sim_find_physical(sim, handle, &physical);
    if (error) return error;
    if (--physical->handles == 0) physical->o.state = SIM_ORPHAN;
    sim_physical_settle(sim, physical);
    return 0;
}

static int32_t sim_do_virtual_map(cai_sim *sim, uint64_t address, uint64_t bytes, uint64_t offset,
                                  uint64_t handle)
{
    const sim_range *range = sim_range_of(sim, address);
    sim_physical *physical;
    sim_allocation *a;
    const int32_t error = sim_find_physical(sim, handle, &physical);
    if (error || range == NULL || !range->live || offset != 0) return CAI_SIM_ERROR_INVALID_VALUE;
    if (bytes == 0 || address % CAI_SIM_GRANULARITY || bytes % CAI_SIM_GRANULARITY ||
        bytes > physical->bytes || bytes > range->bytes - (address - range->address))
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (sim_has_mapping(sim, address, bytes)) return CAI_SIM_ERROR_INVALID_VALUE;
    if (!sim->adopts && sim_system_map(sim, (void *)(uintptr_t)address, physical->at, bytes) == NULL)
        return CAI_SIM_ERROR_OUT_OF_MEMORY;
    a = sim_memory_at(sim, sim->contexts.all[physical->device]->context, CAI_SIM_MEM_VIRTUAL, address, bytes,
                      "virtual_map", NULL);
    a->space = a->segment = bytes;
    a->physical = physical;
    physical->mappings++;
    return 0;
}

static void sim_unmap(cai_sim *sim, sim_allocation *a)
{
    sim_physical *physical = a->physical;
    const cai_sim_access whole = cai_sim_reads(a->address, a->bytes);
    if (!sim_forgets(sim, SIM_LARGE) && !sim->adopts) a->digest = sim_digest_of(sim, a->bytes, &whole, 1);
    sim_memory_release(sim, a, "virtual_unmap");
    if (!sim->adopts) (void)sim_system_reserve((void *)(uintptr_t)a->address, a->bytes);
    physical->mappings--;
    sim_physical_settle(sim, physical);
}

static int32_t sim_do_virtual_unmap(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    uint64_t done;
    int32_t i;
    if (!sim_is_whole(sim, address, bytes)) return CAI_SIM_ERROR_INVALID_VALUE;
    for (i = 0; i < sim->contexts.count && !sim_is_on(sim, CAI_SIM_FREE_RETURNS); i++)
        sim_wait_for_context(sim, sim->contexts.all[i]->context, "virtual_unmap");
    for (done = 0; done < bytes;) {
        sim_allocation *a = sim_mapping_of(sim, address + done);
        done += a->bytes;
        sim_unmap(sim, a);
    }
    return 0;
}

static int32_t sim_do_virtual_set_access(cai_sim *sim, uint64_t address, uint64_t bytes, int32_t device,
                                         int32_t access)
{
    const uint64_t bit = (uint64_t)1 << (device & (CAI_SIM_DEVICES - 1));
    uint64_t done;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    if (access != CAI_SIM_ACCESS_NONE && access != CAI_SIM_ACCESS_READ && access != CAI_SIM_ACCESS_READ_WRITE)
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (!sim_is_whole(sim, address, bytes)) return CAI_SIM_ERROR_INVALID_VALUE;
    for (done = 0; done < bytes;) {
        sim_allocation *a = sim_mapping_of(sim, address + done);
        done += a->bytes;
        a->can_read &= ~bit;
        a->can_write &= ~bit;
        if (access != CAI_SIM_ACCESS_NONE) a->can_read |= bit;
        if (access == CAI_SIM_ACCESS_READ_WRITE) a->can_write |= bit;
    }
    return 0;
}

static int32_t sim_virtual_access(cai_sim *sim, uint64_t address, int32_t device)
{
    const sim_allocation *a = sim_mapping_of(sim, address);
    if (a == NULL || device < 0 || device >= sim->device_count) return CAI_SIM_ACCESS_NONE;
    if (a->can_write >> device & 1) return CAI_SIM_ACCESS_READ_WRITE;
    return a->can_read >> device & 1 ? CAI_SIM_ACCESS_READ : CAI_SIM_ACCESS_NONE;
}

/* ------------------------------------------------------------------- >>pointers */
static int32_t sim_do_pointer_info(cai_sim *sim, uint64_t pointer, cai_cuda_pointer *info)
{
    static const int32_t memory[] = {CAI_MEMORY_DEVICE, CAI_MEMORY_MANAGED, CAI_MEMORY_PINNED,
                                     CAI_MEMORY_PINNED, CAI_MEMORY_PINNED,  CAI_MEMORY_DEVICE,
                                     CAI_MEMORY_DEVICE, CAI_MEMORY_DEVICE};
    const sim_allocation *a = sim_allocation_of(sim, pointer);
    const sim_context *current = sim_current_context(sim);
    info->memory = CAI_MEMORY_HOST;
    info->device = CAI_DEVICE_UNKNOWN;
    if (a == NULL || !a->live || sim_answers_zero(sim)) return 0;
    info->memory = memory[a->kind];
    info->device = a->device;
    info->flags = a->kind == CAI_SIM_MEM_POOL    ? (uint32_t)CAI_POINTER_POOL
                  : a->kind == CAI_SIM_MEM_ARRAY ? (uint32_t)CAI_POINTER_ARRAY
                                                 : 0;
    info->context = a->context == NULL ? 0 : a->context->o.handle;
    if (current == NULL ? sim_is_on(sim, CAI_SIM_NEED_CONTEXT) : sim_lacks_access(sim, current->device, a))
        info->flags |= CAI_POINTER_NO_CONTEXT;
    else info->device_pointer = a->unmapped ? 0 : pointer + a->device_offset;
    return 0;
}

/* Widens a mapping to those that are right before and behind it. */
static void sim_mapping_around(cai_sim *sim, uint64_t *base, uint64_t *size)
{
    const sim_range *range = sim_range_of(sim, *base);
    const sim_allocation *a;
    while (*base > range->address && (a = sim_mapping_of(sim, *base - 1)) != NULL) {
        *size += a->bytes;
        *base = a->address;
    }
    *size = sim_mapped(sim, *base, range->address + range->bytes - *base);
}

static int32_t sim_do_pointer_range(cai_sim *sim, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    const sim_allocation *a = sim_allocation_of(sim, pointer);
    sim_context *context;
    const int32_t error = sim_use_context(sim, &context);
    if (error) return sim_answer(sim, error);
    if (a == NULL || !a->live || a->kind == CAI_SIM_MEM_ARRAY) return CAI_SIM_ERROR_NOT_FOUND;
    *base = a->address;
    *size = a->bytes;
    if (a->physical != NULL) {
        if (!sim_is_on(sim, CAI_SIM_SEGMENTS)) sim_mapping_around(sim, base, size);
        return 0;
    }
    if (a->kind != CAI_SIM_MEM_VIRTUAL || !sim_is_on(sim, CAI_SIM_SEGMENTS)) return 0;
    *base += (pointer - a->address) / a->segment * a->segment;
    *size -= *base - a->address;
    if (*size > a->segment) *size = a->segment;
    return 0;
}

/* The flags of CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, for the device of the current context. */
static int32_t sim_access_flags(cai_sim *sim, const sim_allocation *a)
{
    const sim_context *current = sim_current_context(sim);
    if (current == NULL || a->unmapped || sim_lacks_access(sim, current->device, a)) return 0;
    if (a->physical == NULL || (a->can_write >> current->device & 1)) return CAI_SIM_ACCESS_READ_WRITE;
    return CAI_SIM_ACCESS_READ;
}

static void sim_fill_pointer(cai_sim *sim, const sim_allocation *a, uint64_t offset, cai_sim_pointer *out)
{
    const int managed = a->kind == CAI_SIM_MEM_MANAGED;
    const int host = managed || a->kind == CAI_SIM_MEM_PINNED || a->kind == CAI_SIM_MEM_ALIASED ||
                     a->kind == CAI_SIM_MEM_REGISTERED;
    const sim_range *range = a->physical == NULL ? NULL : sim_range_of(sim, a->address);
    out->kind = a->kind;
    out->device = a->device;
    out->context = a->context == NULL ? 0 : a->context->o.handle;
    out->mapping = out->first = a->address;
    out->mapping_bytes = out->bytes = a->bytes;
    if (range != NULL) out->first = range->address;
    if (range != NULL) out->bytes = range->bytes;
    out->buffer = (uint64_t)a->number;
    out->physical = a->physical == NULL ? 0 : a->physical->o.handle;
    out->pool = a->pool == NULL ? 0 : a->pool->o.handle;
    out->device_address = a->unmapped ? 0 : a->address + offset + a->device_offset;
    out->host_address = host ? a->address + offset : 0;
    out->managed = managed;
    out->mapped = 1;
    out->exportable = a->kind == CAI_SIM_MEM_DEVICE && a->origin == NULL;
    out->access = sim_access_flags(sim, a);
    out->ending = a->freeing;
}

static int32_t sim_do_pointer_get(cai_sim *sim, uint64_t address, cai_sim_pointer *out)
{
    uint64_t offset = 0;
    const sim_allocation *a = sim_allocation_at(sim, address, &offset);
    const sim_range *range = sim_range_of(sim, address);
    if (out == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    out->kind = CAI_SIM_MEM_NONE;
    out->device = CAI_DEVICE_UNKNOWN;
    if (a != NULL && a->live) {
        sim_fill_pointer(sim, a, offset, out);
        return 0;
    }
    if (range == NULL || !range->live) return CAI_SIM_ERROR_INVALID_VALUE;
    out->kind = CAI_SIM_MEM_VIRTUAL;
    out->first = range->address;
    out->bytes = range->bytes;
    return 0;
}

static int32_t sim_do_device_attribute(cai_sim *sim, int32_t device, int32_t attribute, int32_t *value)
{
    if (attribute != CAI_ATTRIBUTE_PAGEABLE_ACCESS && attribute != CAI_ATTRIBUTE_CONCURRENT_MANAGED)
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    *value = attribute == CAI_ATTRIBUTE_PAGEABLE_ACCESS ? sim->pageable[device] : !sim->no_concurrent[device];
    return 0;
}

/* ------------------------------------------------------------------- >>copies */
/* Where memory is: what the host waits for depends on it. */
enum { SIM_PAGEABLE, SIM_PINNED, SIM_ON_DEVICE };

static int sim_side_of(cai_sim *sim, uint64_t address)
{
    uint64_t offset;
    const sim_allocation *a = sim_allocation_at(sim, address, &offset);
    if (a == NULL || !a->live) return SIM_PAGEABLE;
    if (a->kind == CAI_SIM_MEM_PINNED || a->kind == CAI_SIM_MEM_ALIASED || a->kind == CAI_SIM_MEM_REGISTERED)
        return SIM_PINNED;
    if (a->kind == CAI_SIM_MEM_MANAGED && !sim_is_on(sim, CAI_SIM_COPY_RETURNS)) return SIM_PINNED;
    return SIM_ON_DEVICE;
}

/* The bytes from the first one to behind the last one. 0: they leave the address space, or rows overlap. */
static uint64_t sim_span(const cai_sim_rows *rows, const cai_sim_extent *e)
{
    uint64_t plane = e->width, whole;
    if (e->height > 1 && (rows->pitch < e->width || rows->pitch > UINT64_MAX / e->height)) return 0;
    if (e->height > 1) plane = (e->height - 1) * rows->pitch + e->width;
    if (e->depth > 1 && (rows->plane < plane || rows->plane > UINT64_MAX / e->depth)) return 0;
    whole = e->depth > 1 ? (e->depth - 1) * rows->plane + plane : plane;
    return rows->address && whole - 1 <= UINT64_MAX - rows->address ? whole : 0;
}

/* Can the rows be accessed as far as is known now? */
static int sim_rows_are_good(cai_sim *sim, const cai_sim_rows *rows, const cai_sim_extent *extent)
{
    const uint64_t span = sim_span(rows, extent);
    uint64_t offset = 0;
    const sim_allocation *a = sim_allocation_at(sim, rows->address, &offset);
    if (span == 0 || span > SIZE_MAX) return 0;
    if (sim_is_plain(a)) return sim_range_of(sim, rows->address) == NULL;
    if (a->live && a->physical != NULL) return sim_mapped(sim, rows->address, span) == span;
    return a->live && span <= a->bytes - offset;
}

/* The rows as accesses, joined where they follow one another. Returns their number. */
static int32_t sim_rows_accesses(cai_sim_access **accesses, int32_t count, const cai_sim_rows *rows,
                                 const cai_sim_extent *e, int32_t write)
{
    const int32_t first = count;
    uint64_t y, z;
    for (z = 0; z < e->depth; z++) {
        for (y = 0; y < e->height; y++) {
            cai_sim_access row = cai_sim_reads(sim_row(rows, y, z), e->width);
            cai_sim_access *last = count > first ? &(*accesses)[count - 1] : NULL;
            row.write = write;
            if (last != NULL && last->address + last->bytes == row.address) last->bytes += row.bytes;
            else SIM_APPEND(cai_sim_access, *accesses, count, row);
        }
    }
    return count;
}

/* The host reads pageable memory now, for a copy that runs later. */
static void sim_stage(cai_sim *sim, sim_copy *copy)
{
    const cai_sim_extent *e = &copy->extent;
    cai_sim_access *accesses = NULL;
    const int32_t count = sim_rows_accesses(&accesses, 0, &copy->from, e, 0);
    unsigned char *to = copy->staged = (unsigned char *)sim_new((size_t)(e->width * e->height * e->depth));
    uint64_t y, z;
    sim_offer(sim);
    for (z = 0; z < e->depth && !sim->adopts; z++)
        for (y = 0; y < e->height; y++, to += e->width)
            memcpy(to, (const void *)(uintptr_t)sim_row(&copy->from, y, z), (size_t)e->width);
    sim_trace(sim, CAI_SIM_OP_HOST_ACCESS, "copy", accesses, count);
    free(accesses);
}

static sim_operation *sim_queue_copy(cai_sim *sim, sim_stream *stream, const sim_copy *copy)
{
    sim_operation *op = sim_queue(sim, CAI_SIM_OP_COPY, stream, 0);
    cai_sim_access *accesses = NULL;
    int32_t count = 0;
    if (!copy->unit && copy->staged == NULL)
        count = sim_rows_accesses(&accesses, count, &copy->from, &copy->extent, 0);
    count = sim_rows_accesses(&accesses, count, &copy->to, &copy->extent, 1);
    sim_describe(sim, op, copy->unit ? "set" : "copy", accesses, count);
    free(accesses);
    op->copy = (sim_copy *)sim_new(sizeof *copy);
    *op->copy = *copy;
    return op;
}

/* Does the host wait until a copy is done? */
static int sim_copy_waits(const cai_sim *sim, int to, int from, int async)
{
    const int devices = (to == SIM_ON_DEVICE) + (from == SIM_ON_DEVICE);
    const int pageable = to == SIM_PAGEABLE || from == SIM_PAGEABLE;
    if (devices == 0) return 1;
    if (devices == 2) return 0;
    if (pageable && (async || from == SIM_PAGEABLE)) return !sim_is_on(sim, CAI_SIM_COPY_RETURNS);
    return !async;
}

static int32_t sim_may_copy(cai_sim *sim, uint64_t handle, int async, sim_stream **stream)
{
    int32_t error = sim_use_stream(sim, handle, stream);
    if (!error) error = sim_may_queue(sim, *stream);
    if (!error && !async) error = sim_may_not_capture(sim, *stream);
    if (!error && !async) error = sim_unsafe_call(sim);
    return error;
}

static int32_t sim_run_copy(cai_sim *sim, sim_stream *stream, const sim_copy *copy, int waits)
{
    const sim_operation *op = sim_queue_copy(sim, stream, copy);
    sim_operation *sync;
    if (!waits || op->info.state == CAI_SIM_STATE_CAPTURED) return 0;
    sync = sim_trace(sim, CAI_SIM_OP_SYNCHRONIZE, op->name, NULL, 0);
    sim_wait_for(sync, op->info.id);
    sim_run_for(sim, sync);
    return stream->o.context->error;
}

static int sim_is_nothing(const cai_sim_extent *extent)
{
    return extent != NULL && (extent->width == 0 || extent->height == 0 || extent->depth == 0);
}

static int32_t sim_do_copy(cai_sim *sim, const cai_sim_rows *to, const cai_sim_rows *from,
                           const cai_sim_extent *extent, uint64_t handle, int async)
{
    sim_stream *stream;
    sim_copy copy;
    int to_side, from_side;
    const int32_t error = sim_may_copy(sim, handle, async, &stream);
    if (error || sim_is_nothing(extent)) return error;
    if (to == NULL || from == NULL || extent == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    if (!sim_rows_are_good(sim, to, extent) || !sim_rows_are_good(sim, from, extent))
        return CAI_SIM_ERROR_INVALID_VALUE;
    memset(&copy, 0, sizeof copy);
    copy.to = *to;
    copy.from = *from;
    copy.extent = *extent;
    to_side = sim_side_of(sim, to->address);
    from_side = sim_side_of(sim, from->address);
    if (!async && from_side == SIM_PAGEABLE && to_side == SIM_ON_DEVICE) {
        sim_wait_for_stream(sim, stream, "copy");
        if (sim_is_on(sim, CAI_SIM_COPY_RETURNS)) sim_stage(sim, &copy);
    }
    return sim_run_copy(sim, stream, &copy, sim_copy_waits(sim, to_side, from_side, async));
}

static int32_t sim_do_copy_bytes(cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t handle,
                                 int async)
{
    cai_sim_rows to_rows, from_rows;
    cai_sim_extent extent;
    memset(&to_rows, 0, sizeof to_rows);
    from_rows = to_rows;
    to_rows.address = to;
    from_rows.address = from;
    extent.width = bytes;
    extent.height = extent.depth = 1;
    return sim_do_copy(sim, &to_rows, &from_rows, &extent, handle, async);
}

static int32_t sim_do_set(cai_sim *sim, const cai_sim_rows *to, const cai_sim_extent *extent, uint32_t value,
                          uint32_t unit, uint64_t handle, int async)
{
    sim_stream *stream;
    sim_copy copy;
    const sim_allocation *a;
    uint64_t odd, offset;
    const int32_t error = sim_may_copy(sim, handle, async, &stream);
    if (error || sim_is_nothing(extent)) return error;
    if (to == NULL || extent == NULL) return CAI_SIM_ERROR_INVALID_VALUE;
    if (unit != 1 && unit != 2 && unit != 4) return CAI_SIM_ERROR_INVALID_VALUE;
    odd = to->address | extent->width;
    if (extent->height > 1) odd |= to->pitch;
    if (extent->depth > 1) odd |= to->plane;
    a = sim_allocation_at(sim, to->address, &offset);
    if (a == NULL || odd % unit || !sim_rows_are_good(sim, to, extent)) return CAI_SIM_ERROR_INVALID_VALUE;
    memset(&copy, 0, sizeof copy);
    copy.to = *to;
    copy.extent = *extent;
    copy.value = value;
    copy.unit = unit;
    async = async || (a->kind != CAI_SIM_MEM_MANAGED && sim_side_of(sim, to->address) == SIM_ON_DEVICE);
    return sim_run_copy(sim, stream, &copy, !async);
}

/* The rows of a copy of the table. The pitch and the height count there even where there is one row. */
static int32_t sim_do_copy_3d(cai_sim *sim, const cai_cuda_copy *copy, uint64_t handle)
{
    cai_sim_rows to, from;
    cai_sim_extent extent;
    extent.width = copy->width;
    extent.height = copy->height;
    extent.depth = copy->depth;
    to.address = copy->to;
    to.pitch = copy->to_pitch;
    from.address = copy->from;
    from.pitch = copy->from_pitch;
    if (to.pitch < extent.width || from.pitch < extent.width) return CAI_SIM_ERROR_INVALID_VALUE;
    if (copy->to_height < extent.height || copy->from_height < extent.height)
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (copy->to_height > UINT64_MAX / to.pitch || copy->from_height > UINT64_MAX / from.pitch)
        return CAI_SIM_ERROR_INVALID_VALUE;
    to.plane = copy->to_height * to.pitch;
    from.plane = copy->from_height * from.pitch;
    return sim_do_copy(sim, &to, &from, &extent, handle, 1);
}

/* One end of a copy between devices: device memory, and the context that pointer_info tells of it. That of
 * memory without one is of its device. */
static int32_t sim_check_peer(cai_sim *sim, uint64_t address, uint64_t handle)
{
    uint64_t offset;
    const sim_context *context = sim_context_of(sim, handle);
    const sim_allocation *a = sim_allocation_at(sim, address, &offset);
    if (context == NULL && handle != 0) return CAI_SIM_ERROR_INVALID_CONTEXT;
    if (context != NULL && context->error) return context->error;
    if (a == NULL || !a->live) return CAI_SIM_ERROR_INVALID_VALUE;
    if (a->kind != CAI_SIM_MEM_MANAGED && sim_side_of(sim, address) != SIM_ON_DEVICE)
        return CAI_SIM_ERROR_INVALID_VALUE;
    if (context == NULL) return 0; /* that of the memory */
    if (a->context != NULL) return a->context == context ? 0 : CAI_SIM_ERROR_INVALID_VALUE;
    return a->device == context->device ? 0 : CAI_SIM_ERROR_INVALID_VALUE;
}

static int32_t sim_do_copy_peer(cai_sim *sim, uint64_t to, uint64_t to_context, uint64_t from,
                                uint64_t from_context, uint64_t bytes, uint64_t handle)
{
    int32_t error = sim_check_peer(sim, to, to_context);
    if (!error) error = sim_check_peer(sim, from, from_context);
    return error ? error : sim_do_copy_bytes(sim, to, from, bytes, handle, 1);
}

static int32_t sim_do_copy_3d_peer(cai_sim *sim, const cai_cuda_copy *copy, uint64_t to_context,
                                   uint64_t from_context, uint64_t handle)
{
    int32_t error = sim_check_peer(sim, copy->to, to_context);
    if (!error) error = sim_check_peer(sim, copy->from, from_context);
    return error ? error : sim_do_copy_3d(sim, copy, handle);
}

/* Both ends of a copy that names no contexts: memory of a pool is found by way of the current one, or not. */
static int32_t sim_check_pools(cai_sim *sim, uint64_t to, uint64_t from)
{
    const sim_context *current = sim_current_context(sim);
    const uint64_t ends[2] = {to, from};
    uint64_t offset;
    int32_t i;
    for (i = 0; i < 2 && sim_is_on(sim, CAI_SIM_COPY_NEEDS_ACCESS); i++) {
        const sim_allocation *a = sim_allocation_at(sim, ends[i], &offset);
        if (a == NULL || a->pool == NULL) continue;
        if (current == NULL || sim_lacks_access(sim, current->device, a)) return CAI_SIM_ERROR_INVALID_VALUE;
    }
    return 0;
}

static int32_t sim_do_copy_here(cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t handle)
{
    const int32_t error = sim_check_pools(sim, to, from);
    return error ? error : sim_do_copy_bytes(sim, to, from, bytes, handle, 1);
}

static int32_t sim_do_copy_3d_here(cai_sim *sim, const cai_cuda_copy *copy, uint64_t handle)
{
    const int32_t error = sim_check_pools(sim, copy->to, copy->from);
    return error ? error : sim_do_copy_3d(sim, copy, handle);
}

static int32_t sim_do_set_2d(cai_sim *sim, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width,
                             uint64_t height, uint64_t handle)
{
    cai_sim_rows rows;
    cai_sim_extent extent;
    memset(&rows, 0, sizeof rows);
    rows.address = to;
    rows.pitch = pitch;
    extent.width = width;
    extent.height = height;
    extent.depth = 1;
    if (pitch < width) return CAI_SIM_ERROR_INVALID_VALUE;
    return sim_do_set(sim, &rows, &extent, value, 1, handle, 1);
}

/* -------------------------------------------------------------------- >>table */
/* Each piece of a line begins with its blank. */
static void sim_log(cai_sim *sim, const char *word)
{
    sim_put(&sim->log, " ");
    sim_put(&sim->log, word);
}

static void sim_log_number(cai_sim *sim, uint64_t number)
{
    sim_put(&sim->log, " ");
    sim_put_number(&sim->log, number, 10);
}

static void sim_log_int(cai_sim *sim, int32_t number)
{
    sim_put(&sim->log, number < 0 ? " -" : " ");
    sim_put_number(&sim->log, (uint64_t)(number < 0 ? -(int64_t)number : number), 10);
}

static void sim_log_object(cai_sim *sim, const sim_kind *kind, uint64_t handle)
{
    const sim_object *object = sim_object_of(kind, handle);
    sim_log(sim, object == NULL ? "0x" : kind->letter);
    sim_put_number(&sim->log, object == NULL ? handle : (uint64_t)object->number, object == NULL ? 16 : 10);
}

static void sim_log_context(cai_sim *sim, uint64_t handle)
{
    if (handle == 0) sim_log(sim, "none");
    else sim_log_object(sim, &sim->contexts, handle);
}

static void sim_log_stream(cai_sim *sim, uint64_t handle)
{
    if (handle == CAI_STREAM_LEGACY) sim_log(sim, "legacy");
    else if (handle == CAI_STREAM_PER_THREAD) sim_log(sim, "per_thread");
    else sim_log_object(sim, &sim->streams, handle);
}

static void sim_log_event(cai_sim *sim, uint64_t handle)
{
    sim_log_object(sim, &sim->events, handle);
}

static void sim_log_address(cai_sim *sim, uint64_t address)
{
    const sim_allocation *a = sim_allocation_of(sim, address);
    sim_log(sim, a == NULL ? "0x" : "m");
    sim_put_number(&sim->log, a == NULL ? address : (uint64_t)a->number, a == NULL ? 16 : 10);
    if (a == NULL || address == a->address) return;
    sim_put(&sim->log, "+");
    sim_put_number(&sim->log, address - a->address, 10);
}

static void sim_log_flags(cai_sim *sim, uint64_t bytes, uint32_t flags)
{
    sim_log_number(sim, bytes);
    sim_log(sim, "flags");
    sim_log_number(sim, flags);
}

static void sim_log_mode(cai_sim *sim, const int32_t *mode)
{
    static const char *const words[] = {"global", "thread_local", "relaxed"};
    if (mode == NULL) return;
    if (*mode >= CAI_SIM_MODE_GLOBAL && *mode <= CAI_SIM_MODE_RELAXED) sim_log(sim, words[*mode]);
    else sim_log_int(sim, *mode);
}

static void sim_log_capture(cai_sim *sim, const cai_cuda_capture *capture)
{
    static const char *const words[] = {"none", "active", "invalidated"};
    sim_log(sim, words[capture->status]);
    if (capture->status == CAI_CAPTURE_ACTIVE) sim_log_number(sim, capture->id);
}

static void sim_log_pointer(cai_sim *sim, const cai_cuda_pointer *info)
{
    static const char *const words[] = {"unknown", "host", "pinned", "managed", "device"};
    sim_log(sim, words[info->memory]);
    sim_log_int(sim, info->device);
    sim_log_context(sim, info->context);
}

/* A call of the table between sim_call_begin and sim_call_end. */
typedef struct sim_call {
    cai_sim *sim;
    int entered, run, omitted;
    int32_t error;
} sim_call;

/* A call with handles that must do without a current context, where that is none of its business. */
static int sim_lacks_context(cai_sim *sim, int32_t operation)
{
    const int by_handle = operation == SIM_event_record || operation == SIM_event_synchronize ||
                          operation == SIM_event_destroy || operation == SIM_stream_wait_event ||
                          operation == SIM_stream_synchronize ||
                          (operation >= SIM_copy_async && operation <= SIM_copy_3d_peer_async);
    return by_handle && sim_is_on(sim, CAI_SIM_HANDLES_NEED_CONTEXT) && sim_current_context(sim) == NULL;
}

static void sim_do_set_device_error(cai_sim *sim, int32_t device, int32_t error)
{
    int32_t i;
    for (i = 0; i < sim->contexts.count; i++) {
        sim_context *context = sim->contexts.all[i]->context;
        if (context->device == device && context->o.state == SIM_LIVE) context->error = error;
    }
}

static void sim_call_faults(sim_call *call, int32_t operation)
{
    cai_sim *sim = call->sim;
    int32_t i, kept = 0;
    for (i = 0; i < sim->fault_count; i++) {
        sim_fault fault = sim->faults[i];
        if (fault.operation < 0 || fault.operation == operation) fault.left--;
        if (fault.left > 0) {
            sim->faults[kept++] = fault;
            continue;
        }
        if (fault.device >= 0) {
            sim_do_set_device_error(sim, fault.device, fault.error);
            continue;
        }
        call->run = 0;
        call->omitted = fault.omit;
        call->error = fault.error;
    }
    sim->fault_count = kept;
}

/* good: the caller gave a place for each answer. */
static sim_call sim_call_begin(void *self, int32_t operation, int good)
{
    sim_call call;
    call.sim = (cai_sim *)self;
    sim_before(call.sim, sim_operation_names[operation], 1);
    call.entered = sim_enter(call.sim);
    if (call.entered) sim_is_in(call.sim, sim_operation_names[operation], 1);
    call.omitted = 0;
    call.error = !call.entered                            ? CAI_SIM_ERROR_NOT_PERMITTED
                 : call.sim->teardown                     ? CAI_SIM_ERROR_DEINITIALIZED
                 : !good                                  ? CAI_SIM_ERROR_INVALID_VALUE
                 : sim_lacks_context(call.sim, operation) ? CAI_SIM_ERROR_INVALID_CONTEXT
                                                          : 0;
    call.run = call.error == 0;
    sim_call_faults(&call, operation);
    call.sim->calls[operation]++;
    sim_put(&call.sim->log, sim_operation_names[operation]);
    return call;
}

static int32_t sim_call_end(const sim_call *call)
{
    if (call->omitted) {
        sim_log(call->sim, "(omitted)");
    } else if (call->error == CAI_SIM_ERROR_NOT_READY) {
        sim_log(call->sim, "-> not_ready");
    } else if (call->error) {
        sim_log(call->sim, "!");
        sim_log_int(call->sim, call->error);
    }
    sim_put(&call->sim->log, "\n");
    sim_leave(call->sim, call->entered);
    return call->error;
}

/* A slot: its name, its parameters after `self`, what it logs of them, and what it does. */
#define SIM_SLOT(name, parameters, log, work) \
    static int32_t sim_##name parameters \
    { \
        sim_call call = sim_call_begin(self, SIM_##name, 1); \
        cai_sim *const sim = call.sim; \
        log; \
        if (call.run) call.error = work; \
        return sim_call_end(&call); \
    }
/* The same with an answer in *out, 0 where there is none, and how that is logged. */
#define SIM_ASKS(name, parameters, out, log, work, answer) \
    static int32_t sim_##name parameters \
    { \
        sim_call call = sim_call_begin(self, SIM_##name, (out) != NULL); \
        cai_sim *const sim = call.sim; \
        if ((out) != NULL) memset((out), 0, sizeof *(out)); \
        log; \
        if (call.run) call.error = work; \
        if (call.run && !call.error) { \
            sim_log(sim, "->"); \
            answer; \
        } \
        return sim_call_end(&call); \
    }

SIM_ASKS(context_current, (void *self, uint64_t *context), context, (void)0,
         sim_do_context_current(sim, context), sim_log_context(sim, *context))
SIM_SLOT(context_push, (void *self, uint64_t context), sim_log_context(sim, context),
         sim_do_context_push(sim, context))
SIM_SLOT(context_pop, (void *self), (void)0, sim_do_context_pop(sim))
SIM_SLOT(context_synchronize, (void *self), (void)0, sim_do_context_synchronize(sim))
SIM_ASKS(context_device, (void *self, int32_t *device), device, (void)0, sim_do_context_device(sim, device),
         sim_log_int(sim, *device))
SIM_ASKS(device_context, (void *self, int32_t device, uint64_t *context), context, sim_log_int(sim, device),
         sim_do_device_context(sim, device, context), sim_log_context(sim, *context))
SIM_ASKS(stream_context, (void *self, uint64_t stream, uint64_t *context), context,
         sim_log_stream(sim, stream), sim_do_stream_context(sim, stream, context),
         sim_log_context(sim, *context))
SIM_ASKS(stream_capture, (void *self, uint64_t stream, cai_cuda_capture *capture), capture,
         sim_log_stream(sim, stream), sim_do_stream_capture(sim, stream, capture),
         sim_log_capture(sim, capture))
SIM_ASKS(stream_id, (void *self, uint64_t stream, uint64_t *id), id, sim_log_stream(sim, stream),
         sim_do_stream_id(sim, stream, id), sim_log_number(sim, *id))
SIM_SLOT(stream_wait_event, (void *self, uint64_t stream, uint64_t event),
         (sim_log_stream(sim, stream), sim_log_event(sim, event)),
         sim_do_stream_wait_event(sim, stream, event))
SIM_SLOT(stream_synchronize, (void *self, uint64_t stream), sim_log_stream(sim, stream),
         sim_do_stream_synchronize(sim, stream))
SIM_ASKS(event_create, (void *self, uint64_t *event), event, (void)0, sim_do_event_create(sim, event),
         sim_log_event(sim, *event))
SIM_SLOT(event_destroy, (void *self, uint64_t event), sim_log_event(sim, event),
         sim_do_event_destroy(sim, event))
SIM_SLOT(event_record, (void *self, uint64_t event, uint64_t stream),
         (sim_log_event(sim, event), sim_log_stream(sim, stream)), sim_do_event_record(sim, event, stream))
SIM_SLOT(event_synchronize, (void *self, uint64_t event), sim_log_event(sim, event),
         sim_do_event_synchronize(sim, event))
SIM_ASKS(pointer_info, (void *self, uint64_t pointer, cai_cuda_pointer *info), info,
         sim_log_address(sim, pointer), sim_do_pointer_info(sim, pointer, info), sim_log_pointer(sim, info))
SIM_ASKS(device_attribute, (void *self, int32_t device, int32_t attribute, int32_t *value), value,
         (sim_log_int(sim, device), sim_log_int(sim, attribute)),
         sim_do_device_attribute(sim, device, attribute, value), sim_log_int(sim, *value))

static int32_t sim_event_query(void *self, uint64_t event)
{
    sim_call call = sim_call_begin(self, SIM_event_query, 1);
    sim_log_event(call.sim, event);
    if (call.run) call.error = sim_do_event_query(call.sim, event);
    if (call.run && !call.error) sim_log(call.sim, "-> done");
    return sim_call_end(&call);
}

/* *mode goes in, too. */
static int32_t sim_capture_mode(void *self, int32_t *mode)
{
    sim_call call = sim_call_begin(self, SIM_capture_mode, mode != NULL);
    sim_log_mode(call.sim, mode);
    if (call.run) call.error = sim_do_capture_mode(call.sim, mode);
    if (call.run && !call.error) {
        sim_log(call.sim, "->");
        sim_log_mode(call.sim, mode);
    }
    return sim_call_end(&call);
}

static int32_t sim_pointer_range(void *self, uint64_t pointer, uint64_t *base, uint64_t *size)
{
    sim_call call = sim_call_begin(self, SIM_pointer_range, base != NULL && size != NULL);
    if (base != NULL) *base = 0;
    if (size != NULL) *size = 0;
    sim_log_address(call.sim, pointer);
    if (call.run) call.error = sim_do_pointer_range(call.sim, pointer, base, size);
    if (call.run && !call.error) {
        sim_log(call.sim, "->");
        sim_log_address(call.sim, *base);
        sim_log_number(call.sim, *size);
    }
    return sim_call_end(&call);
}

SIM_ASKS(memory_alloc, (void *self, uint64_t *pointer, uint64_t size), pointer, sim_log_number(sim, size),
         sim_do_memory_alloc(sim, CAI_SIM_MEM_DEVICE, size, 1, "memory_alloc", pointer),
         sim_log_address(sim, *pointer))
SIM_SLOT(memory_free, (void *self, uint64_t pointer), sim_log_address(sim, pointer),
         sim_do_memory_free(sim, pointer, SIM_FREED_BY_MEMORY_FREE, "memory_free"))
SIM_ASKS(memory_alloc_async, (void *self, uint64_t *pointer, uint64_t size, uint64_t stream), pointer,
         (sim_log_number(sim, size), sim_log_stream(sim, stream)),
         sim_do_memory_alloc_async(sim, size, stream, pointer), sim_log_address(sim, *pointer))
SIM_SLOT(memory_free_async, (void *self, uint64_t pointer, uint64_t stream),
         (sim_log_address(sim, pointer), sim_log_stream(sim, stream)),
         sim_do_memory_free_async(sim, pointer, stream))
SIM_ASKS(host_alloc, (void *self, uint64_t *pointer, uint64_t size, uint32_t flags), pointer,
         sim_log_flags(sim, size, flags),
         sim_do_memory_alloc(sim, CAI_SIM_MEM_PINNED, size, flags <= 7, "host_alloc", pointer),
         sim_log_address(sim, *pointer))
SIM_SLOT(host_free, (void *self, uint64_t pointer), sim_log_address(sim, pointer),
         sim_do_memory_free(sim, pointer, SIM_FREED_BY_HOST_FREE, "host_free"))
SIM_SLOT(host_unregister, (void *self, uint64_t pointer), sim_log_address(sim, pointer),
         sim_do_host_unregister(sim, pointer))
SIM_ASKS(managed_alloc, (void *self, uint64_t *pointer, uint64_t size, uint32_t flags), pointer,
         sim_log_flags(sim, size, flags),
         sim_do_memory_alloc(sim, CAI_SIM_MEM_MANAGED, size, flags == 1 || flags == 2, "managed_alloc",
                             pointer),
         sim_log_address(sim, *pointer))
SIM_SLOT(ipc_close, (void *self, uint64_t pointer), sim_log_address(sim, pointer),
         sim_do_ipc_close(sim, pointer))

/* Its answer, in the log, is the name of the allocation. */
static int32_t sim_host_register(void *self, uint64_t pointer, uint64_t size, uint32_t flags)
{
    sim_call call = sim_call_begin(self, SIM_host_register, 1);
    sim_log_flags(call.sim, size, flags);
    if (call.run) call.error = sim_do_host_register(call.sim, pointer, size, flags);
    if (call.run && !call.error) {
        sim_log(call.sim, "->");
        sim_log_address(call.sim, pointer);
    }
    return sim_call_end(&call);
}

static int32_t sim_memory_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
    sim_call call = sim_call_begin(self, SIM_memory_info, free_bytes != NULL && total_bytes != NULL);
    if (free_bytes != NULL) *free_bytes = 0;
    if (total_bytes != NULL) *total_bytes = 0;
    if (call.run) call.error = sim_do_memory_info(call.sim, free_bytes, total_bytes);
    if (call.run && !call.error) {
        sim_log(call.sim, "->");
        sim_log_number(call.sim, *free_bytes);
        sim_log_number(call.sim, *total_bytes);
    }
    return sim_call_end(&call);
}

static int32_t sim_ipc_export(void *self, uint64_t pointer, void *handle)
{
    sim_call call = sim_call_begin(self, SIM_ipc_export, handle != NULL);
    if (handle != NULL) memset(handle, 0, SIM_IPC_BYTES);
    sim_log_address(call.sim, pointer);
    if (call.run) call.error = sim_do_ipc_export(call.sim, pointer, handle);
    return sim_call_end(&call);
}

static int32_t sim_ipc_open(void *self, const void *handle, uint64_t *pointer)
{
    sim_call call = sim_call_begin(self, SIM_ipc_open, handle != NULL && pointer != NULL);
    if (pointer != NULL) *pointer = 0;
    if (call.run) call.error = sim_do_ipc_open(call.sim, handle, pointer);
    if (call.run && !call.error) {
        sim_log(call.sim, "->");
        sim_log_address(call.sim, *pointer);
    }
    return sim_call_end(&call);
}

static int32_t sim_device_uuid(void *self, int32_t device, void *uuid)
{
    sim_call call = sim_call_begin(self, SIM_device_uuid, uuid != NULL);
    if (uuid != NULL) memset(uuid, 0, SIM_UUID_BYTES);
    sim_log_int(call.sim, device);
    if (call.run) call.error = sim_do_device_uuid(call.sim, device, uuid);
    return sim_call_end(&call);
}

SIM_SLOT(copy_async, (void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream),
         (sim_log_address(sim, to), sim_log_address(sim, from), sim_log_number(sim, size),
          sim_log_stream(sim, stream)),
         sim_do_copy_here(sim, to, from, size, stream))
SIM_SLOT(copy_peer_async,
         (void *self, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context, uint64_t size,
          uint64_t stream),
         (sim_log_address(sim, to), sim_log_context(sim, to_context), sim_log_address(sim, from),
          sim_log_context(sim, from_context), sim_log_number(sim, size), sim_log_stream(sim, stream)),
         sim_do_copy_peer(sim, to, to_context, from, from_context, size, stream))
SIM_SLOT(set_async, (void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream),
         (sim_log_address(sim, to), sim_log_number(sim, value), sim_log_number(sim, size),
          sim_log_stream(sim, stream)),
         sim_do_set_2d(sim, to, size, value, size, 1, stream))
SIM_SLOT(set_2d_async,
         (void *self, uint64_t to, uint64_t pitch, uint32_t value, uint64_t width, uint64_t height,
          uint64_t stream),
         (sim_log_address(sim, to), sim_log_number(sim, value), sim_log_number(sim, width),
          sim_log_number(sim, height), sim_log_stream(sim, stream)),
         sim_do_set_2d(sim, to, pitch, value, width, height, stream))

static void sim_log_extent(cai_sim *sim, const cai_cuda_copy *copy)
{
    sim_log_number(sim, copy->width);
    sim_log_number(sim, copy->height);
    sim_log_number(sim, copy->depth);
}

static int32_t sim_copy_3d_async(void *self, const cai_cuda_copy *copy, uint64_t stream)
{
    sim_call call = sim_call_begin(self, SIM_copy_3d_async, copy != NULL);
    if (copy != NULL) {
        sim_log_address(call.sim, copy->to);
        sim_log_address(call.sim, copy->from);
        sim_log_extent(call.sim, copy);
    }
    sim_log_stream(call.sim, stream);
    if (call.run) call.error = sim_do_copy_3d_here(call.sim, copy, stream);
    return sim_call_end(&call);
}

static int32_t sim_copy_3d_peer_async(void *self, const cai_cuda_copy *copy, uint64_t to_context,
                                      uint64_t from_context, uint64_t stream)
{
    sim_call call = sim_call_begin(self, SIM_copy_3d_peer_async, copy != NULL);
    if (copy != NULL) {
        sim_log_address(call.sim, copy->to);
        sim_log_context(call.sim, to_context);
        sim_log_address(call.sim, copy->from);
        sim_log_context(call.sim, from_context);
        sim_log_extent(call.sim, copy);
    }
    sim_log_stream(call.sim, stream);
    if (call.run) call.error = sim_do_copy_3d_peer(call.sim, copy, to_context, from_context, stream);
    return sim_call_end(&call);
}

SIM_ASKS(context_id, (void *self, uint64_t context, uint64_t *id), id, sim_log_context(sim, context),
         sim_do_context_id(sim, context, id), sim_log_number(sim, *id))
SIM_SLOT(context_record, (void *self, uint64_t context, uint64_t event),
         (sim_log_context(sim, context), sim_log_event(sim, event)),
         sim_do_context_record(sim, context, event))
SIM_ASKS(stream_flags, (void *self, uint64_t stream, uint32_t *flags), flags, sim_log_stream(sim, stream),
         sim_do_stream_flags(sim, stream, flags), sim_log_number(sim, *flags))
SIM_ASKS(pool_create, (void *self, int32_t device, uint32_t reuse, uint64_t *pool), pool,
         (sim_log_int(sim, device), sim_log(sim, "reuse"), sim_log_number(sim, reuse)),
         sim_do_pool_create_reusing(sim, device, reuse, pool), sim_log_object(sim, &sim->pools, *pool))
SIM_SLOT(pool_destroy, (void *self, uint64_t pool), sim_log_object(sim, &sim->pools, pool),
         sim_do_pool_destroy(sim, pool))
SIM_ASKS(memory_alloc_from_pool,
         (void *self, uint64_t *pointer, uint64_t size, uint64_t pool, uint64_t stream), pointer,
         (sim_log_number(sim, size), sim_log_object(sim, &sim->pools, pool), sim_log_stream(sim, stream)),
         pool == 0 ? CAI_SIM_ERROR_INVALID_VALUE : sim_do_pool_alloc(sim, pool, size, stream, pointer),
         sim_log_address(sim, *pointer))
SIM_ASKS(primary_retain, (void *self, int32_t device, uint64_t *context), context, sim_log_int(sim, device),
         sim_do_primary_retain(sim, device, context), sim_log_context(sim, *context))
SIM_SLOT(primary_release, (void *self, int32_t device), sim_log_int(sim, device),
         sim_do_primary_release(sim, device))
SIM_SLOT(capture_retain, (void *self, uint64_t stream, void (*gone)(void *user), void *user),
         sim_log_stream(sim, stream), sim_do_capture_retain(sim, stream, gone, user))

static int32_t sim_host_thread(void *self, uint64_t *thread)
{
    cai_sim *sim = (cai_sim *)self;
    const int entered = sim_enter(sim);
    if (thread != NULL) *thread = sim->self->answer;
    sim_leave(sim, entered);
    return thread == NULL ? CAI_SIM_ERROR_INVALID_VALUE : 0;
}

static void sim_fill_table(cai_sim *sim)
{
    cai_cuda *cuda = &sim->cuda;
    cuda->struct_size = sizeof *cuda;
    cuda->version = CAI_CUDA_VERSION;
    cuda->self = sim;
#define SIM_FILL(name) cuda->name = sim_##name;
    SIM_OPERATIONS(SIM_FILL)
    cuda->host_thread = sim_host_thread;
}

/* ---------------------------------------------------------------- >>test side */
/* Frames of the functions of cai_sim.h, which says what each does. SIM_CALL: one that stands for a call of
 * CUDA; not from a launched function, and an error stays as the last one of the host thread. SIM_MAKES: the
 * same of one that returns what it made. SIM_GETS, SIM_SETS: no call of CUDA. */
static int32_t sim_enter_driver(cai_sim *sim, int *entered, const char *call)
{
    sim_before(sim, call, 0);
    *entered = sim_enter(sim);
    if (*entered) sim_is_in(sim, call, 0);
    return *entered ? 0 : CAI_SIM_ERROR_NOT_PERMITTED;
}

/* As the runtime: without a current context the primary one of device 0 becomes current. */
static int32_t sim_enter_runtime(cai_sim *sim, int *entered, const char *call)
{
    const int32_t error = sim_enter_driver(sim, entered, call);
    if (error || sim->self->depth) return error;
    sim_runtime_retain(sim->contexts.all[0]->context);
    sim_push(sim->self, sim->contexts.all[0]->context, 0);
    return 0;
}

static int32_t sim_end(cai_sim *sim, int entered, int32_t error)
{
    if (error) sim->self->last_error = error;
    sim_leave(sim, entered);
    return error;
}

#define SIM_CALL(name, enter, parameters, work) \
    int32_t name parameters \
    { \
        int entered; \
        int32_t error = enter(sim, &entered, &#name[sizeof "cai_sim"]); \
        if (!error) error = work; \
        return sim_end(sim, entered, error); \
    }
#define SIM_MAKES(name, enter, parameters, work) \
    uint64_t name parameters \
    { \
        int entered; \
        uint64_t made = 0; \
        int32_t error = enter(sim, &entered, &#name[sizeof "cai_sim"]); \
        if (!error) error = work; \
        return sim_end(sim, entered, error) ? 0 : made; \
    }
#define SIM_GETS(type, name, parameters, value) \
    type name parameters \
    { \
        const int entered = sim_enter(sim); \
        const type got = value; \
        sim_leave(sim, entered); \
        return got; \
    }
/* The same of one that asks CUDA of something by its handle. */
#define SIM_LOOKS(type, name, parameters, value) \
    type name parameters \
    { \
        const int entered = sim_enter(sim); \
        type got; \
        if (entered) sim_is_in(sim, &#name[sizeof "cai_sim"], 0); \
        got = value; \
        sim_leave(sim, entered); \
        return got; \
    }
#define SIM_SETS(name, parameters, work) \
    void name parameters \
    { \
        const int entered = sim_enter(sim); \
        work; \
        sim_leave(sim, entered); \
    }

typedef struct sim_named_option {
    const char *name;
    uint32_t option;
} sim_named_option;

static const sim_named_option sim_options[] = {
    {"free_returns", CAI_SIM_FREE_RETURNS},
    {"free_own_context", CAI_SIM_FREE_OWN_CONTEXT},
    {"primary_inactive", CAI_SIM_PRIMARY_INACTIVE},
    {"need_context", CAI_SIM_NEED_CONTEXT},
    {"zero_answers", CAI_SIM_ZERO_ANSWERS},
    {"segments", CAI_SIM_SEGMENTS},
    {"one_thread_contexts", CAI_SIM_ONE_THREAD_CONTEXTS},
    {"reuse", CAI_SIM_REUSE},
    {"progress", CAI_SIM_PROGRESS},
    {"handles_need_context", CAI_SIM_HANDLES_NEED_CONTEXT},
    {"copy_returns", CAI_SIM_COPY_RETURNS},
    {"pool_reuse", CAI_SIM_POOL_REUSE},
    {"copy_needs_access", CAI_SIM_COPY_NEEDS_ACCESS},
    {"living_contexts", CAI_SIM_LIVING_CONTEXTS},
    {"pool_early_waits", CAI_SIM_POOL_EARLY_WAITS},
    {"adversarial", CAI_SIM_ADVERSARIAL}
};

/* The option with a name of so many characters. */
static uint32_t sim_option_named(const char *name, size_t length)
{
    size_t i;
    for (i = 0; i < sizeof sim_options / sizeof *sim_options; i++)
        if (strlen(sim_options[i].name) == length && memcmp(sim_options[i].name, name, length) == 0)
            return sim_options[i].option;
    fprintf(stderr, "cai_sim: CAI_SIM_OPTIONS has an unknown name: \"%.*s\"\n", (int)length, name);
    exit(2);
}

static uint32_t sim_options_of_environment(void)
{
    const char *name = getenv("CAI_SIM_OPTIONS");
    uint32_t options = CAI_SIM_DEFAULT;
    while (name != NULL && *name) {
        const size_t length = strcspn(name, ",");
        options |= sim_option_named(name, length);
        name += length;
        if (*name) name++;
    }
    return options;
}

cai_sim *cai_sim_create(int32_t devices)
{
    cai_sim *sim;
    int32_t i;
    if (devices < 1 || devices > CAI_SIM_DEVICES) return NULL;
    sim = (cai_sim *)calloc(1, sizeof *sim);
    if (sim == NULL || !SIM_LOCK_MAKE(sim)) {
        free(sim);
        return NULL;
    }
    sim_kind_set(&sim->streams, 0x50000000, "s", "stream");
    sim_kind_set(&sim->events, 0x60000000, "e", "event");
    sim_kind_set(&sim->contexts, 0x70000000, "c", "context");
    sim_kind_set(&sim->graphs, 0x30000000, "g", "graph");
    sim_kind_set(&sim->executables, 0x40000000, "x", "executable graph");
    sim_kind_set(&sim->pools, 0x20000000, "p", "memory pool");
    sim_kind_set(&sim->physicals, 0x10000000, "b", "physical memory");
    sim->file = -1;
    sim->device_count = devices;
    for (i = 0; i < devices; i++) {
        sim_context_make(sim, i, 1)->of_runtime = 1;
        sim->current_pool[i] = sim_pool_make(sim, i);
        sim->memory[i] = (uint64_t)1 << 40;
    }
    sim_do_set_options(sim, sim_options_of_environment());
    sim_fill_table(sim);
    sim_put(&sim->log, "");
    return sim;
}

static void sim_free_all(void **items, uint64_t count)
{
    uint64_t i;
    for (i = 0; i < count; i++) free(items[i]);
    free(items);
}

static void sim_kind_free(sim_kind *kind)
{
    sim_free_all((void **)kind->all, (uint64_t)kind->count);
    free(kind->slots);
}

static void sim_graph_free(sim_graph *graph)
{
    int32_t i;
    for (i = 0; i < graph->count; i++) free(graph->nodes[i].edges);
    free(graph->nodes);
    free(graph->branches);
}

void cai_sim_destroy(cai_sim *sim)
{
    uint64_t i;
    if (sim == NULL) return;
    for (i = 0; i < (uint64_t)sim->graphs.count; i++) sim_graph_free((sim_graph *)sim->graphs.all[i]);
    for (i = 0; i < sim->operation_count; i++) {
        free(sim->operations[i]->waits);
        free(sim->operations[i]->accesses);
        if (sim->operations[i]->copy != NULL) free(sim->operations[i]->copy->staged);
        free(sim->operations[i]->copy);
    }
    for (i = 0; i < (uint64_t)sim->allocation_count; i++)
        if (!sim->allocations[i]->apart) sim_block_free(sim->allocations[i]->block, sim->allocations[i]->space);
    sim_virtual_end(sim);
    for (i = 0; i < (uint64_t)sim->thread_count; i++) free(sim->threads[i]->stack);
    sim_free_all((void **)sim->operations, sim->operation_count);
    sim_free_all((void **)sim->allocations, (uint64_t)sim->allocation_count);
    sim_free_all((void **)sim->captures, (uint64_t)sim->capture_count);
    sim_free_all((void **)sim->threads, (uint64_t)sim->thread_count);
    sim_free_all((void **)sim->oses, (uint64_t)sim->os_count);
    sim_kind_free(&sim->contexts);
    sim_kind_free(&sim->streams);
    sim_kind_free(&sim->events);
    sim_kind_free(&sim->graphs);
    sim_kind_free(&sim->executables);
    for (i = 0; i < (uint64_t)sim->pools.count; i++) free(sim_pool_at(sim, (int32_t)i)->free);
    sim_kind_free(&sim->pools);
    sim_kind_free(&sim->physicals);
    free(sim->users);
    free(sim->kept);
    free(sim->log.data);
    SIM_LOCK_FREE(sim);
    free(sim);
}

const cai_cuda *cai_sim_cuda(cai_sim *sim)
{
    return &sim->cuda;
}

SIM_SETS(cai_sim_host_thread, (cai_sim *sim, uint64_t number),
         if (entered) sim->os->plays = number ? sim_thread_of(sim, number) : sim->os->itself)

/* What it pushed and did not pop stays a leak. */
static void sim_thread_end(cai_sim *sim, uint64_t number)
{
    sim_thread *thread = sim_thread_of(sim, number);
    int32_t i;
    for (i = 0; i < sim->os_count; i++)
        if (sim->oses[i]->plays == thread) sim->oses[i]->plays = sim->oses[i]->itself;
    for (i = 0; i < thread->depth; i++) thread->unbalanced += thread->stack[i].pushed;
    thread->depth = 0;
    thread->ended = 1;
}

SIM_SETS(cai_sim_host_thread_end, (cai_sim *sim, uint64_t number),
         if (number) sim_thread_end(sim, number))

uint64_t cai_sim_primary(cai_sim *sim, int32_t device)
{
    return device < 0 || device >= sim->device_count ? 0 : sim->contexts.all[device]->handle;
}

static int32_t sim_do_context_create(cai_sim *sim, int32_t device, uint64_t *context)
{
    if (device < 0 || device >= sim->device_count) return CAI_SIM_ERROR_INVALID_DEVICE;
    *context = sim_context_make(sim, device, 0)->o.handle;
    return 0;
}

SIM_SETS(cai_sim_set_options, (cai_sim *sim, uint32_t options), sim_do_set_options(sim, options))
SIM_GETS(uint32_t, cai_sim_options, (cai_sim *sim), sim->options)
SIM_MAKES(cai_sim_primary_retain, sim_enter_driver, (cai_sim *sim, int32_t device),
          sim_do_primary_retain(sim, device, &made))
SIM_CALL(cai_sim_primary_release, sim_enter_driver, (cai_sim *sim, int32_t device),
         sim_do_primary_release(sim, device))
SIM_MAKES(cai_sim_context_create, sim_enter_driver, (cai_sim *sim, int32_t device),
          sim_do_context_create(sim, device, &made))
SIM_CALL(cai_sim_context_destroy, sim_enter_driver, (cai_sim *sim, uint64_t context),
         sim_do_context_destroy(sim, context))
SIM_CALL(cai_sim_set_context, sim_enter_driver, (cai_sim *sim, uint64_t context),
         sim_do_set_context(sim, context))
SIM_GETS(uint64_t, cai_sim_current, (cai_sim *sim),
         sim_current_context(sim) == NULL ? 0 : sim_current_context(sim)->o.handle)
SIM_MAKES(cai_sim_stream_create, sim_enter_runtime, (cai_sim *sim, int32_t nonblocking),
          sim_do_stream_create(sim, nonblocking, &made))
SIM_CALL(cai_sim_stream_destroy, sim_enter_runtime, (cai_sim *sim, uint64_t stream),
         sim_do_stream_destroy(sim, stream))
SIM_SETS(cai_sim_recycle_handles, (cai_sim *sim, int32_t on), sim->recycle = on)
SIM_MAKES(cai_sim_event_create, sim_enter_runtime, (cai_sim *sim), sim_do_event_create(sim, &made))
SIM_CALL(cai_sim_event_destroy, sim_enter_runtime, (cai_sim *sim, uint64_t event),
         sim_do_event_destroy(sim, event))
SIM_CALL(cai_sim_event_record, sim_enter_runtime, (cai_sim *sim, uint64_t event, uint64_t stream),
            sim_do_event_record(sim, event, stream))
SIM_CALL(cai_sim_event_query, sim_enter_runtime, (cai_sim *sim, uint64_t event),
         sim_do_event_query(sim, event))
SIM_CALL(cai_sim_event_synchronize, sim_enter_runtime, (cai_sim *sim, uint64_t event),
         sim_do_event_synchronize(sim, event))
SIM_CALL(cai_sim_stream_wait_event, sim_enter_runtime, (cai_sim *sim, uint64_t stream, uint64_t event),
            sim_do_stream_wait_event(sim, stream, event))
SIM_CALL(cai_sim_stream_synchronize, sim_enter_runtime, (cai_sim *sim, uint64_t stream),
            sim_do_stream_synchronize(sim, stream))
SIM_CALL(cai_sim_stream_query, sim_enter_runtime, (cai_sim *sim, uint64_t stream),
         sim_do_stream_query(sim, stream))
SIM_CALL(cai_sim_context_synchronize, sim_enter_runtime, (cai_sim *sim), sim_do_context_synchronize(sim))
SIM_CALL(cai_sim_launch, sim_enter_runtime,
            (cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function, void *argument,
             const cai_sim_access *accesses, int32_t count),
            sim_do_launch(sim, CAI_SIM_OP_LAUNCH, stream, name, function, argument, accesses, count, 0))
SIM_CALL(cai_sim_host_function, sim_enter_runtime,
            (cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function, void *argument,
             const cai_sim_access *accesses, int32_t count),
            function == NULL ? CAI_SIM_ERROR_INVALID_VALUE
                             : sim_do_launch(sim, CAI_SIM_OP_HOST_FUNCTION, stream, name, function, argument,
                                             accesses, count, 0))
SIM_CALL(cai_sim_touch, sim_enter_runtime,
            (cai_sim *sim, uint64_t stream, const char *name, const cai_sim_access *accesses, int32_t count),
            sim_do_launch(sim, CAI_SIM_OP_LAUNCH, stream, name, NULL, NULL, accesses, count, 1))
SIM_CALL(cai_sim_launch_views, sim_enter_runtime,
            (cai_sim *sim, uint64_t stream, const char *name, cai_sim_function function, void *argument,
             const cai_kernel_view *views, int32_t count, int32_t writes),
            sim_do_launch_views(sim, stream, name, function, argument, views, count, writes, 0))
SIM_CALL(cai_sim_touch_views, sim_enter_runtime,
            (cai_sim *sim, uint64_t stream, const char *name, const cai_kernel_view *views, int32_t count,
             int32_t writes),
            sim_do_launch_views(sim, stream, name, NULL, NULL, views, count, writes, 1))
SIM_CALL(cai_sim_copy, sim_enter_runtime,
            (cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream),
            sim_do_copy_bytes(sim, to, from, bytes, stream, 0))
SIM_CALL(cai_sim_copy_async, sim_enter_runtime,
            (cai_sim *sim, uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream),
            sim_do_copy_bytes(sim, to, from, bytes, stream, 1))
SIM_CALL(cai_sim_copy_rows, sim_enter_runtime,
            (cai_sim *sim, const cai_sim_rows *to, const cai_sim_rows *from, const cai_sim_extent *extent,
             uint64_t stream),
            sim_do_copy(sim, to, from, extent, stream, 0))
SIM_CALL(cai_sim_copy_rows_async, sim_enter_runtime,
            (cai_sim *sim, const cai_sim_rows *to, const cai_sim_rows *from, const cai_sim_extent *extent,
             uint64_t stream),
            sim_do_copy(sim, to, from, extent, stream, 1))
SIM_CALL(cai_sim_set, sim_enter_runtime,
            (cai_sim *sim, const cai_sim_rows *to, const cai_sim_extent *extent, uint32_t value,
             uint32_t unit, uint64_t stream),
            sim_do_set(sim, to, extent, value, unit, stream, 0))
SIM_CALL(cai_sim_set_async, sim_enter_runtime,
            (cai_sim *sim, const cai_sim_rows *to, const cai_sim_extent *extent, uint32_t value,
             uint32_t unit, uint64_t stream),
            sim_do_set(sim, to, extent, value, unit, stream, 1))
SIM_CALL(cai_sim_capture_begin, sim_enter_runtime, (cai_sim *sim, uint64_t stream, int32_t mode),
            sim_do_capture_begin(sim, stream, mode, NULL))

int32_t cai_sim_capture_end(cai_sim *sim, uint64_t stream, uint64_t *graph)
{
    int entered;
    int32_t error = sim_enter_runtime(sim, &entered, "capture_end");
    if (graph != NULL) *graph = 0;
    if (!error) error = sim_do_capture_end(sim, stream, graph);
    return sim_end(sim, entered, error);
}

SIM_CALL(cai_sim_capture_begin_to, sim_enter_runtime,
         (cai_sim *sim, uint64_t stream, int32_t mode, uint64_t graph, const uint64_t *nodes, int32_t count),
         sim_do_capture_begin_to(sim, stream, mode, graph, nodes, count))
SIM_MAKES(cai_sim_graph_create, sim_enter_driver, (cai_sim *sim), sim_do_graph_create(sim, &made))
SIM_CALL(cai_sim_graph_update, sim_enter_driver, (cai_sim *sim, uint64_t executable, uint64_t graph),
         sim_do_graph_update(sim, executable, graph))
SIM_MAKES(cai_sim_graph_instantiate, sim_enter_runtime, (cai_sim *sim, uint64_t graph),
          sim_do_graph_instantiate(sim, graph, &made))
SIM_CALL(cai_sim_graph_launch, sim_enter_runtime, (cai_sim *sim, uint64_t executable, uint64_t stream),
         sim_do_graph_launch(sim, executable, stream))
SIM_CALL(cai_sim_graph_destroy, sim_enter_runtime, (cai_sim *sim, uint64_t graph),
         sim_do_graph_destroy(sim, &sim->graphs, graph))
SIM_CALL(cai_sim_graph_executable_destroy, sim_enter_runtime, (cai_sim *sim, uint64_t executable),
         sim_do_graph_destroy(sim, &sim->executables, executable))
SIM_LOOKS(int32_t, cai_sim_graph_node_count, (cai_sim *sim, uint64_t graph),
         sim_do_graph_nodes(sim, graph, NULL, 0))
SIM_LOOKS(int32_t, cai_sim_graph_nodes,
         (cai_sim *sim, uint64_t graph, uint64_t *nodes, int32_t capacity),
         sim_do_graph_nodes(sim, graph, nodes, capacity))
SIM_GETS(int32_t, cai_sim_node_get, (cai_sim *sim, uint64_t node, cai_sim_graph_node *out),
         sim_do_node_get(sim, node, out))
SIM_GETS(int32_t, cai_sim_node_dependencies,
         (cai_sim *sim, uint64_t node, uint64_t *nodes, int32_t capacity),
         sim_do_node_dependencies(sim, node, nodes, capacity))
SIM_LOOKS(uint64_t, cai_sim_capture_graph, (cai_sim *sim, uint64_t stream), sim_do_capture_graph(sim, stream))
SIM_LOOKS(int32_t, cai_sim_capture_nodes,
         (cai_sim *sim, uint64_t stream, uint64_t *nodes, int32_t capacity),
         sim_do_capture_nodes(sim, stream, nodes, capacity))
SIM_CALL(cai_sim_capture_depend, sim_enter_runtime,
         (cai_sim *sim, uint64_t stream, const uint64_t *nodes, int32_t count, int32_t set),
         sim_do_capture_depend(sim, stream, nodes, count, set))
SIM_MAKES(cai_sim_alloc, sim_enter_runtime, (cai_sim *sim, int32_t kind, uint64_t bytes),
          sim_do_alloc(sim, kind, bytes, &made))
SIM_CALL(cai_sim_free, sim_enter_runtime, (cai_sim *sim, uint64_t address), sim_do_free(sim, address))
SIM_CALL(cai_sim_pointer_get, sim_enter_driver, (cai_sim *sim, uint64_t address, cai_sim_pointer *out),
         sim_do_pointer_get(sim, address, out))
SIM_MAKES(cai_sim_pool_create, sim_enter_driver, (cai_sim *sim, int32_t device),
          sim_do_pool_create(sim, device, &made))
SIM_CALL(cai_sim_pool_destroy, sim_enter_driver, (cai_sim *sim, uint64_t pool),
         sim_do_pool_destroy(sim, pool))
SIM_GETS(uint64_t, cai_sim_pool_default, (cai_sim *sim, int32_t device),
         device < 0 || device >= sim->device_count ? 0 : sim_pool_at(sim, device)->o.handle)
SIM_GETS(uint64_t, cai_sim_pool_current, (cai_sim *sim, int32_t device),
         device < 0 || device >= sim->device_count ? 0 : sim->current_pool[device]->o.handle)
SIM_CALL(cai_sim_pool_set_current, sim_enter_driver, (cai_sim *sim, int32_t device, uint64_t pool),
         sim_do_pool_set_current(sim, device, pool))
SIM_MAKES(cai_sim_pool_alloc, sim_enter_runtime,
          (cai_sim *sim, uint64_t pool, uint64_t bytes, uint64_t stream),
          sim_do_pool_alloc(sim, pool, bytes, stream, &made))
SIM_CALL(cai_sim_pool_free, sim_enter_runtime, (cai_sim *sim, uint64_t address, uint64_t stream),
         sim_do_memory_free_async(sim, address, stream))
SIM_CALL(cai_sim_pool_trim, sim_enter_driver, (cai_sim *sim, uint64_t pool, uint64_t keep),
         sim_do_pool_trim(sim, pool, keep))
SIM_CALL(cai_sim_pool_get, sim_enter_driver,
         (cai_sim *sim, uint64_t pool, int32_t attribute, uint64_t *value),
         sim_do_pool_get(sim, pool, attribute, value))
SIM_CALL(cai_sim_pool_set, sim_enter_driver,
         (cai_sim *sim, uint64_t pool, int32_t attribute, uint64_t value),
         sim_do_pool_set(sim, pool, attribute, value))
SIM_CALL(cai_sim_pool_set_access, sim_enter_driver,
         (cai_sim *sim, uint64_t pool, int32_t device, int32_t yes),
         sim_do_pool_set_access(sim, pool, device, yes))
SIM_LOOKS(int32_t, cai_sim_pool_access, (cai_sim *sim, uint64_t pool, int32_t device),
         sim_pool_can(sim, pool, device))
SIM_MAKES(cai_sim_virtual_reserve, sim_enter_driver, (cai_sim *sim, uint64_t bytes, uint64_t alignment),
          sim_do_virtual_reserve(sim, bytes, alignment, &made))
SIM_CALL(cai_sim_virtual_free, sim_enter_driver, (cai_sim *sim, uint64_t address, uint64_t bytes),
         sim_do_virtual_free(sim, address, bytes))
SIM_MAKES(cai_sim_physical_create, sim_enter_driver, (cai_sim *sim, int32_t device, uint64_t bytes),
          sim_do_physical_create(sim, device, bytes, &made))
SIM_MAKES(cai_sim_physical_retain, sim_enter_driver, (cai_sim *sim, uint64_t address),
          sim_do_physical_retain(sim, address, &made))
SIM_CALL(cai_sim_physical_release, sim_enter_driver, (cai_sim *sim, uint64_t physical),
         sim_do_physical_release(sim, physical))
SIM_CALL(cai_sim_virtual_map, sim_enter_driver,
         (cai_sim *sim, uint64_t address, uint64_t bytes, uint64_t offset, uint64_t physical),
         sim_do_virtual_map(sim, address, bytes, offset, physical))
SIM_CALL(cai_sim_virtual_unmap, sim_enter_driver, (cai_sim *sim, uint64_t address, uint64_t bytes),
         sim_do_virtual_unmap(sim, address, bytes))
SIM_CALL(cai_sim_virtual_set_access, sim_enter_driver,
         (cai_sim *sim, uint64_t address, uint64_t bytes, int32_t device, int32_t access),
         sim_do_virtual_set_access(sim, address, bytes, device, access))
SIM_GETS(int32_t, cai_sim_virtual_access, (cai_sim *sim, uint64_t address, int32_t device),
         sim_virtual_access(sim, address, device))

static void sim_do_host_access(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count,
                               int touches)
{
    sim_operation *op;
    sim_offer(sim);
    op = sim_trace(sim, CAI_SIM_OP_HOST_ACCESS, name, accesses, count);
    if (touches) sim_touch(sim, op);
    else op->digest = sim_digest_of(sim, 0, accesses, count);
}

static int32_t sim_host(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count,
                        int touches)
{
    const int good = count >= 0 && (count == 0 || accesses != NULL);
    int entered;
    sim_before(sim, "host_access", 0);
    entered = sim_enter(sim);
    if (good) sim_do_host_access(sim, name, accesses, count, touches);
    return sim_end(sim, entered, good ? 0 : CAI_SIM_ERROR_INVALID_VALUE);
}

SIM_SETS(cai_sim_set_tag, (cai_sim *sim, uint64_t tag), sim->self->tag = tag)

int32_t cai_sim_host_access(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count)
{
    return sim_host(sim, name, accesses, count, 0);
}

int32_t cai_sim_host_touch(cai_sim *sim, const char *name, const cai_sim_access *accesses, int32_t count)
{
    return sim_host(sim, name, accesses, count, 1);
}

int32_t cai_sim_run_operation(cai_sim *sim, uint64_t operation)
{
    const int entered = sim_enter(sim);
    const int good = entered && operation > 0 && operation <= sim->operation_count &&
                     sim_is_ready(sim, sim_operation_of(sim, operation));
    if (good) sim_execute(sim, sim_operation_of(sim, operation));
    sim_leave(sim, entered);
    return good;
}

/* The operation of a stream that runs next; 0: none is ready. Only branches of a graph give a choice. */
static uint64_t sim_head(cai_sim *sim, uint64_t handle)
{
    sim_stream *stream;
    uint64_t id;
    if (sim_find_stream(sim, handle, &stream)) return 0;
    for (id = sim_first(sim); id <= sim->operation_count; id++) {
        const sim_operation *op = sim_operation_of(sim, id);
        if (op->info.stream == stream->id && sim_is_ready(sim, op)) return id;
    }
    return 0;
}

static SIM_GETS(uint64_t, sim_head_locked, (cai_sim *sim, uint64_t stream), sim_head(sim, stream))

int32_t cai_sim_step(cai_sim *sim, uint64_t stream)
{
    return cai_sim_run_operation(sim, sim_head_locked(sim, stream));
}

int32_t cai_sim_ready(cai_sim *sim, uint64_t *operations, int32_t capacity)
{
    const int entered = sim_enter(sim);
    uint64_t id;
    int32_t count = 0;
    for (id = sim_first(sim); id <= sim->operation_count; id++) {
        if (!sim_is_ready(sim, sim_operation_of(sim, id))) continue;
        if (count < capacity) operations[count] = id;
        count++;
    }
    sim_leave(sim, entered);
    return count;
}

SIM_GETS(int32_t, cai_sim_run, (cai_sim *sim), entered ? sim_run_all(sim) : 0)
SIM_GETS(int32_t, cai_sim_pending, (cai_sim *sim), sim->queued)
SIM_GETS(uint64_t, cai_sim_operation_count, (cai_sim *sim), sim->operation_count)

int32_t cai_sim_operation_get(cai_sim *sim, uint64_t id, cai_sim_operation *out)
{
    const int entered = sim_enter(sim);
    const int good = id > 0 && id <= sim->operation_count;
    if (good) *out = sim_operation_of(sim, id)->info;
    if (good) out->declared = sim_operation_of(sim, id)->function == NULL;
    sim_leave(sim, entered);
    return good;
}

/* An observation waits for what was published, as a synchronization waits for work. */
SIM_GETS(uint64_t, cai_sim_publish, (cai_sim *sim),
         sim_trace(sim, CAI_SIM_OP_PUBLISH, "publish", NULL, 0)->info.id)

int32_t cai_sim_observe(cai_sim *sim, uint64_t published)
{
    const int entered = sim_enter(sim);
    const int good = published > 0 && published <= sim->operation_count &&
                     sim_operation_of(sim, published)->info.kind == CAI_SIM_OP_PUBLISH;
    if (good) sim_wait_for(sim_trace(sim, CAI_SIM_OP_OBSERVE, "observe", NULL, 0), published);
    if (entered) sim->self->seen = sim->operation_count;
    sim_leave(sim, entered);
    return good ? 0 : CAI_SIM_ERROR_INVALID_VALUE;
}

static void sim_copy_out(const sim_text *from, char *text, size_t capacity)
{
    const size_t length = from->length < capacity ? from->length : capacity - 1;
    if (text == NULL || capacity == 0) return;
    memcpy(text, from->data, length);
    text[length] = 0;
}

static void sim_put_stream(sim_text *text, const sim_stream *stream)
{
    const sim_context *context = stream->o.context;
    if (stream->o.number) {
        sim_put(text, "s");
        sim_put_number(text, (uint64_t)stream->o.number, 10);
        return;
    }
    sim_put(text, stream == context->legacy ? "legacy" : stream == context->whole ? "context" : "per_thread");
    if (stream->thread && (uint32_t)stream->thread != 1) {
        sim_put(text, " ");
        sim_put_number(text, (uint32_t)stream->thread, 10);
    }
    if (context->o.number == 1) return;
    sim_put(text, " c");
    sim_put_number(text, (uint64_t)context->o.number, 10);
}

void cai_sim_stream_name(cai_sim *sim, uint64_t id, char *text, size_t capacity)
{
    const int entered = sim_enter(sim);
    sim_text name = {NULL, 0, 0};
    int32_t i;
    sim_put(&name, "");
    for (i = 0; i < sim->streams.count; i++)
        if (sim_stream_at(sim, i)->id == id) sim_put_stream(&name, sim_stream_at(sim, i));
    sim_leave(sim, entered);
    sim_copy_out(&name, text, capacity);
    free(name.data);
}

void cai_sim_access_name(cai_sim *sim, const cai_sim_access *access, char *text, size_t capacity)
{
    sim_text name = {NULL, 0, 0};
    uint64_t offset = access->address;
    const int32_t number = cai_sim_access_memory(sim, access, &offset);
    sim_put(&name, number ? "m" : "memory");
    if (number) sim_put_number(&name, (uint64_t)number, 10);
    sim_put(&name, number ? "[" : "[0x");
    sim_put_number(&name, offset, number ? 10 : 16);
    sim_put(&name, number ? ", " : ", 0x");
    sim_put_number(&name, offset + access->bytes, number ? 10 : 16);
    sim_put(&name, ")");
    sim_copy_out(&name, text, capacity);
    free(name.data);
}

void cai_sim_event_name(cai_sim *sim, uint64_t event, char *text, size_t capacity)
{
    const int entered = sim_enter(sim);
    const sim_object *object = sim_object_of(&sim->events, event);
    sim_text name = {NULL, 0, 0};
    sim_put(&name, object == NULL ? "0x" : "e");
    sim_put_number(&name, object == NULL ? event : (uint64_t)object->number, object == NULL ? 16 : 10);
    sim_leave(sim, entered);
    sim_copy_out(&name, text, capacity);
    free(name.data);
}

void cai_sim_memory_name(cai_sim *sim, uint64_t address, uint64_t bytes, char *text, size_t capacity)
{
    cai_sim_access access = cai_sim_reads(address, bytes);
    access.memory = cai_sim_memory_at(sim, address, NULL);
    cai_sim_access_name(sim, &access, text, capacity);
}

int32_t cai_sim_memory_at(cai_sim *sim, uint64_t address, uint64_t *offset)
{
    const int entered = sim_enter(sim);
    uint64_t at = 0;
    const sim_allocation *a = sim_allocation_at(sim, address, &at);
    const int32_t number = a == NULL ? 0 : a->number;
    if (offset != NULL) *offset = at;
    sim_leave(sim, entered);
    return number;
}

/* Memory of somebody else, which may be registered or opened again, is told by its address. */
int32_t cai_sim_access_memory(cai_sim *sim, const cai_sim_access *access, uint64_t *offset)
{
    const int entered = sim_enter(sim);
    const int known = access->memory > 0 && access->memory <= sim->allocation_count;
    const sim_allocation *a = known ? sim->allocations[access->memory - 1] : NULL;
    uint64_t at = 0;
    if (a != NULL && a->space) at = sim_offset_in(a, access->address);
    else a = sim_allocation_at(sim, access->address, &at);
    if (a != NULL) *offset = at;
    sim_leave(sim, entered);
    return a == NULL ? 0 : a->shares ? a->shares : a->number;
}

/* A sum, so that host threads may make things in any order. */
uint64_t cai_sim_fingerprint(cai_sim *sim)
{
    const int entered = sim_enter(sim);
    uint64_t id, sum = 0;
    int32_t i;
    for (i = 0; i < sim->allocation_count; i++) {
        const sim_allocation *a = sim->allocations[i];
        const cai_sim_access whole = cai_sim_reads(a->address, a->bytes);
        const int there = a->emptied ? 0 : a->block != NULL || (a->physical != NULL && a->live);
        sum += there ? sim_digest_of(sim, a->bytes, &whole, 1) : a->digest;
    }
    for (id = 1; id <= sim->operation_count; id++) sum += sim_operation_of(sim, id)->digest;
    for (i = 0; i < sim->contexts.count; i++)
        sum += sim_mix((uint64_t)i, (uint64_t)(uint32_t)sim->contexts.all[i]->context->error);
    sim_leave(sim, entered);
    return sum;
}

static int32_t sim_put_error(sim_text *text, int32_t error)
{
    if (error == 0) return 0;
    sim_put(text, ": error ");
    sim_put_number(text, (uint64_t)(uint32_t)error, 10);
    return 1;
}

int32_t cai_sim_errors(cai_sim *sim, char *text, size_t capacity)
{
    const int entered = sim_enter(sim);
    sim_text all = {NULL, 0, 0};
    int32_t i, count = 0;
    sim_put(&all, "");
    for (i = 0; i < sim->contexts.count; i++) {
        const sim_context *context = sim->contexts.all[i]->context;
        if (context->error == 0) continue;
        sim_put(&all, count ? "; context c" : "context c");
        sim_put_number(&all, (uint64_t)context->o.number, 10);
        count += sim_put_error(&all, context->error);
    }
    for (i = 0; i < sim->thread_count; i++) {
        const int32_t error = sim->threads[i]->last_error;
        if (error == 0 || error == CAI_SIM_ERROR_NOT_READY) continue;
        sim_put(&all, count ? "; host" : "host");
        count += sim_put_error(&all, error);
    }
    sim_leave(sim, entered);
    sim_copy_out(&all, text, capacity);
    free(all.data);
    return count;
}

void cai_sim_salt_handles(cai_sim *sim, uint32_t salt)
{
    const int entered = sim_enter(sim);
    const uint64_t other = (uint64_t)(salt % 4096) << 16;
    if (sim->streams.slot_count + sim->events.slot_count + sim->graphs.slot_count == 0) {
        sim->streams.base = 0x50000000 + other;
        sim->events.base = 0x60000000 + other;
        sim->graphs.base = 0x30000000 + other;
        sim->executables.base = 0x40000000 + other;
    }
    sim_leave(sim, entered);
}

int32_t cai_sim_memory_lifetime(cai_sim *sim, uint64_t address, cai_sim_lifetime *out)
{
    const int entered = sim_enter(sim);
    uint64_t offset;
    const sim_allocation *a = sim_allocation_at(sim, address, &offset);
    memset(out, 0, sizeof *out);
    if (a != NULL) {
        out->made = a->made_tag;
        out->ended = a->freed_tag;
        out->number = a->number;
        out->live = a->live && !a->freeing;
        out->kind = a->kind;
        out->device = a->device;
    }
    sim_leave(sim, entered);
    return a != NULL;
}

/* The streams before and after one that had its handle. */
static void sim_stream_handle(cai_sim *sim, const sim_stream *stream, cai_sim_lifetime *out)
{
    int32_t i;
    for (i = 0; stream->o.number && i < sim->streams.count && !out->after; i++) {
        const sim_stream *other = sim_stream_at(sim, i);
        if (other == stream || other->o.handle != stream->o.handle) continue;
        if (other->id < stream->id) out->before = other->id;
        else out->after = other->id;
    }
}

int32_t cai_sim_stream_lifetime(cai_sim *sim, uint64_t id, cai_sim_lifetime *out)
{
    const int entered = sim_enter(sim);
    const sim_stream *stream = NULL;
    int32_t i;
    memset(out, 0, sizeof *out);
    for (i = 0; i < sim->streams.count && stream == NULL; i++)
        if (sim_stream_at(sim, i)->id == id) stream = sim_stream_at(sim, i);
    if (stream != NULL) {
        out->made = stream->o.made.tag;
        out->ended = stream->o.ended.tag;
        sim_stream_handle(sim, stream, out);
        out->number = stream->o.number;
        out->live = stream->o.state == SIM_LIVE;
        out->device = stream->o.context->device;
    }
    sim_leave(sim, entered);
    return stream != NULL;
}

void cai_sim_look(cai_sim *sim, const char *kind, uint64_t handle)
{
    const sim_kind *const kinds[] = {&sim->streams, &sim->events, &sim->graphs, &sim->executables};
    const int entered = sim_enter(sim);
    size_t i;
    if (entered) sim_is_in(sim, "look", 0);
    for (i = 0; entered && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->noun, kind) == 0) (void)sim_lookup(sim, kinds[i], handle);
    sim_leave(sim, entered);
}

SIM_SETS(cai_sim_on_undefined, (cai_sim *sim, cai_sim_undefined_function function, void *context),
         (sim->undefined = function, sim->undefined_context = context))
SIM_SETS(cai_sim_set_host_memory, (cai_sim *sim, const cai_sim_host_memory *functions),
         sim->host_memory = *functions)
SIM_SETS(cai_sim_set_hooks, (cai_sim *sim, const cai_sim_hooks *hooks),
         if (hooks != NULL) sim->hooks = *hooks; else memset(&sim->hooks, 0, sizeof sim->hooks))
SIM_SETS(cai_sim_get_hooks, (cai_sim *sim, cai_sim_hooks *out), *out = sim->hooks)

void cai_sim_adopt(cai_sim *sim, uint64_t address)
{
    const int entered = sim_enter(sim);
    sim->adopts = 1;
    sim->self->adopted = address;
    sim_leave(sim, entered);
}

void *cai_sim_bytes(cai_sim *sim, uint64_t address)
{
    const int entered = sim_enter(sim);
    const sim_allocation *a = sim_allocation_of(sim, address);
    void *bytes = a != NULL && a->live && !sim->adopts ? (void *)(uintptr_t)address : NULL;
    sim_leave(sim, entered);
    return bytes;
}

static void sim_do_set_peer_access(cai_sim *sim, int32_t device, int32_t owner, int32_t yes)
{
    const uint64_t bit = (uint64_t)1 << (owner & (CAI_SIM_DEVICES - 1));
    if (device < 0 || device >= sim->device_count || owner < 0 || owner >= sim->device_count) return;
    if (yes) sim->no_peer[device] &= ~bit;
    else sim->no_peer[device] |= bit;
}

static void sim_do_set_attribute(cai_sim *sim, int32_t device, int32_t attribute, int32_t yes)
{
    if (device < 0 || device >= sim->device_count) return;
    if (attribute == CAI_ATTRIBUTE_PAGEABLE_ACCESS) sim->pageable[device] = yes != 0;
    if (attribute == CAI_ATTRIBUTE_CONCURRENT_MANAGED) sim->no_concurrent[device] = !yes;
}

SIM_SETS(cai_sim_set_device_attribute, (cai_sim *sim, int32_t device, int32_t attribute, int32_t yes),
         sim_do_set_attribute(sim, device, attribute, yes))

SIM_SETS(cai_sim_set_peer_access, (cai_sim *sim, int32_t device, int32_t owner, int32_t yes),
         sim_do_set_peer_access(sim, device, owner, yes))

void cai_sim_set_segment(cai_sim *sim, uint64_t address, uint64_t bytes)
{
    const int entered = sim_enter(sim);
    sim_allocation *a = sim_allocation_of(sim, address);
    if (a != NULL && bytes > 0) a->segment = bytes;
    sim_leave(sim, entered);
}

SIM_SETS(cai_sim_set_memory, (cai_sim *sim, int32_t device, uint64_t total_bytes),
         if (device >= 0 && device < sim->device_count) sim->memory[device] = total_bytes)

void cai_sim_set_device_error(cai_sim *sim, int32_t device, int32_t error)
{
    const int entered = sim_enter(sim);
    sim_do_set_device_error(sim, device, error);
    sim_leave(sim, entered);
}

/* The pending error of the current context shows there too. */
static int32_t sim_error_now(cai_sim *sim, int clear)
{
    const sim_context *context = sim_current_context(sim);
    const int32_t error = sim->self->last_error;
    if (clear) sim->self->last_error = 0;
    return error || context == NULL ? error : context->error;
}

SIM_GETS(int32_t, cai_sim_last_error, (cai_sim *sim), sim_error_now(sim, 0))
SIM_GETS(int32_t, cai_sim_clear_error, (cai_sim *sim), sim_error_now(sim, 1))
SIM_SETS(cai_sim_teardown, (cai_sim *sim), sim->teardown = 1)

const char *cai_sim_log(cai_sim *sim)
{
    return sim->log.data;
}

SIM_SETS(cai_sim_log_clear, (cai_sim *sim),
         (sim->log.length = 0, sim->log.data[0] = 0, memset(sim->calls, 0, sizeof sim->calls)))

/* How many calls of an operation; NULL: of all. -1: there is none of that name. */
static int32_t sim_count_calls(cai_sim *sim, const char *operation)
{
    const int32_t which = operation == NULL ? -1 : sim_operation_named(operation);
    int32_t i, count = 0;
    for (i = 0; i < SIM_OPERATION_COUNT; i++) count += sim->calls[i];
    if (which >= 0) return sim->calls[which];
    return operation == NULL ? count : -1;
}

SIM_GETS(int32_t, cai_sim_calls, (cai_sim *sim), sim_count_calls(sim, NULL))
SIM_GETS(int32_t, cai_sim_calls_of, (cai_sim *sim, const char *operation), sim_count_calls(sim, operation))
SIM_GETS(int32_t, cai_sim_ordering_calls, (cai_sim *sim),
         sim->calls[SIM_event_create] + sim->calls[SIM_event_destroy] + sim->calls[SIM_event_record] +
             sim->calls[SIM_context_record] +
             sim->calls[SIM_event_synchronize] + sim->calls[SIM_stream_wait_event] +
             sim->calls[SIM_stream_synchronize] + sim->calls[SIM_context_synchronize])

static int32_t sim_add_fault(cai_sim *sim, const char *operation, int32_t n, int32_t error, int32_t omit,
                             int32_t device)
{
    const int32_t which = operation == NULL ? -1 : sim_operation_named(operation);
    sim_fault *fault = &sim->faults[sim->fault_count];
    if (n < 1 || sim->fault_count == SIM_FAULTS || (operation != NULL && which < 0)) return 0;
    fault->operation = which;
    fault->left = n;
    fault->error = error;
    fault->omit = omit;
    fault->device = device;
    sim->fault_count++;
    return 1;
}

SIM_GETS(int32_t, cai_sim_fail, (cai_sim *sim, int32_t n, int32_t error),
         sim_add_fault(sim, NULL, n, error, 0, -1))
SIM_GETS(int32_t, cai_sim_fail_op, (cai_sim *sim, const char *operation, int32_t n, int32_t error),
         sim_add_fault(sim, operation, n, error, 0, -1))
SIM_GETS(int32_t, cai_sim_omit, (cai_sim *sim, int32_t n), sim_add_fault(sim, NULL, n, 0, 1, -1))
SIM_GETS(int32_t, cai_sim_omit_op, (cai_sim *sim, const char *operation, int32_t n),
         sim_add_fault(sim, operation, n, 0, 1, -1))
SIM_GETS(int32_t, cai_sim_break, (cai_sim *sim, int32_t n, int32_t device, int32_t error),
         device < 0 ? 0 : sim_add_fault(sim, NULL, n, error, 0, device))
SIM_GETS(int32_t, cai_sim_faults, (cai_sim *sim), sim->fault_count)
SIM_SETS(cai_sim_faults_clear, (cai_sim *sim), sim->fault_count = 0)

/* "streams: s1 s3; events: e2": the heading with the first one. */
static void sim_leak(sim_text *text, const char **heading, const char *letter, int32_t number)
{
    if (*heading != NULL) {
        if (text->length) sim_put(text, "; ");
        sim_put(text, *heading);
        *heading = NULL;
    }
    sim_put(text, " ");
    sim_put(text, letter);
    sim_put_number(text, (uint64_t)number, 10);
}

static int32_t sim_leak_kind(sim_text *text, const sim_kind *kind, int32_t first, const char *heading)
{
    int32_t i, count = 0;
    for (i = 0; i < kind->count; i++) {
        if (kind->all[i]->state != SIM_LIVE || kind->all[i]->number <= first) continue;
        sim_leak(text, &heading, kind->letter, kind->all[i]->number);
        count++;
    }
    return count;
}

static int32_t sim_leak_all(cai_sim *sim, sim_text *text)
{
    const char *memory = "allocations:", *captures = "captures:", *stacks = "context stack:";
    const char *ranges = "address ranges:";
    int32_t i, k, stack = 0, count = sim_leak_kind(text, &sim->streams, 0, "streams:");
    count += sim_leak_kind(text, &sim->events, 0, "events:");
    count += sim_leak_kind(text, &sim->graphs, 0, "graphs:");
    count += sim_leak_kind(text, &sim->executables, 0, "executables:");
    for (i = 0; i < sim->allocation_count; i++)
        if (sim->allocations[i]->live && !sim->allocations[i]->freeing && ++count)
            sim_leak(text, &memory, "m", i + 1);
    count += sim_leak_kind(text, &sim->pools, sim->device_count, "pools:");
    count += sim_leak_kind(text, &sim->physicals, 0, "physical memory:");
    for (i = 0; i < sim->range_count; i++)
        if (sim->ranges[i]->live && ++count) sim_leak(text, &ranges, "", i + 1);
    count += sim_leak_kind(text, &sim->contexts, sim->device_count, "contexts:");
    for (i = 0; i < sim->capture_count; i++)
        if (sim->captures[i]->status != SIM_CAPTURE_ENDED && ++count) sim_leak(text, &captures, "", i + 1);
    for (i = 0; i < sim->thread_count; i++) {
        stack += sim->threads[i]->unbalanced;
        for (k = 0; k < sim->threads[i]->depth; k++) stack += sim->threads[i]->stack[k].pushed;
    }
    if (stack) sim_leak(text, &stacks, "", stack);
    return count + stack;
}

int32_t cai_sim_leaks(cai_sim *sim, char *text, size_t capacity)
{
    const int entered = sim_enter(sim);
    sim_text all = {NULL, 0, 0};
    int32_t count;
    sim_put(&all, "");
    count = sim_leak_all(sim, &all);
    sim_leave(sim, entered);
    sim_copy_out(&all, text, capacity);
    free(all.data);
    return count;
}
