/* commands.h - the commands of the case files. README.md lists them.
 * SPDX-License-Identifier: MIT */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "world.h"

/* ---------------------------------------------------------------- the world */

static void make_stream(script_words *in, const char *name, int nonblocking)
{
    thing *t = add_thing(in, name, 's', cai_sim_stream_create(w.sim, nonblocking));
    sprintf(t->sim, "s%d", ++w.streams);
}

/* stream X Y ... [nonblocking] [device 1 | context c3] */
static void do_stream(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim);
    const char *names[SCRIPT_WORDS];
    uint64_t context;
    int count = 0, nonblocking = 0, i;
    while (script_more(in) && strcmp(in->word[in->at], "nonblocking") != 0 &&
           strcmp(in->word[in->at], "device") != 0 && strcmp(in->word[in->at], "context") != 0)
        names[count++] = script_word(in);
    nonblocking = script_take(in, "nonblocking");
    context = context_words(in);
    if (context) cai_sim_set_context(w.sim, context);
    for (i = 0; i < count; i++) make_stream(in, names[i], nonblocking);
    cai_sim_set_context(w.sim, before);
}

/* context c3 device 0: named as the log will name it */
static void do_context(script_words *in)
{
    const char *name = script_word(in);
    thing *t;
    script_take(in, "device");
    t = add_thing(in, name, 'c', cai_sim_context_create(w.sim, (int32_t)script_number(in)));
    sprintf(t->sim, "c%d", ++w.contexts);
}

/* current none | device 1 | context c3 */
static void do_current(script_words *in)
{
    if (script_take(in, "none")) cai_sim_set_context(w.sim, 0);
    else cai_sim_set_context(w.sim, context_words(in));
}

/* thread 2: the next commands run on that host thread; c1 is current where it was not met before */
static void do_thread(script_words *in)
{
    const int64_t number = script_number(in);
    if (number < 1 || number >= WORLD_THREADS) script_bad(in, "no such thread before");
    cai_sim_host_thread(w.sim, (uint64_t)number);
    if (!w.threads[number]) cai_sim_set_context(w.sim, cai_sim_primary(w.sim, 0));
    w.threads[number] = 1;
}

/* pool [capacity 2]: in place of the usual one; before it is used */
static void do_pool(script_words *in)
{
    int64_t capacity = 4;
    if (script_take(in, "capacity")) capacity = script_number(in);
    if (capacity < 0 || capacity > WORLD_PLACES) script_bad(in, "no such capacity before");
    make_pool(in, (int32_t)capacity);
}

static int32_t mode_word(script_words *in)
{
    if (script_take(in, "event")) return CAI_MODE_EVENT;
    if (script_take(in, "host")) return CAI_MODE_HOST;
    if (script_take(in, "ignore")) return CAI_MODE_IGNORE;
    script_bad(in, "no mode");
    return -1;
}

/* modes host ignore: of the exchanges of the pool, and of its exports */
static void do_modes(script_words *in)
{
    const int32_t mode = mode_word(in), export_mode = mode_word(in);
    if (cai_event_pool_set_modes(&w.pool, mode, export_mode, NULL) != CAI_OK) script_bad(in, "refused");
}

/* Takes the name of a slot away from the table; 0: it is none of those that may be lacking. */
static int leave_out(script_words *in)
{
#define LEAVE_OUT(slot)                                                                                      \
    if (script_take(in, #slot)) {                                                                            \
        w.cuda.slot = NULL;                                                                                  \
        return 1;                                                                                            \
    }
    LEAVE_OUT(stream_id)
    LEAVE_OUT(pointer_range)
    LEAVE_OUT(device_attribute)
    LEAVE_OUT(memory_alloc)
    LEAVE_OUT(memory_free)
    LEAVE_OUT(memory_alloc_async)
    LEAVE_OUT(memory_free_async)
    LEAVE_OUT(host_alloc)
    LEAVE_OUT(host_free)
    LEAVE_OUT(host_register)
    LEAVE_OUT(host_unregister)
    LEAVE_OUT(managed_alloc)
    LEAVE_OUT(memory_info)
    LEAVE_OUT(ipc_export)
    LEAVE_OUT(context_id)
    LEAVE_OUT(context_record)
    LEAVE_OUT(stream_flags)
#undef LEAVE_OUT
    return 0;
}

/* table no_default_streams | without pointer_range ... | whole */
static void do_table(script_words *in)
{
    if (script_take(in, "whole")) w.cuda = *cai_sim_cuda(w.sim);
    if (script_take(in, "no_default_streams")) w.cuda.flags |= (uint32_t)CAI_CUDA_NO_DEFAULT_STREAMS;
    if (!script_take(in, "without")) return;
    while (script_more(in)) {
        if (!leave_out(in)) script_bad(in, "cannot be left out");
    }
}

/* One idle event for the context that is current, by ordering two streams of its own. */
static void warm_by_order(script_words *in)
{
    const uint64_t a = cai_sim_stream_create(w.sim, 1), b = cai_sim_stream_create(w.sim, 1);
    cai_error err;
    w.streams += 2;
    if (cai_stream_order(&w.pool, a, b, &err) != CAI_OK) complain(in, "warm: %s", err.message);
    take_log(in);
    cai_sim_run(w.sim);
    cai_sim_stream_destroy(w.sim, a);
    cai_sim_stream_destroy(w.sim, b);
}

static void release_nothing(cai_array *self)
{
    self->release = NULL;
}

/* As many events as arrays wait at once. */
static void warm_by_waiting(script_words *in, uint64_t stream, int64_t count)
{
    const int64_t shape = 0;
    cai_array array;
    cai_error err;
    int64_t i;
    int good = 1;
    for (i = 0; i < count && good; i++) {
        good = cai_array_init(&array, CAI_UINT8, 1, &shape, NULL, NULL, &err) == CAI_OK;
        cai_array_own(&array, release_nothing, NULL);
        good = good && cai_keepalive_push(&array, &w.pool, stream, &err) == CAI_OK;
    }
    cai_sim_run(w.sim);
    good = good && cai_keepalive_drain(&w.pool, &err) == CAI_OK;
    if (!good) complain(in, "warm: %s", err.message);
    take_log(in);
}

/* warm X Y ...: an idle event for the context of each stream. warm X times 65: so many, as far as they go. */
static void do_warm(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim);
    while (script_more(in)) {
        const thing *t = thing_word(in, 's');
        cai_sim_set_context(w.sim, t->context);
        begin_log();
        if (script_take(in, "times")) warm_by_waiting(in, t->handle, script_number(in));
        else warm_by_order(in);
    }
    cai_sim_set_context(w.sim, before);
    w.created = 0;
}

