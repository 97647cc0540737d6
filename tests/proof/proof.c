/* proof.c - that cai orders exchanges rightly: no order too few, none too many, over a family of programs
 * SPDX-License-Identifier: MIT
 *
 *     proof [--list] [--only TEXT] [--verbose] [--no-mutants] [--stop]
 *
 * Every program is run by cai_check with the calls of its host threads interleaved in every way and its
 * queued work in every order; neither oracle may find anything.
 *
 * That says little if the oracles are blind, or the programs touch nothing that matters. So every call by
 * which cai orders work in these programs is left out, one at a time: it succeeds and does nothing. Then both
 * oracles must object; or else the call was implied by others: then what happens before what, among all
 * operations that touch memory, is the same with and without it, in every interleaving. A call that is
 * neither caught nor implied is a hole in the program or in the oracles, and fails the proof. Where there are
 * many interleavings, some of them are tried first: to be caught there is enough.
 *
 * --no-mutants leaves that out, --stop ends after the first family of programs with a race.
 *
 * Prints a line per program and a last line with totals. Exit status 0: proven; 1: not; 2: usage. */
#include <stdio.h>
#include <stdlib.h>

#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"

#include "programs.h"

enum { OPERATIONS = 6, NAME = 40, MOST_CALLS = 1000, MANY = 100, SAMPLES = 20 };

/* The calls by which the header orders work, or learns that it is done. */
static const char *const operations[OPERATIONS] = {"event_record",       "stream_wait_event",
                                                   "stream_synchronize", "context_synchronize",
                                                   "event_synchronize",  "event_query"};

/* ----------------------------------------------------------- happens-before */

/* An operation that touches memory. */
typedef struct site {
    uint64_t id;
    int32_t kind;
    char name[NAME];
} site;

/* What comes before what among them, in one interleaving. */
typedef struct relation {
    int32_t count;
    site *sites;
    unsigned char *before; /* [first * count + second] */
} relation;

/* What was seen of all interleavings. */
typedef struct record {
    int64_t count, capacity;
    relation *relations;
    int32_t calls[OPERATIONS]; /* of each operation, at most */
} record;

static void *must(void *memory)
{
    if (memory) return memory;
    fputs("proof: out of memory\n", stderr);
    exit(2);
}

static void record_free(record *seen)
{
    int64_t i;
    for (i = 0; i < seen->count; i++) {
        free(seen->relations[i].sites);
        free(seen->relations[i].before);
    }
    free(seen->relations);
    memset(seen, 0, sizeof *seen);
}

/* What the host allocates nobody knows yet. */
static int touches(const cai_sim_operation *operation)
{
    return operation->access_count && (operation->kind != CAI_SIM_OP_ALLOC || operation->stream);
}

static void collect_sites(cai_sim *sim, relation *out)
{
    const uint64_t last = cai_sim_operation_count(sim);
    cai_sim_operation operation;
    uint64_t id;
    out->count = 0;
    out->sites = (site *)must(malloc((size_t)(last + 1) * sizeof(site)));
    for (id = 1; id <= last; id++) {
        site *at = &out->sites[out->count];
        if (!cai_sim_operation_get(sim, id, &operation) || !touches(&operation)) continue;
        at->id = id;
        at->kind = operation.kind;
        (void)snprintf(at->name, sizeof at->name, "%s", operation.name ? operation.name : "");
        out->count++;
    }
}

static void relate(cai_sim *sim, relation *out)
{
    cai_check_order *order = cai_check_order_make(sim);
    int32_t i, k;
    collect_sites(sim, out);
    out->before = (unsigned char *)must(malloc((size_t)out->count * (size_t)out->count + 1));
    for (i = 0; i < out->count; i++) {
        for (k = 0; k < out->count; k++)
            out->before[i * out->count + k] =
                (unsigned char)cai_check_before(order, out->sites[i].id, out->sites[k].id);
    }
    cai_check_order_free(order);
}

/* Called after the first run of each interleaving. */
static void look(cai_sim *sim, void *argument)
{
    record *seen = (record *)argument;
    int32_t i;
    if (seen->count == seen->capacity) {
        seen->capacity = seen->capacity * 2 + 16;
        seen->relations =
            (relation *)must(realloc(seen->relations, (size_t)seen->capacity * sizeof(relation)));
    }
    relate(sim, &seen->relations[seen->count++]);
    for (i = 0; i < OPERATIONS; i++) {
        const int32_t calls = cai_sim_calls_of(sim, operations[i]);
        if (calls > seen->calls[i]) seen->calls[i] = calls;
    }
}

