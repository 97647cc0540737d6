/* place_model.c - ext/cai_place.h against a model, at random: what each call answers, and which bytes are where
 * SPDX-License-Identifier: MIT
 *
 *     place_model [operations [seed]]    50,000; 1,000,000 take two seconds
 *
 * Arrays in memory of several contexts of two devices move from stream to stream, by cai_stream_depend, cai_event_make,
 * cai_migrate, cai_place and exchanges, on three host threads. Streams capture meanwhile, the caller's own and those of
 * others. Streams and contexts end between the calls, and CUDA fails now and then. Each kernel looks for the version
 * that the one before it wrote, in a random order of all that is ready. The model knows each status, each stream that
 * is chosen, and the streams of the cache. Nobody's capture may end by a call. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_place.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"
#include "place_rules.h"
#include "place_world.h"

enum { LIFE = 400, POOLS = 2, POINTS = 6, PLACES = 2, KEPT = 3 };

#define BIT(status) (1u << (status))

/* An event of cai_event_make: what it covers. */
typedef struct point {
    uint64_t event, stamps[THINGS];
    int32_t context;
} point;

static cai_event_pool pools[POOLS];
static cai_keepalive keepalive[KEPT];
static point points[POINTS];
static cai_stream_cache cache;
static cai_cached_stream places[PLACES];
static int32_t cached[PLACES], cached_count, maker_error, waited; /* slots; arrays in the pools before a call */
static int64_t statuses[64], calls, lost_events, moves[3]; /* by a wait, by cai_migrate, by an exchange */

/* ------------------------------------------------------------------- a call */
/* Begins the call: now and then one of its CUDA calls fails, also with 900. Returns the error, or 0. */
static int32_t arm(int captured)
{
    static const int32_t errors[] = {2, 999, 900};
    const int32_t error = draw(12) ? 0 : errors[draw(captured ? 3 : 2)];
    memset(&err, 0, sizeof err);
    waited = pools[0].waiting + pools[1].waiting;
    cai_sim_log_clear(sim);
    if (error) CHECK_INT(cai_sim_fail(sim, 1 + (int32_t)draw(14), error), 1);
    return error;
}

/* The states of all captures: nobody's ended. */
static void check_captures(void)
{
    int32_t i, mode;
    for (i = 0; i < CAPTURES; i++) {
        const slot *s;
        cai_cuda_capture state;
        if (captures[i].origin == NOBODY) continue;
        s = &slots[captures[i].origin];
        mode = enter(s->context, 0);
        CHECK_INT(cuda->stream_capture(cuda->self, s->handle, &state), 0);
        CHECK_INT(state.status, CAI_CAPTURE_ACTIVE);
        leave(mode);
    }
}

/* The operation that failed, as the log has it: "event_destroy e1 ! 999". */
static const char *failed_operation(int32_t error)
{
    char failed[12];
    const char *line = cai_sim_log(sim), *end;
    const size_t length = (size_t)snprintf(failed, sizeof failed, " ! %d", (int)error);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if ((size_t)(end - line) > length && !strncmp(end - length, failed, length)) return line;
    return "";
}

/* A call may succeed all the same if it lost an event, or as it looked at what waits in the pool. */
static void check_untold(const char *failed)
{
    const int looks = pools[0].waiting + pools[1].waiting + waited > 0;
    if (!CHECK(looks || !strncmp(failed, "event_destroy", 13))) printf("%s", cai_sim_log(sim));
}

/* Ends the call. `expected`: the statuses that may be; 0: none may. True: it succeeded. */
static int judge(cai_status status, uint32_t expected, int32_t error)
{
    const int struck = error && !cai_sim_faults(sim);
    int32_t mode = 0;
    cai_sim_faults_clear(sim);
    statuses[status % 64]++;
    calls++;
    faults_struck += struck;
    lost_events += struck && !strncmp(failed_operation(error), "event_destroy", 13);
    if (struck && !status) check_untold(failed_operation(error));
    if (struck && status) expected |= BIT(error == 900 ? CAI_ERR_CAPTURE : CAI_ERR_CUDA);
    if (status ? !(expected >> status & 1) : expected != 0)
        if (!CHECK_INT(expected, status ? (int64_t)BIT(status) : 0))
            printf("    status %d: %s\n", (int)status, err.message);
    if (status) CHECK_INT(err.code, status);
    if (!CHECK_UINT(cai_sim_current(sim), handle_of(here))) printf("%s", cai_sim_log(sim));
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    CHECK_INT(mode, 0);
    mode = 0;
    CHECK_INT(cuda->capture_mode(cuda->self, &mode), 0);
    if (struck || !draw(8)) check_captures();
    return status == CAI_OK;
}

static uint32_t bad_stream(uint64_t stream)
{
    return stream == 0 || stream == UINT64_MAX ? BIT(CAI_ERR_STREAM) : 0;
}

/* The context of 1 and 2 as arguments. */
static int32_t context_of_default(int32_t device)
{
    return here != NOBODY ? here : device < 0 ? 0 : device;
}

