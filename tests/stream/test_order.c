/* test_order.c - random programs in random legal orders; each order that is left out is found
 * SPDX-License-Identifier: MIT */
#include "pool_setup.h"

/* ------------------------------------------------------------------ order, whatever the schedule */

/* Random programs of producers, consumers and chains of them. A kernel says which array it works on and in
 * which phase; phases of one array must run one after the other in every order that the queued work allows.
 * The simulation's scheduler is driven by chance: either any operation that is ready, or that of the stream
 * that comes first in an order drawn before.
 * A stream goes, with its work pending, at the first moment that the header allows, and another one takes its
 * place. Now and then that is one of a further context, which is destroyed as soon as its stream has gone. A
 * call that names what is gone ends the test. */

enum { LANES = 8, SUBJECTS = 5, PHASES = 600, WORKS = 6000, DEPTH = 2 };

typedef struct lane {
    uint64_t stream, context;
    int32_t home; /* work of an array begins and ends here */
    int32_t uses; /* exchanges, arrays and owners that need the stream */
} lane;

typedef struct work {
    int32_t array, phase;
} work;

typedef struct keeper { /* of an owned array */
    int32_t array, phase;
    lane *from; /* whose stream got the back edge; NULL: none did */
} keeper;

static lane lanes[LANES];
static work works[WORKS];
static keeper keepers[WORKS];
static int32_t work_count, keeper_count, violations;
static int32_t phase_of[SUBJECTS], left_of[SUBJECTS][PHASES];
static uint64_t program_chance, schedule_chance, stream_chance;
static uint64_t further; /* a context, or 0 */
static int32_t gone_streams, gone_contexts;
static int32_t schedule_kind; /* bit 0: by the order of streams; bit 1: nothing runs before the end */

static uint32_t draw(uint64_t *chance, uint32_t below)
{
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*chance >> 33) % below;
}

static int32_t earlier_work_left(int32_t array, int32_t phase)
{
    int32_t q, sum = 0;
    for (q = 0; q < phase; q++) sum += left_of[array][q];
    return sum;
}

static void run_work(void *argument)
{
    const work *w = (const work *)argument;
    if (earlier_work_left(w->array, w->phase)) violations++;
    left_of[w->array][w->phase]--;
}

static void launch(const lane *on, int32_t array)
{
    work *w = &works[work_count++ % WORKS];
    w->array = array;
    w->phase = phase_of[array];
    left_of[array][w->phase]++;
    CHECK(work_count <= WORKS);
    CHECK_INT(cai_sim_set_context(sim, on->context), 0);
    CHECK_INT(cai_sim_launch(sim, on->stream, "work", run_work, w, NULL, 0), 0);
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
}

static void next_phase(int32_t array)
{
    if (phase_of[array] < PHASES - 1) phase_of[array]++;
    else CHECK_INT(array, -1);
}

static void on_undefined(void *context, const cai_sim_undefined *what)
{
    (void)context;
    CHECK_STR(what->text, "a call with handles that live");
    exit(cai_test_end());
}

/* The context of the stream that takes the place of this lane's: as before, or now and then a further one. */
static uint64_t next_context(const lane *from)
{
    const int32_t number = (int32_t)(from - lanes), device = number == 3 || number == 4;
#if defined(CAI_TEST_HIP)
    const int one = 1; /* HIP has one context for each device */
#else
    const int one = from->home || further || draw(&stream_chance, 8);
#endif
    if (one) return device ? c2 : c1;
    further = cai_sim_context_create(sim, device);
    CHECK(further != 0);
    return further;
}

/* Nobody needs the stream of the lane any more, but that the work of an array goes on in its home. */
static void replace(lane *l)
{
    const uint64_t old = l->stream;
    int32_t i;
    if (old <= CAI_STREAM_PER_THREAD || draw(&stream_chance, l->home ? 2 : 4) == 0) return;
    l->context = next_context(l);
    l->stream = stream_in(l->context);
    if (l->home) CHECK_INT(cai_stream_order(&pool, old, l->stream, &err), CAI_OK);
    for (i = 0; i < made_count - 1 && made[i] != old;) i++;
    CHECK_UINT(made[i], old);
    made[i] = made[--made_count];
    CHECK_INT(cai_sim_stream_destroy(sim, old), 0);
    gone_streams++;
}

static void leave(lane *l)
{
    if (--l->uses == 0) replace(l);
}

/* Destroys the further context if no stream of it is left. */
static void leave_further(void)
{
    int32_t i;
    for (i = 0; i < LANES; i++) {
        if (lanes[i].context == further) return;
    }
    if (!further) return;
    CHECK_INT(cai_event_pool_forget(&pool, further, &err), CAI_OK);
    CHECK_INT(cai_sim_set_context(sim, further), 0);
    CHECK_INT(cai_sim_context_synchronize(sim), 0); /* work of a context that is destroyed does not run */
    CHECK_INT(cai_sim_set_context(sim, c1), 0);
    CHECK_INT(cai_sim_context_destroy(sim, further), 0);
    further = 0;
    gone_contexts++;
}

