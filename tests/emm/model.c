/* model.c - random operations on managers of cai_manager.h, each predicted by a model: calls, statuses, counts.
 * SPDX-License-Identifier: MIT
 *
 *     model SEED COUNT [--seeds N] [--sim] [--quiet]
 *
 * N runs (1) with SEED, SEED + 1, ..., of COUNT operations each. In every run one manager lies over CUDA and
 * one has no CUDA at all. --sim: CUDA is the simulation, else functions that do nothing, which is faster. The
 * exit status is 1 if anything differs from the model, or anything is left over. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"
#if !defined(CAI_SIM_LINKED)
#include "sim/cai_sim.c"
#endif

#include "predict.h"

#include <signal.h>

enum { MANAGERS = 2, STREAMS = 6, OLD = 64, NO_HANDLE = 99, ARRAYS = 64, SEEN = 1 << 18, LIFETIME = 600 };

/* What the test holds of one manager. */
typedef struct holding {
    model m;
    cai_memory_handle old[OLD]; /* handles that are not good any more */
    cai_array arrays[ARRAYS];
    int32_t array_units[ARRAYS]; /* NOBODY: a free place */
    uint64_t seen[SEEN];         /* every handle that was given, as a hash table: none may come twice */
} holding;

static holding holdings[MANAGERS];
static holding *h;
static model *m;
static uint64_t random_state, streams[STREAMS], array_event;
static int64_t gone_streams, captures_begun;
static int32_t table_numbers[TABLES];
static cai_event_pool pool;
static cai_keepalive keepalive[KEPT];
static cai_cuda cuda;
static cai_error err;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* ------------------------------------------------------------------ tables */

static void add_host_hooks(cai_emm_hooks *hooks)
{
    hooks->host_alloc = hook_host_alloc;
    hooks->host_free = hook_host_free;
    hooks->pin = hook_pin;
    hooks->unpin = hook_unpin;
    hooks->managed_alloc = hook_managed_alloc;
    hooks->managed_free = hook_managed_free;
}

/* Tables 0 to 7, each with other hooks: 6 and 7 are for a manager without CUDA. */
static void make_hooks(int32_t table, cai_emm_hooks *hooks)
{
    static const uint32_t flags[TABLES] = {0, CAI_EMM_FREES_WAIT, CAI_EMM_FREES_WAIT | CAI_EMM_CUDA_HOST, 0,
                                           CAI_EMM_FREES_WAIT, CAI_EMM_CUDA_HOST, 0, CAI_EMM_FREES_WAIT};
    static const int32_t kinds[TABLES] = {CAI_MEMORY_DEVICE, CAI_MEMORY_DEVICE, CAI_MEMORY_DEVICE,
                                          CAI_MEMORY_POOL,   CAI_MEMORY_DEVICE, CAI_MEMORY_POOL,
                                          CAI_MEMORY_HOST,   CAI_MEMORY_HOST};
    memset(hooks, 0, sizeof *hooks);
    table_numbers[table] = table;
    hooks->struct_size = (uint32_t)sizeof *hooks;
    hooks->version = CAI_EMM_VERSION;
    hooks->flags = flags[table];
    hooks->kind = kinds[table];
    hooks->ctx = &table_numbers[table];
    hooks->device_alloc = hook_device_alloc;
    hooks->device_free = hook_device_free;
    (void)snprintf(hooks->name, sizeof hooks->name, "table%d", (int)table);
    if (table != 2 && table != 3 && table != 7) hooks->initialize = hook_initialize;
    if (table != 2 && table != 4 && table != 7) hooks->reset = hook_reset;
    if (table != 2 && table != 3) hooks->memory_info = hook_info;
    if (table != 2 && table != 4) hooks->defer = hook_defer;
    if (table == 1 || table == 3 || table == 4) hooks->ipc_handle = hook_ipc;
    if (table != 2 && table != 3 && table != 5) add_host_hooks(hooks);
}

static source describe_hooks(const cai_emm_hooks *hooks, int32_t table)
{
    source s;
    memset(&s, 0, sizeof s);
    s.table = table;
    s.flags = hooks->flags;
    s.kind = hooks->kind;
    s.has_initialize = hooks->initialize != NULL;
    s.has_reset = hooks->reset != NULL;
    s.has_info = hooks->memory_info != NULL;
    s.has_defer = hooks->defer != NULL;
    s.has_ipc = hooks->ipc_handle != NULL;
    s.has_host = hooks->host_alloc != NULL;
    s.has_pin = hooks->pin != NULL;
    s.has_managed = hooks->managed_alloc != NULL;
    return s;
}