static uint32_t may_order(queue before, queue after)
{
    if (same(before, after)) return 0;
    return stumbles(before) || stumbles(after) || capture_of(before) != capture_of(after) ? BIT(CAI_ERR_CAPTURE) : 0;
}

/* What a begin says of a thing, for a consumer on `q`. */
static uint32_t may_begin(const thing *t, queue q)
{
    uint32_t bits = 0;
    int32_t i;
    for (i = 0; i < PARTS; i++) {
        const cai_array *array = i ? &t->mask : &t->array;
        const queue home = t->parts[i].home;
        const int blind = array->sync == CAI_SYNC_UNKNOWN || array->sync == CAI_SYNC_EVENT;
        if (!t->parts[i].address || array->sync == CAI_SYNC_NONE) continue;
        if (array->stream == CAI_STREAM_PER_THREAD && home.thread != thread) bits |= BIT(CAI_ERR_THREAD);
        if (array->stream) bits |= may_order(home, q);
        if (!blind) continue;
        if (stumbles(q) || capture_of(q)) bits |= BIT(CAI_ERR_CAPTURE);
        if (array->sync == CAI_SYNC_EVENT && array->stream && capture_of(home)) bits |= BIT(CAI_ERR_CAPTURE);
    }
    return bits;
}

/* The host would wait for contexts in which blocking streams capture. */
static uint32_t may_wait(const thing *t)
{
    int32_t i;
    for (i = 0; i < CONTEXTS; i++)
        if ((i == t->context || i == here || i < DEVICES) && captures_in(i, 1)) return BIT(CAI_ERR_CAPTURE);
    return 0;
}

/* ------------------------------------------------------------------- depend */
static int covers(const point *p, const thing *t)
{
    return p->event && p->stamps[t - things] == t->stamp;
}

/* A work to wait for: a thing's, a stream's, or an event's. */
static cai_work any_work(void)
{
    const uint32_t what = draw(10);
    const thing *t = any_thing();
    cai_work made = {0, 0};
    if (what == 0 && !draw(4)) return made;
    if (what < 4) made.event = points[draw(POINTS)].event;
    if (made.event) return made;
    made.stream = t && what < 9 ? only_home(t).stream : any_stream();
    if (!made.stream) made.stream = any_stream();
    if (made.stream && !draw(60)) made.event = 1; /* both: refused before it is used */
    return made;
}

static uint32_t expect_depend(queue q, const cai_work *works, int32_t count)
{
    uint32_t bits = bad_stream(q.stream);
    int32_t i;
    if (bits || !count) return bits;
    for (i = 0; i < count; i++) {
        if (!works[i].stream == !works[i].event) return BIT(CAI_ERR_ARGUMENT) | BIT(CAI_ERR_STREAM);
        if (!works[i].event) bits |= bad_stream(works[i].stream);
    }
    if (bits) return bits;
    for (i = 0; i < count; i++) {
        if (works[i].event && (stumbles(q) || capture_of(q))) bits |= BIT(CAI_ERR_CAPTURE);
        if (works[i].stream) bits |= may_order(queue_of(works[i].stream, context_of_default(0)), q);
    }
    return bits;
}

/* Is all work on the thing before what comes now in the stream that waited? */
static int is_covered(const thing *t, const cai_work *works, int32_t count)
{
    int32_t n, i, k;
    for (n = 0; n < PARTS; n++) {
        int found = !t->parts[n].address;
        for (i = 0; i < count && !found; i++) {
            const queue q = queue_of(works[i].stream, context_of_default(0));
            if (works[i].stream) found = same(q, t->parts[n].home);
            for (k = 0; k < POINTS && works[i].event && !found; k++)
                found = points[k].event == works[i].event && covers(&points[k], t);
        }
        if (!found) return 0;
    }
    return 1;
}

static void do_depend(void)
{
    const uint64_t stream = any_stream();
    cai_work works[3];
    const int32_t count = (int32_t)draw(4);
    const queue q = queue_of(stream, context_of_default(0));
    cai_status status;
    int32_t i, error;
    memset(works, 0, sizeof works);
    for (i = 0; i < count; i++) works[i] = any_work();
    error = arm(1);
    status = cai_stream_depend(&pools[draw(POOLS)], stream, works, count, &err);
    if (!judge(status, expect_depend(q, works, count), error)) return;
    for (i = 0; i < THINGS; i++) {
        thing *t = &things[i];
        if (!t->used || t->kept || !is_plain(t) || !may_name(t, q) || !is_covered(t, works, count)) continue;
        moves_to(t, q);
        work(q, t, (int)draw(3) != 0);
        moves[0]++;
    }
}

static void do_make_event(void)
{
    const uint64_t stream = any_stream();
    const queue q = queue_of(stream, context_of_default(0));
    uint32_t bits = bad_stream(stream);
    point *p = &points[draw(POINTS)];
    uint64_t made = 77;
    int32_t i, error;
    if (p->event) {
        error = arm(0);
        if (judge(cai_event_drop(&pools[0], p->event, &err), 0, error)) p->event = 0;
        return;
    }
    if (!bits && (stumbles(q) || capture_of(q))) bits = BIT(CAI_ERR_CAPTURE);
    error = arm(1);
    if (!judge(cai_event_make(&pools[draw(POOLS)], stream, &made, &err), bits, error)) {
        CHECK_UINT(made, 77);
        return;
    }
    p->event = made;
    p->context = q.context;
    for (i = 0; i < THINGS; i++)
        p->stamps[i] = things[i].used && same(only_home(&things[i]), q) ? things[i].stamp : 0;
}

