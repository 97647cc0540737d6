/* place_world.h - the world of place_model.c: contexts, streams, captures and memory, and what the model knows of them
 * SPDX-License-Identifier: MIT
 *
 * Include after cai_place.h, the simulation and cai_test.h. One thread of the system plays all host threads. */
#ifndef PLACE_WORLD_H_INCLUDED
#define PLACE_WORLD_H_INCLUDED

enum {
    DEVICES = 2, CONTEXTS = 5, STREAMS = 14, THINGS = 10, PARTS = 2, THREADS = 3, CAPTURES = 2, BYTES = 256,
    JOBS = 4096, NOBODY = -1
};

/* The first DEVICES are primary contexts. */
typedef struct context {
    uint64_t handle;
    int32_t device, lives;
} context;

typedef struct slot {
    uint64_t handle; /* 0: a free place */
    int32_t context, blocking, cached, capture; /* 0, or 1 + its number */
} slot;

/* A stream as the model knows it: 1 and 2 with their context, 2 with its host thread. stream 0: none. */
typedef struct queue {
    uint64_t stream;
    int32_t context, thread;
} queue;

typedef struct capturing {
    int32_t origin, thread; /* a slot; NOBODY: a free place */
} capturing;

/* An array, or its mask: a version in memory, and the queue behind which all work on it is. */
typedef struct part {
    uint64_t address;
    int32_t version;
    queue home;
} part;

typedef struct thing {
    cai_array array, mask;
    part parts[PARTS]; /* without a mask the second is empty */
    uint64_t memory, stamp; /* of each change */
    int32_t kind, context; /* of the memory; NOBODY: none */
    int32_t used, owned, kept, gone; /* the pool has it; the memory ended with its context */
    int32_t inside, fresh; /* 0, or 1 + the capture; without a kernel in it so far */
    int32_t pending; /* kernels that are queued */
} thing;

/* A kernel: it finds a version, and writes one. */
typedef struct job {
    thing *of;
    int32_t checks, captured, expected[PARTS], written[PARTS];
    uint64_t address[PARTS];
} job;

static cai_sim *sim;
static const cai_cuda *cuda;
static cai_error err;
static context contexts[CONTEXTS];
static slot slots[STREAMS];
static thing things[THINGS];
static capturing captures[CAPTURES];
static job jobs[JOBS];
static int32_t job_count, here, thread; /* the current context, the host thread */
static uint64_t stamps;
static int64_t stale, early, kernels, gone_streams, gone_contexts, all_captures, launches, faults_struck, dead;

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void count_dead(void *unused, const cai_sim_undefined *what)
{
    (void)unused;
    printf("    %s\n", what->text);
    dead++;
}

/* ------------------------------------------------------------------- host threads */
static uint64_t handle_of(int32_t number)
{
    return number == NOBODY ? 0 : contexts[number].handle;
}

/* The acts of the host come one after the other, on whichever of its threads. */
static void play(int32_t number, int32_t current)
{
    const uint64_t before = cai_sim_publish(sim);
    cai_sim_host_thread(sim, (uint64_t)number);
    CHECK_INT(cai_sim_observe(sim, before), 0);
    CHECK_INT(cai_sim_set_context(sim, handle_of(current)), 0);
}

/* An act of the program in some context, which no capture forbids. */
static int32_t enter(int32_t number, int32_t as)
{
    int32_t mode = 2;
    if (here != NOBODY) CHECK_INT(cai_sim_set_context(sim, 0), 0); /* it is of one thread only */
    play(as ? as : thread, number);
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    return mode;
}

static void leave(int32_t mode)
{
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    play(thread, here);
}

/* ------------------------------------------------------------------- streams */
static const slot *slot_of(uint64_t handle)
{
    int32_t i;
    for (i = 0; i < STREAMS; i++)
        if (handle && slots[i].handle == handle) return &slots[i];
    return NULL;
}

static int32_t free_slot(void)
{
    int32_t i = 0;
    while (i < STREAMS && slots[i].handle) i++;
    return i == STREAMS ? NOBODY : i;
}

static queue queue_of(uint64_t stream, int32_t context_of_default)
{
    queue q;
    const slot *s = slot_of(stream);
    q.stream = stream;
    q.context = s ? s->context : context_of_default;
    q.thread = stream == CAI_STREAM_PER_THREAD ? thread : 0;
    return q;
}