/* One that this manager takes, or now and then another. */
static source any_hooks(cai_emm_hooks *hooks)
{
    int32_t table = m->pooled ? (int32_t)draw(8) : 6 + (int32_t)draw(2);
    if (!m->pooled && !draw(10)) table = (int32_t)draw(6);
    if (table < 6 || !m->pooled) {
        make_hooks(table, hooks);
        return describe_hooks(hooks, table);
    }
    table = table == 6 ? FROM_CUDA : FROM_ASYNC;
    if (table == FROM_CUDA ? cai_emm_hooks_cuda(hooks, &cuda, &err) : cai_emm_hooks_async(hooks, &cuda, NULL, &err))
        differ("a built-in table is refused", err.code, 0);
    return describe_hooks(hooks, table);
}

/* ------------------------------------------------------------------ handles */

static void new_handle(cai_memory_handle handle)
{
    uint64_t at = handle * 0x9e3779b97f4a7c15u >> 46;
    int32_t steps = 0;
    while (h->seen[at % SEEN] && h->seen[at % SEEN] != handle && steps++ < 1000) at++;
    if (h->seen[at % SEEN] == handle) differ("a handle that was given before", (int64_t)handle, 0);
    h->seen[at % SEEN] = handle;
}

static int32_t used_units(void)
{
    int32_t i, count = 0;
    for (i = 0; i < UNITS; i++) count += m->units[i].used;
    return count;
}

/* A unit with a handle, or NULL. */
static unit *any_unit(void)
{
    const uint32_t start = draw(UNITS);
    uint32_t i;
    for (i = 0; i < UNITS; i++) {
        unit *u = &m->units[(start + i) % UNITS];
        if (u->used && u->references) return u;
    }
    return NULL;
}

/* Mostly a good one; else 0, an old one, or garbage. */
static cai_memory_handle any_handle(void)
{
    const unit *u = any_unit();
    const uint32_t what = draw(40);
    if (what == 0) return 0;
    if (what == 1) return h->old[draw(OLD)];
    if (what == 2) return (uint64_t)draw(1 << 20) << (draw(2) ? 32 : 0) | draw(200);
    return u ? u->handle : h->old[draw(OLD)];
}

static uint64_t any_stream(void)
{
    const uint32_t what = draw(60);
    if (what == 0) return draw(2) ? 0 : UINT64_MAX;
    return what < 8 ? CAI_STREAM_LEGACY : what < 16 ? CAI_STREAM_PER_THREAD : streams[draw(STREAMS)];
}

/* The streams of the frees of a unit are often the same. */
static uint64_t stream_for(cai_memory_handle handle)
{
    const unit *u = find(m, handle);
    int32_t i = STREAMS;
    if (u && u->mark && draw(2))
        for (i = 0; i < STREAMS && streams[i] != u->mark; i++) {} /* it may be destroyed */
    return i < STREAMS ? u->mark : any_stream();
}

static void retire(cai_memory_handle handle) { h->old[draw(OLD)] = handle; }

/* ------------------------------------------------------------------ comparing */

/* After an operation: all calls were predicted, and the status is right. */
static void judge(cai_status got, cai_status wanted)
{
    if (!look.broken && look.position != world.call_count)
        describe("one call too many,", &world.calls[look.position], NULL);
    look.statuses++;
    equal("the status", (uint64_t)(uint32_t)got, (uint64_t)(uint32_t)wanted);
    if (got && look.native > 0 && (got == CAI_ERR_CUDA || got == CAI_ERR_OUT_OF_MEMORY))
        equal("the native error", (uint64_t)(uint32_t)err.native, (uint64_t)(uint32_t)look.native);
}

/* The handle that an operation gave is a new one, of an object at the right address. */
static void judge_handle(cai_memory_handle got, unit *u, cai_status status)
{
    if (!u) {
        equal("the handle", got, status ? NO_HANDLE : 0); /* a failure touches nothing */
        return;
    }
    if (!got) differ("the handle", 0, 1);
    new_handle(got);
    u->handle = got;
    equal("the address", number_of(cai_manager_pointer(&m->emm, got)), u->address);
}

static void judge_counts(void)
{
    cai_manager_count got;
    const cai_manager_count *wanted = &m->count;
    cai_manager_counts(&m->emm, &got);
    equal("count.live", got.live, wanted->live);
    equal("count.live_bytes", got.live_bytes, wanted->live_bytes);
    equal("count.deferred", got.deferred, wanted->deferred);
    equal("count.deferred_bytes", got.deferred_bytes, wanted->deferred_bytes);
    equal("count.allocated", got.allocated, wanted->allocated);
    equal("count.freed", got.freed, wanted->freed);
    equal("count.retries", got.retries, wanted->retries);
    equal("count.lost", got.lost, wanted->lost);
    equal("count.failed", got.failed, wanted->failed);
    equal("count.first_failure", (uint64_t)got.first_failure, (uint64_t)wanted->first_failure);
}

static void judge_info(const cai_memory_object *got, const unit *u)
{
    equal("info.memory", got->memory, u->references ? u->handle : 0);
    equal("info.number", got->number, u->number);
    equal("info.address", got->address, u->address);
    equal("info.size", got->size, u->size);
    equal("info.kind", (uint64_t)got->kind, (uint64_t)u->kind);
    equal("info.references", (uint64_t)got->references, (uint64_t)users(u));
    equal("info.lost", (uint64_t)got->lost, (uint64_t)u->lost);
}