/* The first pair of operations in another order, or 0. why: what is different. */
static int relation_differs(const relation *a, const relation *b, char *why, size_t size)
{
    int32_t i, k;
    for (i = 0; i < a->count && i < b->count; i++) {
        if (a->sites[i].kind == b->sites[i].kind && !strcmp(a->sites[i].name, b->sites[i].name)) continue;
        (void)snprintf(why, size, "\"%s\" became \"%s\"", a->sites[i].name, b->sites[i].name);
        return 1;
    }
    if (a->count != b->count) {
        (void)snprintf(why, size, "%d operations became %d", (int)a->count, (int)b->count);
        return 1;
    }
    for (i = 0; i < a->count; i++) {
        for (k = 0; k < a->count; k++) {
            if (a->before[i * a->count + k] == b->before[i * a->count + k]) continue;
            (void)snprintf(why, size, "\"%s\" (%d of %d) is %s before \"%s\" (%d)", a->sites[i].name, (int)i,
                           (int)a->count, a->before[i * a->count + k] ? "no longer" : "now",
                           a->sites[k].name, (int)k);
            return 1;
        }
    }
    return 0;
}

static int record_differs(const record *a, const record *b, char *why, size_t size)
{
    int64_t i;
    if (a->count != b->count) {
        (void)snprintf(why, size, "%lld interleavings became %lld", (long long)a->count,
                       (long long)b->count);
        return 1;
    }
    for (i = 0; i < a->count; i++) {
        if (relation_differs(&a->relations[i], &b->relations[i], why, size)) return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ mutants */

typedef struct totals {
    int64_t programs, interleavings, orders, mutants, caught, implied, races, changed, disagreements, bad;
} totals;

typedef struct proof {
    const proof_program *program;
    cai_check_options options;
    record seen;
    cai_check_result base;
    int64_t mutants, caught, implied, disagreements, bad;
    int32_t verbose, no_mutants;
} proof;

static void *argument_of(const proof *at)
{
    return (void *)(uintptr_t)at->program->argument; /* programs take it as const */
}

static const char *thread_text(int32_t thread, char *text, size_t size)
{
    if (!thread) return "";
    if (thread < 0) return ", of the program";
    (void)snprintf(text, size, ", of thread %d", (int)thread);
    return text;
}

/* A call that is left out, and what came of it. */
typedef struct mutant {
    const char *operation;
    int32_t call, thread;
    cai_check_result result;
    int caught, implied;
    char why[200]; /* what is different, if it is not the same */
} mutant;

static void check_mutant(proof *at, mutant *m, int32_t samples)
{
    cai_check_options options = at->options;
    record seen;
    memset(&seen, 0, sizeof seen);
    options.omit = m->operation;
    options.omit_call = m->call;
    options.omit_thread = m->thread;
    options.each_argument = &seen;
    if (samples) options.samples = samples;
    (void)cai_check(at->program->program, argument_of(at), &options, &m->result);
    m->why[0] = 0;
    m->caught = m->result.racy && m->result.changed && !m->result.disagreements;
    m->implied = !m->result.racy && !m->result.changed && !m->result.disagreements && !m->result.truncated &&
                 !record_differs(&at->seen, &seen, m->why, sizeof m->why);
    record_free(&seen);
}

static void tell_mutant(const proof *at, const mutant *m)
{
    const cai_check_result *result = &m->result;
    char where[40];
    printf("    without %s %d%s: ", m->operation, (int)m->call, thread_text(m->thread, where, sizeof where));
    if (m->implied) {
        printf("implied: what comes before what among %d operations is the same%s%s\n",
            (int)at->seen.relations[0].count, result->failed ? "; " : "", result->failed ? result->text : "");
        return;
    }
    printf("%s: %lld of %lld racy, %lld changed, %lld disagree%s: %s%s%s\n",
        m->caught ? "caught" : "NEITHER CAUGHT NOR IMPLIED", (long long)result->racy,
        (long long)result->interleavings, (long long)result->changed, (long long)result->disagreements,
        result->truncated ? ", cut off" : "", result->text, m->why[0] ? "; " : "", m->why);
}

/* Runs the program without one call. 0: the call is not made. */
static int run_mutant(proof *at, int32_t operation, int32_t call, int32_t thread)
{
    mutant m;
    memset(&m, 0, sizeof m);
    m.operation = operations[operation];
    m.call = call;
    m.thread = thread;
    if (at->base.interleavings > MANY && !at->program->samples) check_mutant(at, &m, SAMPLES);
    if (!m.caught) check_mutant(at, &m, 0);
    if (!m.result.omitted) return 0;
    at->mutants++;
    at->caught += m.caught;
    at->implied += m.implied;
    at->disagreements += m.result.disagreements;
    at->bad += !m.caught && !m.implied;
    if (at->verbose || !(m.caught || m.implied)) tell_mutant(at, &m);
    return 1;
}

/* Is the call made at all? One run tells, where every run makes the same calls. */
static int is_made(const proof *at, int32_t operation, int32_t call, int32_t thread)
{
    cai_check_options options = at->options;
    cai_check_result result;
    options.omit = operations[operation];
    options.omit_call = call;
    options.omit_thread = thread;
    options.samples = 1;
    options.each = NULL;
    (void)cai_check(at->program->program, argument_of(at), &options, &result);
    return result.omitted;
}

/* The calls of each host thread by themselves, so that a number means the same call in every interleaving. */
static void run_mutants_of_threads(proof *at, int32_t operation)
{
    int32_t next[10] = {0}, thread, found = 0;
    for (thread = -1; thread <= at->program->threads; thread++) {
        if (!thread) continue;
        for (next[thread + 1] = 1; next[thread + 1] < MOST_CALLS; next[thread + 1]++) {
            if (!is_made(at, operation, next[thread + 1], thread)) break;
            (void)run_mutant(at, operation, next[thread + 1], thread);
            found++;
        }
    }
    if (found >= at->seen.calls[operation]) return;
    for (thread = -1; thread <= at->program->threads; thread++) { /* some calls depend on the interleaving */
        if (!thread) continue;
        while (next[thread + 1] < MOST_CALLS && run_mutant(at, operation, next[thread + 1], thread))
            next[thread + 1]++;
    }
}

static void run_mutants(proof *at)
{
    int32_t operation, call;
    for (operation = 0; operation < OPERATIONS; operation++) {
        if (!at->seen.calls[operation]) continue;
        if (at->program->threads) {
            run_mutants_of_threads(at, operation);
            continue;
        }
        for (call = 1; call <= at->seen.calls[operation]; call++) {
            if (run_mutant(at, operation, call, 0)) continue;
            printf("    %s %d is not made\n", operations[operation], (int)call);
            at->bad++;
        }
    }
}

/* ----------------------------------------------------------------- programs */

static void prove(proof *at, totals *all)
{
    const proof_program *program = at->program;
    const int32_t wrong = cai_check(program->program, argument_of(at), &at->options, &at->base);
    if (!wrong && !at->no_mutants) run_mutants(at);
    printf("%s: %lld interleavings, %lld orders%s, %lld mutants, %lld caught, %lld implied%s\n",
        program->name, (long long)at->base.interleavings, (long long)at->base.orders,
        program->samples ? " sampled" : "", (long long)at->mutants, (long long)at->caught,
        (long long)at->implied, at->bad ? ": NOT PROVEN" : "");
    if (wrong) printf("    WRONG: %s\n", at->base.text[0] ? at->base.text : "cut off by the limit");
    all->programs++;
    all->interleavings += at->base.interleavings;
    all->orders += at->base.orders;
    all->mutants += at->mutants;
    all->caught += at->caught;
    all->implied += at->implied;
    all->races += at->base.racy;
    all->changed += at->base.changed;
    all->disagreements += at->base.disagreements + at->disagreements;
    all->bad += wrong || at->bad;
    fflush(stdout);
}

typedef struct arguments {
    const char *only;
    int32_t list, verbose, no_mutants, stop;
} arguments;

static void prove_list(const proof_program *list, int32_t count, const arguments *given, totals *all)
{
    int32_t i;
    for (i = 0; i < count; i++) {
        proof at;
        if (given->only && !strstr(list[i].name, given->only)) continue;
        if (given->list) {
            puts(list[i].name);
            continue;
        }
        memset(&at, 0, sizeof at);
        at.program = &list[i];
        at.verbose = given->verbose;
        at.no_mutants = given->no_mutants;
        at.options.devices = list[i].devices;
        at.options.samples = list[i].samples;
        at.options.each = look;
        at.options.each_argument = &at.seen;
        prove(&at, all);
        record_free(&at.seen);
    }
}

static int read_arguments(int argc, char **argv, arguments *out)
{
    int i;
    memset(out, 0, sizeof *out);
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) out->list = 1;
        else if (!strcmp(argv[i], "--verbose")) out->verbose = 1;
        else if (!strcmp(argv[i], "--no-mutants")) out->no_mutants = 1;
        else if (!strcmp(argv[i], "--stop")) out->stop = 1;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc) out->only = argv[++i];
        else return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    int32_t (*const families[])(const proof_program **list) = {proof_exchanges, proof_chains, proof_memory,
                                                               proof_recipes, proof_storages, proof_graphs,
                                                               proof_threads};
    arguments given;
    totals all;
    size_t i;
    if (!read_arguments(argc, argv, &given)) {
        fputs("usage: proof [--list] [--only TEXT] [--verbose] [--no-mutants] [--stop]\n", stderr);
        return 2;
    }
    memset(&all, 0, sizeof all);
    for (i = 0; i < sizeof families / sizeof families[0] && !(given.stop && all.races); i++) {
        const proof_program *list = NULL;
        const int32_t count = families[i](&list);
        prove_list(list, count, &given, &all);
    }
    if (given.list) return 0;
    printf("%lld programs, %lld interleavings, %lld orders: %lld races, %lld changed; %lld mutants: "
           "%lld caught by both oracles, %lld implied (happens-before unchanged); %lld disagreements; "
           "%lld programs not proven\n",
           (long long)all.programs, (long long)all.interleavings, (long long)all.orders, (long long)all.races,
           (long long)all.changed, (long long)all.mutants, (long long)all.caught, (long long)all.implied,
           (long long)all.disagreements, (long long)all.bad);
    return all.bad || all.races || all.changed || all.disagreements || !all.programs;
}
