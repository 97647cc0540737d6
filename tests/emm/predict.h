/* predict.h - what a manager must have done: the model of model.c, from the declarations of cai_emm.h.
 * SPDX-License-Identifier: MIT
 *
 * Plain arrays that are searched from the start, one unit for each memory object or view. After each
 * operation the model goes through the calls that the world has written down and demands exactly those that it
 * would have made; from each it takes what the world answered. The first difference ends the run, as all that
 * follows would be wrong, too. */
#ifndef EMM_PREDICT_H
#define EMM_PREDICT_H

#include "world.h"

enum { UNITS = 1024, SOURCES = 64, NOBODY = -1 };
#define EVERYTHING UINT64_MAX

/* How collected frees are carried out: those that may be; all; all, as no work is pending any more. */
enum { WHAT_MAY, ALL_NOW, ALL_IDLE };

typedef struct source {
    int32_t id, table; /* id 0: a free place */
    uint32_t flags;
    int32_t kind;
    int32_t has_initialize, has_reset, has_info, has_defer, has_ipc, has_host, has_pin, has_managed;
    int32_t ready, deferred, lives;
    uint64_t limit;
} source;

typedef struct unit {
    int32_t used, view, object; /* object: the unit that a view is of, or itself */
    cai_memory handle;
    int32_t slot, references, views, lost, kind, source; /* source: an id; 0 once lost */
    int32_t hidden, collected, callback;
    uint64_t number, address, size, block, block_size, home, thread;
    uint64_t after; /* the stream that its free comes after, or everything; 0: nothing more */
    uint64_t after_thread; /* whose that is, if it is stream 2 */
} unit;

typedef struct model {
    cai_emm emm;
    int32_t pooled, depth;
    cai_emm_options options;
    source sources[SOURCES]; /* in the order of their first use */
    int32_t source_count, current;
    unit units[UNITS];
    int32_t queue[UNITS], queued; /* collected, in the order of coming */
    int32_t idle[UNITS], idle_count, slots;
    uint64_t numbers;
    cai_emm_count count;
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

static unit *find(model *m, cai_memory handle)
{
    int32_t i;
    for (i = 0; i < UNITS; i++) {
        unit *u = &m->units[i];
        if (u->used && u->references && !u->hidden && u->handle == handle) return u;
    }
    return NULL;
}

static unit *object_of(model *m, const unit *u) { return &m->units[u->object]; }

static source *source_of(model *m, int32_t id)
{
    int32_t i;
    for (i = 0; i < m->source_count; i++)
        if (m->sources[i].id == id) return &m->sources[i];
    return NULL;
}

static source *current(model *m) { return &m->sources[m->current]; }

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
    m->units[i].object = i;
    m->units[i].references = 1;
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
    int32_t ending, gone, entered, dropped;
    uint64_t after; /* the free is collected, and comes after this stream, or EVERYTHING */
} flow;

static cai_status answered(flow *f, int32_t error)
{
    if (!error) return CAI_OK;
    if (error == 4) f->gone = 1;
    if (error == 4 && f->ending) return CAI_OK;
    if (look.native < 0) look.native = error;
    return CAI_ERR_CUDA;
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
    if (error) return answered_of_capture(f, error);
    return world.capturing == stream ? CAI_ERR_CAPTURE : CAI_OK;
}

static cai_status order(const model *m, flow *f, uint64_t before, uint64_t after)
{
    int32_t error;
    if (!m->pooled || before == after) return CAI_OK;
    error = query_result(OP_CURRENT);
    if (!error) error = query_result(OP_CAPTURE);
    if (error) return answered_of_capture(f, error);
    if (world.capturing && (world.capturing == before || world.capturing == after)) return CAI_ERR_CAPTURE;
    if (peek(OP_RECORD)) error = expect_result(OP_RECORD, 0, 0, 0, before, 0);
    else error = expect_result(OP_ORDER, 0, before, 0, after, 0);
    return answered_of_capture(f, error);
}

static int bad_stream(uint64_t stream) { return stream == 0 || stream == UINT64_MAX; }

static int elsewhere(const model *m, const unit *object)
{
    return m->pooled && object->home == CAI_STREAM_PER_THREAD && object->thread != world.thread;
}

