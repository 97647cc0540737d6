/* cai_timeline.h - a run of the simulated CUDA as a picture: streams as lanes, waits as arrows, races in red
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_timeline.h and cai_timeline.c beside cai_check.h and cai_sim.h. */
#ifndef CAI_TIMELINE_H_INCLUDED
#define CAI_TIMELINE_H_INCLUDED

/*
WHAT IT IS
    cai_timeline_text writes a trace as text, which a test can compare. cai_timeline_svg draws such a text.
    Times are computed, not measured: all work takes the same time, and each thing has its earliest possible
    time. So unordered work stands side by side, and races are visible.

DO THIS
        const char *const labels[] = {"s1", "producer", "s2", "consumer", NULL};
        cai_timeline_options options;
        char *text, *svg;
        FILE *file = fopen("timeline.svg", "w");
        memset(&options, 0, sizeof options);
        options.title = "the wait is left out";
        options.labels = labels;
        text = cai_timeline_text(sim, &options);
        svg = cai_timeline_svg(text, NULL);
        fputs(svg, file);
        fclose(file);
        free(svg);
        free(text);

THE TEXT
        timeline "a wait that is left out"
        lane 1 "s1" "producer"
        lane 2 "s2" "consumer"
        span 1 1 0 8 "fill" "writes m1"
        mark 2 1 8 record "record e1"
        span 3 2 2 10 "scale" "reads m1, writes m2"
        race 1 3 "m1[0, 1024)" "race on m1[0, 1024): ..."

    One line for each thing: the title, then lanes, operations, arrows, races. Strings are in quotes. In them
    \" and \\ stand for a quote and a backslash. Numbers are decimal, from 0 to 999999999.

    timeline TITLE
    lane NUMBER NAME LABEL
        Numbered 1, 2, ... from the top: streams, then host threads that touch memory, wait, free, or talk to
        one another, both in the order of their first use. NAME is the name in the log. Host threads are
        "host", "host 2", ... A capture of a stream has a lane of its own, "s1 capture 1". So have further
        branches of graphs that are launched in the stream, "s1 branch 1". LABEL is the label of the picture.
    span OPERATION LANE START END NAME ACCESSES
        Work: a launch, or the host that touches memory. OPERATION is its id in the trace. The ids ascend.
        ACCESSES is like "reads m1, writes m2[0, 256)". Memory without a range is all of an allocation.
    lost OPERATION LANE START END NAME ACCESSES
        The same for work that was dropped. It did not run, and never will.
    mark OPERATION LANE START KIND NAME
        An operation without a time of its own. The drawing gives it 1. KIND is record, wait, synchronize,
        alloc, free, publish, observe or graph. A wait stands where it ends. graph is the begin or the end of
        a launch of a graph. Allocations that do not race are left out.
    arrow FROM TO LABEL
        TO waited for FROM, which is in another lane. LABEL is the event, or "implicit" for the implicit
        synchronization of the legacy stream. It is "" if the host waits, and for the edges of a graph. An
        arrow that other arrows imply is left out.
    race FIRST SECOND MEMORY SENTENCE
        A race of cai_check_races, and the sentence of cai_check_race_text. A race of an allocation is left
        out if later work on that memory, in the same stream, races with the same operation.

    Each call takes 1 of its host thread's time. An operation starts when all that it waits for has ended, but
    not before its call. Work takes 8, marks take 1. A synchronization moves the host's time to the end of the
    operations that it waited for.

    cai_timeline_svg accepts no other text. In a lane one thing comes after the other. An arrow does not go
    back in time. Arrows and races are between two lanes.
*/

#include "cai_check.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a timeline. Zero and NULL are the default of each. */
typedef struct cai_timeline_options {
    const char *title;
    uint64_t first; /* the first operation to show; 0: 1 */
    /* Labels of lanes. Pairs of a name as in the log ("s1", "host") and a label ("producer"), ended by NULL.
       The label of any other lane is its name. */
    const char *const *labels;
} cai_timeline_options;

/** Returns the text of the current trace, with its races. Free it with free(). Never returns NULL. `options`
 *  may be NULL. */
char *cai_timeline_text(cai_sim *sim, const cai_timeline_options *options);

/** Returns an SVG of such a text, readable on a light and on a dark page. Free it with free(). If the text is
 *  wrong, returns NULL and stores the number of the first wrong line. `bad_line` may be NULL. */
char *cai_timeline_svg(const char *text, int32_t *bad_line);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TIMELINE_H_INCLUDED */
