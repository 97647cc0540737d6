/* predict.h - what a manager must have done: the model of model.c, from the declarations of cai_manager.h.
 * SPDX-License-Identifier: MIT
 *
 * Plain arrays that are searched from the start, one unit for each memory object. After each
 * operation the model goes through the calls that the world has written down and demands exactly those that it
 * would have made; from each it takes what the world answered. The first difference ends the run, as all that
 * follows would be wrong, too. */
#ifndef EMM_PREDICT_H
#define EMM_PREDICT_H

#include "world.h"

enum { UNITS = 1024, NOBODY = -1, OWN = 1, OTHER = 2 };

/* How deferred frees are carried out: those for which the host need not wait for the context; all that may be;
 * all, as no work is pending any more. */
enum { BY_LIMIT, ASKED, ALL_IDLE };

typedef struct source {
    int32_t table;
    uint32_t flags;
    int32_t kind;
    int32_t has_initialize, has_reset, has_info, has_defer, has_ipc, has_host, has_pin, has_managed;
    int32_t ready;
    uint64_t limit;
} source;

typedef struct unit {
    int32_t used;
    cai_memory_handle handle;
    int32_t slot, references, arrays, lost, kind, deferred; /* references: by the handle */
    uint64_t number, address, size, block, block_size;
    int32_t contexts; /* OWN, OTHER: the host waits for these before the free */
    uint64_t mark; /* the stream with the event of the manager that the free comes after; 0: none */
} unit;

typedef struct model {
    cai_manager emm;
    int32_t pooled, depth;
    cai_manager_options options;
    source table;
    unit units[UNITS];
    int32_t queue[UNITS], queued; /* deferred, in the order of coming */
    int32_t idle[UNITS], idle_count, slots;
    uint64_t numbers;
    cai_manager_count count;
} model;

/* Where the comparison is, and what it has found. */
static struct {
    int32_t position;
    int32_t broken; /* this operation is not as predicted */
    int32_t native; /* of the failure that is returned; -1: not known */
    int64_t operations, calls, statuses, differences;
    char text[400];
} look;

static void differ(const char *what, int64_t got, int64_t wanted)
{
    if (look.broken++) return;
    look.differences++;
    (void)snprintf(look.text, sizeof look.text, "%s: %lld, but %lld is right", what, (long long)got,
                   (long long)wanted);
}

static void equal(const char *what, uint64_t got, uint64_t wanted)
{
    if (got != wanted) differ(what, (int64_t)got, (int64_t)wanted);
}

/* ------------------------------------------------------------------ expected calls */

static const call *peek(int32_t operation)
{
    if (look.broken || look.position >= world.call_count) return NULL;
    return world.calls[look.position].operation == operation ? &world.calls[look.position] : NULL;
}

static void describe(const char *why, const call *got, const call *wanted)
{
    char lines[2][150];
    const call *both[2];
    int32_t i;
    both[0] = got;
    both[1] = wanted;
    for (i = 0; i < 2; i++) {
        if (!both[i]) (void)snprintf(lines[i], sizeof lines[i], "none");
        else (void)snprintf(lines[i], sizeof lines[i],
                            "%s table %d 0x%llx size %lld stream 0x%llx flags %lld",
                            operation_names[both[i]->operation], (int)both[i]->table,
                            (unsigned long long)both[i]->address, (long long)both[i]->size,
                            (unsigned long long)both[i]->stream, (long long)both[i]->flags);
    }
    look.broken++;
    look.differences++;
    (void)snprintf(look.text, sizeof look.text, "%s %d: %s, but %s is right", why, (int)look.position,
                   lines[0], lines[1]);
}

/* The next call must be this one. Gives it, or NULL and the operation is broken. */
static const call *expect(int32_t operation, int32_t table, uint64_t address, uint64_t size, uint64_t stream,
                          uint64_t flags)
{
    const call *got;
    call wanted;
    if (look.broken) return NULL;
    memset(&wanted, 0, sizeof wanted);
    wanted.operation = operation;
    wanted.table = table;
    wanted.address = address;
    wanted.size = size;
    wanted.stream = stream;
    wanted.flags = flags;
    got = look.position < world.call_count ? &world.calls[look.position] : NULL;
    if (got && got->operation == operation && got->table == table && got->address == address &&
        got->size == size && got->stream == stream && got->flags == flags) {
        look.position++;
        look.calls++;
        return got;
    }
    describe("call", got, &wanted);
    return NULL;
}

static int32_t expect_result(int32_t operation, int32_t table, uint64_t address, uint64_t size,
                             uint64_t stream, uint64_t flags)
{
    const call *c = expect(operation, table, address, size, stream, flags);
    return c ? c->result : 0;
}