/* The leak report, in the order of the slots. */
static void judge_live(void)
{
    static cai_memory_object got[UNITS];
    const int64_t count = cai_manager_list(&m->emm, got, UNITS);
    int64_t seen = 0;
    int32_t slot, i;
    static int32_t of_slot[1 << 16];
    for (slot = 0; slot < m->slots; slot++) of_slot[slot] = NOBODY;
    for (i = 0; i < UNITS; i++)
        if (m->units[i].used && users(&m->units[i])) of_slot[m->units[i].slot] = i;
    for (slot = 0; slot < m->slots; slot++) {
        if (of_slot[slot] == NOBODY) continue;
        if (seen < count && seen < UNITS) judge_info(&got[seen], &m->units[of_slot[slot]]);
        seen++;
    }
    equal("what cai_manager_list tells", (uint64_t)count, (uint64_t)seen);
    for (i = 0; i < 8; i++) {
        const cai_memory_handle old = h->old[draw(OLD)];
        const uint64_t address = number_of(cai_manager_pointer(&m->emm, old));
        if (old && !find(m, old)) equal("the pointer of an old handle", address, 0);
    }
}

/* ------------------------------------------------------------------ operations */

static uint64_t any_size(void)
{
    const uint32_t what = draw(30);
    return what == 0 ? 0 : what < 20 ? 1 + draw(2000) : 1 + draw(30000);
}

static void do_alloc(void)
{
    const uint64_t size = any_size(), stream = size ? any_stream() : streams[0];
    uint64_t alignment = draw(2) ? 0 : (uint64_t)1 << draw(15);
    cai_memory_handle got = NO_HANDLE;
    cai_status status;
    unit *made;
    if (!draw(50) && !bad_stream(stream)) alignment = 3 * (1 + draw(1000));
    status = cai_manager_alloc(&got, &m->emm, (size_t)size, (size_t)alignment, stream, &err);
    judge(status, predict_alloc(m, size, alignment, stream, &made));
    if (world.sim) (void)cai_sim_run(world.sim); /* the caller owes that a free comes after it */
    judge_handle(got, made, status);
}

static void do_other(void)
{
    static const int32_t kinds[3] = {CAI_MEMORY_PINNED, CAI_MEMORY_MANAGED, CAI_MEMORY_REGISTERED};
    const int32_t kind = kinds[draw(3)];
    const uint64_t size = any_size(), address = 0x50000000u + (uint64_t)draw(1 << 20) * 8;
    uint32_t flags = draw(8);
    cai_memory_handle got = NO_HANDLE;
    cai_status status;
    unit *made;
    if (kind == CAI_MEMORY_PINNED) {
        status = cai_manager_pinned_alloc(&got, &m->emm, (size_t)size, flags, &err);
    } else if (kind == CAI_MEMORY_MANAGED) {
        flags %= 3;
        status = cai_manager_managed_alloc(&got, &m->emm, (size_t)size, flags, &err);
        if (!flags) flags = CAI_MANAGED_GLOBAL; /* CUDA takes no 0 */
    } else {
        flags %= 4;
        status = cai_manager_pin(&got, &m->emm, (void *)(uintptr_t)address, (size_t)size, flags, &err);
    }
    judge(status, predict_other(m, kind, address, size, flags, &made));
    judge_handle(got, made, status);
}

static void do_free(void)
{
    const cai_memory_handle handle = any_handle();
    const uint64_t stream = stream_for(handle);
    const cai_status status = cai_manager_free(&m->emm, handle, stream, &err);
    judge(status, predict_free(m, handle, stream));
    if (handle && !find(m, handle)) retire(handle);
}

/* Again and again, on whatever is left: what was freed must be known as such. */
static void do_double_free(void)
{
    const cai_memory_handle handle = h->old[draw(OLD)];
    const uint64_t stream = stream_for(handle);
    const cai_status status = cai_manager_free(&m->emm, handle, stream, &err);
    judge(status, predict_free(m, handle, stream));
}

static void do_retain(void)
{
    const cai_memory_handle handle = any_handle();
    const cai_status status = cai_manager_retain(&m->emm, handle, &err);
    unit *u = find(m, handle);
    judge(status, !handle ? CAI_ERR_ARGUMENT : u ? CAI_OK : CAI_ERR_STALE);
    if (u) u->references++;
}

static void do_info(void)
{
    const cai_memory_handle handle = any_handle();
    cai_memory_object got;
    const cai_status status = cai_manager_describe(&m->emm, handle, &got, &err);
    unit *u = find(m, handle);
    judge(status, !handle ? CAI_ERR_ARGUMENT : u ? CAI_OK : CAI_ERR_STALE);
    if (!status && u) judge_info(&got, u);
    if (u) equal("the pointer", number_of(cai_manager_pointer(&m->emm, handle)),
                 u->lost ? 0 : u->address);
}

