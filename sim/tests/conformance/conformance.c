/* conformance.c - how CUDA, and the table of cai_stream.h over it, behave: one rule per id, in a world.
 * SPDX-License-Identifier: MIT
 *
 *     conformance [--only ID] [--devices N] [--plant NAME]     runs the rules
 *     conformance --markdown [--other FILE]                    and prints a table of them
 *     conformance --self-test                                  plants bugs; the rules must find each, the
 *                                                              simulation giving one answer or the other
 *     conformance --list | --plants
 *
 * With world_sim.c it asks the simulation, with world_cuda.cu a GPU. FILE is what the other program printed.
 * The exit status is 0, 1 for a rule that failed, 2 for wrong usage, 77 if there is no GPU. */
#define _POSIX_C_SOURCE 200809L /* popen */

#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RULES = 256, LINE = 512, NO_GPU = 77 };

/* Of a rule in a world. DIFFERS: what was a free choice of the simulation is otherwise there. */
enum { UNKNOWN, CONFIRMED, FAILED, DIFFERS, SKIPPED, STATUSES };
static const char *const status_words[] = {"-", "confirmed", "failed", "differs", "skipped"};

typedef struct outcome {
    int status;
    char text[WORLD_TEXT];
} outcome;

typedef struct options {
    const char *program, *only, *plant, *other, *compare;
    int32_t devices;
    int markdown, self_test, list, list_plants, alone;
} options;

static const rule *all_rules[MOST_RULES];
static int32_t rule_count;

static void collect_rules(void)
{
    int32_t i;
    for (i = 0; rule_lists[i] != NULL; i++) {
        const rule *each = rule_lists[i];
        for (; each->id != NULL; each++) {
            if (rule_count == MOST_RULES) abort();
            all_rules[rule_count++] = each;
        }
    }
}

/* -------------------------------------------------------------------- one rule */
static const char *lacking(const rule *what)
{
    if (what->kind == RULE_SIMULATED && !world_is_simulation()) return "simulation only";
    if ((what->needs & NEEDS_DEVICES) && world_devices() < 2) return "one device";
    if ((what->needs & NEEDS_CONTEXT) && !world_has_contexts()) return "no second context";
    if ((what->needs & NEEDS_ID) && world_cuda()->stream_id == NULL) return "no stream ids";
    return NULL;
}

static void run_here(const rule *what, const char *plant, outcome *out)
{
    const char *problem;
    int checked;
    world_begin(what->id, plant);
    problem = lacking(what);
    if (problem != NULL) {
        (void)world_end();
        out->status = SKIPPED;
        (void)snprintf(out->text, sizeof out->text, "%s", problem);
        return;
    }
    checked = rule_run(what, out->text, sizeof out->text);
    problem = world_end();
    out->status = checked == CHECK_CONFIRMED ? CONFIRMED : checked == CHECK_SKIPPED ? SKIPPED : FAILED;
    if (problem != NULL && out->status != FAILED) {
        out->status = FAILED;
        (void)snprintf(out->text, sizeof out->text, "%s", problem);
    }
    if (out->status == FAILED && what->kind == RULE_OBSERVED && !world_is_simulation()) out->status = DIFFERS;
}

static int status_of(const char *line)
{
    int i;
    for (i = CONFIRMED; i < STATUSES; i++) {
        const size_t length = strlen(status_words[i]);
        if (strncmp(line, status_words[i], length) == 0 && line[length] == ' ') return i;
    }
    return UNKNOWN;
}

/* In a process of its own, which does not survive it in good health. */
static void run_apart(const options *o, const rule *what, outcome *out)
{
    char line[LINE];
    FILE *child;
    (void)snprintf(line, sizeof line, "\"%s\" --alone --only %s", o->program, what->id);
    out->status = FAILED;
    (void)snprintf(out->text, sizeof out->text, "no answer of a process of its own");
    child = popen(line, "r");
    if (child == NULL) return;
    while (fgets(line, sizeof line, child) != NULL) {
        const int status = status_of(line);
        const char *reason = strstr(line, "  # ");
        if (status == UNKNOWN) continue;
        out->status = status;
        line[strcspn(line, "\n")] = 0;
        (void)snprintf(out->text, sizeof out->text, "%s", reason == NULL ? "" : reason + 4);
    }
    (void)pclose(child);
}

static void run_one(const options *o, const rule *what, outcome *out)
{
    const int apart = (what->needs & LEAVES_RUINS) && what->kind != RULE_SIMULATED && !world_is_simulation();
    if (apart && !o->alone) run_apart(o, what, out);
    else run_here(what, o->plant, out);
}

/* ------------------------------------------------------------------- all rules */
static int is_wanted(const options *o, const rule *what)
{
    return o->only == NULL || strcmp(o->only, what->id) == 0;
}