/* The owner uses the memory again: on its stream, or, if that did not get the back edge, right away. */
static void on_release_reuse(cai_array *array)
{
    const keeper *k = (const keeper *)array->owner;
    array->release = NULL;
    released++;
    if (!k->from) {
        if (earlier_work_left(k->array, k->phase + 1)) violations++;
        return;
    }
    next_phase(k->array);
    launch(k->from, k->array);
    leave(k->from);
}

/* Runs up to `most` operations in an order that the schedule chooses. */
static void shuffle(int32_t most)
{
    uint64_t ready[64];
    cai_sim_operation operation;
    while (most-- > 0) {
        int32_t i, best = 0, count = cai_sim_ready(sim, ready, 64);
        uint64_t least = UINT64_MAX;
        if (!count) return;
        if (count > 64) count = 64;
        best = (int32_t)draw(&schedule_chance, (uint32_t)count);
        for (i = 0; i < count && schedule_kind & 1; i++) {
            uint64_t rank;
            CHECK_INT(cai_sim_operation_get(sim, ready[i], &operation), 1);
            rank = operation.stream * 2654435761u ^ (uint64_t)(uint32_t)schedule_kind >> 2;
            rank *= 0x9e3779b97f4a7c15u;
            if (rank < least) best = i;
            if (rank < least) least = rank;
        }
        CHECK_INT(cai_sim_run_operation(sim, ready[best]), 1);
    }
}

static void sometimes(void)
{
    if (!(schedule_kind & 2) && draw(&schedule_chance, 2)) shuffle((int32_t)draw(&schedule_chance, 6));
}

static void open_lanes(void)
{
    int32_t i;
    open_pool(PLACES, 0);
    for (i = 0; i < LANES; i++) lanes[i].context = i == 3 || i == 4 || i == 7 ? c2 : c1;
    for (i = 0; i < 5; i++) lanes[i].stream = stream_in(lanes[i].context);
    lanes[5].stream = lanes[7].stream = CAI_STREAM_LEGACY;
    lanes[6].stream = CAI_STREAM_PER_THREAD;
    for (i = 0; i < LANES; i++) {
        lanes[i].home = i != 1 && i != 3;
        lanes[i].uses = 0;
    }
    further = 0;
    if (draw(&stream_chance, 2)) cuda.context_id = NULL; /* below CUDA 12.0 only a forget can tell */
    cai_sim_on_undefined(sim, on_undefined, NULL);
    memset(phase_of, 0, sizeof phase_of);
    memset(left_of, 0, sizeof left_of);
    work_count = keeper_count = violations = 0;
}

/* Ends the further context if a lane is still there. */
static void close_lanes(void)
{
    int32_t i;
    for (i = 0; i < LANES; i++) {
        while (further && lanes[i].context == further) replace(&lanes[i]);
    }
    leave_further();
}

static void finish_lanes(void)
{
    int32_t i;
    shuffle(INT32_MAX);
    CHECK_INT(cai_keepalive_drain(&pool, &err), CAI_OK);
    shuffle(INT32_MAX);
    for (i = 0; i < SUBJECTS; i++) CHECK_INT(earlier_work_left(i, PHASES), 0);
    for (i = 0; i < LANES; i++) CHECK_INT(lanes[i].uses, 0);
    close_lanes();
    close_pool();
}

typedef struct member {
    int32_t array;
    lane *from; /* where its work is pending */
    int32_t sync;
    int32_t uses; /* 1: its description names the stream, and this needs it */
    int32_t edge; /* 1: the stream will wait for the consumer */
    cai_array description;
} member;

/* Hands an array over in one of the ways that there are; the rest is up to its stream. */
static void hand_over(member *m)
{
    const int handle = m->from->stream > CAI_STREAM_PER_THREAD;
    const int32_t kinds[6] = {CAI_SYNC_STREAM, CAI_SYNC_STREAM, CAI_SYNC_STREAM,
                              CAI_SYNC_EVENT, CAI_SYNC_UNKNOWN, CAI_SYNC_NONE};
    m->sync = kinds[draw(&program_chance, 6)];
    if (!handle && m->from->context != c1) m->sync = CAI_SYNC_STREAM;
    if (m->sync == CAI_SYNC_UNKNOWN && m->from->context == further) m->sync = CAI_SYNC_STREAM; /* is not seen */
    make(&m->description, m->from->context == c1 ? m1 : m2, m->sync, m->from->stream);
    if (m->sync == CAI_SYNC_NONE) {
        CHECK_INT(cai_sim_set_context(sim, m->from->context), 0);
        CHECK_INT(cai_sim_stream_synchronize(sim, m->from->stream), 0);
        CHECK_INT(cai_sim_set_context(sim, c1), 0);
    }
    if (draw(&program_chance, 4) == 0) m->description.flags |= CAI_NO_BACK_EDGE;
    if (m->sync == CAI_SYNC_EVENT) {
        m->description.sync = CAI_SYNC_STREAM;
        CHECK_INT(cai_stream_detach(&m->description, &pool, &err), CAI_OK);
    }
    m->uses = m->sync == CAI_SYNC_STREAM || m->sync == CAI_SYNC_EVENT;
    m->from->uses += m->uses;
    if (!m->from->uses) replace(m->from);
}