static int is_handle(queue q) { return q.stream > CAI_STREAM_PER_THREAD; }

static int same(queue a, queue b)
{
    return a.stream == b.stream && (is_handle(a) || (a.context == b.context && a.thread == b.thread));
}

static int32_t capture_of(queue q)
{
    const slot *s = slot_of(q.stream);
    return s ? s->capture : 0;
}

/* Does a stream of this kind capture in the context (NOBODY: in any)? */
static int captures_in(int32_t number, int32_t blocking)
{
    int32_t i;
    for (i = 0; i < STREAMS; i++) {
        const slot *s = &slots[i];
        if (s->handle && s->capture && s->blocking == blocking && (number == NOBODY || s->context == number)) return 1;
    }
    return 0;
}

/* A query of stream 1 while a blocking stream captures is refused, any other use of it ends the capture. */
static int stumbles(queue q)
{
    return q.stream == CAI_STREAM_LEGACY && captures_in(q.context, 1);
}

static int32_t device_of(queue q) { return contexts[q.context].device; }

/* A stream in a context that lives, or NOBODY. */
static int32_t make_stream(int32_t number, int32_t blocking, int32_t cached)
{
    const int32_t i = free_slot();
    if (i == NOBODY) return i;
    slots[i].handle = cai_sim_stream_create(sim, !blocking);
    slots[i].context = number;
    slots[i].blocking = blocking;
    slots[i].cached = cached;
    slots[i].capture = 0;
    CHECK(slots[i].handle != 0);
    return i;
}

static int32_t any_context(void)
{
    int32_t i;
    do i = (int32_t)draw(CONTEXTS);
    while (!contexts[i].lives);
    return i;
}

static int32_t any_slot(void)
{
    const uint32_t first = draw(STREAMS);
    uint32_t i;
    for (i = 0; i < STREAMS; i++)
        if (slots[(first + i) % STREAMS].handle) return (int32_t)((first + i) % STREAMS);
    return NOBODY;
}

/* Mostly a handle; now and then 1, 2, or what is no stream. */
static uint64_t any_stream(void)
{
    const uint32_t what = draw(40);
    const int32_t i = any_slot();
    if (what == 0) return draw(2) ? 0 : UINT64_MAX;
    if (what < 6) return CAI_STREAM_LEGACY;
    if (what < 9) return CAI_STREAM_PER_THREAD;
    return i == NOBODY ? (uint64_t)CAI_STREAM_PER_THREAD : slots[i].handle;
}

/* ------------------------------------------------------------------- things */
static void run_job(void *argument)
{
    job *j = (job *)argument;
    int32_t i;
    if (!j->captured) j->of->pending--;
    for (i = 0; i < PARTS; i++) {
        int32_t *at = j->address[i] ? (int32_t *)cai_sim_bytes(sim, j->address[i]) : NULL;
        if (!at) continue;
        if (j->checks && *at != j->expected[i]) stale++;
        *at = j->written[i];
    }
}

static void changed(thing *t) { t->stamp = ++stamps; }

/* A kernel on all parts of a thing, in a stream that comes after its earlier work. */
static void work(queue q, thing *t, int writes)
{
    cai_sim_access accesses[PARTS];
    job *j = &jobs[job_count];
    int32_t i, count = 0, mode;
    if (stumbles(q) || job_count == JOBS) return;
    job_count++;
    memset(j, 0, sizeof *j);
    j->of = t;
    j->checks = !t->fresh;
    for (i = 0; i < PARTS; i++) {
        part *p = &t->parts[i];
        if (!p->address) continue;
        writes |= t->fresh;
        j->address[i] = p->address;
        j->expected[i] = p->version;
        j->written[i] = p->version += writes;
        accesses[count++] = writes ? cai_sim_writes(p->address, 4) : cai_sim_reads(p->address, 4);
    }
    t->fresh = 0;
    j->captured = capture_of(q) != 0;
    t->pending += !j->captured;
    mode = enter(q.context, q.thread);
    CHECK_INT(cai_sim_launch(sim, q.stream, "kernel", run_job, j, accesses, count), 0);
    leave(mode);
    kernels++;
    changed(t);
}

static cai_array *array_of(thing *t, int32_t i) { return i ? &t->mask : &t->array; }

