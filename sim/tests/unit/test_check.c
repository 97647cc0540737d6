/* test_check.c - the race detector and the second oracle: programs with known races, happens-before against a
 * closure worked out by brute force, the two oracles against one another, limits and failures
 * SPDX-License-Identifier: MIT
 *
 *     test_check [traces [programs [seed]]]    how many random traces and programs: 2,500 and 1,000
 */
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"
#include "check_programs.h"

enum { OPS = 256, WORDS = OPS / 64, RACES = 256, TEXT = 4096 };

/* ------------------------------------------------------------- by brute force */

/* A trace and all its "happens before": bit i of after[j] says that i comes before j; both count from 0. */
typedef struct closure {
    cai_sim_operation ops[OPS];
    uint64_t after[OPS][WORDS];
    int32_t count;
} closure;

static closure brute; /* of the trace that is looked at */

static int comes_before(int32_t i, int32_t j)
{
    return (int)(brute.after[j][i / 64] >> (i % 64) & 1);
}

static void say_before(int32_t i, int32_t j)
{
    brute.after[j][i / 64] |= (uint64_t)1 << (i % 64);
}

/* The edges are those that the trace states: what an operation waits for, which holds the order of its
 * stream, and after each entry of the host all that the same host thread called for then. */
static void brute_edges(int32_t j)
{
    const cai_sim_operation *op = &brute.ops[j];
    int32_t i;
    for (i = 0; i < op->wait_count; i++) say_before((int32_t)op->waits[i] - 1, j);
    for (i = 0; i < j; i++)
        if (!op->capture && !brute.ops[i].stream && brute.ops[i].thread == op->thread) say_before(i, j);
}

static void brute_make(cai_sim *sim)
{
    int32_t i, j, k;
    brute.count = (int32_t)cai_sim_operation_count(sim);
    if (brute.count > OPS) exit(2);
    memset(brute.after, 0, sizeof brute.after);
    for (i = 0; i < brute.count; i++) {
        cai_sim_operation_get(sim, (uint64_t)i + 1, &brute.ops[i]);
        brute_edges(i);
    }
    for (k = 0; k < brute.count; k++)
        for (j = 0; j < brute.count; j++)
            for (i = 0; comes_before(k, j) && i < WORDS; i++) brute.after[j][i] |= brute.after[k][i];
}

/* Where an access is: the number of its allocation, and the first byte in it. */
static uint64_t brute_place(cai_sim *sim, const cai_sim_access *access, int32_t *number)
{
    uint64_t offset = access->address;
    *number = cai_sim_access_memory(sim, access, &offset);
    return offset;
}

/* What two accesses of the same bytes are, by rows and columns: reads, writes, may write, may read, may access. C: a
 * race that is certain, P: a possible one. */
static const char *const kinds_of_races[5] = {"-CP-P", "CCCPP", "PCPPP", "-PP-P", "PPPPP"};

static int brute_meet(cai_sim *sim, const cai_sim_access *a, const cai_sim_access *b, cai_check_race *race)
{
    int32_t a_number, b_number;
    const uint64_t a_first = brute_place(sim, a, &a_number);
    const uint64_t b_first = brute_place(sim, b, &b_number);
    const uint64_t first = a_first > b_first ? a_first : b_first;
    const uint64_t a_end = a_first + a->bytes, b_end = b_first + b->bytes;
    const uint64_t end = a_end < b_end ? a_end : b_end;
    const char kind = kinds_of_races[a->write][b->write];
    if (a_number != b_number || first >= end || kind == '-') return 0;
    race->address = first;
    race->bytes = end - first;
    race->first_writes = a->write;
    race->second_writes = b->write;
    race->certain = kind == 'C';
    return 1;
}

/* The first conflict that is certain, else the first. */
static int brute_race(cai_sim *sim, int32_t i, int32_t j, cai_check_race *race)
{
    const cai_sim_operation *a = &brute.ops[i], *b = &brute.ops[j];
    cai_check_race meeting;
    int32_t k, l, found = 0;
    if (comes_before(i, j) || a->capture != b->capture) return 0;
    if ((a->kind == CAI_SIM_OP_ALLOC && !a->stream) || (b->kind == CAI_SIM_OP_ALLOC && !b->stream)) return 0;
    for (k = 0; k < a->access_count; k++)
        for (l = 0; l < b->access_count; l++) {
            if (!brute_meet(sim, &a->accesses[k], &b->accesses[l], &meeting)) continue;
            if (found && race->certain >= meeting.certain) continue;
            *race = meeting;
            race->first = a->id;
            race->second = b->id;
            found = 1;
        }
    return found;
}

static int32_t brute_races(cai_sim *sim, cai_check_race *races)
{
    int32_t i, j, count = 0;
    for (j = 0; j < brute.count; j++)
        for (i = 0; i < j; i++)
            if (count < RACES && brute_race(sim, i, j, &races[count])) count++;
    return count;
}

static int same_race(cai_sim *sim, const cai_check_race *race, const cai_check_race *expected)
{
    cai_sim_access where = cai_sim_reads(race->address, race->bytes);
    int32_t number;
    where.memory = race->memory;
    return race->first == expected->first && race->second == expected->second &&
           brute_place(sim, &where, &number) == expected->address && race->bytes == expected->bytes &&
           race->first_writes == expected->first_writes && race->second_writes == expected->second_writes &&
           race->certain == expected->certain;
}

/* How many things of a trace cai_check.c sees otherwise than brute force: pairs of operations, and races. */
static int64_t differences(cai_sim *sim)
{
    static cai_check_race races[RACES], expected[RACES];
    cai_check_order *order = cai_check_order_make(sim);
    int64_t count = 0;
    int32_t i, j, found, right;
    brute_make(sim);
    for (i = 0; i < brute.count; i++)
        for (j = 0; j < brute.count; j++)
            if (cai_check_before(order, brute.ops[i].id, brute.ops[j].id) != comes_before(i, j)) count++;
    cai_check_order_free(order);
    right = brute_races(sim, expected);
    for (i = 1; i < right && i < 4; i++) { /* those that are asked for are the first ones */
        cai_check_races(sim, races, i);
        for (j = 0; j < i; j++) count += !same_race(sim, &races[j], &expected[j]);
    }
    found = cai_check_races(sim, races, RACES);
    if (found != right) return count + 1000;
    for (i = 0; i < found; i++)
        if (!same_race(sim, &races[i], &expected[i])) count++;
    return count;
}

/* How many orders there are in which the work of a trace can run, the host's accesses among it: by what
 * has run, as a set. Work that touches nothing is no matter. Up to 16 of them. */
static int64_t brute_orders(void)
{
    static int64_t ways[1 << 16];
    int32_t member[16], members = 0, i, k, set;
    for (i = 0; i < brute.count; i++) {
        const cai_sim_operation *op = &brute.ops[i];
        if (op->access_count == 0 || op->capture || (op->kind == CAI_SIM_OP_ALLOC && !op->stream)) continue;
        if (members == 16) return -1;
        member[members++] = i;
    }
    memset(ways, 0, sizeof ways);
    ways[0] = 1;
    for (set = 0; set < 1 << members; set++)
        for (i = 0; ways[set] && i < members; i++) {
            int ready = !(set >> i & 1);
            for (k = 0; k < members; k++)
                if (!(set >> k & 1) && comes_before(member[k], member[i])) ready = 0;
            if (ready) ways[set | 1 << i] += ways[set];
        }
    return ways[(1 << members) - 1];
}

/* ------------------------------------------------------- programs and their races */

typedef struct known {
    const char *name;
    cai_check_program program;
    int32_t fixed, devices;
    int64_t interleavings, racy; /* all of them, and those with a race */
    const char *races; /* of the first one, a line each; "": none */
    const char *text;  /* of the first race; NULL: not compared */
} known;