static void print_outcome(const rule *what, const outcome *out)
{
    (void)printf("%-9s  %s  %s", status_words[out->status], what->id, what->sentence);
    if (out->text[0]) (void)printf(out->status == SKIPPED ? " (%s)" : "  # %s", out->text);
    (void)printf("\n");
    (void)fflush(stdout);
}

static void print_summary(const int32_t *counts, int32_t total)
{
    (void)printf("conformance on %s: %d rules, %d confirmed, %d failed, %d skipped",
                 world_is_simulation() ? "simulation" : world_about(), (int)total, (int)counts[CONFIRMED],
                 (int)counts[FAILED], (int)counts[SKIPPED]);
    if (counts[DIFFERS]) (void)printf(", %d differ", (int)counts[DIFFERS]);
    (void)printf("\n");
}

static void today(char *text, size_t capacity)
{
    const time_t now = time(NULL);
    const struct tm *day = gmtime(&now);
    if (day == NULL || strftime(text, capacity, "%Y-%m-%d", day) == 0) text[0] = 0;
}

/* Returns how many failed. print: one line each. */
static int32_t run_all(const options *o, outcome *outcomes, int print)
{
    int32_t counts[STATUSES] = {0, 0, 0, 0, 0}, total = 0, i;
    char date[16];
    today(date, sizeof date);
    if (print) (void)printf("# on %s, %s\n", world_about(), date);
    for (i = 0; i < rule_count; i++) {
        outcomes[i].status = UNKNOWN;
        if (!is_wanted(o, all_rules[i])) continue;
        run_one(o, all_rules[i], &outcomes[i]);
        if (print) print_outcome(all_rules[i], &outcomes[i]);
        counts[outcomes[i].status]++;
        total++;
    }
    if (print) print_summary(counts, total);
    return total ? counts[FAILED] : 1;
}

/* -------------------------------------------------------------------- markdown */
static int32_t rule_index(const char *id)
{
    int32_t i;
    for (i = 0; i < rule_count; i++)
        if (strcmp(all_rules[i]->id, id) == 0) return i;
    return -1;
}

typedef struct report {
    int known;
    char about[LINE];
    int statuses[MOST_RULES];
    char reasons[MOST_RULES][WORLD_TEXT]; /* of lines "reason ID text" */
} report;

static void read_report(const char *path, report *out)
{
    char line[LINE], id[8];
    int32_t i;
    FILE *file;
    memset(out, 0, sizeof *out);
    file = path == NULL ? NULL : fopen(path, "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        const int status = status_of(line);
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, "# on ", 5) == 0) {
            out->known = 1;
            (void)snprintf(out->about, sizeof out->about, "%.*s", LINE - 6, line + 5);
        }
        i = sscanf(line, "%*s %7s", id) == 1 ? rule_index(id) : -1;
        if (i < 0) continue;
        if (status != UNKNOWN) out->statuses[i] = status;
        else if (strncmp(line, "reason ", 7) == 0)
            (void)snprintf(out->reasons[i], sizeof out->reasons[i], ": %.*s", WORLD_TEXT - 3,
                           strstr(line, id) + strlen(id) + 1);
    }
    (void)fclose(file);
}

static void own_report(const outcome *outcomes, report *out)
{
    char date[16];
    int32_t i;
    memset(out, 0, sizeof *out);
    out->known = 1;
    today(date, sizeof date);
    (void)snprintf(out->about, sizeof out->about, "%s, %s", world_about(), date);
    for (i = 0; i < rule_count; i++) out->statuses[i] = outcomes[i].status;
}

/* What can be said of a rule that no GPU was asked about. */
static const char *without_gpu(const rule *what)
{
    return what->kind == RULE_DOCUMENTED ? "documented only" : "simulation only";
}

/* "confirmed", of a rule with two answers: "both confirmed: it waits; it does not wait". */
static void put_status(const report *simulation, int32_t i, char *text, size_t capacity)
{
    const rule_choice *choice = rule_choice_of(all_rules[i]->id);
    const char *status = status_words[simulation->statuses[i]];
    if (choice == NULL) (void)snprintf(text, capacity, "%s", status);
    else (void)snprintf(text, capacity, "both %s: %s; %s", status, choice->answers[0], choice->answers[1]);
}

static void print_markdown(const report *simulation, const report *gpu)
{
    char status[WORLD_TEXT];
    int32_t i;
    (void)printf("| id | rule | according to | simulation | GPU (%s) |\n|---|---|---|---|---|\n",
                 gpu->known ? gpu->about : "none was at hand");
    for (i = 0; i < rule_count; i++) {
        const rule *what = all_rules[i];
        const int asked = gpu->known && gpu->statuses[i] != UNKNOWN && gpu->statuses[i] != SKIPPED;
        put_status(simulation, i, status, sizeof status);
        (void)printf("| %s | %s | %s | %s | %s%s |\n", what->id, what->sentence, what->source, status,
                     asked ? status_words[gpu->statuses[i]] : without_gpu(what), gpu->reasons[i]);
    }
    (void)printf("\nconfirmed: the rule held. documented only: CUDA's documents say so, and no GPU could be "
                 "asked. simulation only:\nthey do not, and no GPU could be asked. differs: a free choice of "
                 "the simulation that the GPU does not share.\n");
}