/* A query is in the list if it failed. */
static int32_t query_result(int32_t operation)
{
    const call *c = peek(operation);
    if (!c) return 0;
    look.position++;
    look.calls++;
    return c->result;
}

static cai_status hook_failed(int32_t error)
{
    if (look.native < 0) look.native = error;
    return CAI_ERR_CUDA;
}

/* ------------------------------------------------------------------ units */

static unit *find(model *m, cai_memory_handle handle)
{
    int32_t i;
    for (i = 0; i < UNITS; i++) {
        unit *u = &m->units[i];
        if (u->used && u->references && u->handle == handle) return u;
    }
    return NULL;
}

static int32_t users(const unit *u) { return u->references + u->arrays; }

static int32_t take_slot(model *m) { return m->idle_count ? m->idle[--m->idle_count] : m->slots++; }
static void give_slot(model *m, int32_t slot) { m->idle[m->idle_count++] = slot; }

/* Host memory for a slot may be refused. */
static int32_t host_refuses(void) { return query_result(OP_HOST_MEMORY) != 0; }

static unit *new_unit(model *m, int32_t slot)
{
    int32_t i = 0;
    while (m->units[i].used) i++;
    memset(&m->units[i], 0, sizeof m->units[i]);
    m->units[i].used = 1;
    m->units[i].slot = slot;
    m->units[i].number = ++m->numbers;
    return &m->units[i];
}

static void end_unit(model *m, unit *u)
{
    u->used = 0;
    give_slot(m, u->slot);
}

/* ------------------------------------------------------------------ contexts and streams */

static uint64_t context_before; /* of the host thread, before the operation */

/* A call of the manager that frees: CUDA's 4 is success there, and `gone` from then on. */
typedef struct flow {
    int32_t ending, gone, entered;
    int32_t array, idle, later; /* the reference is an array's; nothing is pending for it; the free is deferred */
    int32_t contexts; /* the free is deferred until the host has waited for these */
} flow;

static int is_dead(int32_t error) { return error == 4 || error == 700 || error == 719; }

static cai_status answered(flow *f, int32_t error)
{
    if (!error) return CAI_OK;
    if (error == 4) f->gone = 1;
    if (error == 4 && f->ending) return CAI_OK;
    if (look.native < 0) look.native = error;
    return CAI_ERR_CUDA;
}

/* Of a wait for what a free comes after: where all work has ended, there is none to wait for. */
static cai_status answered_of_wait(flow *f, int32_t error)
{
    return error != 4 && is_dead(error) && f->ending ? CAI_OK : answered(f, error);
}

/* Of a query of a capture, and where streams are ordered, CUDA's error may be about a capture. */
static cai_status answered_of_capture(flow *f, int32_t error)
{
    const cai_status status = answered(f, error);
    return status && error >= 900 && error <= 908 ? CAI_ERR_CAPTURE : status;
}

static cai_status enter(const model *m, flow *f)
{
    int32_t error;
    f->entered = 0;
    if (!m->pooled) return CAI_OK;
    error = query_result(OP_CURRENT);
    if (!error && context_before == world_own_context()) return CAI_OK;
    if (!error) error = expect_result(OP_PUSH, 0, world_own_context(), 0, 0, 0);
    f->entered = !error;
    return answered(f, error);
}

/* A pop that did nothing is done once more: the caller's context must come back. */
static cai_status leave(flow *f, cai_status status)
{
    int32_t error;
    if (!f->entered) return status;
    f->entered = 0;
    error = expect_result(OP_POP, 0, 0, 0, 0, 0);
    if (error) (void)expect(OP_POP, 0, 0, 0, 0, 0);
    return status ? status : answered(f, error);
}

static cai_status not_capturing(const model *m, flow *f, uint64_t stream)
{
    int32_t error;
    if (!m->pooled) return CAI_OK;
    error = query_result(OP_CAPTURE);
    if (f->ending && error != 4 && is_dead(error)) { /* nothing is pending there */
        f->idle = 1;
        return answered_of_wait(f, expect_result(OP_STREAM_SYNC, 0, 0, 0, stream, 0));
    }
    if (error) return answered_of_capture(f, error);
    return world.capturing == stream ? CAI_ERR_CAPTURE : CAI_OK;
}

/* If the question fails, what comes next fails. */
static int captures(const model *m, const flow *f, uint64_t stream)
{
    flow own = *f;
    const int32_t native = look.native;
    cai_status status;
    own.ending = 0;
    status = not_capturing(m, &own, stream);
    look.native = native;
    return status == CAI_ERR_CAPTURE;
}