static void do_ipc(void)
{
    const cai_memory_handle handle = any_handle();
    cai_memory_ipc got;
    const cai_status status = cai_manager_ipc_handle(&m->emm, handle, &got, &err);
    const unit *u = find(m, handle);
    judge(status, predict_ipc(m, handle));
    if (status || !u) return;
    equal("ipc.offset", got.offset, u->address % CELL_SIZE);
    equal("ipc.size", got.size, u->size);
    equal("ipc.handle", got.handle[63], 9);
}

/* ------------------------------------------------------------------ arrays */

/* A place for an array, or an array; NOBODY: there is none. */
static int32_t any_array(int owned)
{
    const uint32_t start = draw(ARRAYS);
    uint32_t i;
    for (i = 0; i < ARRAYS; i++)
        if ((h->array_units[(start + i) % ARRAYS] != NOBODY) == owned) return (int32_t)((start + i) % ARRAYS);
    return NOBODY;
}

static void hold_array(int32_t place, const unit *u, cai_status status)
{
    const cai_array *array = &h->arrays[place];
    if (status || !u) return;
    h->array_units[place] = (int32_t)(u - m->units);
    if (!array->release) differ("an array is not owned", 0, 1);
}

static void do_array(void)
{
    const int32_t place = any_array(0);
    const uint64_t stream = any_stream();
    int64_t shape[2];
    unit *made;
    cai_status status;
    cai_array *array = &h->arrays[place < 0 ? 0 : place];
    if (place == NOBODY) return;
    shape[0] = draw(50);
    shape[1] = 1 + draw(100);
    status = cai_manager_array(array, &m->emm, CAI_FLOAT32, 2, shape, stream, &err);
    judge(status, predict_array(m, (uint64_t)(shape[0] * shape[1] * 4), stream, &made));
    hold_array(place, made, status);
    if (status || !made) return;
    equal("array.data", array->data, made->address);
    equal("array.sync", (uint64_t)array->sync, m->pooled ? CAI_SYNC_STREAM : CAI_SYNC_NONE);
    equal("array.stream", array->stream, m->pooled ? stream : 0);
    if (m->pooled && stream == CAI_STREAM_PER_THREAD) equal("array.thread", array->thread, world.thread);
    equal("array.memory", (uint64_t)array->memory,
          made->kind == CAI_MEMORY_HOST ? CAI_MEMORY_HOST : CAI_MEMORY_DEVICE);
}

static void do_own(void)
{
    const int32_t place = any_array(0);
    const cai_memory_handle handle = any_handle();
    unit *u = find(m, handle), *made = NULL;
    const int64_t bytes = u ? (int64_t)(u->size - u->size / 3) : 16;
    const int outside = u && !u->lost && !draw(10);
    const uint64_t address = u ? u->address + u->size / 3 + (uint64_t)outside : 4096;
    cai_array *array = &h->arrays[place < 0 ? 0 : place];
    cai_status status, wanted;
    if (place == NOBODY) return;
    status = cai_array_init(array, CAI_UINT8, 1, &bytes, NULL, (void *)(uintptr_t)address, &err);
    if (status) return;
    array->sync = CAI_SYNC_NONE;
    status = cai_manager_own(array, &m->emm, handle, &err);
    wanted = outside ? CAI_ERR_MEMORY : predict_own(m, handle, &made);
    judge(status, wanted);
    hold_array(place, made, status);
}

/* What was done with an array until it is released. The caller owes that the stream that it names then comes after
 * the allocation. Here all has passed. */
static void use_array(cai_array *array)
{
    if (world.sim) (void)cai_sim_run(world.sim);
    array->sync = (int32_t)draw(4);
    if (world.capturing && draw(2)) {
        array->sync = draw(2) ? CAI_SYNC_STREAM : CAI_SYNC_UNKNOWN;
        array->stream = world.capturing;
        return;
    }
    array->event = array->sync == CAI_SYNC_EVENT ? array_event : 0;
    if (array->sync != CAI_SYNC_STREAM) return;
    if (draw(2) || !array->stream) array->stream = any_stream();
    array->thread = array->stream == CAI_STREAM_PER_THREAD && m->pooled ? 1 + draw(3) : 0;
}

static void release_place(int32_t place)
{
    cai_array array = h->arrays[place];
    const int32_t number = h->array_units[place];
    cai_array_release(&h->arrays[place]);
    predict_release(m, &m->units[number], &array);
    h->array_units[place] = NOBODY;
    look.native = -1;
}

/* Rather one whose stream captures. */
static int32_t array_to_release(void)
{
    int32_t place = NOBODY, tries;
    for (tries = 0; tries < 4; tries++) {
        place = any_array(1);
        if (place == NOBODY || h->arrays[place].stream == world.capturing) break;
    }
    return place;
}