/* ------------------------------------------------------------------ freeing */

static int32_t by_cuda(const source *s, int32_t kind)
{
    if (kind == CAI_KIND_PINNED || kind == CAI_KIND_MAPPED) return !s->has_host;
    if (kind == CAI_KIND_REGISTERED) return !s->has_pin;
    if (kind == CAI_KIND_MANAGED) return !s->has_managed;
    return 0;
}

static int32_t collects(const source *s, int32_t kind)
{
    return by_cuda(s, kind) || s->flags & CAI_EMM_COLLECT;
}

/* The call that frees an object. CUDA's own functions get no size and no stream. */
static int32_t expect_free(const source *s, const unit *u, uint64_t stream)
{
    int32_t operation = OP_DEVICE_FREE;
    if (u->kind == CAI_KIND_PINNED || u->kind == CAI_KIND_MAPPED) operation = OP_HOST_FREE;
    if (u->kind == CAI_KIND_REGISTERED) operation = OP_UNPIN;
    if (u->kind == CAI_KIND_MANAGED) operation = OP_MANAGED_FREE;
    if (by_cuda(s, u->kind) || s->table == FROM_CUDA) {
        if (operation == OP_MANAGED_FREE) operation = OP_DEVICE_FREE;
        return expect_result(operation, FROM_CUDA, u->block, 0, 0, 0);
    }
    if (s->table == FROM_ASYNC) return expect_result(operation, FROM_ASYNC, u->block, 0, stream, 0);
    return expect_result(operation, s->table, u->block, u->block_size, stream, 0);
}

/* The memory goes, also if the hook fails. */
static cai_status free_block(model *m, const flow *f, const unit *u, uint64_t stream)
{
    const int32_t error = f->gone ? 0 : expect_free(source_of(m, u->source), u, stream);
    if (f->gone) world_forget(u->block);
    m->count.freed++;
    if (!error || error == 4) return CAI_OK;
    if (!m->count.failed++) m->count.first_failure = error;
    return hook_failed(error);
}

static void collect(model *m, unit *u, uint64_t stream)
{
    u->collected = 1;
    u->home = stream;
    u->thread = world.thread;
    if (u->after == stream && (stream != CAI_STREAM_PER_THREAD || u->after_thread == world.thread)) u->after = 0;
    m->queue[m->queued++] = (int32_t)(u - m->units);
    m->count.pending++;
    m->count.pending_bytes += u->block_size;
}

static int over(const model *m, uint64_t limit)
{
    return m->count.pending > (uint64_t)m->options.pending_count || m->count.pending_bytes > limit;
}

static int captures(const model *m, const flow *f, uint64_t stream)
{
    flow own = *f;
    return not_capturing(m, &own, stream) == CAI_ERR_CAPTURE;
}

/* The hook waits for the device: streams mean nothing to it. */
static int hook_waits(model *m, const unit *u)
{
    return collects(source_of(m, u->source), u->kind) && u->kind != CAI_KIND_REGISTERED;
}

static int of_another_thread(const model *m, const unit *u, uint64_t stream)
{
    return m->pooled && stream == CAI_STREAM_PER_THREAD && u->thread != world.thread;
}

/* Why a collected free cannot be carried out now: a stream captures, or is stream 2 of another thread, or what it
 * comes after cannot be waited for. */
static cai_status must_wait(model *m, const flow *f, const unit *u)
{
    const int32_t native = look.native;
    cai_status status = CAI_OK;
    int32_t error;
    if (f->gone || hook_waits(m, u)) return CAI_OK;
    if (of_another_thread(m, u, u->home)) return CAI_ERR_THREAD;
    if (captures(m, f, u->home)) status = CAI_ERR_CAPTURE;
    else if (u->after == EVERYTHING && m->pooled) {
        error = expect_result(OP_CONTEXT_SYNC, 0, 0, 0, 0, 0);
        if (error && error != 4) status = CAI_ERR_PENDING;
    } else if (u->after && u->after != EVERYTHING) {
        if (m->pooled && u->after == CAI_STREAM_PER_THREAD && u->after_thread != world.thread)
            status = CAI_ERR_THREAD;
        else if (captures(m, f, u->after)) status = CAI_ERR_CAPTURE;
    }
    look.native = native;
    return status;
}