static int32_t context_of(uint64_t stream) { return stream && stream == world.foreign ? OTHER : OWN; }

/* The host waits for a context, unless a blocking stream captures there. */
static cai_status wait_context(const model *m, flow *f, int32_t context)
{
    if (f->gone) return CAI_OK;
    if (captures(m, f, CAI_STREAM_LEGACY)) return CAI_ERR_CAPTURE;
    return answered_of_wait(f, expect_result(OP_CONTEXT_SYNC, 0, (uint64_t)context, 0, 0, 0));
}

static int bad_stream(uint64_t stream) { return stream == 0 || stream == UINT64_MAX; }

/* ------------------------------------------------------------------ freeing */

static int32_t by_cuda(const source *s, int32_t kind)
{
    if (kind == CAI_MEMORY_PINNED || kind == CAI_MEMORY_MAPPED) return !s->has_host;
    if (kind == CAI_MEMORY_REGISTERED) return !s->has_pin;
    if (kind == CAI_MEMORY_MANAGED) return !s->has_managed;
    return 0;
}

static int32_t frees_wait(const source *s, int32_t kind)
{
    return by_cuda(s, kind) || s->flags & CAI_EMM_FREES_WAIT;
}

/* CUDA's own functions free when the stream has passed, and not where it captures. */
static int32_t wait_before_free(uint64_t stream)
{
    const int32_t error = query_result(OP_CAPTURE);
    if (error) return error;
    return world.capturing == stream ? 900 : expect_result(OP_STREAM_SYNC, 0, 0, 0, stream, 0);
}

/* Of what the wait refuses, the world shall not wait for the end. */
static int32_t expect_cuda_free(int32_t operation, const unit *u, uint64_t stream)
{
    const int32_t waited = operation == OP_UNPIN ? 0 : wait_before_free(stream);
    int32_t error;
    if (waited && !is_dead(waited)) {
        world_forget(u->block);
        return waited;
    }
    error = expect_result(operation == OP_MANAGED_FREE ? OP_DEVICE_FREE : operation, FROM_CUDA, u->block, 0, 0, 0);
    return waited ? waited : error;
}

/* The call that frees an object. CUDA's own functions get no size and no stream. */
static int32_t expect_free(const source *s, const unit *u, uint64_t stream)
{
    int32_t operation = OP_DEVICE_FREE;
    if (u->kind == CAI_MEMORY_PINNED || u->kind == CAI_MEMORY_MAPPED) operation = OP_HOST_FREE;
    if (u->kind == CAI_MEMORY_REGISTERED) operation = OP_UNPIN;
    if (u->kind == CAI_MEMORY_MANAGED) operation = OP_MANAGED_FREE;
    if (by_cuda(s, u->kind) || s->table == FROM_CUDA) return expect_cuda_free(operation, u, stream);
    if (s->table == FROM_ASYNC) return expect_result(operation, FROM_ASYNC, u->block, 0, stream, 0);
    return expect_result(operation, s->table, u->block, u->block_size, stream, 0);
}

/* The memory goes, also if the hook fails. */
static cai_status free_block(model *m, const flow *f, const unit *u, uint64_t stream)
{
    const int32_t error = f->gone ? 0 : expect_free(&m->table, u, stream);
    if (f->gone) world_forget(u->block);
    m->count.freed++;
    if (!error || error == 4) return CAI_OK;
    if (!m->count.failed++) m->count.first_failure = error;
    return hook_failed(error);
}

static int over(const model *m, uint64_t limit)
{
    return m->count.deferred > (uint64_t)m->options.deferred_count || m->count.deferred_bytes > limit;
}

/* The free comes after the work in a stream, and after the event so far: by a new event, or the host waits, now or
 * later. */
static void join(const flow *f, unit *u, uint64_t stream)
{
    flow quiet = *f;
    const int32_t native = look.native;
    int32_t error = 0;
    if (u->mark) error = expect_result(OP_ORDER, 0, u->mark, 0, stream, 0);
    if (!error && peek(OP_RECORD)) error = expect_result(OP_RECORD, 0, 0, 0, stream, 0);
    u->mark = error ? 0 : stream;
    if (error && answered_of_wait(&quiet, expect_result(OP_STREAM_SYNC, 0, 0, 0, stream, 0)))
        u->contexts |= context_of(stream);
    look.native = native;
}