/* ------------------------------------------------------------------- migrate */
static int is_blind(const thing *t)
{
    return t->array.sync == CAI_SYNC_UNKNOWN || (t->array.mask && t->mask.sync == CAI_SYNC_UNKNOWN);
}

static uint32_t expect_migrate(const thing *t, queue q)
{
    const int32_t device = t->array.device;
    uint32_t bits = bad_stream(q.stream);
    if (bits) return bits;
    if (!contexts[q.context].lives) return BIT(CAI_ERR_CUDA);
    if (t->array.memory == CAI_MEMORY_DEVICE && device != device_of(q)) return BIT(CAI_ERR_PLACEMENT);
    if (!is_handle(q) && t->context != q.context) return BIT(CAI_ERR_STREAM);
    bits = may_begin(t, q);
    return is_blind(t) ? bits | may_wait(t) : bits;
}

static void check_migrated(thing *t, uint64_t stream)
{
    int32_t i;
    for (i = 0; i < PARTS; i++) {
        const cai_array *array = array_of(t, i);
        if (!t->parts[i].address) continue;
        CHECK(array->sync == CAI_SYNC_STREAM && array->stream == stream && !array->event);
        CHECK_UINT(array->thread, stream == CAI_STREAM_PER_THREAD ? (uint64_t)thread : 0);
        CHECK_INT((array->flags & CAI_NO_BACK_EDGE) != 0, array->release != NULL);
    }
}

static void do_migrate(void)
{
    thing *t = any_thing();
    const uint64_t stream = any_stream();
    cai_array before;
    uint32_t expected;
    int32_t error, device, good;
    queue q;
    if (!t || (is_blind(t) && captures_in(NOBODY, 0))) return; /* a wait of the host would end these */
    if (t->context == NOBODY && stream <= 2) return; /* whose 1 it is depends on what is current later */
    device = t->array.device;
    q = queue_of(stream, context_of_default(device));
    expected = expect_migrate(t, q);
    if (t->context != NOBODY && !draw(16)) t->array.device = CAI_DEVICE_UNKNOWN; /* not located: CUDA is asked */
    before = t->array;
    error = arm(1);
    good = judge(cai_migrate(&t->array, &pools[draw(POOLS)], stream, &err), expected, error);
    if (!good) CHECK_BYTES(&t->array, &before, sizeof before);
    t->array.device = device;
    if (!good) return;
    check_migrated(t, stream);
    moves_to(t, q);
    moves[1]++;
    if (draw(4)) work(q, t, (int)draw(3) != 0);
}

/* The mask alone goes to another stream. */
static void do_migrate_mask(void)
{
    thing *t = any_thing(), alone;
    const uint64_t stream = any_stream();
    queue q;
    int32_t error;
    if (!t || !t->array.mask || t->inside || is_blind(t) || (t->context == NOBODY && stream <= 2)) return;
    q = queue_of(stream, context_of_default(t->mask.device));
    if (capture_of(q)) return;
    memset(&alone, 0, sizeof alone);
    alone.array = t->mask;
    alone.parts[0] = t->parts[1];
    alone.context = t->context;
    error = arm(1);
    if (!judge(cai_migrate(&t->mask, &pools[draw(POOLS)], stream, &err), expect_migrate(&alone, q), error)) {
        CHECK_BYTES(&t->mask, &alone.array, sizeof t->mask);
        return;
    }
    t->parts[1].home = q;
    changed(t);
}

/* ------------------------------------------------------------------- places */
static uint32_t expect_exchange(thing *const *of, int32_t count, queue q)
{
    uint32_t bits = 0;
    int32_t i;
    for (i = 0; i < count; i++) bits |= may_begin(of[i], q);
    return bits;
}

/* Things with work in a stream that is named, each once. */
static int32_t choose_things(thing **of, cai_operand *inputs, call *c)
{
    int32_t wanted = 1 + (int32_t)draw(3), i, k, count = 0;
    memset(c, 0, sizeof *c);
    for (i = 0; i < wanted; i++) {
        thing *t = any_thing();
        for (k = 0; k < count && t; k++) t = of[k] == t ? NULL : t;
        if (!t || !is_plain(t)) continue;
        inputs[count] = cai_operand_array(&t->array, NULL);
        c->inputs[count] = &t->array;
        of[count++] = t;
    }
    c->count = count;
    c->out = count && draw(2) ? &of[0]->array : NULL;
    c->policy = (int32_t)draw(3);
    c->stream = draw(3) ? 0 : any_stream();
    return count;
}