static const known cases[] = {
    {"consumer_ignores_stream", consumer_ignores_stream, 0, 1, 1, 1,
     "m1[0, 256): w arange s1, r MPI_Send s2\n",
     "race on m1[0, 256): \"arange\" writes on s1 (operation 2), \"MPI_Send\" reads on s2 (operation 3); "
     "nothing makes s2 wait for s1"},
    {"consumer_ignores_stream", consumer_ignores_stream, 1, 1, 1, 0, "", NULL},
    {"reused_while_read", reused_while_read, 0, 1, 1, 1,
     "m1[0, 256): r copy to host s2, w next tensor s1\n",
     "race on m1[0, 256): \"copy to host\" reads on s2 (operation 5), "
     "\"next tensor\" writes on s1 (operation 6); "
     "nothing makes s1 wait for s2"},
    {"reused_while_read", reused_while_read, 1, 1, 1, 0, "", NULL},
    {"legacy_means_no_order", legacy_means_no_order, 0, 1, 1, 1,
     "m1[0, 256): w producer legacy, r xla s1\n", NULL},
    {"legacy_means_no_order", legacy_means_no_order, 1, 1, 1, 0, "", NULL},
    {"sort_in_other_stream", sort_in_other_stream, 0, 1, 1, 1,
     "m1[0, 256): w forward legacy, w sort s1\nm1[0, 256): w sort s1, r backward legacy\n",
     "race on m1[0, 256): \"forward\" writes on legacy (operation 2), "
     "\"sort\" writes on s1 (operation 3); "
     "nothing makes s1 wait for legacy"},
    {"sort_in_other_stream", sort_in_other_stream, 1, 1, 1, 0, "", NULL},
    {"copied_in_default_stream", copied_in_default_stream, 0, 1, 1, 1,
     "m1[0, 256): w decode s1, r memcpy legacy\n", NULL},
    {"copied_in_default_stream", copied_in_default_stream, 1, 1, 1, 0, "", NULL},
    {"halo_unpacked_early", halo_unpacked_early, 0, 1, 1, 1, "m1[0, 32): r stencil s1, w unpack s2\n", NULL},
    {"halo_unpacked_early", halo_unpacked_early, 1, 1, 1, 0, "", NULL},
    {"wait_before_record", wait_before_record, 0, 1, 1, 1, "m1[0, 256): w prefill s1, r decode s2\n", NULL},
    {"wait_before_record", wait_before_record, 1, 1, 1, 0, "", NULL},
    {"one_event_for_all", one_event_for_all, 0, 1, 1, 1, "m1[0, 128): w left s1, r sum s3\n", NULL},
    {"one_event_for_all", one_event_for_all, 1, 1, 1, 0, "", NULL},
    {"stale_event", stale_event, 0, 1, 1, 1, "m1[0, 256): w first owner s1, w third owner s3\n",
     "race on m1[0, 256): \"first owner\" writes on s1 (operation 3), "
     "\"third owner\" writes on s3 (operation 7); "
     "nothing makes s3 wait for s1"},
    {"stale_event", stale_event, 1, 1, 1, 0, "", NULL},
    {"event_of_other_device", event_of_other_device, 0, 2, 1, 1,
     "m1[0, 256): r upload s2, w download s1\n", NULL},
    {"event_of_other_device", event_of_other_device, 1, 2, 1, 0, "", NULL},
    {"query_then_reuse", query_then_reuse, 0, 1, 1, 0, "", NULL},
    {"polls", polls, 0, 1, 1, 0, "", NULL},
    {"allocated_elsewhere", allocated_elsewhere, 0, 1, 1, 1,
     "m1[0, 256): w memory_alloc_async s1, w kernel s2\n",
     "race on m1[0, 256): \"memory_alloc_async\" allocates on s1 (operation 1), "
     "\"kernel\" writes on s2 (operation 3); "
     "nothing makes s2 wait for s1"},
    {"allocated_elsewhere", allocated_elsewhere, 1, 1, 1, 0, "", NULL},
    {"freed_before_allocated", freed_before_allocated, 0, 1, 1, 1,
     "m1[0, 256): w memory_alloc_async legacy, w memory_free_async s1\n", NULL},
    {"freed_before_allocated", freed_before_allocated, 1, 1, 1, 0, "", NULL},
    {"freed_in_first_stream", freed_in_first_stream, 0, 1, 1, 1,
     "m1[0, 256): r last use s2, w memory_free_async s1\n",
     "race on m1[0, 256): \"last use\" reads on s2 (operation 5), "
     "\"memory_free_async\" frees on s1 (operation 6); "
     "nothing makes s1 wait for s2"},
    {"freed_in_first_stream", freed_in_first_stream, 1, 1, 1, 0, "", NULL},
    {"freed_in_stream_for_frees", freed_in_stream_for_frees, 0, 1, 1, 1,
     "m1[0, 256): w memory_alloc_async legacy, w memory_free_async s1\n"
     "m1[0, 256): w gradient legacy, w memory_free_async s1\n", NULL},
    {"freed_in_stream_for_frees", freed_in_stream_for_frees, 1, 1, 1, 0, "", NULL},
    {"owner_dies", owner_dies, 0, 1, 1, 1, "m1[0, 256): w kernel s1, w free host\n",
     "race on m1[0, 256): \"kernel\" writes on s1 (operation 2), "
     "\"free\" frees on the host (operation 3); "
     "nothing makes the host wait for s1"},
    {"owner_dies", owner_dies, 1, 1, 1, 0, "", NULL},
    {"pinned_overwritten", pinned_overwritten, 0, 1, 1, 1,
     "m1[0, 256): r upload s1, w overwrite host\n", NULL},
    {"pinned_overwritten", pinned_overwritten, 1, 1, 1, 0, "", NULL},
    {"read_too_early", read_too_early, 0, 1, 1, 1, "m2[0, 256): w download s1, r print host\n",
     "race on m2[0, 256): \"download\" writes on s1 (operation 4), "
     "\"print\" reads on the host (operation 5); "
     "nothing makes the host wait for s1"},
    {"read_too_early", read_too_early, 1, 1, 1, 0, "", NULL},
    {"mapped_at_two_addresses", mapped_at_two_addresses, 0, 1, 1, 1,
     "m1[128, 256): w kernel s1, r print host\n",
     "race on m1[128, 256): \"kernel\" writes on s1 (operation 2), "
     "\"print\" reads on the host (operation 3); "
     "nothing makes the host wait for s1"},
    {"mapped_at_two_addresses", mapped_at_two_addresses, 1, 1, 1, 0, "", NULL},
    {"copied_between_devices", copied_between_devices, 0, 2, 1, 1,
     "m1[0, 256): w fill legacy, r peer copy legacy c2\n",
     "race on m1[0, 256): \"fill\" writes on legacy (operation 2), "
     "\"peer copy\" reads on legacy c2 (operation 4); "
     "nothing makes legacy c2 wait for legacy"},
    {"copied_between_devices", copied_between_devices, 1, 2, 1, 0, "", NULL},
    {"pool_of_stream_two", pool_of_stream_two, 0, 1, 3, 3,
     "m1[0, 256): w fill 123 per_thread, w fill 456 per_thread 2\n",
     "race on m1[0, 256): \"fill 123\" writes on per_thread (operation 4), "
     "\"fill 456\" writes on per_thread 2 (operation 9); "
     "nothing makes per_thread 2 wait for per_thread"},
    {"pool_of_stream_two", pool_of_stream_two, 1, 1, 4, 0, "", NULL},
    {"pool_of_shared_stream", pool_of_shared_stream, 0, 1, 462, 10, NULL, NULL},
    {"pool_of_shared_stream", pool_of_shared_stream, 1, 1, 462, 0, "", NULL},
    {"event_between_threads", event_between_threads, 0, 1, 20, 16, NULL, NULL},
    {"event_between_threads", event_between_threads, 1, 1, 4, 0, "", NULL},
    {"listed_before_recorded", listed_before_recorded, 0, 1, 12, 6, NULL, NULL},
    {"listed_before_recorded", listed_before_recorded, 1, 1, 4, 0, "", NULL},
    {"host_threads", host_threads, 0, 1, 6, 6, NULL,
     "race on m1[0, 256): \"write\" writes on host thread 1 (operation 4), "
     "\"read\" reads on host thread 2 (operation 7); "
     "nothing makes host thread 2 wait for host thread 1"},
    {"host_threads", host_threads, 1, 1, 3, 0, "", NULL},
    {"other_thread_waited", other_thread_waited, 0, 1, 10, 10, NULL, NULL},
    {"other_thread_waited", other_thread_waited, 1, 1, 4, 0, "", NULL},
    {"three_threads", three_threads, 0, 1, 90, 0, "", NULL},
    {"in_turns", in_turns, 0, 1, 3, 0, "", NULL},
    {"both_add", both_add, 0, 1, 1, 1, "m1[0, 256): w add s1, w add s2\n", NULL},
    {"both_add", both_add, 1, 1, 1, 0, "", NULL},
    {"both_read", both_read, 0, 1, 1, 0, "", NULL},
    {"neighbours", neighbours, 0, 1, 1, 0, "", NULL},
    {"neighbours_that_meet", neighbours_that_meet, 0, 1, 1, 1,
     "m1[64, 65): w middle s1, r up to it s2\nm1[127, 128): w middle s1, r from its last s3\n", NULL},
    {"views_that_overlap", views_that_overlap, 0, 1, 1, 1, "m1[40, 44): w rows s1, r columns s2\n", NULL},
    {"views_that_overlap", views_that_overlap, 1, 1, 1, 0, "", NULL},
    {"same_stream", same_stream, 0, 1, 1, 0, "", NULL},
    {"legacy_orders", legacy_orders, 0, 1, 1, 0, "", NULL},
    {"blocking_streams_alone", blocking_streams_alone, 0, 1, 1, 1,
     "m1[0, 256): w warp s1, w warp again s2\n", NULL},
    {"blocking_streams_alone", blocking_streams_alone, 1, 1, 1, 0, "", NULL},
    {"by_a_chain", by_a_chain, 0, 1, 1, 0, "", NULL},
    {"recorded_again", recorded_again, 0, 1, 1, 0, "", NULL},
    {"threads_and_caller", threads_and_caller, 0, 1, 6, 0, "", NULL},
};