/* Where memory goes that may go anywhere: not where something captures. */
static uint64_t quiet_stream(const model *m, const flow *f)
{
    return !f->gone && captures(m, f, CAI_STREAM_LEGACY) ? CAI_STREAM_PER_THREAD : CAI_STREAM_LEGACY;
}

/* Orders a stream after all that an object's free comes after. Why it cannot: a stream captures, the host cannot
 * wait, or should not. */
static cai_status catch_up(model *m, const flow *f, const unit *u, uint64_t stream)
{
    flow own = *f;
    int32_t context;
    if (stream == CAI_STREAM_PER_THREAD && captures(m, f, stream)) return CAI_ERR_CAPTURE;
    for (context = OWN; context <= OTHER; context++) {
        cai_status status = CAI_OK;
        if (u->contexts & context) status = wait_context(m, &own, context);
        if (status) return status == CAI_ERR_CUDA ? CAI_ERR_PENDING : status;
    }
    if (u->mark && !own.gone && u->kind != CAI_MEMORY_REGISTERED)
        (void)expect_result(OP_ORDER, 0, u->mark, 0, stream, 0); /* or the host waits */
    return CAI_OK;
}

/* Why a deferred free cannot be carried out now. */
static cai_status stays(model *m, const flow *f, const unit *u, int32_t how, uint64_t stream)
{
    const int32_t native = look.native;
    cai_status status;
    if (f->gone || how == ALL_IDLE || !m->pooled) return CAI_OK;
    status = catch_up(m, f, u, stream);
    look.native = native;
    return status;
}

/* What is deferred, oldest first. *why: of the first that stays. */
static cai_status carry_out(model *m, const flow *f, int32_t how, cai_status *why)
{
    int32_t i, kept = 0;
    cai_status first = CAI_OK, status;
    for (i = 0; i < m->queued; i++) {
        unit *u = &m->units[m->queue[i]];
        const int waits = u->contexts && how == BY_LIMIT && m->pooled;
        const uint64_t stream = waits ? 0 : quiet_stream(m, f);
        status = waits ? CAI_ERR_PENDING : stays(m, f, u, how, stream);
        if (status) {
            if (!kept && why) *why = status;
            m->queue[kept++] = m->queue[i];
            continue;
        }
        status = free_block(m, f, u, stream);
        if (f->gone && u->mark) world.lost_events++;
        if (!first) first = status;
        m->count.deferred--;
        m->count.deferred_bytes -= u->block_size;
        end_unit(m, u);
    }
    m->queued = kept;
    return first;
}

/* The reference goes: nothing keeps it from here on. */
static void count_down(unit *u, int32_t of_array)
{
    if (of_array) u->arrays--;
    else u->references--;
}

/* Memory that a reset took: nothing to do below. */
static void drop_lost(model *m, unit *u, int32_t of_array)
{
    count_down(u, of_array);
    if (users(u)) return;
    m->count.lost++;
    end_unit(m, u);
}

static void defer_free(model *m, const flow *f, unit *u, uint64_t stream)
{
    u->deferred = 1;
    if (m->pooled && !f->idle && !f->contexts) join(f, u, stream);
    m->queue[m->queued++] = (int32_t)(u - m->units);
    m->count.deferred++;
    m->count.deferred_bytes += u->block_size;
}

/* The host waits before memory is unpinned. The free of an array is deferred if it cannot. */
static cai_status wait_to_unpin(flow *f, uint64_t stream)
{
    cai_status status = CAI_OK;
    if (!f->idle) status = answered_of_wait(f, expect_result(OP_STREAM_SYNC, 0, 0, 0, stream, 0));
    if (!status) f->idle = 1;
    else if (f->array) f->contexts = context_of(stream);
    return f->array ? CAI_OK : status;
}

/* The last reference of an object went. */
static cai_status let_go(model *m, flow *f, unit *u, uint64_t stream)
{
    const source *s = &m->table;
    const int pinned = u->kind == CAI_MEMORY_REGISTERED;
    cai_status status = CAI_OK;
    int defers;
    u->contexts |= f->contexts;
    if (pinned && m->pooled && !f->gone && !u->contexts && !f->later) status = wait_to_unpin(f, stream);
    if (status) return status;
    u->contexts |= f->contexts;
    defers = !f->gone && (f->later || u->contexts || (!pinned && (frees_wait(s, u->kind) || m->depth)));
    if (!defers && !pinned && u->mark && !f->gone)
        (void)expect_result(OP_ORDER, 0, u->mark, 0, stream, 0); /* or the host waits */
    m->count.live--;
    m->count.live_bytes -= u->block_size;
    if (!defers) {
        status = free_block(m, f, u, stream);
        world.lost_events += f->gone && u->mark;
        end_unit(m, u);
        return status;
    }
    defer_free(m, f, u, stream);
    return !m->depth && over(m, s->limit) && !f->contexts ? carry_out(m, f, BY_LIMIT, NULL) : CAI_OK;
}