/* Some arrays are owned, by owners that free in order or not. */
static int returned(const member *m)
{
    const int on_stream = m->sync == CAI_SYNC_STREAM || (m->sync == CAI_SYNC_EVENT && m->description.stream);
    return on_stream && !(m->description.flags & CAI_NO_BACK_EDGE);
}

/* One that frees in order needs the stream until then. */
static void give_back(member *m)
{
    keeper *k = &keepers[keeper_count++ % WORKS];
    const int ordered = draw(&program_chance, 2) == 0;
    k->array = m->array;
    k->phase = phase_of[m->array];
    m->edge = returned(m);
    k->from = ordered && m->edge ? m->from : NULL;
    if (draw(&program_chance, 3)) return;
    cai_array_own(&m->description, on_release_reuse, k);
    if (k->from) m->uses = 0;
    if (ordered) m->description.flags |= CAI_ORDERED_FREE;
}

static void take_back(member *m, const lane *consumer)
{
    CHECK(m->description.release == NULL);
    CHECK_INT(cai_stream_drop_event(&m->description, &pool, &err), CAI_OK);
    if (!m->edge) CHECK_INT(cai_stream_order(&pool, consumer->stream, m->from->stream, &err), CAI_OK);
}

static void work_on(member *members, int32_t count, const lane *consumer)
{
    int32_t i;
    for (i = 0; i < count; i++) {
        next_phase(members[i].array);
        launch(consumer ? consumer : members[i].from, members[i].array);
    }
}

/* After the end: the consumer's stream goes first, unless an array without a back edge has to wait for it. */
static void leave_all(member *members, int32_t count, lane *consumer)
{
    int32_t i, missing = 0;
    for (i = 0; i < count; i++) missing += !members[i].edge;
    if (!missing) leave(consumer);
    for (i = 0; i < count; i++) {
        if (members[i].uses) leave(members[i].from);
    }
    for (i = 0; i < count; i++) take_back(&members[i], consumer);
    if (missing) leave(consumer);
}

/* What is pending on members[i].from is consumed on another stream; that one may hand it on. */
static void consume(member *members, int32_t count, int32_t depth)
{
    cai_array *list[SUBJECTS];
    member inner[SUBJECTS];
    cai_exchange ex;
    cai_exchange_options o = options_of(draw(&program_chance, 6) ? CAI_MODE_EVENT : CAI_MODE_HOST, 0);
    lane *consumer = &lanes[draw(&program_chance, LANES - 1)]; /* not the legacy stream of c2 */
    int32_t i;
    consumer->uses++;
    for (i = 0; i < count; i++) {
        hand_over(&members[i]);
        list[i] = &members[i].description;
    }
    sometimes();
    CHECK_INT(cai_exchange_begin_with(&ex, &pool, list, count, consumer->stream, &o, &err), CAI_OK);
    work_on(members, count, consumer);
    sometimes();
    if (depth < DEPTH && draw(&program_chance, 3) == 0) {
        for (i = 0; i < count; i++) {
            inner[i].array = members[i].array;
            inner[i].from = consumer;
        }
        consume(inner, count, depth + 1);
        work_on(members, count, consumer);
    }
    for (i = 0; i < count; i++) give_back(&members[i]);
    CHECK_INT(cai_exchange_finish(&ex, CAI_OK, list, count, &err), CAI_OK);
    leave_all(members, count, consumer);
    leave_further();
    sometimes();
    work_on(members, count, NULL);
}

/* Work on one array in several streams, exported on its own; they start after what was there before. */
static void spread(int32_t array, lane *home)
{
    uint64_t pending[3];
    lane *others[3];
    cai_array exported;
    int32_t i, count = (int32_t)draw(&program_chance, 4);
    next_phase(array);
    launch(home, array);
    if (home->stream <= CAI_STREAM_PER_THREAD) return; /* relative to a context: a plain producer */
    for (i = 0; i < count; i++) {
        lane *on = others[i] = &lanes[draw(&program_chance, 5)];
        CHECK_INT(cai_stream_order(&pool, home->stream, on->stream, &err), CAI_OK);
        pending[i] = on->stream;
        if (i == 0) next_phase(array);
        launch(on, array);
    }
    make(&exported, home->context == c1 ? m1 : m2, CAI_SYNC_UNKNOWN, 0);
    CHECK_INT(cai_stream_export(&exported, &pool, home->stream, pending, count, &err), CAI_OK);
    for (i = 0; i < count; i++) {
        if (!others[i]->uses) replace(others[i]);
    }
}