/* All its work is behind `q` now, and the arrays say so. */
static void moves_to(thing *t, queue q)
{
    int32_t i;
    for (i = 0; i < PARTS; i++) {
        cai_array *array = array_of(t, i);
        if (!t->parts[i].address) continue;
        t->parts[i].home = q;
        array->sync = q.stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
        array->stream = q.stream;
        array->thread = q.stream == CAI_STREAM_PER_THREAD ? (uint64_t)q.thread : 0;
    }
    if (!t->inside && q.stream && capture_of(q)) t->fresh = 1;
    t->inside = q.stream ? capture_of(q) : 0;
    changed(t);
}

/* The pool gives it back: all kernels on it have run. The memory may have ended with its context. */
static void gives_back(cai_array *array)
{
    thing *t = (thing *)array->owner;
    const uint64_t before = cai_sim_current(sim); /* without one, the free makes one */
    array->release = NULL;
    if (t->pending) early++;
    if (!t->used) early++;
    t->used = t->kept = 0;
    if (!t->gone) CHECK_INT(cai_sim_free(sim, t->memory), 0);
    CHECK_INT(cai_sim_set_context(sim, before), 0);
}

static void make_part(thing *t, int32_t i, int32_t kind, int32_t device)
{
    static const int32_t memories[] = {CAI_MEMORY_DEVICE, CAI_MEMORY_MANAGED, CAI_MEMORY_PINNED};
    const int64_t one = 1;
    cai_array *array = array_of(t, i);
    t->parts[i].address = t->memory + (uint64_t)i * (BYTES / 2);
    CHECK_INT(cai_array_init(array, CAI_INT32, 1, &one, NULL, (void *)(uintptr_t)t->parts[i].address, &err), CAI_OK);
    array->memory = kind == CAI_SIM_MEM_POOL ? (int32_t)CAI_MEMORY_DEVICE : memories[kind];
    array->device = device;
    array->sync = CAI_SYNC_NONE;
}

static void make_thing(void)
{
    static const int32_t kinds[] = {CAI_SIM_MEM_DEVICE, CAI_SIM_MEM_DEVICE, CAI_SIM_MEM_MANAGED, CAI_SIM_MEM_PINNED,
                                    CAI_SIM_MEM_POOL};
    const int32_t number = any_context(), kind = kinds[draw(5)];
    int32_t i = 0, mode;
    thing *t;
    while (i < THINGS && things[i].used) i++;
    if (i == THINGS) return;
    t = &things[i];
    memset(t, 0, sizeof *t);
    mode = enter(number, 0);
    t->memory = cai_sim_alloc(sim, kind, BYTES);
    leave(mode);
    CHECK(t->memory != 0);
    memset(cai_sim_bytes(sim, t->memory), 0, BYTES);
    t->kind = kind;
    t->context = kind == CAI_SIM_MEM_POOL ? NOBODY : number;
    make_part(t, 0, kind, contexts[number].device);
    if (!draw(3)) {
        make_part(t, 1, kind, contexts[number].device);
        t->array.mask = &t->mask;
    }
    t->used = 1;
    t->owned = (int32_t)draw(2);
    if (t->owned) cai_array_own(&t->array, gives_back, t);
    changed(t);
}

/* One that the program has; NULL: none. */
static thing *any_thing(void)
{
    const uint32_t first = draw(THINGS);
    uint32_t i;
    for (i = 0; i < THINGS; i++) {
        thing *t = &things[(first + i) % THINGS];
        if (t->used && !t->kept) return t;
    }
    return NULL;
}

/* 1 and 2 are named only for memory of that context: memory of a pool has none. */
static int may_name(const thing *t, queue q)
{
    if (t->array.memory == CAI_MEMORY_DEVICE && t->array.device != device_of(q)) return 0;
    return is_handle(q) || t->context == q.context;
}

/* The queue of all its parts, if that is one; stream 0: it is not, or there is no work. */
static queue only_home(const thing *t)
{
    queue none = {0, 0, 0};
    if (t->parts[1].address && !same(t->parts[0].home, t->parts[1].home)) return none;
    return t->parts[0].home;
}

static int is_plain(const thing *t)
{
    return t->array.sync == CAI_SYNC_STREAM && (!t->array.mask || t->mask.sync == CAI_SYNC_STREAM);
}

#endif