/* Gives a reference back. What others have of the memory goes after an event of this one. */
static cai_status give_back(model *m, flow *f, unit *u, uint64_t stream)
{
    cai_status status;
    count_down(u, f->array);
    if (!users(u)) {
        status = let_go(m, f, u, stream);
        if (status && u->used && !u->deferred) u->references++; /* it is still pinned */
        return status;
    }
    if (m->pooled && !f->idle && !f->gone && !f->contexts) join(f, u, stream);
    u->contexts |= f->contexts;
    return CAI_OK;
}

static flow new_flow(int32_t ending)
{
    flow f;
    memset(&f, 0, sizeof f);
    f.ending = ending;
    return f;
}

/* Where nothing is pending that a stream could follow: the free is deferred while a blocking stream captures. */
static uint64_t anywhere(const model *m, flow *f)
{
    const uint64_t stream = quiet_stream(m, f);
    f->idle = 1;
    f->later = stream == CAI_STREAM_PER_THREAD;
    return stream;
}

static cai_status predict_free(model *m, cai_memory_handle handle, uint64_t stream)
{
    flow f = new_flow(1);
    cai_status status;
    unit *u;
    if (!handle) return CAI_OK;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    u = find(m, handle);
    if (!u) return CAI_ERR_STALE;
    if (u->lost) {
        drop_lost(m, u, 0);
        return CAI_OK;
    }
    status = enter(m, &f);
    if (!status && !f.gone) status = not_capturing(m, &f, stream);
    if (!status) status = give_back(m, &f, u, f.idle ? anywhere(m, &f) : stream);
    return leave(&f, status);
}

/* ------------------------------------------------------------------ arrays */

static int names_stream(const cai_array *array)
{
    if (array->sync != CAI_SYNC_STREAM && array->sync != CAI_SYNC_EVENT) return 0;
    return !bad_stream(array->stream) &&
           (array->stream != CAI_STREAM_PER_THREAD || array->thread == world.thread);
}

/* The stream that the array names, after its event; 0: none can be used. *wait: the host may wait. */
static uint64_t follow_array(const cai_array *array, int *unordered, int *wait)
{
    const int by_event = array->sync == CAI_SYNC_EVENT;
    const uint64_t stream = names_stream(array) ? array->stream : by_event ? CAI_STREAM_LEGACY : 0;
    int32_t error;
    *wait = 1;
    if (!stream) {
        *unordered = array->sync == CAI_SYNC_UNKNOWN || array->stream != CAI_STREAM_PER_THREAD;
        return 0;
    }
    *unordered = stream != CAI_STREAM_LEGACY;
    error = query_result(OP_CAPTURE);
    if (!error && world.capturing == stream) error = 900;
    if (!error && by_event) error = expect_result(OP_EVENT, 0, array->event, 0, stream, 0);
    *wait = error < 900 || error > 908;
    return error ? 0 : stream;
}

/* The host waits, or the free is deferred. */
static uint64_t without_order(const model *m, flow *f, const cai_array *array, int unordered, int wait)
{
    const int named = array->sync == CAI_SYNC_STREAM || array->sync == CAI_SYNC_EVENT;
    const int32_t context = context_of(named ? array->stream : 0);
    if (wait && unordered) wait = !wait_context(m, f, context);
    else if (wait) wait = !captures(m, f, CAI_STREAM_LEGACY);
    if (!wait) f->contexts = context;
    return wait && unordered ? anywhere(m, f) : CAI_STREAM_LEGACY;
}

static uint64_t order_array(const model *m, flow *f, const cai_array *array)
{
    int unordered = 1, wait = 0;
    uint64_t stream;
    if (!m->pooled) return CAI_STREAM_LEGACY;
    if (!enter(m, f)) {
        if (f->gone) return CAI_STREAM_LEGACY;
        if (array->sync == CAI_SYNC_NONE) return anywhere(m, f);
        stream = follow_array(array, &unordered, &wait);
        if (stream) return stream;
    }
    return without_order(m, f, array, unordered, wait);
}

/* An array gives its reference back in any case; nobody hears of a failure but the counts. */
static void predict_release(model *m, unit *u, const cai_array *array)
{
    flow f = new_flow(1);
    f.array = 1;
    if (u->lost) {
        drop_lost(m, u, 1);
        return;
    }
    (void)leave(&f, give_back(m, &f, u, order_array(m, &f, array)));
}