/* A collected free gets its place in the order of streams; if that fails, the host waits. 0: it cannot. */
static int follow(model *m, const flow *f, const unit *u)
{
    const int32_t native = look.native;
    flow own = *f;
    int32_t error = 0;
    if (f->gone || hook_waits(m, u) || !m->pooled) return 1;
    if (u->after && u->after != EVERYTHING && order(m, &own, u->after, u->home))
        error = expect_result(OP_CONTEXT_SYNC, 0, 0, 0, 0, 0);
    if ((!error || error == 4) && u->kind == CAI_KIND_REGISTERED)
        error = expect_result(OP_STREAM_SYNC, 0, 0, 0, u->home, 0);
    look.native = native;
    return !error || error == 4;
}

/* Where memory goes when no work is pending on it. */
static uint64_t quiet_stream(uint64_t stream)
{
    return stream > CAI_STREAM_PER_THREAD ? stream : (uint64_t)CAI_STREAM_LEGACY;
}

/* What is collected, oldest first. */
static cai_status carry_out(model *m, const flow *f, int32_t how)
{
    int32_t i, kept = 0;
    cai_status first = CAI_OK, status;
    for (i = 0; i < m->queued; i++) {
        unit *u = &m->units[m->queue[i]];
        if ((how == WHAT_MAY && must_wait(m, f, u)) ||
            (how != ALL_IDLE && !follow(m, f, u) && how == WHAT_MAY)) {
            m->queue[kept++] = m->queue[i];
            continue;
        }
        status = free_block(m, f, u, how == ALL_IDLE ? quiet_stream(u->home) : u->home);
        if (!first) first = status;
        m->count.pending--;
        m->count.pending_bytes -= u->block_size;
        end_unit(m, u);
    }
    m->queued = kept;
    return first;
}

/* Pinned memory is given back at once, after the host has waited. */
static cai_status unpin(model *m, flow *f, unit *u, uint64_t stream)
{
    cai_status first = CAI_OK, status;
    if (m->pooled && !f->gone) first = answered(f, expect_result(OP_STREAM_SYNC, 0, 0, 0, stream, 0));
    status = free_block(m, f, u, stream);
    end_unit(m, u);
    return first ? first : status;
}

static void call_back(const unit *u)
{
    if (u->callback) (void)expect(OP_CALLBACK, 0, (uint64_t)u->callback, 0, 0, 0);
}

/* The last reference of an object went. */
static cai_status let_go(model *m, flow *f, unit *u, uint64_t stream)
{
    const source *s = source_of(m, u->source);
    const uint64_t limit = s->limit;
    cai_status status;
    m->count.live--;
    m->count.live_bytes -= u->block_size;
    call_back(u);
    if (u->kind == CAI_KIND_REGISTERED && (f->gone || !u->after)) return unpin(m, f, u, stream);
    if (f->gone || (!collects(s, u->kind) && !m->depth && !u->after)) {
        status = free_block(m, f, u, stream);
        end_unit(m, u);
        return status;
    }
    collect(m, u, stream);
    return !m->depth && over(m, limit) ? carry_out(m, f, WHAT_MAY) : CAI_OK;
}

/* Everything that may refuse a free, or another stream for the memory. last: `stream` waits; else the memory's
 * own. */
static cai_status prepare(const model *m, flow *f, const unit *object, uint64_t stream, int32_t last)
{
    cai_status status;
    if (f->gone) return CAI_OK;
    status = not_capturing(m, f, stream);
    if (f->gone || status) return status;
    if (elsewhere(m, object)) return CAI_ERR_THREAD;
    if (!object->home) return CAI_OK;
    return last ? order(m, f, object->home, stream) : order(m, f, stream, object->home);
}

static void end_view(model *m, unit *u)
{
    if (!u->view) return;
    call_back(u);
    end_unit(m, u);
    object_of(m, u)->views--;
}