static void check_placed(const call *c, const cai_operand *inputs, cai_placement *at)
{
    const verdict v = rule(c);
    cai_placement before;
    cai_status status;
    memset(at, 0x33, sizeof *at);
    before = *at;
    status = cai_place(inputs, c->count, c->out, c->policy, c->flags, c->stream, at, &err);
    if (judge(status, v.statuses, 0)) CHECK_BYTES(at, &v.at, sizeof v.at);
    else CHECK_BYTES(at, &before, sizeof before);
    if (status) at->stream = 0;
}

/* The consumer works on all of them, in the stream that was chosen. Their own streams wait for it. */
static void exchange_on(thing **of, int32_t count, queue q)
{
    cai_array *arrays[3];
    cai_exchange ex;
    cai_event_pool *pool = &pools[draw(POOLS)];
    cai_status status;
    int32_t i, given = 0;
    if (pool->mode != CAI_MODE_EVENT) return;
    for (i = 0; i < count; i++) arrays[i] = &of[i]->array;
    memset(&err, 0, sizeof err);
    status = cai_exchange_begin(&ex, pool, arrays, count, q.stream, &err);
    if (!judge(status, expect_exchange(of, count, q), 0)) return;
    moves[2]++;
    for (i = 0; i < count; i++) {
        work(q, of[i], (int)draw(3) != 0);
        if (!of[i]->owned || of[i]->inside || capture_of(q) || stumbles(q) || draw(4)) continue;
        of[i]->kept = 1;
        arrays[given++] = &of[i]->array;
    }
    (void)judge(cai_exchange_finish(&ex, CAI_OK, arrays, given, &err), 0, 0);
}

static void do_place(void)
{
    thing *of[3];
    cai_operand inputs[3];
    cai_placement at;
    call c;
    queue q;
    int32_t i, count = choose_things(of, inputs, &c), fits = 1;
    check_placed(&c, inputs, &at);
    if (!count || !at.stream || bad_stream(at.stream)) return;
    q = queue_of(at.stream, context_of_default(of[0]->array.device));
    for (i = 0; i < count; i++)
        fits &= of[i]->array.memory != CAI_MEMORY_DEVICE || of[i]->array.device == device_of(q);
    if (fits && contexts[q.context].lives) exchange_on(of, count, q);
}

/* The same question of arrays on streams 1 and 2, of all devices and threads. */
static void do_place_default(void)
{
    thing *of[3];
    cai_array copies[3];
    cai_operand inputs[3];
    cai_placement at;
    call c;
    int32_t i;
    const int32_t count = choose_things(of, inputs, &c);
    for (i = 0; i < count; i++) {
        copies[i] = of[i]->array;
        copies[i].stream = draw(4) ? 1 + draw(2) : copies[i].stream;
        copies[i].thread = copies[i].stream == CAI_STREAM_PER_THREAD ? 1 + draw(2) : 0;
        inputs[i].array = c.inputs[i] = &copies[i];
    }
    c.out = NULL;
    check_placed(&c, inputs, &at);
}

/* ------------------------------------------------------------------- caches */
static int32_t maker_create(void *self, int32_t device, uint64_t *stream)
{
    int32_t i, current = NOBODY;
    (void)self;
    for (i = 0; i < CONTEXTS; i++)
        if (contexts[i].lives && contexts[i].handle == cai_sim_current(sim)) current = i;
    if (!CHECK(current != NOBODY)) return 201;
    CHECK_INT(contexts[current].device, device);
    if (maker_error) return maker_error;
    i = make_stream(current, 0, 1);
    if (i == NOBODY) return 2;
    *stream = slots[i].handle;
    return 0;
}

static int32_t maker_destroy(void *self, uint64_t stream)
{
    int32_t i;
    (void)self;
    for (i = 0; i < STREAMS; i++)
        if (slots[i].handle == stream) slots[i].handle = 0;
    return cai_sim_stream_destroy(sim, stream);
}

/* The slot of the context, or NOBODY. */
static int32_t cached_in(int32_t number)
{
    int32_t i;
    for (i = 0; i < cached_count; i++)
        if (slots[cached[i]].context == number) return cached[i];
    return NOBODY;
}

/* What a call for a stream of the device says. *number: the context. */
static uint32_t expect_get(int32_t device, int32_t *number)
{
    *number = here != NOBODY && contexts[here].device == device ? here : device;
    if (!contexts[*number].lives) return BIT(CAI_ERR_CUDA);
    if (cached_in(*number) != NOBODY) return 0;
    if (cached_count == PLACES) return BIT(CAI_ERR_CAPACITY);
    return maker_error || free_slot() == NOBODY ? BIT(CAI_ERR_CUDA) : 0;
}

/* The cache gave a stream for the context: the one that it has, or a new one. A failed call may have made one. */
static void check_cached(int32_t number, int32_t place, uint64_t stream, int good)
{
    const int32_t had = cached_in(number);
    if (had == NOBODY && place != NOBODY && slots[place].handle) cached[cached_count++] = place;
    CHECK_INT(cache.count, cached_count);
    if (!good) return;
    if (CHECK(cached_in(number) != NOBODY)) CHECK_UINT(stream, slots[cached_in(number)].handle);
}