/* Arrays in the pool's keep-alive list, in their order. */
typedef struct kept_array {
    int32_t unit;
    cai_array array;
} kept_array;

enum { KEPT = 8 };
static kept_array kept[KEPT];
static int32_t kept_count;

static void predict_drain(model *m)
{
    int32_t i;
    for (i = 0; i < kept_count; i++) predict_release(m, &m->units[kept[i].unit], &kept[i].array);
    kept_count = 0;
}

/* ------------------------------------------------------------------ allocating */

static cai_status first_use(model *m, source *s)
{
    int32_t error = 0;
    if (s->ready) return CAI_OK;
    if (s->has_initialize) error = expect_result(OP_INITIALIZE, s->table, 0, 0, 0, 0);
    if (error) return hook_failed(error);
    s->limit = m->options.deferred_bytes ? m->options.deferred_bytes : UINT64_MAX;
    if (s->has_info && !m->options.deferred_bytes &&
        !expect_result(OP_INFO, s->table == FROM_ASYNC ? FROM_CUDA : s->table, 0, 0, 0, 0))
        s->limit = TOTAL_BYTES / 5;
    s->ready = 1;
    return CAI_OK;
}

typedef struct wish {
    int32_t kind;
    uint64_t size, alignment, stream, flags, pointer, block_size;
    int32_t for_array;
} wish;

static const call *expect_alloc(const source *s, const wish *w)
{
    const int32_t table = by_cuda(s, w->kind) ? FROM_CUDA : s->table;
    switch (w->kind) {
    case CAI_MEMORY_PINNED:
    case CAI_MEMORY_MAPPED: return expect(OP_HOST_ALLOC, table, 0, w->block_size, 0, w->flags);
    case CAI_MEMORY_REGISTERED: return expect(OP_PIN, table, w->pointer, w->block_size, 0, w->flags);
    case CAI_MEMORY_MANAGED: return expect(OP_MANAGED_ALLOC, table, 0, w->block_size, 0, w->flags);
    default:
        return expect(OP_DEVICE_ALLOC, table, 0, w->block_size, table == FROM_CUDA ? 0 : w->stream, 0);
    }
}

/* A block that became no object is freed. Only a failure of that is counted. */
static void free_undone(model *m, const flow *f, const unit *made, uint64_t stream)
{
    int32_t error = 0;
    if (f->gone) world_forget(made->block);
    else error = expect_free(&m->table, made, stream ? stream : CAI_STREAM_LEGACY);
    if (error && error != 4 && !m->count.failed++) m->count.first_failure = error;
}

/* Out of memory: what is deferred goes, then what has passed of the keep-alive list, and each time the hook is
 * asked again. */
static const call *ask_again(model *m, const source *s, const wish *w)
{
    const flow freeing = new_flow(1);
    const uint64_t before = context_before;
    const call *c;
    context_before = world_own_context();
    m->count.retries++;
    (void)carry_out(m, &freeing, BY_LIMIT, NULL);
    c = expect_alloc(s, w);
    if (c && c->result == 2 && m->pooled) {
        predict_drain(m);
        (void)carry_out(m, &freeing, BY_LIMIT, NULL);
        c = expect_alloc(s, w);
    }
    if (c && c->result == 2 && m->pooled && m->options.flags & CAI_MANAGER_DRAIN) {
        (void)carry_out(m, &freeing, ASKED, NULL);
        c = expect_alloc(s, w);
    }
    context_before = before;
    look.native = -1;
    return c;
}

/* A NULL or a crooked address is a failure, too. */
static cai_status obtain(model *m, const flow *f, source *s, const wish *w, unit *made)
{
    const uint64_t promised = w->alignment < 256 ? w->alignment : 256;
    const call *c = expect_alloc(s, w);
    if (c && c->result == 2) c = ask_again(m, s, w);
    if (!c) return CAI_OK;
    look.native = c->result > 0 ? c->result : -1;
    if (c->result == 2) return CAI_ERR_OUT_OF_MEMORY;
    if (c->result > 0) return CAI_ERR_CUDA;
    made->block = w->kind == CAI_MEMORY_REGISTERED ? w->pointer : c->answer;
    if (!made->block) return CAI_ERR_MEMORY;
    if (made->block % promised == 0) return CAI_OK;
    free_undone(m, f, made, w->stream);
    return CAI_ERR_MEMORY;
}