/* The worse of two outcomes of each rule. */
static void join_outcomes(outcome *outcomes, const outcome *others)
{
    int32_t i;
    for (i = 0; i < rule_count; i++)
        if (outcomes[i].status == CONFIRMED) outcomes[i] = others[i];
}

static int32_t markdown(const options *o)
{
    static outcome outcomes[MOST_RULES], others[MOST_RULES];
    static report own, other;
    int32_t failed;
    world_choose(0);
    failed = run_all(o, outcomes, 0);
    world_choose(1);
    if (world_is_simulation()) {
        failed += run_all(o, others, 0);
        join_outcomes(outcomes, others);
    }
    own_report(outcomes, &own);
    read_report(o->other, &other);
    if (o->other != NULL && !other.known) {
        (void)fprintf(stderr, "conformance: %s is no output of this program\n", o->other);
        return 1;
    }
    print_markdown(world_is_simulation() ? &own : &other, world_is_simulation() ? &other : &own);
    return failed;
}

/* --------------------------------------------------------------------- compare */
/* What a file says of one rule: a line of the output on a GPU, and maybe a line "reason ID text" on why the
 * simulation does otherwise, or why the rule asks something else now. */
typedef struct recorded {
    int status, same_sentence, has_reason;
} recorded;

static void read_recorded_line(const char *line, recorded *all)
{
    const int status = status_of(line), is_reason = strncmp(line, "reason ", 7) == 0;
    const char *sentence;
    char id[8];
    int32_t i;
    if ((status == UNKNOWN && !is_reason) || sscanf(line, "%*s %7s", id) != 1) return;
    i = rule_index(id);
    if (i < 0) return;
    if (is_reason) {
        all[i].has_reason = 1;
        return;
    }
    sentence = strstr(line, id) + strlen(id) + 2;
    all[i].status = status;
    all[i].same_sentence = strncmp(sentence, all_rules[i]->sentence, strlen(all_rules[i]->sentence)) == 0;
}

/* NULL: both do the same, or the GPU was not asked; or why not. */
static const char *difference(const recorded *gpu, const outcome *own)
{
    if (gpu->status == UNKNOWN) return "the file lacks it";
    if (gpu->status == SKIPPED) return NULL;
    if (gpu->status != CONFIRMED) return "the GPU does otherwise";
    if (own->status != CONFIRMED) return "the simulation does otherwise";
    return gpu->same_sentence ? NULL : "the GPU was asked something else";
}

/* Returns how many rules differ without a reason, or have a reason and do not differ. */
static int32_t compare(const options *o)
{
    static outcome outcomes[MOST_RULES];
    static recorded all[MOST_RULES];
    char line[LINE];
    int32_t i, wrong = 0, agreed = 0, explained = 0;
    FILE *file = fopen(o->compare, "r");
    if (file == NULL) {
        (void)fprintf(stderr, "conformance: %s cannot be read\n", o->compare);
        return 1;
    }
    while (fgets(line, sizeof line, file) != NULL) read_recorded_line(line, all);
    (void)fclose(file);
    (void)run_all(o, outcomes, 0);
    for (i = 0; i < rule_count; i++) {
        const char *why = difference(&all[i], &outcomes[i]);
        agreed += why == NULL && all[i].status == CONFIRMED && !all[i].has_reason;
        explained += why != NULL && all[i].has_reason;
        if ((why != NULL) == (all[i].has_reason != 0)) continue;
        (void)printf("%s: %s\n", all_rules[i]->id, why != NULL ? why : "the reason is stale");
        wrong++;
    }
    (void)printf("%d rules: %d as on the GPU, %d with a reason, %d without or with a stale one, "
                 "%d not asked\n",
                 (int)rule_count, (int)agreed, (int)explained, (int)wrong,
                 (int)(rule_count - agreed - explained - wrong));
    return wrong;
}