/* recreate X: destroyed, and a new stream made that gets the same handle */
static void do_recreate(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim);
    thing *t = thing_word(in, 's');
    uint64_t handle;
    cai_sim_set_context(w.sim, t->context);
    cai_sim_recycle_handles(w.sim, 1);
    cai_sim_stream_destroy(w.sim, t->handle);
    handle = cai_sim_stream_create(w.sim, 0);
    if (handle != t->handle) script_bad(in, "got another handle");
    sprintf(t->sim, "s%d", ++w.streams);
    cai_sim_recycle_handles(w.sim, 0);
    cai_sim_set_context(w.sim, before);
}

/* destroy stream X | context c3 | event E | memory m */
static void do_destroy(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim);
    const char *what = script_word(in);
    thing *t = thing_word(in, what[0]);
    t->gone = 1;
    if (t->kind == 's') cai_sim_stream_destroy(w.sim, t->handle);
    if (t->kind == 'e') cai_sim_event_destroy(w.sim, t->handle);
    if (t->kind == 'm') cai_sim_free(w.sim, t->handle);
    if (t->kind != 'c') return;
    cai_sim_context_destroy(w.sim, t->handle);
    if (before != t->handle) cai_sim_set_context(w.sim, before);
}

/* device_reset 1: its primary context keeps its handle, and what was in it is gone */
static void do_device_reset(script_words *in)
{
    const uint64_t context = cai_sim_primary(w.sim, (int32_t)script_number(in));
    int i;
    cai_sim_context_destroy(w.sim, context);
    for (i = 0; i < w.thing_count; i++) {
        if (w.things[i].kind != 'c' && w.things[i].context == context) w.things[i].gone = 1;
    }
}

/* inactive: primary contexts that are current nowhere are not active any more */
static void do_inactive(script_words *in)
{
    const uint32_t options = cai_sim_options(w.sim);
    (void)in;
    cai_sim_set_options(w.sim, options & ~(uint32_t)CAI_SIM_PRIMARY_INACTIVE);
    cai_sim_set_options(w.sim, options | CAI_SIM_PRIMARY_INACTIVE);
}

/* event E on X: created and recorded by the producer */
static void do_event(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim);
    const char *name = script_word(in);
    thing *stream, *t;
    script_take(in, "on");
    stream = thing_word(in, 's');
    cai_sim_set_context(w.sim, stream->context);
    t = add_thing(in, name, 'e', cai_sim_event_create(w.sim));
    sprintf(t->sim, "e%d", ++w.events);
    w.recorded[w.events] = cai_sim_event_record(w.sim, t->handle, stream->handle) == 0;
    cai_sim_set_context(w.sim, before);
}

/* capture X [thread_local | relaxed] */
static void do_capture(script_words *in)
{
    const uint64_t stream = stream_word(in);
    int32_t mode = CAI_SIM_MODE_GLOBAL, error;
    if (script_take(in, "thread_local")) mode = CAI_SIM_MODE_THREAD_LOCAL;
    if (script_take(in, "relaxed")) mode = CAI_SIM_MODE_RELAXED;
    error = cai_sim_capture_begin(w.sim, stream, mode);
    if (error) complain(in, "capture: error %d", error);
}

/* end_capture X [fails 904] */
static void do_end_capture(script_words *in)
{
    const int32_t error = cai_sim_capture_end(w.sim, stream_word(in), NULL);
    const int64_t wanted = script_take(in, "fails") ? script_number(in) : 0;
    if (error != wanted) complain(in, "the end of the capture gives %d, not %d", error, (int)wanted);
    cai_sim_clear_error(w.sim);
}