static void do_get(void)
{
    const int32_t device = (int32_t)draw(DEVICES + 1) - 1, place = free_slot();
    uint64_t stream = 77;
    int32_t number, error, good;
    uint32_t expected;
    maker_error = draw(8) ? 0 : 46;
    expected = expect_get(device < 0 ? cache.device : device, &number);
    error = arm(1);
    good = judge(cai_stream_cache_get(&cache, device, &stream, &err), expected, error);
    if (!good) CHECK_UINT(stream, 77);
    check_cached(number, place, stream, good);
}

/* The device of each that is named must be the same. *at gets the placement; *number: the context of a stream that
 * the cache is to give, or NOBODY. */
static uint32_t expect_place_on(int32_t device, const thing *t, uint64_t stream, cai_placement *at, int32_t *number)
{
    const int on_device = t && t->array.memory == CAI_MEMORY_DEVICE;
    const int has_own = t && (t->array.sync == CAI_SYNC_STREAM || t->array.sync == CAI_SYNC_EVENT);
    const uint64_t own = has_own ? t->array.stream : 0;
    const uint64_t said = stream ? stream : own;
    const int32_t of_stream = said && !bad_stream(said) ? device_of(queue_of(said, context_of_default(0))) : NOBODY;
    memset(at, 0, sizeof *at);
    at->device = device;
    at->overlap = -1;
    at->memory = t ? t->array.memory : 0;
    *number = NOBODY;
    if (on_device && device >= 0 && t->array.device != device) return BIT(CAI_ERR_PLACEMENT) | bad_stream(said);
    if (on_device) at->device = t->array.device;
    if (bad_stream(said) && said) return BIT(CAI_ERR_STREAM);
    if (stream && at->device >= 0 && of_stream != at->device) return BIT(CAI_ERR_PLACEMENT);
    if (said) at->stream = said;
    if (!stream && own && own <= 2 && of_stream != t->array.device) at->stream = 0; /* 1 and 2 of another device */
    if (at->stream && at->device < 0) at->device = of_stream;
    if (of_stream != at->device) at->stream = 0;
    at->decided = at->stream != 0;
    if (at->device < 0) at->device = cache.device;
    return at->stream ? 0 : expect_get(at->device, number);
}

static void do_place_on(void)
{
    const int32_t device = (int32_t)draw(DEVICES + 1) - 1, place = free_slot();
    const thing *t = draw(2) ? any_thing() : NULL;
    const uint64_t stream = draw(2) ? 0 : any_stream();
    cai_placement at, wanted, before;
    int32_t number, error, good;
    uint32_t expected;
    maker_error = draw(8) ? 0 : 46;
    expected = expect_place_on(device, t, stream, &wanted, &number);
    memset(&at, 0x33, sizeof at);
    before = at;
    error = arm(1);
    good = judge(cai_place_on(&cache, device, t ? &t->array : NULL, stream, &at, &err), expected, error);
    if (number != NOBODY) check_cached(number, place, good ? at.stream : 0, good);
    if (!wanted.stream && good) wanted.stream = at.stream; /* of the cache */
    CHECK_BYTES(&at, good ? &wanted : &before, sizeof at);
}

/* ------------------------------------------------------------------- captures */
/* Does the program still need the stream? R81: it lives as long as an array that names it. */
static int is_needed(queue q)
{
    int32_t i, k;
    for (i = 0; i < THINGS; i++)
        for (k = 0; k < PARTS && things[i].used && !things[i].kept; k++)
            if (things[i].parts[k].address && same(things[i].parts[k].home, q)) return 1;
    return 0;
}

static void do_begin_capture(void)
{
    const int32_t i = any_slot();
    int32_t k = 0, as = thread, mode;
    while (k < CAPTURES && captures[k].origin != NOBODY) k++;
    if (k == CAPTURES || i == NOBODY || slots[i].capture || is_needed(queue_of(slots[i].handle, 0))) return;
    mode = enter(slots[i].context, 0);
    (void)cuda->capture_mode(cuda->self, &mode);
    CHECK_INT(cai_sim_capture_begin(sim, slots[i].handle, (int32_t)draw(3)), 0);
    (void)cuda->capture_mode(cuda->self, &mode);
    leave(mode);
    captures[k].origin = i;
    captures[k].thread = as;
    slots[i].capture = k + 1;
    all_captures++;
}

/* Another stream takes part in a capture. */
static void join(int32_t from, int32_t to)
{
    const int32_t mode = enter(slots[from].context, 0);
    const uint64_t event = cai_sim_event_create(sim);
    CHECK_INT(cai_sim_event_record(sim, event, slots[from].handle), 0);
    CHECK_INT(cai_sim_stream_wait_event(sim, slots[to].handle, event), 0);
    CHECK_INT(cai_sim_event_destroy(sim, event), 0);
    leave(mode);
}

/* Not a stream with work of before on an array: no wait in the capture is for that. */
static void do_join_capture(void)
{
    const int32_t k = (int32_t)draw(CAPTURES), i = any_slot();
    if (captures[k].origin == NOBODY || i == NOBODY || slots[i].capture) return;
    if (is_needed(queue_of(slots[i].handle, 0))) return;
    join(captures[k].origin, i);
    slots[i].capture = k + 1;
}