enum { CASES = sizeof cases / sizeof cases[0] };

static char right[1]; /* any argument that is not NULL */

/* What `each` saw. */
typedef struct seen {
    int64_t interleavings, racy, differences, orders;
    char races[TEXT], texts[TEXT];
} seen;

static void put(char *text, const char *more)
{
    const size_t length = strlen(text), size = strlen(more) + 1;
    if (length + size <= TEXT) memcpy(text + length, more, size);
}

static void put_site(cai_sim *sim, char *text, uint64_t id, int32_t writes_it)
{
    char name[100] = "host";
    cai_sim_operation op;
    memset(&op, 0, sizeof op);
    CHECK(cai_sim_operation_get(sim, id, &op));
    if (op.stream) cai_sim_stream_name(sim, op.stream, name, sizeof name);
    put(text, writes_it ? "w " : "r ");
    put(text, op.name);
    put(text, " ");
    put(text, name);
}

static void put_races(cai_sim *sim, char *text)
{
    static cai_check_race races[RACES];
    char name[100];
    const int32_t count = cai_check_races(sim, races, RACES);
    int32_t i;
    for (i = 0; i < count; i++) {
        cai_sim_memory_name(sim, races[i].address, races[i].bytes, name, sizeof name);
        put(text, name);
        put(text, ": ");
        put_site(sim, text, races[i].first, races[i].first_writes);
        put(text, ", ");
        put_site(sim, text, races[i].second, races[i].second_writes);
        put(text, "\n");
    }
}

static void look(cai_sim *sim, void *argument)
{
    seen *all = (seen *)argument;
    cai_check_race race;
    all->differences += differences(sim);
    all->orders += brute_orders();
    if (all->interleavings++ == 0) put_races(sim, all->races);
    if (cai_check_races(sim, &race, 1) == 0) return;
    if (all->racy++ == 0) cai_check_race_text(sim, &race, all->texts);
}

static cai_check_options options_for(int32_t devices, seen *all)
{
    cai_check_options options;
    memset(&options, 0, sizeof options);
    memset(all, 0, sizeof *all);
    options.devices = devices;
    options.each = look;
    options.each_argument = all;
    return options;
}

static void *argument_of(const known *one)
{
    return one->fixed ? right : NULL;
}

/* Both oracles, over all interleavings. */
static void check_known(const known *one)
{
    static seen all;
    cai_check_options options = options_for(one->devices, &all);
    cai_check_result result;
    const int32_t failed = cai_check(one->program, argument_of(one), &options, &result);
    CHECK_INT(failed, one->racy > 0);
    CHECK_INT(result.interleavings, one->interleavings);
    CHECK_INT(result.racy, one->racy);
    CHECK_INT(result.changed, one->racy);
    CHECK_INT(result.disagreements, 0);
    CHECK_INT(result.truncated, 0);
    CHECK_INT(result.omitted, 0);
    CHECK_INT(result.failed, 0);
    CHECK_INT(all.interleavings, one->interleavings);
    CHECK_INT(all.racy, one->racy);
    CHECK_INT(all.differences, 0);
    if (one->races != NULL) CHECK_STR(all.races, one->races);
    CHECK_STR(result.text, all.texts);
    if (one->text != NULL) CHECK_STR(result.text, one->text);
}

/* The first oracle on a run as it comes, outside of cai_check. */
static void check_alone(const known *one)
{
    char text[TEXT] = "";
    cai_sim *sim = cai_sim_create(one->devices);
    if (sim == NULL) exit(2);
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    one->program(sim, argument_of(one));
    CHECK_INT(differences(sim), 0);
    put_races(sim, text);
    if (one->interleavings == 1 && one->races != NULL && strstr(one->name, "stream_two") == NULL)
        CHECK_STR(text, one->races);
    CHECK_INT(cai_sim_leaks(sim, NULL, 0), 0);
    cai_sim_destroy(sim);
}

static void test_known(void)
{
    int32_t i, racy = 0;
    for (i = 0; i < CASES; i++) {
        cai_test_note(cases[i].name);
        check_known(&cases[i]);
        check_alone(&cases[i]);
        racy += cases[i].racy > 0;
    }
    cai_test_note("");
    printf("%d programs with races, %d without\n", racy, CASES - racy);
}

/* --------------------------------------------------------------- random traces */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int32_t below(uint64_t *state, int32_t end)
{
    return (int32_t)(next_random(state) % (uint64_t)end);
}

enum { STREAMS = 6, EVENTS = 5, BLOCKS = 3, PUBLISHED = 8, HOSTS = 3 };

/* Streams 0 and 1 are blocking and not, on device 0; 2 and 3 the same on device 1; 4 is legacy, 5
 * per-thread. */
typedef struct chaos {
    cai_sim *sim;
    const cai_cuda *cuda;
    uint64_t state, s[STREAMS], e[EVENTS], m[BLOCKS + 1], pool, published[PUBLISHED];
    int32_t captures; /* may streams capture? */
} chaos;

static uint64_t chaos_stream(chaos *x)
{
    const int32_t i = below(&x->state, STREAMS);
    const int32_t device = i < 4 ? i / 2 : below(&x->state, 2);
    cai_sim_set_context(x->sim, cai_sim_primary(x->sim, device));
    return x->s[i];
}