static void do_release(void)
{
    const int32_t place = array_to_release();
    if (place == NOBODY) return;
    if (draw(2)) use_array(&h->arrays[place]);
    release_place(place);
    judge(CAI_OK, CAI_OK);
}

/* What its release will find of an array that the pool keeps. */
static cai_array late(const cai_array *array)
{
    const int on_stream = array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT;
    cai_array found = *array;
    if (!on_stream || found.stream == CAI_STREAM_PER_THREAD) found.stream = 0;
    found.sync = found.stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    found.event = found.thread = 0;
    return found;
}

/* The pool keeps an array until a drain, or until memory runs out. */
static void do_keep(void)
{
    const int32_t place = any_array(1);
    if (place == NOBODY || !m->pooled || kept_count == KEPT || world.capturing || world.fault_count) return;
    if (context_before != world_own_context()) return; /* else the push would push a context, too */
    use_array(&h->arrays[place]);
    kept[kept_count].array = late(&h->arrays[place]);
    kept[kept_count].unit = h->array_units[place];
    judge(cai_keepalive_push(&h->arrays[place], &pool, streams[0], &err), CAI_OK);
    h->array_units[place] = NOBODY;
    kept_count++;
}

static void do_drain(void)
{
    cai_status status;
    if (!m->pooled) return;
    status = cai_keepalive_drain(&pool, &err);
    predict_drain(m);
    look.native = -1;
    judge(status, CAI_OK);
}

/* ------------------------------------------------------------------ managers */

static void do_defer(void)
{
    const int begin = m->depth == 0 || (m->depth < 3 && draw(3) == 0 && m->queued < 100);
    const cai_status status =
        begin ? cai_manager_defer_begin(&m->emm, &err) : cai_manager_defer_end(&m->emm, &err);
    judge(status, begin ? predict_defer_begin(m) : predict_defer_end(m));
    if (m->depth || draw(10)) return;
    look.position = world.call_count;
    judge(cai_manager_defer_end(&m->emm, &err), CAI_ERR_ARGUMENT);
}

static void do_flush(void)
{
    const cai_status status = cai_manager_flush(&m->emm, &err);
    judge(status, predict_flush(m));
}

/* What the caller owes: nothing is pending, allocations in the order of streams among it. */
static void do_reset(void)
{
    cai_status status;
    if (world.sim) (void)cai_sim_run(world.sim);
    status = cai_manager_reset(&m->emm, &err);
    judge(status, predict_reset(m));
}

static void do_memory_info(void)
{
    size_t available = 0, total = 0;
    const cai_status status = cai_manager_device_memory(&m->emm, &available, &total, &err);
    judge(status, predict_info(m));
    equal("the memory of the device", total, status ? 0 : TOTAL_BYTES);
}

/* Often the stream of an array: its release is where captures matter most. */
static void do_capture(void)
{
    const int32_t place = any_array(1);
    if (world.capturing) {
        if (world.sim) (void)cai_sim_capture_end(world.sim, world.capturing, NULL);
        world.capturing = 0;
        if (world.sim) (void)cai_sim_set_context(world.sim, context_before);
        return;
    }
    if (!m->pooled) return;
    captures_begun++;
    world.capturing = streams[draw(STREAMS)];
    if (place != NOBODY && h->arrays[place].stream > CAI_STREAM_PER_THREAD && draw(2))
        world.capturing = h->arrays[place].stream;
    if (!world.sim) return;
    (void)cai_sim_set_context(world.sim, world_own_context());
    if (cai_sim_capture_begin(world.sim, world.capturing, CAI_SIM_MODE_RELAXED))
        world_wrong("no capture begins");
    (void)cai_sim_set_context(world.sim, context_before);
}

/* Refused while anything is referenced, or a scope is open. */
static void do_destroy(void)
{
    int32_t i, referenced = m->depth;
    for (i = 0; i < UNITS; i++) referenced += m->units[i].used && users(&m->units[i]);
    if (referenced) judge(cai_manager_destroy(&m->emm, &err), CAI_ERR_PENDING);
}

static const struct {
    uint32_t weight;
    void (*call)(void);
    const char *name;
} operations[] = {
    {260, do_alloc, "alloc"}, {70, do_other, "host, managed, pin"}, {330, do_free, "free"},
    {30, do_double_free, "double free"}, {80, do_retain, "retain"},
    {20, do_info, "info"}, {8, do_ipc, "ipc"},
    {40, do_array, "array"}, {30, do_own, "own"}, {70, do_release, "release"}, {8, do_keep, "keep"},
    {3, do_drain, "drain"}, {30, do_defer, "defer"}, {8, do_flush, "flush"}, {3, do_reset, "reset"},
    {6, do_memory_info, "memory_info"}, {20, do_capture, "capture"}, {2, do_destroy, "destroy"}};

/* ------------------------------------------------------------------ one operation */

static void add_fault(int32_t operation, int32_t after, int32_t error)
{
    fault *f = &world.faults[world.fault_count++];
    f->operation = operation;
    f->after = after;
    f->error = error;
}