/* The object's free comes after a stream, or after everything where that is not one stream. */
static void come_after(unit *object, uint64_t stream)
{
    const uint64_t thread = stream == CAI_STREAM_PER_THREAD ? world.thread : 0;
    const int differs = object->after && (object->after != stream || object->after_thread != thread);
    object->after = differs ? EVERYTHING : stream;
    object->after_thread = thread;
}

/* The reference goes: nothing keeps it from here on. */
static cai_status drop(model *m, flow *f, unit *u, uint64_t stream)
{
    unit *object = object_of(m, u);
    if (!object->home && !f->gone) {
        object->home = stream;
        object->thread = world.thread;
    }
    if (f->after) come_after(object, f->after);
    f->dropped = 1;
    if (--u->references) return CAI_OK;
    end_view(m, u);
    if (object->references + object->views) return CAI_OK;
    return let_go(m, f, object, stream);
}

/* Memory that a reset took: nothing to do below. */
static void drop_lost(model *m, unit *u)
{
    unit *object = object_of(m, u);
    if (--u->references) return;
    end_view(m, u);
    if (object->references + object->views) return;
    m->count.lost++;
    call_back(object);
    end_unit(m, object);
}

static int32_t is_last(model *m, const unit *u)
{
    const unit *object = object_of(m, u);
    return u->references == 1 && object->references + object->views == 1;
}

static cai_status give_back(model *m, flow *f, unit *u, uint64_t stream)
{
    cai_status status = enter(m, f);
    if (!status) status = prepare(m, f, object_of(m, u), stream, is_last(m, u));
    if (!status) status = drop(m, f, u, stream);
    return leave(f, status);
}

static flow new_flow(int32_t ending)
{
    flow f;
    memset(&f, 0, sizeof f);
    f.ending = ending;
    return f;
}

static cai_status predict_free(model *m, cai_memory handle, uint64_t stream)
{
    flow f = new_flow(1);
    unit *u;
    if (!handle) return CAI_OK;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    u = find(m, handle);
    if (!u) return CAI_ERR_STALE;
    if (!object_of(m, u)->lost) return give_back(m, &f, u, stream);
    drop_lost(m, u);
    return CAI_OK;
}

/* ------------------------------------------------------------------ arrays */

/* What an array waits for comes before its memory goes. `stream`: where that is to be. */
static cai_status follow_array(model *m, flow *f, const cai_array *array, uint64_t home, uint64_t *stream)
{
    cai_status status;
    *stream = home;
    if (array->sync == CAI_SYNC_UNKNOWN) return CAI_ERR_STREAM;
    if (array->sync == CAI_SYNC_NONE) return CAI_OK;
    if (array->sync == CAI_SYNC_EVENT) {
        if (!m->pooled) return CAI_OK;
        status = enter(m, f);
        if (!status && !f->gone) status = not_capturing(m, f, home);
        if (!status && !f->gone) status = answered(f, expect_result(OP_EVENT, 0, array->event, 0, home, 0));
        return leave(f, status);
    }
    *stream = array->stream;
    if (m->pooled && array->stream == CAI_STREAM_PER_THREAD && array->thread != world.thread)
        return CAI_ERR_THREAD;
    return bad_stream(array->stream) ? CAI_ERR_STREAM : CAI_OK;
}

/* The host waits, but not where that would end the capture of a stream. */
static cai_status wait_for_all(model *m, flow *f, uint64_t home)
{
    cai_status status;
    if (!m->pooled) return CAI_OK;
    status = enter(m, f);
    if (!status && !f->gone) status = not_capturing(m, f, home);
    if (!status && !f->gone) status = answered(f, expect_result(OP_CONTEXT_SYNC, 0, 0, 0, 0, 0));
    return leave(f, status);
}