static void fill_unit(model *m, unit *u, const wish *w, const unit *made)
{
    u->kind = w->kind;
    u->block = made->block;
    u->block_size = w->block_size;
    u->address = made->block;
    if (w->alignment > 256) u->address = (made->block + w->alignment - 1) / w->alignment * w->alignment;
    u->size = w->size;
    u->references = !w->for_array;
    u->arrays = w->for_array;
    m->count.allocated++;
    m->count.live++;
    m->count.live_bytes += u->block_size;
}

/* Memory that was given does not stay if what follows fails; but no hook is called in another context. */
static cai_status undo(model *m, const flow *f, const unit *made, uint64_t stream, cai_status status)
{
    const int32_t native = look.native;
    flow again = *f;
    again.gone = 0; /* it was gone to this thread; the context may be had all the same */
    look.native = -1;
    if (!enter(m, &again)) {
        free_undone(m, &again, made, stream);
    } else {
        if (!m->count.failed++) m->count.first_failure = look.native;
        world_forget(made->block);
    }
    (void)leave(&again, CAI_OK);
    look.native = native;
    return status;
}

static cai_status leave_or_undo(model *m, flow *f, const unit *made, uint64_t stream)
{
    const cai_status status = leave(f, CAI_OK);
    if (status) return undo(m, f, made, stream, status);
    return host_refuses() ? undo(m, f, made, stream, CAI_ERR_OUT_OF_MEMORY) : CAI_OK;
}

static cai_status allocate(model *m, wish *w, unit **out)
{
    flow f = new_flow(0);
    unit made;
    cai_status status;
    memset(&made, 0, sizeof made);
    w->block_size = made.block_size = w->size + (w->alignment > 256 ? w->alignment - 256 : 0);
    made.kind = w->kind;
    status = enter(m, &f);
    if (!status && w->stream) status = not_capturing(m, &f, w->stream);
    if (!status) status = first_use(m, &m->table);
    if (!status) status = obtain(m, &f, &m->table, w, &made);
    status = status ? leave(&f, status) : leave_or_undo(m, &f, &made, w->stream);
    if (status) return status;
    *out = new_unit(m, take_slot(m));
    fill_unit(m, *out, w, &made);
    return CAI_OK;
}

static cai_status predict_alloc(model *m, uint64_t size, uint64_t alignment, uint64_t stream, unit **out)
{
    wish w;
    *out = NULL;
    memset(&w, 0, sizeof w);
    w.kind = m->table.kind;
    w.size = size;
    w.alignment = alignment ? alignment : 256;
    w.stream = stream;
    if (w.alignment & (w.alignment - 1)) return CAI_ERR_ARGUMENT;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    if (!size) return CAI_OK;
    return allocate(m, &w, out);
}

/* kind: PINNED, MANAGED or REGISTERED; there the address is an argument. */
static cai_status predict_other(model *m, int32_t kind, uint64_t address, uint64_t size, uint32_t flags,
                                unit **out)
{
    const source *s = &m->table;
    wish w;
    *out = NULL;
    memset(&w, 0, sizeof w);
    w.kind = kind == CAI_MEMORY_PINNED && flags & CAI_HOST_MAPPED ? CAI_MEMORY_MAPPED : kind;
    w.size = size;
    w.alignment = 1;
    w.flags = flags;
    w.pointer = address;
    if (!size) return CAI_OK;
    if (by_cuda(s, w.kind) && !(s->flags & CAI_EMM_CUDA_HOST)) return CAI_ERR_UNAVAILABLE;
    return allocate(m, &w, out);
}

/* ------------------------------------------------------------------ the rest */

static cai_status predict_own(model *m, cai_memory_handle handle, unit **out)
{
    unit *u = find(m, handle);
    *out = NULL;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u || u->lost) return CAI_ERR_STALE;
    u->arrays++;
    *out = u;
    return CAI_OK;
}

static cai_status predict_array(model *m, uint64_t size, uint64_t stream, unit **out)
{
    wish w;
    *out = NULL;
    memset(&w, 0, sizeof w);
    w.kind = m->table.kind;
    w.size = size;
    w.alignment = 256;
    w.stream = stream;
    w.for_array = 1;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    return size ? allocate(m, &w, out) : CAI_OK;
}

static cai_status flush_now(model *m, flow *f, int32_t how)
{
    cai_status status = enter(m, f);
    if (status) return status;
    status = carry_out(m, f, how, NULL);
    return leave(f, status);
}

static cai_status predict_flush(model *m)
{
    flow f = new_flow(1);
    return m->depth || !m->queued ? CAI_OK : flush_now(m, &f, ASKED);
}