/* One failure of CUDA, or some of hooks, or none. */
static void plan_faults(void)
{
    static const int32_t cuda_operations[] = {OP_PUSH, OP_CURRENT, OP_POP, OP_POP, OP_POP, OP_RECORD,
                                              OP_ORDER, OP_EVENT, OP_STREAM_SYNC, OP_CONTEXT_SYNC,
                                              OP_CAPTURE};
    static const int32_t hooks[] = {OP_INITIALIZE, OP_RESET, OP_INFO, OP_DEFER, OP_IPC, OP_DEVICE_FREE,
                                    OP_DEVICE_FREE, OP_DEVICE_FREE, OP_HOST_FREE, OP_UNPIN, OP_MANAGED_FREE};
    static const int32_t allocs[] = {OP_DEVICE_ALLOC, OP_DEVICE_ALLOC, OP_HOST_ALLOC, OP_PIN,
                                     OP_MANAGED_ALLOC};
    static const int32_t errors[] = {4, 700, 719, 1, 2, 905};
    static const int32_t alloc_errors[] = {2, 2, 4, 700, 901, 2, GIVES_NULL, GIVES_MISALIGNED};
    const uint32_t what = draw(100);
    int32_t operation, error;
    world.fault_count = 0;
    operation = (int32_t)draw(11); /* no capture has to do with the first two */
    error = errors[draw(operation < 2 ? 5 : 6)];
    operation = cuda_operations[operation]; /* of queries the first: the list does not have those that work */
    if (what < 6) add_fault(operation, operation < OP_CURRENT ? 1 + (int32_t)draw(3) / 2 : 1, error);
    if (what < 6 && operation == OP_POP && draw(2)) add_fault(OP_PUSH, 2, 719); /* nothing works any more */
    if (what == 6) add_fault(OP_HOST_MEMORY, 1, 1);
    if (what >= 7 && what < 22) add_fault(hooks[draw(11)], 1 + (int32_t)draw(3) / 2, errors[draw(6)]);
    if (what < 16 || what >= 28) return;
    operation = allocs[draw(5)];
    error = alloc_errors[draw(8)];
    if (operation == OP_PIN && error < 0) error = 2;
    if (operation != OP_DEVICE_ALLOC && error == GIVES_MISALIGNED) error = 2;
    add_fault(operation, 1, error);
    if (error == 2 && draw(3) == 0) add_fault(operation, 1, alloc_errors[draw(5)]);
    if (world.faults[world.fault_count - 1].error == 2 && draw(2)) add_fault(operation, 1, alloc_errors[draw(5)]);
}

/* The host thread, and the context that is current on it. */
static void play_thread(void)
{
    const uint32_t what = draw(12);
    const uint64_t own = world_own_context();
    uint64_t other = world_other_context();
    if (draw(4) == 0) world.thread = 1 + draw(3);
    if (what == 0) other = 0;
    context_before = what < 3 ? other : own;
    world.contexts[0] = context_before;
    if (!world.sim) return;
    cai_sim_host_thread(world.sim, world.thread);
    (void)cai_sim_set_context(world.sim, context_before);
}

static void (*any_operation(int32_t *number))(void)
{
    uint32_t all = 0, at;
    int32_t i;
    const int32_t count = (int32_t)(sizeof operations / sizeof operations[0]), units = used_units();
    for (i = 0; i < count; i++) all += operations[i].weight;
    for (at = draw(all), i = 0; at >= operations[i].weight; i++) at -= operations[i].weight;
    if (units > 150 && i != 2 && i < 5 && draw(3)) i = 2;
    if (units > 400) i = m->depth ? 12 : m->queued > 200 ? 13 : 2;
    *number = i;
    return operations[i].call;
}

static void begin_operation(void)
{
    world.emm = &m->emm;
    world.call_count = 0;
    look.position = 0;
    look.broken = 0;
    look.native = -1;
    err.native = 0;
    play_thread();
}

static void end_operation(void)
{
    world.fault_count = 0;
    if (world.wrong) differ("what the world saw", world.wrong, 0);
    if (world_current() != context_before) differ("the current context", (int64_t)world_current(), 0);
    if (world.depth || (world.mode && !world.sim)) differ("contexts that were pushed", world.depth, 0);
    if (m->emm.guard) differ("the guard", 1, 0);
    judge_counts();
}

/* Does an array need the stream still? */
static int is_needed(uint64_t stream)
{
    int32_t which, i;
    for (which = 0; which < MANAGERS; which++) {
        const holding *one = &holdings[which];
        for (i = 0; i < ARRAYS; i++)
            if (one->array_units[i] != NOBODY && one->arrays[i].stream == stream) return 1;
    }
    for (i = 0; i < kept_count; i++)
        if (kept[i].array.stream == stream) return 1;
    return 0;
}