/* An array gives its reference back in any case; nobody hears of a failure but the counts. */
static void predict_release(model *m, unit *u, const cai_array *array)
{
    flow f = new_flow(1);
    unit *object = object_of(m, u);
    uint64_t home = object->home ? object->home : CAI_STREAM_LEGACY, stream;
    cai_status status;
    if (object->lost) {
        drop_lost(m, u);
        return;
    }
    status = follow_array(m, &f, array, home, &stream);
    if (!status) status = give_back(m, &f, u, stream);
    if (!status || f.dropped) return;
    if (elsewhere(m, object)) home = CAI_STREAM_LEGACY;
    if (status == CAI_ERR_CAPTURE) f.after = stream;
    else if (wait_for_all(m, &f, home)) f.after = EVERYTHING;
    if (enter(m, &f)) f.gone = 1;
    status = drop(m, &f, u, home);
    (void)leave(&f, status);
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
    s->limit = m->options.pending_bytes ? m->options.pending_bytes : UINT64_MAX;
    if (s->has_info && !m->options.pending_bytes &&
        !expect_result(OP_INFO, s->table == FROM_ASYNC ? FROM_CUDA : s->table, 0, 0, 0, 0))
        s->limit = TOTAL_BYTES / 5;
    s->ready = 1;
    return CAI_OK;
}

typedef struct wish {
    int32_t kind;
    uint64_t size, alignment, stream, flags, pointer, block_size;
    int32_t hidden;
} wish;

static const call *expect_alloc(const source *s, const wish *w)
{
    const int32_t table = by_cuda(s, w->kind) ? FROM_CUDA : s->table;
    switch (w->kind) {
    case CAI_KIND_PINNED:
    case CAI_KIND_MAPPED: return expect(OP_HOST_ALLOC, table, 0, w->block_size, 0, w->flags);
    case CAI_KIND_REGISTERED: return expect(OP_PIN, table, w->pointer, w->block_size, 0, w->flags);
    case CAI_KIND_MANAGED: return expect(OP_MANAGED_ALLOC, table, 0, w->block_size, 0, w->flags);
    default:
        return expect(OP_DEVICE_ALLOC, table, 0, w->block_size, table == FROM_CUDA ? 0 : w->stream, 0);
    }
}

/* A block that became no object is freed. Only a failure of that is counted. */
static void free_undone(model *m, const flow *f, const unit *made, uint64_t stream)
{
    int32_t error = 0;
    if (f->gone) world_forget(made->block);
    else error = expect_free(current(m), made, stream ? stream : CAI_STREAM_LEGACY);
    if (error && error != 4 && !m->count.failed++) m->count.first_failure = error;
}

/* The hook fails twice with 2, or once otherwise; a NULL or a crooked address is a failure, too. */
static cai_status obtain(model *m, const flow *f, source *s, const wish *w, unit *made)
{
    const uint64_t promised = w->alignment < 256 ? w->alignment : 256;
    const call *c = expect_alloc(s, w);
    if (c && c->result == 2) {
        flow freeing = new_flow(1);
        const uint64_t before = context_before;
        context_before = world_own_context();
        if (m->pooled) predict_drain(m);
        (void)carry_out(m, &freeing, WHAT_MAY);
        context_before = before;
        m->count.retries++;
        look.native = -1;
        c = expect_alloc(s, w);
    }
    if (!c) return CAI_OK;
    look.native = c->result > 0 ? c->result : -1;
    if (c->result == 2) return CAI_ERR_OUT_OF_MEMORY;
    if (c->result > 0) return CAI_ERR_CUDA;
    made->block = w->kind == CAI_KIND_REGISTERED ? w->pointer : c->answer;
    if (!made->block) return CAI_ERR_MEMORY;
    if (made->block % promised == 0) return CAI_OK;
    free_undone(m, f, made, w->stream);
    return CAI_ERR_MEMORY;
}

static void fill_unit(model *m, unit *u, const wish *w, const unit *made)
{
    u->kind = w->kind;
    u->source = current(m)->id;
    u->block = made->block;
    u->block_size = w->block_size;
    u->address = made->block;
    if (w->alignment > 256) u->address = (made->block + w->alignment - 1) / w->alignment * w->alignment;
    u->size = w->size;
    u->home = w->stream;
    u->thread = world.thread;
    u->hidden = w->hidden;
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
    if (!status) status = first_use(m, current(m));
    if (!status && w->stream) status = not_capturing(m, &f, w->stream);
    if (!status) status = obtain(m, &f, current(m), w, &made);
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
    w.kind = current(m)->kind;
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
    const source *s = current(m);
    wish w;
    *out = NULL;
    memset(&w, 0, sizeof w);
    w.kind = kind == CAI_KIND_PINNED && flags & CAI_HOST_MAPPED ? CAI_KIND_MAPPED : kind;
    w.size = size;
    w.alignment = 1;
    w.flags = flags;
    w.pointer = address;
    if (!size) return CAI_OK;
    if (by_cuda(s, w.kind) && !(s->flags & CAI_EMM_CUDA_HOST)) return CAI_ERR_UNAVAILABLE;
    return allocate(m, &w, out);
}