/* ------------------------------------------------------------------- self-test */
/* 1: the bug was found, by the rule that it is for, with one answer or the other where there are two. */
static int try_plant(const options *base, const world_plant *plant, int32_t *found_by)
{
    static outcome outcomes[MOST_RULES];
    const int32_t expected = plant->rule == NULL ? -1 : rule_index(plant->rule);
    options o = *base;
    int32_t i, failed = 0;
    int other, good = 0;
    o.plant = plant->name;
    for (other = 0; other < 2; other++) {
        world_choose(other);
        failed += run_all(&o, outcomes, 0);
        for (i = 0; i < rule_count && !plant->coarse; i++) found_by[i] += outcomes[i].status == FAILED;
        good |= plant->rule == NULL ? failed > 0 : expected >= 0 && outcomes[expected].status == FAILED;
    }
    (void)printf("%-9s  %-24s  %s: %s%sand %d rules in all failed\n", good ? "found" : "not found",
                 plant->name, plant->what, plant->rule == NULL ? "" : plant->rule,
                 plant->rule == NULL ? "" : good ? ", " : " did not fail; ", (int)failed);
    return good;
}

static int32_t self_test(const options *o)
{
    static outcome outcomes[MOST_RULES];
    int32_t found_by[MOST_RULES], i, count = 0, missed = 0, idle = 0;
    const world_plant *plant = world_plants();
    for (i = 0; i < 2; i++) {
        world_choose(i);
        if (run_all(o, outcomes, 0) == 0) continue;
        (void)printf("rules fail without any planted bug\n");
        return 1;
    }
    memset(found_by, 0, sizeof found_by);
    for (; plant->name != NULL; plant++, count++) missed += !try_plant(o, plant, found_by);
    for (i = 0; i < rule_count; i++) {
        if (found_by[i] || outcomes[i].status == SKIPPED) continue;
        (void)printf("idle       %s  no planted bug makes it fail\n", all_rules[i]->id);
        idle++;
    }
    (void)printf("self-test: %d bugs planted, %d found; %d of %d rules failed for one of them\n", (int)count,
                 (int)(count - missed), (int)(rule_count - idle), (int)rule_count);
    return missed + idle;
}

/* ------------------------------------------------------------------------ main */
static void list_rules(void)
{
    int32_t i;
    for (i = 0; i < rule_count; i++)
        (void)printf("%s  %s  [%s]\n", all_rules[i]->id, all_rules[i]->sentence, all_rules[i]->source);
}

static void list_plants(void)
{
    const world_plant *plant = world_plants();
    for (; plant->name != NULL; plant++)
        (void)printf("%-24s  %s (%s)\n", plant->name, plant->what, plant->rule == NULL ? "any" : plant->rule);
}

static int is_plant(const char *name)
{
    const world_plant *plant = world_plants();
    for (; plant->name != NULL; plant++)
        if (strcmp(plant->name, name) == 0) return 1;
    return 0;
}

static int read_option(options *o, const char *name, const char *value, int *used)
{
    *used = 1;
    if (strcmp(name, "--markdown") == 0) return o->markdown = 1;
    if (strcmp(name, "--self-test") == 0) return o->self_test = 1;
    if (strcmp(name, "--list") == 0) return o->list = 1;
    if (strcmp(name, "--plants") == 0) return o->list_plants = 1;
    if (strcmp(name, "--alone") == 0) return o->alone = 1;
    *used = 2;
    if (value == NULL) return 0;
    if (strcmp(name, "--only") == 0) return (o->only = value) != NULL && rule_index(value) >= 0;
    if (strcmp(name, "--plant") == 0) return (o->plant = value) != NULL && is_plant(value);
    if (strcmp(name, "--other") == 0) return (o->other = value) != NULL;
    if (strcmp(name, "--compare") == 0) return (o->compare = value) != NULL;
    if (strcmp(name, "--devices") == 0) return (o->devices = atoi(value)) > 0;
    return 0;
}

static int read_options(options *o, int argc, char **argv)
{
    int i = 1, used = 0;
    memset(o, 0, sizeof *o);
    o->program = argv[0];
    o->devices = 2;
    for (; i < argc; i += used)
        if (!read_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used)) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    static outcome outcomes[MOST_RULES];
    options o;
    int32_t failed;
    collect_rules();
    if (!read_options(&o, argc, argv)) {
        (void)fprintf(stderr, "usage: conformance [--only ID] [--devices N] [--plant NAME] "
                              "[--markdown [--other FILE]] [--compare FILE]\n"
                              "       conformance --self-test | --list | --plants\n");
        return 2;
    }
    if (o.list) list_rules();
    if (o.list_plants) list_plants();
    if (o.list || o.list_plants) return 0;
    if (!world_open(o.devices)) {
        (void)printf("no GPU\n");
        return NO_GPU;
    }
    if (o.self_test && world_plants()->name == NULL) {
        (void)fprintf(stderr, "conformance: no bugs can be planted here\n");
        return 2;
    }
    failed = o.self_test         ? self_test(&o)
             : o.compare != NULL ? compare(&o)
             : o.markdown        ? markdown(&o)
                                 : run_all(&o, outcomes, 1);
    world_close();
    return failed != 0;
}