static void launch_graph(const slot *origin, uint64_t graph)
{
    const uint64_t executable = cai_sim_graph_instantiate(sim, graph);
    int32_t n = 1 + (int32_t)draw(2);
    CHECK(executable != 0);
    for (; n > 0; n--, launches++) CHECK_INT(cai_sim_graph_launch(sim, executable, origin->handle), 0);
    CHECK_INT(cai_sim_stream_synchronize(sim, origin->handle), 0);
    CHECK_INT(cai_sim_graph_executable_destroy(sim, executable), 0);
    CHECK_INT(cai_sim_graph_destroy(sim, graph), 0);
}

/* All streams join their capture; its graph is launched once or twice. */
static void end_capture(int32_t k)
{
    const queue none = {0, 0, 0};
    const slot *origin = &slots[captures[k].origin];
    uint64_t graph = 0;
    int32_t i, mode;
    for (i = 0; i < STREAMS; i++)
        if (slots[i].handle && slots[i].capture == k + 1 && i != captures[k].origin) join(i, captures[k].origin);
    mode = enter(origin->context, captures[k].thread);
    CHECK_INT(cai_sim_capture_end(sim, origin->handle, &graph), 0); /* nobody has ended it */
    for (i = 0; i < STREAMS; i++)
        if (slots[i].capture == k + 1) slots[i].capture = 0;
    if (graph) launch_graph(origin, graph);
    leave(mode);
    captures[k].origin = NOBODY;
    for (i = 0; i < THINGS; i++)
        if (things[i].used && things[i].inside == k + 1) {
            things[i].inside = 0;
            moves_to(&things[i], none);
        }
}

static void end_captures(void)
{
    int32_t k;
    for (k = 0; k < CAPTURES; k++)
        if (captures[k].origin != NOBODY) end_capture(k);
}

/* ------------------------------------------------------------------- what ends */
static void do_change_stream(void)
{
    const int32_t i = (int32_t)draw(STREAMS), number = any_context();
    int32_t mode;
    slot *s = &slots[i];
    if (!s->handle) {
        mode = enter(number, 0);
        (void)make_stream(number, (int32_t)draw(2), 0);
        leave(mode);
        return;
    }
    if (s->capture || s->cached || is_needed(queue_of(s->handle, 0))) return;
    CHECK_INT(cai_sim_stream_destroy(sim, s->handle), 0);
    s->handle = 0;
    gone_streams++;
}

/* The host has waited for all work. */
static void settle(int32_t number)
{
    const queue none = {0, 0, 0};
    int32_t i, mode = enter(number, 0);
    CHECK_INT(cai_sim_context_synchronize(sim), 0);
    leave(mode);
    for (i = 0; i < THINGS; i++) {
        const queue q = only_home(&things[i]);
        if (things[i].used && !things[i].kept && is_plain(&things[i]) && q.stream && q.context == number)
            moves_to(&things[i], none);
    }
}

static void do_settle(void)
{
    int32_t i;
    if (captures_in(NOBODY, 0) || captures_in(NOBODY, 1)) return;
    for (i = 0; i < CONTEXTS; i++)
        if (contexts[i].lives) settle(i);
}

static void forget_thing(thing *t)
{
    if (t->array.sync == CAI_SYNC_EVENT) CHECK_INT(cai_stream_drop_event(&t->array, &pools[0], &err), CAI_OK);
    t->used = 0;
}

/* Takes from the program what is of a context: arrays in its memory or with work in it, events, streams. */
static void clear_context(int32_t number)
{
    int32_t i;
    for (i = 0; i < THINGS; i++) {
        thing *t = &things[i];
        if (!t->used || t->kept) continue;
        if (t->context != number && t->parts[0].home.context != number && t->parts[1].home.context != number) continue;
        if (t->context != number) CHECK_INT(cai_sim_free(sim, t->memory), 0);
        forget_thing(t);
    }
    for (i = 0; i < POINTS; i++) {
        if (!points[i].event || points[i].context != number) continue;
        CHECK_INT(cai_event_drop(&pools[0], points[i].event, &err), CAI_OK);
        points[i].event = 0;
    }
    for (i = 0; i < STREAMS; i++)
        if (slots[i].handle && slots[i].context == number) slots[i].handle = 0;
    for (i = 0; i < cached_count; i++)
        if (!slots[cached[i]].handle) cached[i--] = cached[--cached_count];
}

/* A context is destroyed, or a primary one reset. The pools and the cache are told. */
static void do_end_context(void)
{
    const int32_t number = any_context(), early_forget = (int32_t)draw(2);
    int32_t i, mode;
    if (draw(3) || captures_in(NOBODY, 0) || captures_in(NOBODY, 1)) return;
    do_settle();
    clear_context(number);
    if (here == number) {
        CHECK_INT(cai_sim_set_context(sim, 0), 0);
        here = NOBODY;
    }
    for (i = 0; i < POOLS; i++) CHECK_INT(cai_event_pool_forget(&pools[i], contexts[number].handle, &err), CAI_OK);
    if (early_forget) cai_stream_cache_forget(&cache, contexts[number].handle);
    mode = enter(NOBODY, 0);
    CHECK_INT(cai_sim_context_destroy(sim, contexts[number].handle), 0);
    leave(mode);
    if (!early_forget) cai_stream_cache_forget(&cache, contexts[number].handle);
    CHECK_INT(cache.count, cached_count);
    if (number >= DEVICES) contexts[number].lives = 0;
    for (i = 0; i < THINGS; i++)
        if (things[i].kept && things[i].context == number) things[i].gone = 1;
    gone_contexts++;
}