static cai_status predict_view(model *m, cai_memory handle, uint64_t offset, uint64_t size, unit **out)
{
    unit *u = find(m, handle), *view;
    const unit *parent = u;
    *out = NULL;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u || object_of(m, u)->lost) return CAI_ERR_STALE;
    if (offset > u->size || size > u->size - offset) return CAI_ERR_ARGUMENT;
    if (!size) return CAI_OK;
    if (host_refuses()) return CAI_ERR_OUT_OF_MEMORY;
    view = new_unit(m, take_slot(m));
    view->view = 1;
    view->object = u->object;
    view->address = parent->address + offset;
    view->size = size;
    view->kind = parent->kind;
    object_of(m, u)->views++;
    *out = view;
    return CAI_OK;
}

static cai_status predict_set_stream(model *m, cai_memory handle, uint64_t stream)
{
    unit *u = find(m, handle), *object;
    flow f = new_flow(0);
    cai_status status;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u) return CAI_ERR_STALE;
    object = object_of(m, u);
    if (object->lost) return CAI_ERR_STALE;
    status = enter(m, &f);
    if (!status) status = prepare(m, &f, object, stream, 1);
    status = leave(&f, status);
    if (status) return status;
    object->home = stream;
    object->thread = world.thread;
    return CAI_OK;
}

/* ------------------------------------------------------------------ the rest */

static cai_status predict_own(model *m, cai_memory handle, unit **out)
{
    unit *u = find(m, handle);
    cai_status status;
    *out = NULL;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u) return CAI_ERR_STALE;
    status = predict_view(m, handle, 0, u->size, out);
    if (!status) (*out)->hidden = 1;
    return status;
}

static cai_status predict_array(model *m, uint64_t size, uint64_t stream, unit **out)
{
    wish w;
    *out = NULL;
    memset(&w, 0, sizeof w);
    w.kind = current(m)->kind;
    w.size = size;
    w.alignment = 256;
    w.stream = stream;
    w.hidden = 1;
    if (bad_stream(stream)) return CAI_ERR_STREAM;
    return size ? allocate(m, &w, out) : CAI_OK;
}

static cai_status flush_now(model *m, flow *f)
{
    cai_status status = enter(m, f);
    if (!status) status = carry_out(m, f, WHAT_MAY);
    return leave(f, status);
}

static cai_status predict_flush(model *m)
{
    flow f = new_flow(1);
    return m->depth || !m->queued ? CAI_OK : flush_now(m, &f);
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
    if (!m->depth) status = tell(m, &f, current(m), 1);
    if (status) return status;
    if (!m->depth++) current(m)->deferred = 1;
    return CAI_OK;
}

static cai_status predict_defer_end(model *m)
{
    flow f = new_flow(1);
    cai_status first = CAI_OK, status;
    int32_t i;
    if (!m->depth) return CAI_ERR_ARGUMENT;
    if (--m->depth) return CAI_OK;
    for (i = m->source_count - 1; i >= 0; i--) {
        if (!m->sources[i].deferred) continue;
        m->sources[i].deferred = 0;
        status = tell(m, &f, &m->sources[i], 0);
        if (!first) first = status;
    }
    if (!over(m, current(m)->limit)) return first;
    status = flush_now(m, &f);
    return first ? first : status;
}

/* Memory of a table lives or is collected. */
static int is_needed(const model *m, const source *s)
{
    int32_t i;
    for (i = 0; i < UNITS && !(m->units[i].used && m->units[i].source == s->id); i++) {}
    return i < UNITS;
}

/* `next` describes a table that was checked. One that was used before goes on as it was while its memory
 * lives. */