/* The end of a scope is success while the process ends; its begin is not. */
static cai_status tell(const model *m, flow *f, const source *s, uint64_t on)
{
    cai_status status;
    int32_t error;
    if (!s->has_defer) return CAI_OK;
    status = enter(m, f);
    if (!status && !f->gone) {
        error = expect_result(OP_DEFER, s->table, 0, 0, 0, on);
        if (error == 4) f->gone = 1;
        if (error && !(error == 4 && f->ending)) status = hook_failed(error);
    }
    return leave(f, status);
}

static cai_status predict_defer_begin(model *m)
{
    flow f = new_flow(0);
    cai_status status = CAI_OK;
    if (!m->depth) status = tell(m, &f, &m->table, 1);
    if (status) return status;
    m->depth++;
    return CAI_OK;
}

static cai_status predict_defer_end(model *m)
{
    flow f = new_flow(1);
    cai_status first, status;
    if (!m->depth) return CAI_ERR_ARGUMENT;
    if (--m->depth) return CAI_OK;
    first = tell(m, &f, &m->table, 0);
    if (!over(m, m->table.limit)) return first;
    status = flush_now(m, &f, BY_LIMIT);
    return first ? first : status;
}

static cai_status predict_info(model *m)
{
    source *s = &m->table;
    flow f = new_flow(0);
    cai_status status;
    int32_t error;
    if (!s->has_info) return CAI_ERR_UNAVAILABLE;
    status = enter(m, &f);
    if (!status) status = first_use(m, s);
    if (!status) {
        error = expect_result(OP_INFO, s->table == FROM_ASYNC ? FROM_CUDA : s->table, 0, 0, 0, 0);
        if (error) status = hook_failed(error);
    }
    return leave(&f, status);
}

static cai_status predict_ipc(model *m, cai_memory_handle handle)
{
    unit *u = find(m, handle);
    const source *s = &m->table;
    flow f = new_flow(0);
    cai_status status;
    int32_t error;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u || u->lost) return CAI_ERR_STALE;
    if (u->kind != CAI_MEMORY_DEVICE) return CAI_ERR_MEMORY;
    if (!s->has_ipc) return CAI_ERR_UNAVAILABLE;
    status = enter(m, &f);
    if (!status) {
        /* CUDA's handle is made of the base of the allocation; a hook finds that itself */
        const uint64_t of = s->table == FROM_CUDA ? u->block / CELL_SIZE * CELL_SIZE : u->block;
        error = expect_result(OP_IPC, s->table, of, 0, 0, 0);
        if (error) status = hook_failed(error);
    }
    return leave(&f, status);
}

/* One object that a reset takes, by a free if no hook takes it with the rest. */
static cai_status lose(model *m, const flow *f, unit *u)
{
    const source *s = &m->table;
    cai_status status = CAI_OK;
    if (!f->gone && (!s->has_reset || by_cuda(s, u->kind)))
        status = free_block(m, f, u, quiet_stream(m, f));
    if (f->gone) world_forget(u->block);
    world.lost_events += f->gone && u->mark;
    u->mark = 0;
    u->lost = 1;
    return status;
}

static cai_status reset_table(source *s, cai_status first)
{
    const int32_t error = s->has_reset ? expect_result(OP_RESET, s->table, 0, 0, 0, 0) : 0;
    s->ready = 0;
    if (!error || error == 4) return first;
    (void)hook_failed(error);
    return first ? first : CAI_ERR_CUDA;
}

static cai_status predict_reset(model *m)
{
    flow f = new_flow(1);
    cai_status first, status;
    int32_t slot, i;
    if (m->depth) return CAI_ERR_PENDING;
    if (enter(m, &f)) f.gone = 1;
    look.native = -1;
    first = carry_out(m, &f, ALL_IDLE, NULL);
    for (slot = 0; slot < m->slots; slot++)
        for (i = 0; i < UNITS; i++) {
            unit *u = &m->units[i];
            if (!u->used || u->slot != slot || u->lost) continue;
            status = lose(m, &f, u);
            if (!first) first = status;
        }
    first = reset_table(&m->table, first);
    m->count.live = m->count.live_bytes = 0;
    return leave(&f, first);
}

/* Nothing is referenced. *stays: the manager does, as a deferred free has to wait. */
static cai_status predict_destroy(model *m, int32_t *stay)
{
    flow f = new_flow(1);
    cai_status status, why = CAI_OK;
    *stay = 0;
    if (!m->queued) return CAI_OK;
    status = enter(m, &f);
    *stay = status != CAI_OK;
    if (status) return status;
    status = carry_out(m, &f, ASKED, &why);
    *stay = m->queued > 0;
    return leave(&f, m->queued ? why : status);
}

#endif