static void do_make_context(void)
{
    int32_t i = DEVICES;
    if (!contexts[1].lives) {
        contexts[1].handle = cai_sim_primary_retain(sim, 1);
        contexts[1].lives = 1;
        return;
    }
    while (i < CONTEXTS && contexts[i].lives) i++;
    if (i == CONTEXTS) return;
    contexts[i].device = (int32_t)draw(DEVICES);
    contexts[i].handle = cai_sim_context_create(sim, contexts[i].device);
    contexts[i].lives = 1;
}

/* ------------------------------------------------------------------- what else the program does */
static void do_work(void)
{
    thing *t = any_thing();
    if (t && is_plain(t) && only_home(t).stream) work(only_home(t), t, 1);
}

/* An event in place of the stream, or nothing in place of it: then all contexts are waited for that cai knows. */
static void do_hide_stream(void)
{
    thing *t = any_thing();
    queue q;
    if (!t || !is_plain(t) || t->inside) return;
    q = only_home(t);
    if (!q.stream || capture_of(q) || stumbles(q)) return;
    if (draw(2) && (q.context < DEVICES || q.context == t->context)) {
        t->array.sync = CAI_SYNC_UNKNOWN;
        t->array.stream = 0;
    } else if (!t->array.mask && (q.stream != CAI_STREAM_PER_THREAD || q.thread == thread)) {
        CHECK_INT(cai_stream_detach(&t->array, &pools[0], &err), CAI_OK);
        if (!t->array.stream) t->parts[0].home.stream = 0;
    }
}

/* The pool gives it back when the stream has passed, or the program does after a wait. */
static void do_let_go(void)
{
    thing *t = any_thing();
    queue q;
    if (!t || t->inside || !is_plain(t)) return;
    q = only_home(t);
    if (!q.stream || capture_of(q) || stumbles(q)) return;
    if (t->owned && (is_handle(q) || (q.context == here && (!q.thread || q.thread == thread)))) {
        t->kept = 1;
        (void)judge(cai_keepalive_push(&t->array, &pools[draw(POOLS)], q.stream, &err), 0, 0);
    }
}

static void do_poll(void)
{
    memset(&err, 0, sizeof err);
    (void)judge(cai_keepalive_poll(&pools[draw(POOLS)], NULL, &err), 0, 0);
}

static void do_modes(void)
{
    cai_event_pool *pool = &pools[draw(POOLS)];
    CHECK_INT(cai_event_pool_set_modes(pool, draw(2) ? (int32_t)draw(3) : 0, CAI_MODE_EVENT, &err), CAI_OK);
}

static void do_run(void)
{
    uint64_t ready[32];
    int32_t i, count;
    for (i = (int32_t)draw(12); i > 0; i--) {
        count = cai_sim_ready(sim, ready, 32);
        if (!count) return;
        CHECK_INT(cai_sim_run_operation(sim, ready[draw((uint32_t)(count < 32 ? count : 32))]), 1);
    }
}

static void do_end_capture(void)
{
    const int32_t k = (int32_t)draw(CAPTURES);
    if (captures[k].origin != NOBODY) end_capture(k);
}

static const struct {
    void (*call)(void);
    uint32_t weight;
} operations[] = {{do_depend, 12}, {do_make_event, 6}, {do_migrate, 12}, {do_migrate_mask, 3}, {do_place, 12},
                  {do_place_default, 3}, {do_get, 4}, {do_place_on, 6}, {do_begin_capture, 2},
                  {do_join_capture, 2}, {do_end_capture, 1}, {do_change_stream, 5}, {do_end_context, 2},
                  {do_make_context, 1}, {do_settle, 1}, {do_work, 8}, {do_hide_stream, 3}, {do_let_go, 2},
                  {do_poll, 2}, {do_modes, 1}, {do_run, 12}, {make_thing, 6}};

/* One operation, on a host thread with a context, or none. */
static void operate(void)
{
    uint32_t all = 0, i, at;
    thread = 1 + (int32_t)draw(THREADS);
    here = draw(5) ? any_context() : NOBODY;
    play(thread, here);
    for (i = 0; i < sizeof operations / sizeof operations[0]; i++) all += operations[i].weight;
    for (at = draw(all), i = 0; at >= operations[i].weight; i++) at -= operations[i].weight;
    operations[i].call();
    CHECK_INT(cai_sim_set_context(sim, 0), 0);
    here = NOBODY;
}