static void random_program(int32_t steps)
{
    member members[SUBJECTS];
    int32_t step, i;
    for (step = 0; step < steps; step++) {
        const int32_t first = (int32_t)draw(&program_chance, SUBJECTS);
        const int32_t count = 1 + (int32_t)draw(&program_chance, (uint32_t)(SUBJECTS - first));
        for (i = 0; i < count; i++) {
            members[i].array = first + i;
            members[i].from = &lanes[(first + i) % 2 ? 7 - first - i : first + i]; /* a home that stays */
            spread(members[i].array, members[i].from);
        }
        consume(members, count, 0);
        if (draw(&program_chance, 4) == 0) CHECK_INT(cai_keepalive_poll(&pool, NULL, &err), CAI_OK);
    }
}

/* One of each thing that orders, every one of them needed. */
static void straight_program(void)
{
    member m[2];
    cai_array a, mask;
    cai_array *list[1] = {&a};
    const uint64_t pending[2] = {lanes[0].stream, lanes[1].stream};
    cai_exchange ex;
    m[0].array = 0;
    m[1].array = 1;
    m[0].from = &lanes[2];
    m[1].from = &lanes[3];
    launch(&lanes[0], 0);
    launch(&lanes[1], 0);
    launch(&lanes[3], 1);
    make(&a, m1, CAI_SYNC_UNKNOWN, 0);
    make(&mask, m2, CAI_SYNC_STREAM, lanes[3].stream);
    CHECK_INT(cai_stream_export(&a, &pool, lanes[2].stream, pending, 2, &err), CAI_OK);
    a.mask = &mask;
    CHECK_INT(cai_exchange_begin(&ex, &pool, list, 1, lanes[4].stream, &err), CAI_OK);
    work_on(m, 2, &lanes[4]);
    CHECK_INT(cai_exchange_end(&ex, CAI_OK, &err), CAI_OK);
    work_on(m, 2, NULL);
    CHECK_INT(cai_stream_order(&pool, lanes[2].stream, lanes[0].stream, &err), CAI_OK);
    next_phase(0);
    launch(&lanes[0], 0);
}

static void schedule(int32_t number)
{
    schedule_kind = number;
    schedule_chance = (uint64_t)(uint32_t)number * 977 + 5;
}

static void check_order(int32_t programs)
{
    int32_t program, number;
    int64_t sum = 0;
    gone_streams = gone_contexts = 0;
    for (program = 0; program < programs; program++) {
        for (number = 0; number < 6; number++) {
            char note[60];
            sprintf(note, "program %d, schedule %d", (int)program, (int)number);
            cai_test_note(note);
            program_chance = stream_chance = (uint64_t)(uint32_t)program + 1;
            schedule(number);
            open_lanes();
            random_program(8);
            finish_lanes();
            CHECK_INT(violations, 0);
            sum += work_count;
        }
    }
    cai_test_note("");
    printf("order: %d programs in 6 schedules each, %ld kernels; %d streams and %d contexts went meanwhile\n",
           (int)programs, (long)sum, (int)gone_streams, (int)gone_contexts);
}

/* How many of the calls of one operation, when they are left out one by one, some schedule shows. */
static void check_omissions(const char *operation, void (*program)(void), int32_t every, int32_t least)
{
    int32_t n, number, shown = 0, tried = 0, struck = 1;
    for (n = 1; struck; n += every) {
        int32_t found = 0;
        for (number = 0; number < 80 && struck && !found; number++) {
            program_chance = stream_chance = 12345;
            schedule(number);
            open_lanes();
            CHECK_INT(cai_sim_omit_op(sim, operation, n), 1);
            program();
            struck = !cai_sim_faults(sim);
            cai_sim_faults_clear(sim);
            finish_lanes();
            found = violations != 0;
        }
        tried += struck;
        shown += found;
    }
    printf("left out: %s: %d of %d seen\n", operation, (int)shown, (int)tried);
    CHECK(tried > 0);
    CHECK(shown * 100 >= tried * least);
}

static void short_random_program(void) { random_program(3); }

/* test_order [programs]: how many random programs are run */
int main(int argc, char **argv)
{
    check_order(argc > 1 ? (int32_t)atoi(argv[1]) : 200);
    check_omissions("stream_wait_event", straight_program, 1, 100);
    check_omissions("event_record", straight_program, 1, 100);
    check_omissions("stream_wait_event", short_random_program, 3, 30);
    return cai_test_end();
}