/* The last stream is of another context. */
static void make_stream(int32_t number)
{
    if (number == STREAMS - 1) (void)cai_sim_set_context(world.sim, world_other_context());
    else (void)cai_sim_set_context(world.sim, world_own_context());
    streams[number] = cai_sim_stream_create(world.sim, 1);
    world.foreign = streams[STREAMS - 1];
}

/* A stream that nobody needs goes, with its work pending, and another one takes its place. After each operation
 * this looks at two streams. */
static void change_streams(int64_t at)
{
    int32_t i;
    if (!world.sim || world.capturing) return;
    (void)cai_sim_set_context(world.sim, world_own_context());
    for (i = (int32_t)(at % 3); i < STREAMS; i += 3) {
        if (is_needed(streams[i])) continue;
        if (cai_sim_stream_destroy(world.sim, streams[i])) world_wrong("a stream is not destroyed");
        make_stream(i);
        gone_streams++;
    }
    (void)cai_sim_set_context(world.sim, context_before);
}

/* All that was called, after a difference. */
static void print_calls(void)
{
    int32_t i;
    printf("  %s, host thread %d, context 0x%llx, capturing 0x%llx, %d scopes\n",
           m->pooled ? "over CUDA" : "without CUDA", (int)world.thread, (unsigned long long)context_before,
           (unsigned long long)world.capturing, (int)m->depth);
    for (i = 0; i < world.call_count; i++) {
        const call *c = &world.calls[i];
        printf("  %s table %d 0x%llx size %llu stream 0x%llx flags %llu -> %d 0x%llx\n",
               operation_names[c->operation], (int)c->table, (unsigned long long)c->address,
               (unsigned long long)c->size, (unsigned long long)c->stream, (unsigned long long)c->flags,
               (int)c->result, (unsigned long long)c->answer);
    }
}

/* One operation of one manager. 0: it was not as predicted. */
static int operate(int64_t at)
{
    int32_t number;
    void (*act)(void);
    h = &holdings[draw(4) == 0];
    m = &h->m;
    begin_operation();
    act = any_operation(&number);
    plan_faults();
    act();
    change_streams(at);
    end_operation();
    if (at % 16 == 0) judge_live();
    look.operations++;
    if (!look.broken) return 1;
    printf("%s:\n", operations[number].name);
    if (!world.quiet) print_calls();
    return 0;
}

/* A manager with a defect may crash: that is a difference, too. */
static void crashed(int number)
{
    printf("difference at operation %lld: signal %d\n", (long long)look.operations, number);
    (void)fflush(stdout);
    _Exit(1);
}

/* ------------------------------------------------------------------ one run */

static void open_manager(int32_t which)
{
    cai_emm_hooks hooks;
    int32_t suits, i;
    h = &holdings[which];
    memset(h, 0, sizeof *h);
    m = &h->m;
    m->pooled = which == 0;
    for (i = 0; i < ARRAYS; i++) h->array_units[i] = NOBODY;
    m->options.alloc_fn = manager_alloc;
    m->options.free_fn = manager_free;
    m->options.user_data = &world;
    m->options.flags = draw(2) ? CAI_MANAGER_DRAIN : 0;
    m->options.deferred_count = (int32_t)draw(3) * (int32_t)draw(30);
    m->options.deferred_bytes = draw(3) == 0 ? 20000 : draw(2) ? 0 : (uint64_t)1 << 40;
    begin_operation();
    context_before = world_own_context();
    world.contexts[0] = context_before;
    if (world.sim) (void)cai_sim_set_context(world.sim, context_before);
    do {
        m->table = any_hooks(&hooks);
        suits = m->pooled || (m->table.kind == CAI_MEMORY_HOST && !(m->table.flags & CAI_EMM_CUDA_HOST));
        judge(cai_manager_init(&m->emm, m->pooled ? &pool : NULL, &hooks, &m->options, &err),
              suits ? CAI_OK : CAI_ERR_ARGUMENT);
    } while (!suits && !look.broken);
    m->table.limit = UINT64_MAX;
    if (!m->options.deferred_count) m->options.deferred_count = 10;
}

/* Gives everything back, as a careful program does at its end. */
static void empty_manager(int32_t which)
{
    int32_t i;
    h = &holdings[which];
    m = &h->m;
    if (world.capturing) do_capture();
    for (i = 0; i < 6 * UNITS && !look.broken; i++) {
        const unit *u = any_unit();
        const int32_t place = any_array(1);
        world.thread = 1 + (uint64_t)i % 3; /* stream 2 of whichever */
        begin_operation();
        if (i == 0) do_drain();
        else if (m->depth) do_defer();
        else if (place != NOBODY) release_place(place);
        else if (u) {
            const cai_memory_handle handle = u->handle;
            const cai_status status = cai_manager_free(&m->emm, handle, streams[0], &err);
            judge(status, predict_free(m, handle, streams[0]));
        } else break;
        end_operation();
    }
}