/* ------------------------------------------------------------------- a life */
static void open_life(void)
{
    const cai_stream_maker maker = {NULL, maker_create, maker_destroy};
    int32_t i;
    sim = cai_sim_create(DEVICES);
    if (!sim) exit(2);
    cuda = cai_sim_cuda(sim);
    cai_sim_on_undefined(sim, count_dead, NULL);
    memset(contexts, 0, sizeof contexts);
    memset(slots, 0, sizeof slots);
    memset(things, 0, sizeof things);
    memset(points, 0, sizeof points);
    for (i = 0; i < CAPTURES; i++) captures[i].origin = NOBODY;
    job_count = cached_count = 0;
    lost_events = 0;
    thread = 1;
    here = NOBODY;
    for (i = 0; i < DEVICES; i++) {
        contexts[i].device = i;
        contexts[i].handle = cai_sim_primary(sim, i);
        contexts[i].lives = i == 0 || draw(2);
        if (contexts[i].lives) CHECK(cai_sim_primary_retain(sim, i) != 0);
    }
    for (i = 0; i < POOLS; i++)
        CHECK_INT(cai_event_pool_init(&pools[i], cuda, i ? keepalive : NULL, i ? KEPT : 0, 0, &err), CAI_OK);
    CHECK_INT(cai_stream_cache_init(&cache, cuda, &maker, places, PLACES, (int32_t)draw(DEVICES), &err), CAI_OK);
    for (i = 0; i < 8; i++) {
        if (i < 2) do_make_context();
        do_change_stream();
        make_thing();
    }
}

static void end_things(void)
{
    int32_t i;
    for (i = 0; i < THINGS; i++) {
        if (!things[i].used) continue;
        CHECK(!things[i].kept);
        CHECK_INT(cai_sim_free(sim, things[i].memory), 0);
        forget_thing(&things[i]);
    }
    for (i = 0; i < POINTS; i++) CHECK_INT(cai_event_drop(&pools[0], points[i].event, &err), CAI_OK);
}

static void close_life(int judged)
{
    cai_check_race race;
    char text[CAI_CHECK_TEXT] = "";
    int32_t i;
    thread = 1;
    play(thread, here);
    end_captures();
    do_settle();
    for (i = 0; i < POOLS; i++) CHECK_INT(cai_keepalive_drain(&pools[i], &err), CAI_OK);
    end_things();
    if (judged && cai_check_races(sim, &race, 1)) cai_check_race_text(sim, &race, text);
    CHECK_STR(text, "");
    for (i = 0; i < POOLS; i++) CHECK_INT(cai_event_pool_destroy(&pools[i], &err), CAI_OK);
    CHECK_INT(cai_stream_cache_destroy(&cache, &err), CAI_OK);
    for (i = 0; i < STREAMS; i++)
        if (slots[i].handle) CHECK_INT(cai_sim_stream_destroy(sim, slots[i].handle), 0);
    for (i = DEVICES; i < CONTEXTS; i++)
        if (contexts[i].lives) CHECK_INT(cai_sim_context_destroy(sim, contexts[i].handle), 0);
    CHECK_INT(stale + early + dead, 0);
    if (!lost_events) {
        (void)cai_sim_leaks(sim, text, sizeof text);
        CHECK_STR(text, "");
    }
    cai_sim_destroy(sim);
}

static void tell(int64_t done)
{
    printf("%lld operations: %lld calls were good, %lld refused, %lld CUDA calls failed. Moves: %lld by a wait, "
           "%lld by cai_migrate, %lld by exchanges. %lld kernels, %lld graphs of %lld captures: %lld stale, "
           "%lld early, %lld dead. %lld streams and %lld contexts gone\n", (long long)done, (long long)statuses[0],
           (long long)(calls - statuses[0]), (long long)faults_struck, (long long)moves[0], (long long)moves[1],
           (long long)moves[2], (long long)kernels, (long long)launches, (long long)all_captures, (long long)stale,
           (long long)early, (long long)dead, (long long)gone_streams, (long long)gone_contexts);
    if (done < 50000) return;
    CHECK(moves[0] > done / 50 && moves[1] > done / 30 && moves[2] > done / 50);
    CHECK(launches > done / 200 && gone_streams > done / 100 && gone_contexts > done / 1000);
    CHECK(statuses[CAI_ERR_CAPTURE] > done / 100 && statuses[CAI_ERR_PLACEMENT] > done / 50);
    CHECK(statuses[CAI_ERR_THREAD] > done / 2000 && statuses[CAI_ERR_CAPACITY] > done / 4000);
    CHECK(faults_struck > done / 200);
}

int main(int count, char **arguments)
{
    const int64_t wanted = count > 1 ? atoll(arguments[1]) : 50000;
    const uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    int64_t done = 0, life = 0;
    char name[60];
    while (done < wanted && cai_test_failures < 20) {
        int32_t i;
        (void)snprintf(name, sizeof name, "seed %llu, life %lld", (unsigned long long)seed, (long long)life);
        cai_test_note(name);
        random_state = (seed * 1000003 + (uint64_t)life) * 0x9e3779b97f4a7c15u + 1;
        open_life();
        for (i = 0; i < LIFE; i++, done++) operate();
        close_life(life++ % 16 == 0);
    }
    cai_test_note("");
    tell(done);
    return cai_test_end();
}