/* join X into Y: the test's own event edge, by which Y waits for X (and is pulled into its capture) */
static void do_join(script_words *in)
{
    const thing *from = thing_word(in, 's');
    const uint64_t event = cai_sim_event_create(w.sim);
    int32_t error;
    w.events++;
    script_take(in, "into");
    error = cai_sim_event_record(w.sim, event, from->handle);
    if (!error) error = cai_sim_stream_wait_event(w.sim, thing_word(in, 's')->handle, event);
    if (error) complain(in, "join: error %d", error);
    cai_sim_event_destroy(w.sim, event);
}

/* invalidate X: what captures it is invalidated, by an attempt to wait for it on the host */
static void do_invalidate(script_words *in)
{
    cai_sim_stream_synchronize(w.sim, thing_word(in, 's')->handle);
    cai_sim_clear_error(w.sim);
}

/* fail event_record 400 [at 2]: the next, or second, call fails. fail any 999: of whatever operation. */
static void do_fail(script_words *in)
{
    const char *operation = script_word(in);
    const int32_t error = (int32_t)script_number(in);
    const int32_t n = script_take(in, "at") ? (int32_t)script_number(in) : 1;
    int taken;
    if (strcmp(operation, "any") == 0) taken = cai_sim_fail(w.sim, n, error);
    else taken = cai_sim_fail_op(w.sim, operation, n, error);
    if (!taken) script_bad(in, "no such call before");
}

static void do_teardown(script_words *in)
{
    (void)in;
    cai_sim_teardown(w.sim);
}

/* device_error 0 700 */
static void do_device_error(script_words *in)
{
    const int32_t device = (int32_t)script_number(in);
    cai_sim_set_device_error(w.sim, device, (int32_t)script_number(in));
}