static int32_t chaos_accesses(chaos *x, cai_sim_access *accesses)
{
    const int32_t count = 1 + below(&x->state, 3);
    int32_t i;
    for (i = 0; i < count; i++) {
        uint64_t first = (uint64_t)below(&x->state, 8) * 8, bytes = (uint64_t)below(&x->state, 4) * 8;
        uint64_t block = x->m[below(&x->state, BLOCKS + 1)];
        if (x->pool && below(&x->state, 5) == 0) block = x->pool;
        if (below(&x->state, 8) == 0) bytes++;
        accesses[i] = cai_sim_reads(block + first, bytes);
        accesses[i].write = below(&x->state, 5); /* each kind */
    }
    return count;
}

/* Memory in the order of a stream; sometimes it is used on after it was freed, and freed again. */
static void chaos_pool(chaos *x)
{
    const uint64_t stream = chaos_stream(x);
    int32_t error;
    if (x->pool == 0) {
        x->cuda->memory_alloc_async(x->sim, &x->pool, 96, stream);
        return;
    }
    if (below(&x->state, 3) == 0) error = x->cuda->memory_free(x->sim, x->pool);
    else error = x->cuda->memory_free_async(x->sim, x->pool, stream);
    if (error == 0 && below(&x->state, 2)) x->pool = 0;
}

static void chaos_wait(chaos *x)
{
    const uint64_t stream = chaos_stream(x), event = x->e[below(&x->state, EVENTS)];
    switch (below(&x->state, 6)) {
    case 0: cai_sim_stream_synchronize(x->sim, stream); break;
    case 1: cai_sim_event_synchronize(x->sim, event); break;
    case 2: cai_sim_event_query(x->sim, event); break;
    case 3: if (below(&x->state, 4) == 0) cai_sim_context_synchronize(x->sim); break;
    case 4: cai_sim_step(x->sim, stream); break;
    default: if (below(&x->state, 4) == 0) cai_sim_run(x->sim); break;
    }
}

static void chaos_host(chaos *x)
{
    cai_sim_access accesses[3];
    const int32_t i = below(&x->state, PUBLISHED);
    switch (below(&x->state, 5)) {
    case 0: x->published[i] = cai_sim_publish(x->sim); break;
    case 1: cai_sim_observe(x->sim, x->published[i]); break;
    case 2: cai_sim_host_thread(x->sim, (uint64_t)below(&x->state, HOSTS) + 1); break;
    case 3: cai_sim_host_touch(x->sim, "host", accesses, chaos_accesses(x, accesses)); break;
    default: cai_sim_host_access(x->sim, "host", accesses, chaos_accesses(x, accesses)); break;
    }
}

static void chaos_capture(chaos *x)
{
    const uint64_t stream = x->s[below(&x->state, STREAMS)];
    if (!x->captures) return;
    if (below(&x->state, 2)) cai_sim_capture_begin(x->sim, stream, CAI_SIM_MODE_RELAXED);
    else cai_sim_capture_end(x->sim, stream, NULL);
}

static void chaos_step(chaos *x)
{
    cai_sim_access accesses[3];
    uint64_t stream, event;
    switch (below(&x->state, 12)) {
    case 0: chaos_pool(x); return;
    case 1: chaos_wait(x); return;
    case 2: case 3: chaos_host(x); return;
    case 4: chaos_capture(x); return;
    default: break;
    }
    stream = chaos_stream(x);
    event = x->e[below(&x->state, EVENTS)];
    switch (below(&x->state, 7)) {
    case 0: case 1: cai_sim_event_record(x->sim, event, stream); break;
    case 2: case 3: cai_sim_stream_wait_event(x->sim, stream, event); break;
    default: cai_sim_touch(x->sim, stream, "touch", accesses, chaos_accesses(x, accesses)); break;
    }
}

static void chaos_open(chaos *x, uint64_t seed)
{
    cai_cuda_pointer info;
    int32_t i;
    memset(x, 0, sizeof *x);
    x->state = seed;
    x->sim = cai_sim_create(2);
    if (x->sim == NULL) exit(2);
    x->cuda = cai_sim_cuda(x->sim);
    cai_sim_host_thread(x->sim, 1);
    for (i = 0; i < EVENTS; i++) {
        cai_sim_set_context(x->sim, cai_sim_primary(x->sim, i % 2));
        x->e[i] = cai_sim_event_create(x->sim);
        if (i < 4) x->s[i < 2 ? i * 2 : i * 2 - 3] = cai_sim_stream_create(x->sim, i >= 2);
        if (i < BLOCKS)
            x->m[i] = cai_sim_alloc(x->sim, i == 2 ? CAI_SIM_MEM_ALIASED : CAI_SIM_MEM_DEVICE, 96);
    }
    memset(&info, 0, sizeof info);
    x->cuda->pointer_info(x->sim, x->m[2], &info);
    x->m[BLOCKS] = info.device_pointer;
    x->s[4] = CAI_STREAM_LEGACY;
    x->s[5] = CAI_STREAM_PER_THREAD;
    x->captures = below(&x->state, 3) == 0;
}

static void test_random_traces(int32_t traces, uint64_t seed)
{
    int64_t pairs = 0, ordered = 0, races = 0, clean = 0;
    char note[100];
    int32_t i, k, steps;
    for (i = 0; i < traces; i++) {
        chaos x;
        chaos_open(&x, seed + (uint64_t)i * 1000003u);
        steps = 10 + below(&x.state, 60);
        for (k = 0; k < steps; k++) chaos_step(&x);
        snprintf(note, sizeof note, "random trace %d of seed %llu", (int)i, (unsigned long long)seed);
        cai_test_note(note);
        CHECK_INT(differences(x.sim), 0);
        for (k = 0; k < brute.count * brute.count; k++)
            ordered += comes_before(k / brute.count, k % brute.count);
        pairs += (int64_t)brute.count * (brute.count - 1) / 2;
        k = cai_check_races(x.sim, NULL, 0);
        races += k;
        clean += k == 0;
        cai_sim_destroy(x.sim);
    }
    cai_test_note("");
    printf("%d random traces: %lld pairs, %lld ordered, %lld races, %lld traces without\n", (int)traces,
           (long long)pairs, (long long)ordered, (long long)races, (long long)clean);
}

/* ------------------------------------------------- random programs, both oracles */

enum { HOST_CALLS = 0, HOST_TAKES_PART = 1, HOST_ASKS_AND_FREES = 2 };

/* A program is what its seed says: 2 or 3 streams, one stretch of memory, and a few steps. */
typedef struct dice {
    uint64_t seed;
    int32_t threads, hosts; /* 1: two host threads; HOST_... */
} dice;

typedef struct player {
    scene *x;
    uint64_t state;
    int32_t number, steps, hosts;
} player;