/* The deferred frees go with the manager, on the threads and after the captures that it has to wait for. */
static void close_manager(int32_t which)
{
    int32_t stays = 1, tries;
    cai_status status;
    empty_manager(which);
    if (draw(2)) do_capture();
    for (tries = 0; stays && !look.broken; tries++) {
        if (tries == 1 && world.capturing) do_capture();
        if (tries > 1) world.thread = 1 + (uint64_t)tries % 3;
        begin_operation();
        if (tries > 3) {
            do_flush();
            begin_operation();
        }
        status = cai_manager_destroy(&m->emm, &err);
        judge(status, predict_destroy(m, &stays));
        if (tries == 20) differ("a manager that stays", 1, 0);
    }
}

static int64_t leaks_of_world(void)
{
    int64_t leaks = world_leaks(-1) + (world.host_live != 0) + (world.host_bytes != 0);
    char text[200];
    if (!leaks || world.quiet) return leaks;
    (void)snprintf(text, sizeof text, "%d of hooks, %lld of the manager", (int)world_leaks(-1),
                   (long long)world.host_live);
    printf("left over: %s\n", text);
    return leaks;
}

static int open_world(int simulated)
{
    int32_t i;
    const int quiet = world.quiet;
    memset(&world, 0, sizeof world);
    memset(shadows, 0, sizeof shadows);
    kept_count = 0;
    world.quiet = quiet;
    world.thread = 1;
    world_fill_table(&cuda);
    world.emm = &holdings[0].m.emm;
    array_event = 0x8000;
    for (i = 0; i < STREAMS; i++) streams[i] = 0x5000u + (uint64_t)i * 16;
    world.foreign = streams[STREAMS - 1];
    if (!simulated) return 1;
    world.sim = cai_sim_create(2);
    if (!world.sim) return 0;
    world.below = *cai_sim_cuda(world.sim);
    cai_sim_host_thread(world.sim, 1);
    (void)cai_sim_set_context(world.sim, cai_sim_primary(world.sim, 0));
    for (i = 0; i < STREAMS; i++) make_stream(i);
    (void)cai_sim_set_context(world.sim, cai_sim_primary(world.sim, 0));
    array_event = cai_sim_event_create(world.sim);
    return 1;
}

static int64_t close_world(void)
{
    int64_t leaks = leaks_of_world();
    char text[400];
    int32_t i, left;
    if (!world.sim) return leaks;
    cai_sim_host_thread(world.sim, 1);
    for (i = 0; i < STREAMS; i++) (void)cai_sim_stream_destroy(world.sim, streams[i]);
    (void)cai_sim_event_destroy(world.sim, array_event);
    (void)cai_sim_run(world.sim);
    left = cai_sim_leaks(world.sim, text, sizeof text) - world.lost_events;
    if (left && !world.quiet) printf("left over in the simulation: %s\n", text);
    cai_sim_destroy(world.sim);
    return leaks + left;
}

/* Managers live for a while, then all is given back. */
static int64_t run(uint64_t seed, int64_t count, int simulated)
{
    int64_t at = 0, leaks = 0;
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    while (at < count && !look.differences) {
        if (!open_world(simulated) ||
            cai_event_pool_init(&pool, &cuda, keepalive, KEPT, 0, &err)) return 1;
        open_manager(0);
        open_manager(1);
        do
            if (!operate(at++)) break;
        while (at < count && at % LIFETIME);
        if (!look.differences) close_manager(0);
        if (world.capturing) do_capture();
        if (!look.differences) close_manager(1);
        if (look.differences) {
            printf("seed %llu, difference at operation %lld: %s\n", (unsigned long long)seed,
                   (long long)at - 1, look.text);
            return leaks;
        }
        if (cai_event_pool_destroy(&pool, &err)) differ("the pool's end", err.code, 0);
        leaks += close_world();
    }
    return leaks;
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const int64_t count = argc > 2 ? strtoll(argv[2], NULL, 10) : 50000;
    int64_t seeds = 1, leaks = 0, n;
    int simulated = 0, i;
    (void)signal(SIGSEGV, crashed);
    (void)signal(SIGABRT, crashed);
    for (i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "--sim")) simulated = 1;
        else if (!strcmp(argv[i], "--quiet")) world.quiet = 1;
        else if (!strcmp(argv[i], "--seeds") && i + 1 < argc) seeds = strtoll(argv[++i], NULL, 10);
        else return 2;
    }
    for (n = 0; n < seeds && !look.differences; n++) leaks += run(seed + (uint64_t)n, count, simulated);
    if (!world.quiet || look.differences || leaks)
        printf("%lld operations, %lld hook and CUDA calls compared, %lld statuses compared, "
               "%lld streams gone, %lld captures, %lld differences, %lld leaks\n",
               (long long)look.operations, (long long)look.calls, (long long)look.statuses,
               (long long)gone_streams, (long long)captures_begun, (long long)look.differences, (long long)leaks);
    return look.differences || leaks || !look.operations;
}