/* pageable 0: that device reads plain host memory */
static void do_pageable(script_words *in)
{
    cai_sim_set_device_attribute(w.sim, (int32_t)script_number(in), CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
}

/* last_error: the case itself makes a mistake, whose error stays behind */
static void do_last_error(script_words *in)
{
    (void)in;
    cai_sim_stream_synchronize(w.sim, 0);
}

/* ------------------------------------------------------------------- memory */

static int32_t memory_kind(script_words *in)
{
    static const char *const kinds[] = {"device",     "managed", "pinned",  "aliased",
                                        "registered", "pool",    "virtual", "texture"};
    static const int32_t values[] = {CAI_SIM_MEM_DEVICE,     CAI_SIM_MEM_MANAGED, CAI_SIM_MEM_PINNED,
                                     CAI_SIM_MEM_ALIASED,    CAI_SIM_MEM_REGISTERED, CAI_SIM_MEM_POOL,
                                     CAI_SIM_MEM_VIRTUAL,    CAI_SIM_MEM_ARRAY};
    int i;
    for (i = 0; i < 8; i++) {
        if (script_take(in, kinds[i])) return values[i];
    }
    script_bad(in, "no kind of memory");
    return 0;
}

/* Memory of a kind in a context, or of the current one (0); a capture elsewhere lives on. */
static thing *make_memory(script_words *in, const char *name, int32_t kind, uint64_t context, uint64_t bytes)
{
    const uint64_t before = cai_sim_current(w.sim);
    const cai_cuda *cuda = cai_sim_cuda(w.sim);
    int32_t mode = CAI_SIM_MODE_RELAXED;
    thing *t;
    if (context) cai_sim_set_context(w.sim, context);
    cuda->capture_mode(cuda->self, &mode);
    t = add_thing(in, name, 'm', cai_sim_alloc(w.sim, kind, bytes));
    cuda->capture_mode(cuda->self, &mode);
    sprintf(t->sim, "m%d", ++w.allocations);
    t->bytes = bytes;
    cai_sim_set_context(w.sim, before);
    return t;
}

/* memory m of pinned [device 1 | context c3] [bytes 1024]; `of host` is plain host memory */
static void do_memory(script_words *in)
{
    const char *name = script_word(in);
    uint64_t context, bytes = WORLD_BYTES;
    int32_t kind = 0;
    int host;
    script_take(in, "of");
    host = script_take(in, "host");
    if (!host) kind = memory_kind(in);
    context = context_words(in);
    if (script_take(in, "bytes")) bytes = (uint64_t)script_number(in);
    if (host) {
        void *memory = calloc(1, (size_t)bytes);
        thing *t = add_thing(in, name, 'h', (uint64_t)(uintptr_t)memory);
        t->host = memory;
        t->bytes = bytes;
    } else {
        make_memory(in, name, kind, context, bytes);
    }
}

/* ------------------------------------------------------------------- arrays */

/* What an array is made of; without `in` of 1024 bytes of its own on the device. */
typedef struct array_words {
    uint64_t address, context;
    int64_t elements, stride;
} array_words;

static void make_array(script_words *in, held *h, const array_words *is)
{
    uint64_t address = is->address;
    cai_dtype dtype;
    cai_error err;
    if (address == 0 && is->elements != 0)
        address = make_memory(in, h->name, CAI_SIM_MEM_DEVICE, is->context, WORLD_BYTES)->handle;
    if (cai_dtype_of(CAI_UINT8, &dtype, &err) != CAI_OK ||
        cai_array_init_dtype(h->array, &dtype, 1, &is->elements, &is->stride, address, &err) != CAI_OK)
        script_stop(in->path, in->line, "no array", err.message);
    h->data = h->array->data;
}

/* Takes one part of the description of memory; 0: none is there. */
static int array_part(script_words *in, array_words *is)
{
    const int at = in->at;
    if (script_take(in, "in")) is->address = address_word(in);
    else if (script_take(in, "elements")) is->elements = script_number(in);
    else if (script_take(in, "stride")) is->stride = script_number(in);
    else if (script_take(in, "empty")) is->elements = 0;
    else is->context = is->context ? is->context : context_words(in);
    return in->at != at;
}

/* What is said of pending work: on X | none | unknown | decoded | event E [beside X]; 0: nothing. */
static int array_sync(script_words *in, cai_array *array)
{
    if (script_take(in, "on")) {
        array->sync = CAI_SYNC_STREAM;
        array->stream = stream_word(in);
    } else if (script_take(in, "none")) {
        array->sync = CAI_SYNC_NONE;
    } else if (script_take(in, "unknown")) {
        array->sync = CAI_SYNC_UNKNOWN;
    } else if (script_take(in, "decoded")) {
        array->sync = w.decoded_sync;
        array->stream = w.decoded_stream;
    } else if (script_take(in, "event")) {
        array->sync = CAI_SYNC_EVENT;
        array->event = script_take(in, "0") ? 0 : thing_word(in, 'e')->handle;
        if (script_take(in, "beside")) array->stream = stream_word(in);
    } else {
        return 0;
    }
    return 1;
}

static void release_array(cai_array *self);

static int array_owner(script_words *in, held *h)
{
    if (script_take(in, "owned")) h->owned = 1;
    else if (script_take(in, "polls")) h->wish = 'p';
    else if (script_take(in, "drains")) h->wish = 'd';
    else return 0;
    return 1;
}

/* array a [owned] [polls | drains] [in m+256] [elements 16] [stride -4] [empty] [device 1 | context c3]
 *         [on X | none | unknown | decoded | event E [beside X]] [thread 1] [masked m] [placed 1]
 *         [ordered] [no_back_edge] */
static void do_array(script_words *in)
{
    held *h = &w.arrays[w.array_count++];
    array_words is = {0, 0, 16, 1};
    cai_array said;
    if (w.array_count == WORLD_ARRAYS) script_bad(in, "too many arrays");
    copy_name(in, h->name, script_word(in));
    h->array = (cai_array *)script_storage(1, sizeof *h->array);
    memset(&said, 0, sizeof said);
    said.device = CAI_DEVICE_UNKNOWN;
    while (script_more(in)) {
        if (script_take(in, "thread")) said.thread = (uint64_t)script_number(in);
        else if (script_take(in, "masked")) said.mask = array_word(in)->array;
        else if (script_take(in, "placed")) said.device = (int32_t)script_number(in);
        else if (script_take(in, "no_back_edge")) said.flags |= (uint32_t)CAI_NO_BACK_EDGE;
        else if (script_take(in, "ordered")) said.flags |= (uint32_t)CAI_ORDERED_FREE;
        else if (!array_owner(in, h) && !array_sync(in, &said) && !array_part(in, &is))
            script_bad(in, "not understood");
    }
    make_array(in, h, &is);
    h->array->sync = said.sync;
    h->array->stream = said.stream;
    h->array->event = said.event;
    h->array->thread = said.thread;
    h->array->mask = said.mask;
    h->array->device = said.device;
    h->array->flags |= said.flags;
    if (h->owned) cai_array_own(h->array, release_array, h);
}

static void note_failure(const char *what)
{
    w.failed++;
    if (!w.quiet) printf("%s\n", what);
}

/* Is all zero but what a late release callback is promised? */
static int is_bare(const cai_array *late)
{
    cai_array bare;
    memset(&bare, 0, sizeof bare);
    bare.abi = late->abi;
    bare.struct_size = late->struct_size;
    bare.owner = late->owner;
    bare.data = late->data;
    bare.device = late->device;
    bare.sync = late->sync;
    bare.stream = late->stream;
    bare.packed_axis = -1;
    if (late->sync != (late->stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE)) return 0;
    return late->stream != CAI_STREAM_PER_THREAD && memcmp(&bare, late, sizeof bare) == 0;
}

/* The owner. May be called with the struct somewhere else than where it was made. */
static void release_array(cai_array *self)
{
    held *h = (held *)self->owner;
    cai_status status = CAI_OK;
    self->release = NULL;
    h->released++;
    if (self->data != h->data) note_failure("the release callback got another array");
    if (self != h->array && self->size == 0 && !is_bare(self))
        note_failure("a late release callback found more than it is promised");
    if (h->array) { /* so that `sync` tells what the callback was told */
        h->array->sync = self->sync;
        h->array->stream = self->stream;
        h->array->event = self->event;
        h->array->thread = self->thread;
    }
    if (strlen(w.released) + WORLD_NAME + 1 < sizeof w.released) {
        if (w.released[0]) strcat(w.released, " ");
        strcat(w.released, h->name);
    }
    if (h->wish == 'p') status = cai_keepalive_poll(&w.pool, NULL, NULL);
    if (h->wish == 'd') status = cai_keepalive_drain(&w.pool, NULL);
    if (status != CAI_OK) note_failure("poll or drain failed in a release callback");
}

/* kill a b: the structs are overwritten and freed; their memory and their owners live on */
static void do_kill(script_words *in)
{
    while (script_more(in)) {
        held *h = array_word(in);
        memset(h->array, w.garbage, sizeof *h->array);
        free(h->array);
        h->array = NULL;
    }
}

/* --------------------------------------------------------------------- work */

/* launch X p [reads a] [writes b] ...: a kernel p; on stream 1 or 2 of the context that is current */
static void do_launch(script_words *in)
{
    const uint64_t before = cai_sim_current(w.sim), stream = stream_word(in);
    cai_sim_access access[8];
    int32_t count = 0, error;
    const char *name = script_word(in);
    int i;
    for (i = 0; i < w.thing_count; i++) {
        if (w.things[i].kind == 's' && w.things[i].handle == stream)
            cai_sim_set_context(w.sim, w.things[i].context);
    }
    while (script_more(in) && count < 8) {
        const int writes = script_take(in, "writes");
        if (!writes && !script_take(in, "reads")) script_bad(in, "not understood");
        access[count++] = writes ? cai_sim_writes(array_word(in)->data, 16)
                                 : cai_sim_reads(array_word(in)->data, 16);
    }
    error = cai_sim_launch(w.sim, stream, name, NULL, NULL, access, count);
    if (error) complain(in, "launch: error %d", error);
    add_thing(in, name, 'o', cai_sim_operation_count(w.sim));
    cai_sim_set_context(w.sim, before);
}

/* run: all that is queued. run X: what X has, as far as it can. */
static void do_run(script_words *in)
{
    if (!script_more(in)) {
        cai_sim_run(w.sim);
        return;
    }
    const uint64_t stream = stream_word(in);
    while (cai_sim_step(w.sim, stream)) continue;
}

/* Does `later` come after `earlier` by what is queued, and by what its host thread waited for before? */
static int comes_after(uint64_t earlier, uint64_t later)
{
    cai_sim_operation op, other;
    uint64_t id;
    int32_t i;
    if (earlier == later) return 1;
    if (later < earlier || !cai_sim_operation_get(w.sim, later, &op)) return 0;
    for (i = 0; i < op.wait_count; i++) {
        if (comes_after(earlier, op.waits[i])) return 1;
    }
    for (id = earlier + 1; id < later && op.kind == CAI_SIM_OP_LAUNCH; id++) {
        if (!cai_sim_operation_get(w.sim, id, &other)) continue;
        if (other.kind == CAI_SIM_OP_SYNCHRONIZE && other.thread == op.thread && comes_after(earlier, id))
            return 1;
    }
    return 0;
}

static void judge_order(script_words *in, int wanted)
{
    const thing *earlier = thing_word(in, 'o'), *later = thing_word(in, 'o');
    if (comes_after(earlier->handle, later->handle) != wanted)
        complain(in, "%s does %scome after %s", later->name, wanted ? "not " : "", earlier->name);
}

static void do_ordered(script_words *in)
{
    judge_order(in, 1);
}

static void do_unordered(script_words *in)
{
    judge_order(in, 0);
}

/* ----------------------------------------------------------------- exchange */

static opened *exchange_named(script_words *in, const char *name)
{
    int i;
    for (i = 0; i < w.exchange_count; i++) {
        if (strcmp(w.exchanges[i].name, name) == 0) return &w.exchanges[i];
    }
    if (w.exchange_count == WORLD_THREADS) script_bad(in, "too many exchanges");
    copy_name(in, w.exchanges[w.exchange_count].name, name);
    return &w.exchanges[w.exchange_count++];
}

/* `of NAME`, or the one without a name */
static opened *exchange_words(script_words *in)
{
    return exchange_named(in, script_take(in, "of") ? script_word(in) : "");
}

static void begin_option(script_words *in, cai_exchange_options *options)
{
    if (script_take(in, "host")) options->mode = CAI_MODE_HOST;
    else if (script_take(in, "ignore")) options->mode = CAI_MODE_IGNORE;
    else if (script_take(in, "join")) options->flags |= (uint32_t)CAI_EXCHANGE_JOIN_CAPTURE;
    else if (script_take(in, "synchronize")) options->unknown = CAI_UNKNOWN_SYNCHRONIZE;
    else if (script_take(in, "legacy")) options->unknown = CAI_UNKNOWN_LEGACY;
    else if (script_take(in, "trust")) options->unknown = CAI_UNKNOWN_ASSUME_IDLE;
    else if (script_take(in, "stream")) {
        options->unknown = CAI_UNKNOWN_STREAM;
        options->unknown_stream = stream_word(in);
    } else script_bad(in, "not understood");
}

/* begin a b on Y [of NAME] [host | ignore] [join]
 *       [unknown is synchronize | stream X | legacy | trust] */
static cai_status do_begin(script_words *in, cai_error *err)
{
    cai_array *arrays[SCRIPT_WORDS];
    cai_exchange_options options;
    uint64_t stream;
    int32_t count = 0;
    opened *x;
    int plain;
    while (!script_take(in, "on")) arrays[count++] = array_word(in)->array;
    stream = stream_word(in);
    x = exchange_words(in);
    plain = !script_more(in);
    memset(&options, 0, sizeof options);
    while (script_more(in)) {
        if (!script_take(in, "unknown") && !script_take(in, "is")) begin_option(in, &options);
    }
    free(x->ex);
    x->ex = (cai_exchange *)script_storage(1, sizeof *x->ex);
    memset(x->ex, w.garbage, sizeof *x->ex); /* it needs no initialization */
    if (plain) return cai_exchange_begin(x->ex, &w.pool, arrays, count, stream, err);
    return cai_exchange_begin_with(x->ex, &w.pool, arrays, count, stream, &options, err);
}

static cai_status status_word(script_words *in)
{
    const char *word = script_word(in);
    cai_status status;
    if (strcmp(word, "CAI_OK") == 0) return CAI_OK;
    for (status = 1; status < CAI_STATUS_COUNT; status++) {
        if (strcmp(word, cai_status_name(status)) == 0) return status;
    }
    in->at--;
    script_bad(in, "no status");
    return CAI_OK;
}

/* end [of NAME] [work CAI_ERR_CUDA]: what the work gave */
static cai_status do_end(script_words *in, cai_error *err)
{
    const opened *x = exchange_words(in);
    const cai_status work = script_take(in, "work") ? status_word(in) : CAI_OK;
    if (x->ex == NULL) script_bad(in, "was not begun");
    return cai_exchange_end(x->ex, work, err);
}

/* move [of NAME]: the exchange is somewhere else from now on, and its old place overwritten */
static void do_move(script_words *in)
{
    opened *x = exchange_words(in);
    cai_exchange *to = (cai_exchange *)script_storage(1, sizeof *to);
    memcpy(to, x->ex, sizeof *to);
    memset(x->ex, w.garbage, sizeof *x->ex);
    free(x->ex);
    x->ex = to;
}

/* launches on X [of NAME]: what ex.stream says */
static void do_launches(script_words *in)
{
    uint64_t stream;
    script_take(in, "on");
    stream = stream_word(in);
    if (exchange_words(in)->ex->stream != stream) complain(in, "ex.stream is another one");
}

/* What a failed call must leave as it was. */
static cai_status unchanged(script_words *in, const held *h, const cai_array *before, cai_status status)
{
    if (status != CAI_OK && memcmp(before, h->array, sizeof *before) != 0)
        complain(in, "the call failed and changed %s", h->name);
    return status;
}

/* finish a b [of NAME] [work CAI_ERR_CUDA]; `finish of NAME`: no arrays. Where it succeeds none is owned then. */
static cai_status do_finish(script_words *in, cai_error *err)
{
    cai_array *arrays[SCRIPT_WORDS];
    cai_status work, status;
    int32_t count = 0, i;
    const opened *x;
    while (script_more(in) && strcmp(in->word[in->at], "of") != 0 && strcmp(in->word[in->at], "work") != 0)
        arrays[count++] = array_word(in)->array;
    x = exchange_words(in);
    work = script_take(in, "work") ? status_word(in) : CAI_OK;
    if (x->ex == NULL) script_bad(in, "was not begun");
    status = cai_exchange_finish(x->ex, work, arrays, count, err);
    for (i = 0; i < count && status == CAI_OK; i++) {
        if (arrays[i]->release != NULL) complain(in, "an array is still owned");
    }
    return status;
}

/* ----------------------------------------------------------------- ordering */

/* order X Y: Y waits for X */
static cai_status do_order(script_words *in, cai_error *err)
{
    const uint64_t before = stream_word(in), after = stream_word(in);
    return cai_stream_order(&w.pool, before, after, err);
}

/* export a on S [pending X Y ...] */
static cai_status do_export(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    uint64_t pending[SCRIPT_WORDS], stream;
    int32_t count = 0;
    script_take(in, "on");
    stream = stream_word(in);
    script_take(in, "pending");
    while (script_more(in)) pending[count++] = stream_word(in);
    return unchanged(in, h, &before,
                     cai_stream_export(h->array, &w.pool, stream, count ? pending : NULL, count, err));
}

static cai_status do_remember_thread(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    return unchanged(in, h, &before, cai_stream_remember_thread(h->array, &w.pool, err));
}

static cai_status do_detach(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    return unchanged(in, h, &before, cai_stream_detach(h->array, &w.pool, err));
}

static cai_status do_drop_event(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    return unchanged(in, h, &before, cai_stream_drop_event(h->array, &w.pool, err));
}

/* --------------------------------------------------------------- keep-alive */

/* push a on Y */
static cai_status do_push(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    cai_status status;
    script_take(in, "on");
    status = cai_keepalive_push(h->array, &w.pool, stream_word(in), err);
    if (status == CAI_OK && h->array->release != NULL) complain(in, "%s is still owned", h->name);
    if (before.release != NULL && h->array->release == NULL) return status; /* the device is broken, say */
    return unchanged(in, h, &before, status);
}

static cai_status do_poll(script_words *in, cai_error *err)
{
    int32_t waiting = -1;
    const cai_status status = cai_keepalive_poll(&w.pool, &waiting, err);
    if (status == CAI_OK && waiting != w.pool.waiting)
        complain(in, "poll says that %d wait, the pool has %d", waiting, w.pool.waiting);
    return status;
}

static cai_status do_drain(script_words *in, cai_error *err)
{
    (void)in;
    return cai_keepalive_drain(&w.pool, err);
}

static cai_status do_destroy_pool(script_words *in, cai_error *err)
{
    const cai_status status = cai_event_pool_destroy(&w.pool, err);
    (void)in;
    w.pool_gone = status != CAI_ERR_PENDING;
    return status;
}

/* forget c3 | all: what the pool keeps of it */
static cai_status do_forget(script_words *in, cai_error *err)
{
    const uint64_t context = script_take(in, "all") ? 0 : thing_word(in, 'c')->handle;
    return cai_event_pool_forget(&w.pool, context, err);
}

/* ----------------------------------------------------------------- decoders */

/* decode interface none | absent | 5 [version 2];  decode protocol 0 5: (0, 5) of __cuda_stream__ */
static cai_status do_decode(script_words *in, cai_error *err)
{
    cai_token token[3];
    int32_t version = 3;
    const cai_token *value = token;
    memset(token, 0, sizeof token);
    if (script_take(in, "protocol")) {
        token[0].kind = CAI_TOKEN_TUPLE;
        token[0].length = 2;
        token[1].kind = token[2].kind = CAI_TOKEN_INT;
        token[1].number = (uint64_t)script_number(in);
        token[2].number = script_take(in, "0") ? 0 : stream_word(in);
        w.decoded_sync = CAI_SYNC_STREAM;
        return cai_decode_stream_protocol(token, &w.decoded_stream, err);
    }
    script_take(in, "interface");
    if (script_take(in, "none")) {
        token[0].kind = CAI_TOKEN_NONE;
    } else if (script_take(in, "absent")) {
        value = NULL;
    } else {
        token[0].kind = CAI_TOKEN_INT;
        token[0].number = stream_word(in);
    }
    if (script_take(in, "version")) version = (int32_t)script_number(in);
    return cai_decode_stream_interface(value, version, &w.decoded_sync, &w.decoded_stream, err);
}

/* ------------------------------------------------------------------ locating */

/* answers need_context | zero | always: what CUDA says to a thread without a context */
static void do_answers(script_words *in)
{
    const uint32_t either = CAI_SIM_NEED_CONTEXT | CAI_SIM_ZERO_ANSWERS;
    uint32_t options = cai_sim_options(w.sim) & ~either;
    if (script_take(in, "need_context")) options |= CAI_SIM_NEED_CONTEXT;
    else if (script_take(in, "zero")) options |= CAI_SIM_ZERO_ANSWERS;
    else if (!script_take(in, "always")) script_bad(in, "not understood");
    cai_sim_set_options(w.sim, options);
}

/* segments m 256: a range query of that mapping tells so many bytes */
static void do_segments(script_words *in)
{
    const uint64_t address = address_word(in);
    cai_sim_set_options(w.sim, cai_sim_options(w.sim) | CAI_SIM_SEGMENTS);
    cai_sim_set_segment(w.sim, address, (uint64_t)script_number(in));
}

/* strangers: devices 0 and 1 have no access to one another */
static void do_strangers(script_words *in)
{
    (void)in;
    cai_sim_set_peer_access(w.sim, 0, 1, 0);
    cai_sim_set_peer_access(w.sim, 1, 0, 0);
}

/* locate a [bounds] [pageable] [store] */
static cai_status do_locate(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    cai_array before = *h->array, mask;
    cai_array *const m = h->array->mask;
    uint32_t flags = 0;
    cai_status status;
    if (m) mask = *m;
    if (script_take(in, "bounds")) flags |= (uint32_t)CAI_LOCATE_BOUNDS;
    if (script_take(in, "pageable")) flags |= (uint32_t)CAI_LOCATE_PAGEABLE;
    if (script_take(in, "store")) flags |= (uint32_t)CAI_LOCATE_STORE_ADDRESS;
    memset(&w.location, w.garbage, sizeof w.location);
    status = cai_locate(h->array, h->name, &w.cuda, flags, &w.location, err);
    if (status != CAI_OK && m && memcmp(m, &mask, sizeof mask) != 0)
        complain(in, "the call failed and changed the mask");
    return unchanged(in, h, &before, status);
}

static int32_t memory_word(script_words *in)
{
    static const char *const names[] = {"unknown", "host", "pinned", "managed", "device"};
    int32_t i;
    for (i = 0; i < 5; i++) {
        if (script_take(in, names[i])) return i;
    }
    script_bad(in, "no kind of memory");
    return -1;
}

static void same(script_words *in, const char *what, uint64_t is, uint64_t wanted)
{
    if (is != wanted)
        complain(in, "%s is %llx, not %llx", what, (unsigned long long)is, (unsigned long long)wanted);
}

/* place a device 0 memory managed: what is stored in the array */
static void do_place(script_words *in)
{
    const held *h = array_word(in);
    script_take(in, "device");
    same(in, "device", (uint64_t)(int64_t)h->array->device, (uint64_t)script_number(in));
    script_take(in, "memory");
    same(in, "memory", (uint64_t)(int64_t)h->array->memory, (uint64_t)(int64_t)memory_word(in));
}

/* `none`, `other` (not that of the array) or an address */
static uint64_t address_or_none(script_words *in)
{
    return script_take(in, "none") ? 0 : address_word(in);
}

/* location [device 0] [memory pinned] [bounds inside | unknown] [peer 1] [context c1 | none]
 *          [data m | elsewhere than m] [base m | none] [nbytes 1024]: what cai_locate filled in */
static void do_location(script_words *in)
{
    const cai_location *l = &w.location;
    while (script_more(in)) {
        if (script_take(in, "device"))
            same(in, "device", (uint64_t)(int64_t)l->device, (uint64_t)script_number(in));
        else if (script_take(in, "memory"))
            same(in, "memory", (uint64_t)(int64_t)l->memory, (uint64_t)(int64_t)memory_word(in));
        else if (script_take(in, "bounds"))
            same(in, "bounds", (uint64_t)(int64_t)l->bounds, strcmp(script_word(in), "inside") == 0);
        else if (script_take(in, "peer"))
            same(in, "needs_peer", (uint64_t)(int64_t)l->needs_peer, (uint64_t)script_number(in));
        else if (script_take(in, "context"))
            same(in, "context", l->context, script_take(in, "none") ? 0 : thing_word(in, 'c')->handle);
        else if (script_take(in, "data"))
            same(in, "data", l->data, address_or_none(in));
        else if (script_take(in, "elsewhere")) {
            script_take(in, "than");
            same(in, "data is the same address", l->data == address_word(in) || l->data == 0, 0);
        } else if (script_take(in, "base"))
            same(in, "base", l->base, address_or_none(in));
        else if (script_take(in, "nbytes"))
            same(in, "nbytes", l->nbytes, (uint64_t)script_number(in));
        else
            script_bad(in, "not understood");
    }
}

/* -------------------------------------------------------------------- facts */

static void do_created(script_words *in)
{
    same(in, "created", (uint64_t)w.created, (uint64_t)script_number(in));
}

static void do_idle(script_words *in)
{
    same(in, "idle", (uint64_t)w.pool.idle_count, (uint64_t)script_number(in));
}

static void do_waiting(script_words *in)
{
    same(in, "waiting", (uint64_t)w.pool.waiting, (uint64_t)script_number(in));
}

static void do_open(script_words *in)
{
    same(in, "open", (uint64_t)w.pool.open_exchanges, (uint64_t)script_number(in));
}

/* released b a: all that were released so far, in this order. released nothing */
static void do_released(script_words *in)
{
    char wanted[SCRIPT_TEXT] = "";
    while (script_more(in)) {
        if (wanted[0]) strcat(wanted, " ");
        strcat(wanted, script_word(in));
    }
    if (strcmp(wanted, w.released[0] ? w.released : "nothing") != 0)
        complain(in, "released were: %s", w.released[0] ? w.released : "nothing");
}

/* sync a none | unknown | on X | event e1 [beside X], [thread 1] (0 if it is not said) */
static void do_sync(script_words *in)
{
    const held *h = array_word(in);
    const cai_array *a = h->array;
    cai_array wanted;
    char name[WORLD_NAME] = "";
    memset(&wanted, 0, sizeof wanted);
    if (script_take(in, "event")) {
        wanted.sync = CAI_SYNC_EVENT;
        wanted.event = a->event;
        event_name(a->event, name);
        if (strcmp(name, script_word(in)) != 0) complain(in, "the event is %s", name);
        if (script_take(in, "beside")) wanted.stream = stream_word(in);
    } else if (!array_sync(in, &wanted)) {
        script_bad(in, "not understood");
    }
    if (script_take(in, "thread")) wanted.thread = (uint64_t)script_number(in);
    same(in, "sync", (uint64_t)(int64_t)a->sync, (uint64_t)(int64_t)wanted.sync);
    same(in, "stream", a->stream, wanted.stream);
    same(in, "event", a->event, wanted.event);
    same(in, "thread", a->thread, wanted.thread);
}

/* leaves "events: e1": what the case means to leave behind */
static void do_leaves(script_words *in)
{
    const char *text = script_word(in);
    memcpy(w.leaves, text, strlen(text) + 1);
}

#endif