static void player_touch(player *p, uint64_t stream)
{
    static const char *const names[2][8] = {{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
                                            {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"}};
    cai_sim_access accesses[2];
    const int32_t count = 1 + below(&p->state, 2);
    int32_t i;
    for (i = 0; i < count; i++) {
        const uint64_t first = (uint64_t)below(&p->state, 3) * 16;
        const uint64_t bytes = (uint64_t)below(&p->state, 3) * 16 + 8;
        accesses[i] = cai_sim_reads(p->x->m[p->x->m[1] && below(&p->state, 2)] + first, bytes);
        accesses[i].write = below(&p->state, 2);
    }
    cai_sim_touch(p->x->sim, stream, names[p->number][p->steps], accesses, count);
}

static void player_host(player *p, uint64_t stream)
{
    const uint64_t event = p->x->e[below(&p->state, 2)];
    cai_sim_access access = cai_sim_reads(p->x->m[0] + (uint64_t)below(&p->state, 3) * 16, 16);
    access.write = below(&p->state, 2);
    switch (below(&p->state, 4)) {
    case 0: cai_sim_stream_synchronize(p->x->sim, stream); break;
    case 1: cai_sim_event_synchronize(p->x->sim, event); break;
    default: cai_sim_host_touch(p->x->sim, "host", &access, 1); break;
    }
}

/* Questions, and memory in the order of a stream, which is not touched after the call that frees it. */
static void player_asks(player *p, uint64_t stream)
{
    const cai_cuda *cuda = p->x->cuda;
    uint64_t *pool = &p->x->m[1];
    if (below(&p->state, 3) == 0) {
        if (cai_sim_event_query(p->x->sim, p->x->e[below(&p->state, 2)]) && below(&p->state, 2))
            cai_sim_stream_synchronize(p->x->sim, stream);
        return;
    }
    p->x->memories = 2;
    if (*pool == 0) {
        cuda->memory_alloc_async(cuda->self, pool, 96, stream);
        return;
    }
    if (below(&p->state, 3)) cuda->memory_free_async(cuda->self, *pool, stream);
    else cuda->memory_free(cuda->self, *pool);
    *pool = 0;
}

static void play(cai_sim *sim, void *argument)
{
    player *p = (player *)argument;
    for (; p->steps > 0; p->steps--) {
        const int32_t what = below(&p->state, 9), i = below(&p->state, p->x->streams + 1);
        const uint64_t stream = i < p->x->streams ? p->x->s[i] : (uint64_t)CAI_STREAM_LEGACY;
        const uint64_t event = p->x->e[below(&p->state, 2)];
        if (p->hosts == HOST_ASKS_AND_FREES && what < 3) player_asks(p, stream);
        else if (p->hosts == HOST_TAKES_PART && what == 0) player_host(p, stream);
        else if (what < 3) cai_sim_event_record(sim, event, stream);
        else if (what < 5) cai_sim_stream_wait_event(sim, stream, event);
        else player_touch(p, stream);
    }
}

static void random_program(cai_sim *sim, void *argument)
{
    static const char *const letters[] = {"nn", "nnn", "nb", "bn", "bb", "nbn"};
    const dice *d = (const dice *)argument;
    uint64_t state = d->seed;
    scene x = scene_open(sim, letters[below(&state, 6)], NULL);
    player players[2];
    cai_check_program both[2];
    void *arguments[2];
    int32_t i;
    scene_memory(&x, CAI_SIM_MEM_DEVICE, 96);
    scene_event(&x);
    scene_event(&x);
    for (i = 0; i < 2; i++) {
        players[i].x = &x;
        players[i].state = next_random(&state);
        players[i].number = i;
        players[i].hosts = d->hosts;
        players[i].steps = d->threads ? 2 : d->hosts == HOST_ASKS_AND_FREES ? 7 : 5;
        both[i] = play;
        arguments[i] = &players[i];
    }
    if (d->threads) cai_check_threads(sim, both, arguments, 2);
    else play(sim, &players[0]);
    scene_close(&x);
}

static void test_random_programs(int32_t programs, uint64_t seed)
{
    static seen all;
    int64_t racy = 0, threaded = 0, orders = 0, interleavings = 0;
    char note[100];
    int32_t i, failed;
    for (i = 0; i < programs; i++) {
        cai_check_options options = options_for(1, &all);
        cai_check_result result;
        dice d;
        d.seed = seed + (uint64_t)i * 7919u;
        d.threads = i % 20 == 19;
        d.hosts = d.threads ? i / 20 % 2 : i % 3;
        snprintf(note, sizeof note, "random program %d of seed %llu", (int)i, (unsigned long long)seed);
        cai_test_note(note);
        failed = cai_check(random_program, &d, &options, &result);
        CHECK_INT(failed, result.racy > 0);
        CHECK_INT(result.disagreements, 0);
        CHECK_INT(result.racy, all.racy);
        CHECK_INT(result.failed + result.truncated + result.omitted, 0);
        CHECK_INT(all.differences, 0);
        if (d.threads) CHECK_INT(result.interleavings, 20); /* of 2 calls, and the beginning, each */
        if (!d.threads && d.hosts != HOST_ASKS_AND_FREES && !result.racy)
            CHECK(result.orders >= 1 && result.orders <= all.orders); /* fewer where work commutes */
        racy += result.racy > 0;
        threaded += d.threads;
        orders += result.orders;
        interleavings += result.interleavings;
    }
    cai_test_note("");
    CHECK(racy * 5 > programs && racy * 5 < 4 * (int64_t)programs); /* both verdicts are common */
    printf("%d random programs, %lld with threads: %lld with races, %lld interleavings, %lld orders\n",
           (int)programs, (long long)threaded, (long long)racy, (long long)interleavings, (long long)orders);
}

/* ------------------------------------------------------------ limits and failures */

static cai_check_result checked(cai_check_program program, void *argument, const cai_check_options *options,
                                int32_t failed)
{
    cai_check_result result;
    CHECK_INT(cai_check(program, argument, options, &result), failed);
    return result;
}

static cai_check_options no_options(void)
{
    cai_check_options options;
    memset(&options, 0, sizeof options);
    return options;
}

/* A call that is left out of a program that is right makes it racy; of one that is not made, nothing. */
static void test_omit(void)
{
    cai_check_options options = no_options();
    cai_check_result result;
    cai_test_note("omitted calls");
    options.omit = "event_query";
    options.omit_call = 1;
    result = checked(query_then_reuse, NULL, &options, 1);
    CHECK_INT(result.omitted, 1);
    CHECK_INT(result.racy, 1);
    CHECK_INT(result.changed, 1);
    CHECK_INT(result.disagreements, 0);
    options.omit_call = 2;
    result = checked(query_then_reuse, NULL, &options, 0);
    CHECK_INT(result.omitted, 0);
    options.omit = "stream_synchronize";
    options.omit_call = 1;
    result = checked(consumer_ignores_stream, right, &options, 1);
    CHECK_INT(result.omitted, 1);
    CHECK_INT(result.racy, 1);
    CHECK_INT(result.interleavings, 1);
    options.omit_thread = 1;
    result = checked(consumer_ignores_stream, right, &options, 0);
    CHECK_INT(result.omitted, 0);
    options.omit_thread = -1;
    result = checked(consumer_ignores_stream, right, &options, 1);
    CHECK_INT(result.omitted, 1);
}

/* Each thread synchronizes its own stream before the host reads what is in it: through the table. */
static void careful_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    const cai_cuda *cuda = cai_sim_cuda(sim);
    does(x, CAI_STREAM_PER_THREAD, "own", reads(x->m[0]));
    cuda->stream_synchronize(cuda->self, CAI_STREAM_PER_THREAD);
}

static void writes_after_threads(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    two_threads(sim, &x, careful_thread, careful_thread);
    does(&x, x.s[0], "write", writes(x.m[0]));
    scene_close(&x);
}

static void test_omit_by_thread(void)
{
    cai_check_options options = no_options();
    cai_check_result result, other;
    int32_t thread;
    cai_test_note("omitted calls of one thread");
    options.omit = "stream_synchronize";
    options.omit_call = 1;
    result = checked(writes_after_threads, NULL, NULL, 0);
    CHECK_INT(result.interleavings, 20);
    for (thread = 1; thread <= 2; thread++) {
        options.omit_thread = thread;
        other = checked(writes_after_threads, NULL, &options, 1);
        CHECK_INT(other.omitted, 1);
        CHECK_INT(other.interleavings, 20);
        CHECK_INT(other.racy, 20);
        CHECK_INT(other.disagreements, 0);
    }
    options.omit_thread = 3;
    other = checked(writes_after_threads, NULL, &options, 0);
    CHECK_INT(other.omitted, 0);
    options.omit_thread = -1;
    other = checked(writes_after_threads, NULL, &options, 0);
    CHECK_INT(other.omitted, 0);
}

static void nothing(void *argument)
{
    (void)argument;
}

/* Many orders: five streams that have nothing to do with one another, each with its own memory. argument: not
 * NULL: with work that has no functions, so that it is known to commute. */
static void wide(cai_sim *sim, void *argument)
{
    static const char *const names[] = {"one", "two", "three", "four", "five"};
    scene x = scene_open(sim, "nnnnn", NULL);
    int32_t i;
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    for (i = 0; i < 5; i++) {
        const cai_sim_access own = cai_sim_writes(m + 16 * (uint64_t)i, 16);
        if (argument) cai_sim_touch(sim, x.s[i], names[i], &own, 1);
        else cai_sim_launch(sim, x.s[i], names[i], nothing, NULL, &own, 1);
    }
    cai_sim_context_synchronize(sim);
    scene_close(&x);
}

static void test_limit(void)
{
    cai_check_options options = no_options();
    cai_check_result result;
    cai_test_note("a limit");
    result = checked(wide, NULL, NULL, 0);
    CHECK_INT(result.orders, 120);
    result = checked(wide, &options, NULL, 0);
    CHECK(result.orders < 60);
    CHECK_INT(result.truncated, 0);
    options.limit = 121;
    result = checked(wide, NULL, &options, 0);
    CHECK_INT(result.truncated, 0);
    options.limit = 120; /* the run that is as it comes is one of them */
    result = checked(wide, NULL, &options, 1);
    CHECK_INT(result.truncated, 1);
    CHECK_INT(result.racy, 0);
    CHECK_INT(result.orders, 119);
    CHECK(result.text[0] != 0);
    options.limit = 1;
    result = checked(event_between_threads, NULL, &options, 1);
    CHECK_INT(result.truncated, 1);
}

static void takes_in_vain(cai_sim *sim, void *argument)
{
    (void)argument;
    cai_check_take(sim, 5);
}

static void takes_then_passes(cai_sim *sim, void *argument)
{
    (void)argument;
    cai_check_take(sim, 1);
    cai_check_pass(sim, 0);
}

static void passes_too_late(cai_sim *sim, void *argument)
{
    (void)argument;
    cai_check_take(sim, 0);
    cai_check_pass(sim, 1);
}

static void one_waits(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    two_threads(sim, &x, takes_in_vain, joined_first);
    scene_close(&x);
}

static void both_wait(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    two_threads(sim, &x, takes_then_passes, passes_too_late);
    scene_close(&x);
}

static void test_deadlock(void)
{
    cai_check_result result;
    cai_test_note("threads that wait for one another");
    result = checked(one_waits, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK_INT(result.racy, 0);
    CHECK(strstr(result.text, "wait") != NULL);
    result = checked(both_wait, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK(strstr(result.text, "wait") != NULL);
}

static void says_no(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    cai_check_fail(sim, "the sum is wrong");
    scene_close(&x);
}

/* Only when the event is seen as done. */
static void says_no_if_done(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t event = scene_event(&x);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "work", writes(m));
    cai_sim_event_record(sim, event, x.s[0]);
    if (cai_sim_event_query(sim, event) == 0) cai_check_fail(sim, "done");
    scene_close(&x);
}

static void leaks_a_stream(cai_sim *sim, void *argument)
{
    (void)argument;
    cai_sim_stream_create(sim, 1);
    cai_sim_event_create(sim);
}

static void test_failures(void)
{
    cai_check_result result;
    cai_test_note("failures");
    result = checked(says_no, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK_STR(result.text, "the sum is wrong");
    result = checked(says_no_if_done, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK_INT(result.racy, 0);
    CHECK_STR(result.text, "done");
    result = checked(leaks_a_stream, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK(strstr(result.text, "streams: s1; events: e1") != NULL);
    CHECK_INT(cai_check(leaks_a_stream, NULL, NULL, NULL), 1);
    CHECK_INT(cai_check(both_read, NULL, NULL, NULL), 0);
}

/* Work that writes, and does not say so: no race, and another order leaves something else. And work that
 * says that it writes, and does not. Neither oracle is right about both, and the other one tells. */
static void store_one(void *x)
{
    *(unsigned char *)x = 1;
}

static void store_two(void *x)
{
    *(unsigned char *)x = 2;
}

typedef struct liars {
    int32_t says, does; /* that it writes */
} liars;

static void two_stores(cai_sim *sim, void *argument)
{
    const liars *all = (const liars *)argument;
    scene x = scene_open(sim, "nn", NULL);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    cai_sim_access access = cai_sim_reads(m, 1);
    void *place = cai_sim_bytes(sim, m);
    access.write = all->says;
    cai_sim_launch(sim, x.s[0], "one", all->does ? store_one : NULL, place, &access, 1);
    cai_sim_launch(sim, x.s[1], "two", all->does ? store_two : NULL, place, &access, 1);
    scene_close(&x);
}

static void test_liars(void)
{
    liars all = {1, 1};
    cai_check_result result;
    cai_test_note("work that says something else than it does");
    result = checked(two_stores, &all, NULL, 1);
    CHECK_INT(result.racy + result.changed * 10 + result.disagreements * 100, 11);
    all.says = 0;
    result = checked(two_stores, &all, NULL, 1);
    CHECK_INT(result.racy + result.changed * 10 + result.disagreements * 100, 110);
    CHECK(strstr(result.text, "another order") != NULL);
    all.does = 0;
    result = checked(two_stores, &all, NULL, 0);
    all.says = 1;
    result = checked(two_stores, &all, NULL, 1);
    CHECK_INT(result.racy + result.changed * 10 + result.disagreements * 100, 101);
}

/* What happens only where a query finds its event pending, and there only between two calls of a thread. */
typedef struct shy {
    scene x;
    int32_t inside;
} shy;

static void shy_thread(cai_sim *sim, void *argument)
{
    shy *all = (shy *)argument;
    does(&all->x, all->x.s[0], "work", writes(all->x.m[0]));
    cai_sim_event_record(sim, all->x.e[0], all->x.s[0]);
    if (cai_sim_event_query(sim, all->x.e[0]) == 0) return;
    all->inside = 1;
    does(&all->x, all->x.s[1], "more work", writes(all->x.m[1]));
    all->inside = 0;
}

static void curious_thread(cai_sim *sim, void *argument)
{
    shy *all = (shy *)argument;
    does(&all->x, all->x.s[2], "other work", writes(all->x.m[2]));
    if (all->inside) cai_check_fail(sim, "in between");
}

static void shy_program(cai_sim *sim, void *argument)
{
    cai_check_program functions[2];
    void *arguments[2];
    shy all;
    all.x = scene_open(sim, "nnn", argument);
    all.inside = 0;
    scene_memory(&all.x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_memory(&all.x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_memory(&all.x, CAI_SIM_MEM_DEVICE, BYTES);
    scene_event(&all.x);
    functions[0] = shy_thread;
    functions[1] = curious_thread;
    arguments[0] = arguments[1] = &all;
    cai_check_threads(sim, functions, arguments, 2);
    scene_close(&all.x);
}

static void leaks_if_pending(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", argument);
    const uint64_t event = scene_event(&x);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    does(&x, x.s[0], "work", writes(m));
    cai_sim_event_record(sim, event, x.s[0]);
    if (cai_sim_event_query(sim, event) != 0) cai_sim_event_create(sim);
    scene_close(&x);
}

static void fickle(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "nnn", NULL);
    int32_t *runs = (int32_t *)argument, i, count = 1 + (*runs)++ % 3;
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_DEVICE, BYTES);
    for (i = 0; i < count; i++) does(&x, x.s[i], "work", cai_sim_writes(m + 16 * (uint64_t)i, 16));
    scene_close(&x);
}

static void test_paths(void)
{
    cai_check_result result;
    int32_t runs = 0;
    cai_test_note("where a query finds its event pending");
    result = checked(shy_program, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK_INT(result.racy, 0);
    CHECK_STR(result.text, "in between");
    result = checked(leaks_if_pending, NULL, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK(strstr(result.text, "events: e2") != NULL);
    result = checked(query_then_reuse, NULL, NULL, 0);
    CHECK_INT(result.orders, 2); /* it has run when it is asked for, or not */
    cai_test_note("a program that does not do the same each time");
    result = checked(fickle, &runs, NULL, 1);
    CHECK_INT(result.failed, 1);
    CHECK(strstr(result.text, "differ from run to run") != NULL);
}

/* Memory is freed while a kernel uses it: where the kernel comes later, its context has error 700. */
static void test_free_in_use(void)
{
    cai_check_result result;
    cai_test_note("freed in use");
    result = checked(owner_dies, NULL, NULL, 1);
    CHECK_INT(result.racy, 1);
    CHECK_INT(result.changed, 1);
    CHECK_INT(result.orders, 2);
    CHECK_INT(result.failed, 0);
}

/* Both only read. */
static void looked_at_in_use(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "n", NULL);
    const uint64_t m = scene_memory(&x, CAI_SIM_MEM_MANAGED, BYTES);
    const cai_sim_access whole = cai_sim_reads(m, BYTES), half = cai_sim_reads(m, HALF);
    (void)argument;
    cai_sim_launch(sim, x.s[0], "use", nothing, NULL, &whole, 1);
    cai_sim_host_access(sim, "look", &half, 1);
    scene_close(&x);
}

static void test_looked_at_in_use(void)
{
    cai_check_result result;
    cai_test_note("looked at in use");
    result = checked(looked_at_in_use, NULL, NULL, 0);
    CHECK_INT(result.orders, 2); /* the work has run when the host looks, or not */
}

static void same_result(const cai_check_result *a, const cai_check_result *b)
{
    CHECK_INT(a->interleavings, b->interleavings);
    CHECK_INT(a->orders, b->orders);
    CHECK_INT(a->racy, b->racy);
    CHECK_INT(a->changed, b->changed);
    CHECK_INT(a->disagreements, b->disagreements);
    CHECK_INT(a->truncated, b->truncated);
    CHECK_INT(a->omitted, b->omitted);
    CHECK_INT(a->failed, b->failed);
    CHECK_STR(a->text, b->text);
}

static void test_twice(void)
{
    cai_check_options options = no_options();
    cai_check_result first, second;
    int32_t i;
    for (i = 0; i < CASES; i++) {
        cai_test_note(cases[i].name);
        options.devices = cases[i].devices;
        cai_check(cases[i].program, argument_of(&cases[i]), &options, &first);
        cai_check(cases[i].program, argument_of(&cases[i]), &options, &second);
        same_result(&first, &second);
    }
    cai_test_note("");
}

/* Samples: a program without a race has none in any sample; one with a race in every interleaving is
 * found; the same seed does the same. */
static void test_samples(void)
{
    cai_check_options options = no_options();
    cai_check_result first, second;
    int32_t i, seeds;
    for (i = 0; i < CASES; i++) {
        cai_test_note(cases[i].name);
        options.devices = cases[i].devices;
        options.samples = cases[i].interleavings > 1 ? 4 : 20;
        for (seeds = 1; seeds <= 2; seeds++) {
            options.seed = (uint64_t)seeds;
            cai_check(cases[i].program, argument_of(&cases[i]), &options, &first);
            cai_check(cases[i].program, argument_of(&cases[i]), &options, &second);
            same_result(&first, &second);
            CHECK_INT(first.truncated, 0);
            if (cases[i].racy == 0) CHECK_INT(first.racy + first.changed + first.failed, 0);
            if (cases[i].racy == cases[i].interleavings) CHECK_INT(first.racy, first.interleavings);
            CHECK(first.racy <= first.interleavings);
        }
    }
    cai_test_note("");
}

/* One sample: some seeds meet the race of half of the interleavings, some do not. */
static void test_seeds(void)
{
    cai_check_options options = no_options();
    cai_check_result result;
    int32_t racy = 0, seeds;
    cai_test_note("one sample");
    options.samples = 1;
    for (seeds = 0; seeds < 20; seeds++) {
        options.seed = (uint64_t)seeds;
        cai_check(listed_before_recorded, NULL, &options, &result);
        CHECK_INT(result.interleavings, 1);
        racy += result.racy == 1;
    }
    CHECK(racy > 2 && racy < 18);
}

/* What threads say that they do to memory, and do not do: a race that leaves nothing behind. */
static void declaring_thread(cai_sim *sim, void *argument)
{
    scene *x = (scene *)argument;
    cai_sim_access access = writes(x->m[0]);
    cai_sim_host_access(sim, "declared", &access, 1);
}

static void declared_only(cai_sim *sim, void *argument)
{
    scene x = scene_open(sim, "", argument);
    scene_memory(&x, CAI_SIM_MEM_PINNED, BYTES);
    two_threads(sim, &x, declaring_thread, declaring_thread);
    scene_close(&x);
}

static void test_declared_only(void)
{
    cai_check_result result = checked(declared_only, NULL, NULL, 1);
    cai_test_note("accesses that are declared only");
    CHECK_INT(result.interleavings, 6);
    CHECK_INT(result.racy, 6);
    CHECK_INT(result.changed, 0);
    CHECK_INT(result.disagreements, 1);
}

/* Outside of cai_check threads run one after the other, and batons do what they can. */
static void test_outside(void)
{
    char text[TEXT] = "";
    cai_sim *sim = cai_sim_create(1);
    if (sim == NULL) exit(2);
    cai_test_note("outside of cai_check");
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    threads_and_caller(sim, NULL);
    CHECK_INT(cai_check_races(sim, NULL, 0), 0);
    host_threads(sim, right);
    pool_of_stream_two(sim, right);
    CHECK_INT(cai_check_races(sim, NULL, 0), 0);
    CHECK_INT(differences(sim), 0);
    put_races(sim, text);
    CHECK_STR(text, "");
    cai_sim_destroy(sim);
}

/* Two launches on the same memory that nothing orders, each with an access of a kind. */
static void two_kinds(cai_sim *sim, void *argument)
{
    const int32_t *kinds = (const int32_t *)argument;
    const uint64_t a = cai_sim_stream_create(sim, 1), b = cai_sim_stream_create(sim, 1);
    const uint64_t m = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64);
    cai_sim_access access = cai_sim_reads(m, 64);
    access.write = kinds[0];
    cai_sim_set_tag(sim, 7);
    cai_sim_launch(sim, a, "first", NULL, NULL, &access, 1);
    cai_sim_set_tag(sim, 0);
    access.write = kinds[1];
    cai_sim_launch(sim, b, "second", NULL, NULL, &access, 1);
    cai_sim_stream_synchronize(sim, a);
    cai_sim_stream_synchronize(sim, b);
    cai_sim_free(sim, m);
    cai_sim_stream_destroy(sim, a);
    cai_sim_stream_destroy(sim, b);
}

/* What the race of two accesses says. */
static void check_kinds(cai_sim *sim, const int32_t *kinds, int certain)
{
    static const char *const verbs[] = {"reads", "writes", "may write", "may read", "may write"};
    char text[CAI_CHECK_TEXT], expected[CAI_CHECK_TEXT];
    cai_check_race race;
    cai_sim_operation op;
    CHECK_INT(cai_check_races(sim, &race, 1), 1);
    CHECK_INT(race.certain, certain);
    CHECK(cai_sim_operation_get(sim, race.first, &op) && op.tag == 7);
    CHECK(cai_sim_operation_get(sim, race.second, &op) && op.tag == 0);
    cai_check_race_text(sim, &race, text);
    snprintf(expected, sizeof expected, "\"first\" %s on s1 (operation 2), \"second\" %s on s2",
             verbs[kinds[0]], verbs[kinds[1]]);
    CHECK(strstr(text, expected) != NULL);
    CHECK_INT(differences(sim), 0);
}

/* cai_check counts certain races alone. */
static void test_kinds(void)
{
    int32_t i;
    cai_test_note("kinds of accesses");
    for (i = 0; i < 25; i++) {
        int32_t kinds[2];
        const char race = kinds_of_races[i / 5][i % 5];
        cai_check_result result;
        cai_sim *sim = cai_sim_create(1);
        if (sim == NULL) exit(2);
        kinds[0] = i / 5;
        kinds[1] = i % 5;
        cai_sim_set_context(sim, cai_sim_primary(sim, 0));
        two_kinds(sim, kinds);
        if (race == '-') CHECK_INT(cai_check_races(sim, NULL, 0), 0);
        else check_kinds(sim, kinds, race == 'C');
        cai_sim_destroy(sim);
        CHECK_INT(cai_check(two_kinds, kinds, NULL, &result), race == 'C');
        CHECK_INT(result.racy, race == 'C');
    }
}

/* Memory that was freed ends the context of a launch that uses it, and not of one that may do nothing with it. */
static void test_left_pointer(void)
{
    int32_t kind;
    cai_test_note("a pointer that was left");
    for (kind = 0; kind < 5; kind++) {
        cai_sim *sim = cai_sim_create(1);
        cai_sim_access access;
        if (sim == NULL) exit(2);
        cai_sim_set_context(sim, cai_sim_primary(sim, 0));
        access = cai_sim_reads(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 64), 64);
        access.write = kind;
        CHECK_INT(cai_sim_free(sim, access.address), 0);
        (void)cai_sim_launch(sim, CAI_STREAM_LEGACY, "late", NULL, NULL, &access, 1);
        CHECK_INT(cai_sim_stream_synchronize(sim, CAI_STREAM_LEGACY), kind < CAI_SIM_MAY_WRITE ? 700 : 0);
        cai_sim_destroy(sim);
    }
}

/* Races: the number is not limited by the capacity, and no more is written. */
static void test_capacity(void)
{
    cai_check_race races[3];
    cai_sim *sim = cai_sim_create(1);
    if (sim == NULL) exit(2);
    cai_test_note("capacity");
    CHECK_INT(cai_check_races(sim, races, 3), 0);
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    sort_in_other_stream(sim, NULL);
    memset(races, 0x55, sizeof races);
    CHECK_INT(cai_check_races(sim, NULL, 0), 2);
    CHECK_INT(cai_check_races(sim, races, 1), 2);
    CHECK_UINT(races[1].first, 0x5555555555555555u);
    CHECK_INT(cai_check_races(sim, races, 3), 2);
    CHECK(races[0].second < races[1].second && races[1].first == races[0].second);
    CHECK_UINT(races[2].first, 0x5555555555555555u);
    cai_sim_destroy(sim);
}

/* A fork in a capture, with the join too late, and in time. It never runs: no order changes memory. */
static void test_captured(void)
{
    char text[TEXT] = "";
    cai_sim *sim = cai_sim_create(1);
    cai_check_result result = checked(captured, NULL, NULL, 1);
    CHECK_INT(result.racy, 1);
    CHECK_INT(result.changed, 0);
    CHECK_INT(result.disagreements, 0);
    result = checked(captured, right, NULL, 0);
    CHECK_INT(result.racy, 0);
    if (sim == NULL) exit(2);
    cai_test_note("a race in a capture");
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    captured(sim, NULL);
    CHECK_INT(cai_sim_last_error(sim), 0);
    CHECK_INT(differences(sim), 0);
    put_races(sim, text);
    CHECK_STR(text, "m1[0, 256): w branch s2, w trunk s1\n");
    cai_sim_destroy(sim);
    sim = cai_sim_create(1);
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    captured(sim, right);
    CHECK_INT(cai_sim_last_error(sim), 0);
    CHECK_INT(cai_check_races(sim, NULL, 0), 0);
    cai_sim_destroy(sim);
}

/* What a driver may do and another may not; the environment has no say here. */
static void test_frees(void)
{
    static uint32_t kind = CAI_SIM_DEFAULT, unkind = CAI_SIM_FREE_RETURNS | CAI_SIM_FREE_OWN_CONTEXT;
    cai_check_result result;
    cai_test_note("a free that waits");
    CHECK_INT(cai_check(freed_by_cuda, &kind, NULL, &result), 0);
    cai_test_note("a free that does not wait");
    CHECK_INT(cai_check(freed_by_cuda, &unkind, NULL, &result), 1);
    CHECK(result.racy == 1 && result.changed == 1 && result.disagreements == 0);
    CHECK_STR(result.text, "race on m1[0, 256): \"kernel\" writes on s1 (operation 2), "
                           "\"memory_free\" frees on the host (operation 3); "
                           "nothing makes the host wait for s1");
    cai_test_note("an address that is used again");
    CHECK_INT(cai_check(address_again, NULL, NULL, &result), 0);
    cai_test_note("an address that is used again too early");
    CHECK_INT(cai_check(address_again, right, NULL, &result), 1);
    CHECK(result.racy == 1 && result.changed == 1 && result.disagreements == 0);
    CHECK_STR(result.text, "race on m1[0, 256): \"first\" writes on s1 (operation 2), "
                           "\"free\" frees on the host (operation 3); "
                           "nothing makes the host wait for s1");
    cai_test_note("");
}

/* What the host may do after a copy, and when it must wait first. */
static void test_copies(void)
{
    enum { D = CAI_SIM_MEM_DEVICE, H = CAI_SIM_MEM_PINNED, P = -1, R = CAI_SIM_COPY_RETURNS };
    static copy_case good[] = {{H, D, 0, 0, 0}, {P, D, 0, 0, R}, {D, H, 0, 0, R}, {D, P, 0, 0, 0},
                               {D, P, 0, 0, R}, {P, P, 1, 0, R}, {H, P, 1, 0, R}, {D, P, 1, 0, 0},
                               {P, D, 1, 0, 0}, {H, D, 1, 1, 0}, {D, H, 1, 1, R}, {P, D, 1, 1, R}},
                     bad[] = {{H, D, 1, 0, 0}, {D, H, 1, 0, 0}, {P, D, 1, 0, R}, {D, P, 1, 0, R}};
    cai_check_result result;
    int compared; /* pageable memory is not */
    size_t i;
    for (i = 0; i < sizeof good / sizeof *good; i++) {
        cai_test_note("a copy that the host need not wait for");
        CHECK_INT(cai_check(copied, &good[i], NULL, &result), 0);
        CHECK_STR(result.text, "");
    }
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        cai_test_note("a copy that the host must wait for");
        CHECK_INT(cai_check(copied, &bad[i], NULL, &result), 1);
        compared = bad[i].to != P && bad[i].from != P;
        CHECK(result.racy == 1 && result.changed == compared && result.disagreements == !compared);
        CHECK(strstr(result.text, "\"copy\"") != NULL && strstr(result.text, "on the host") != NULL);
    }
    cai_test_note("copies of rows that lie between one another");
    CHECK_INT(cai_check(copied_rows, NULL, NULL, &result), 0);
    cai_test_note("copies of rows that overlap");
    CHECK_INT(cai_check(copied_rows, right, NULL, &result), 1);
    CHECK(result.racy == 1 && result.changed == 1 && result.disagreements == 0);
    cai_test_note("");
}

static void run(int32_t traces, int32_t programs, uint64_t seed)
{
    test_known();
    test_frees();
    test_copies();
    test_captured();
    test_capacity();
    test_kinds();
    test_left_pointer();
    test_outside();
    test_omit();
    test_omit_by_thread();
    test_limit();
    test_deadlock();
    test_failures();
    test_liars();
    test_paths();
    test_free_in_use();
    test_looked_at_in_use();
    test_twice();
    test_samples();
    test_seeds();
    test_declared_only();
    test_random_traces(traces, seed);
    test_random_programs(programs, seed);
}

int main(int argc, char **argv)
{
    run(argc > 1 ? atoi(argv[1]) : 2500, argc > 2 ? atoi(argv[2]) : 1000,
        argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    return cai_test_end();
}