static cai_status predict_change(model *m, const source *next)
{
    flow f = new_flow(0);
    int32_t i = 0;
    source *s;
    cai_status status;
    if (!m->pooled && (next->kind != CAI_KIND_HOST || next->flags & CAI_EMM_CUDA_HOST))
        return CAI_ERR_ARGUMENT;
    if (host_refuses()) return CAI_ERR_OUT_OF_MEMORY;
    while (i < m->source_count && m->sources[i].table != next->table) i++;
    s = &m->sources[i];
    if (i == m->source_count) {
        *s = *next;
        s->id = ++m->source_count;
        s->limit = UINT64_MAX;
    } else if (i != m->current && !is_needed(m, s)) {
        s->ready = 0;
    }
    status = m->depth && !s->deferred ? tell(m, &f, s, 1) : CAI_OK;
    if (status) return status;
    s->deferred = m->depth > 0;
    m->current = i;
    return CAI_OK;
}

static cai_status predict_initialize(model *m)
{
    flow f = new_flow(0);
    cai_status status;
    if (current(m)->ready) return CAI_OK;
    status = enter(m, &f);
    if (!status) status = first_use(m, current(m));
    return leave(&f, status);
}

static cai_status predict_info(model *m)
{
    source *s = current(m);
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

static cai_status predict_ipc(model *m, cai_memory handle)
{
    unit *u = find(m, handle);
    const unit *object;
    const source *s;
    flow f = new_flow(0);
    cai_status status;
    int32_t error;
    if (!handle) return CAI_ERR_ARGUMENT;
    if (!u || object_of(m, u)->lost) return CAI_ERR_STALE;
    object = object_of(m, u);
    s = source_of(m, object->source);
    if (u->kind != CAI_KIND_DEVICE) return CAI_ERR_MEMORY;
    if (!s->has_ipc) return CAI_ERR_UNAVAILABLE;
    status = enter(m, &f);
    if (!status) {
        error = expect_result(OP_IPC, s->table, object->block, 0, 0, 0);
        if (error) status = hook_failed(error);
    }
    return leave(&f, status);
}

/* One object that a reset takes, by a free if no hook takes it with the rest. */
static cai_status lose(model *m, const flow *f, unit *u)
{
    const source *s = source_of(m, u->source);
    cai_status status = CAI_OK;
    if (!f->gone && (!s->has_reset || by_cuda(s, u->kind)))
        status = free_block(m, f, u, quiet_stream(u->home));
    if (f->gone) world_forget(u->block);
    u->lost = 1;
    u->source = 0;
    return status;
}

static cai_status reset_table(source *s, int32_t needed, cai_status first)
{
    const int32_t error = s->has_reset && needed ? expect_result(OP_RESET, s->table, 0, 0, 0, 0) : 0;
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
    first = carry_out(m, &f, ALL_IDLE);
    for (i = 0; i < m->source_count; i++) m->sources[i].lives = is_needed(m, &m->sources[i]);
    for (slot = 0; slot < m->slots; slot++)
        for (i = 0; i < UNITS; i++) {
            unit *u = &m->units[i];
            if (!u->used || u->slot != slot || u->view || u->lost) continue;
            status = lose(m, &f, u);
            if (!first) first = status;
        }
    first = reset_table(current(m), 1, first);
    for (i = m->source_count - 1; i >= 0; i--)
        if (i != m->current) first = reset_table(&m->sources[i], m->sources[i].lives, first);
    m->count.live = m->count.live_bytes = 0;
    return leave(&f, first);
}

/* Nothing is referenced. *stays: the manager does, as a collected free has to wait. */
static cai_status predict_destroy(model *m, int32_t *stays)
{
    flow f = new_flow(1);
    cai_status status;
    int32_t i;
    *stays = 0;
    if (!m->queued) return CAI_OK;
    status = enter(m, &f);
    for (i = 0; !status && i < m->queued; i++) status = must_wait(m, &f, &m->units[m->queue[i]]);
    *stays = status != CAI_OK;
    if (!status) status = carry_out(m, &f, ALL_NOW);
    return leave(&f, status);
}

#endif
