/* cai_timeline.h - a run of the simulated CUDA as a picture: streams as lanes, waits as arrows, races in red
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_timeline.h and cai_timeline.c beside cai_check.h and cai_sim.h. */
#ifndef CAI_TIMELINE_H_INCLUDED
#define CAI_TIMELINE_H_INCLUDED

/*
WHAT IT IS
    cai_timeline_text writes down when everything of a trace could happen at the earliest, if all work takes
    the same time: as text, which a test can compare. cai_timeline_svg draws such a text.

    There is no clock in it. Work that nothing orders stands side by side, which is where races show.

DO THIS
        const char *const labels[] = {"s1", "producer", "s2", "consumer", NULL};
        cai_timeline_options options = {"the wait is left out", 0, labels};
        char *text = cai_timeline_text(sim, &options), *svg = cai_timeline_svg(text, NULL);
        FILE *file = fopen("timeline.svg", "w");
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

    One thing a line, in this order: the title, lanes, operations, arrows, races. Strings are in quotes, with
    \" and \\ in them. Numbers are decimal, from 0 to 999999999.

    timeline TITLE
    lane NUMBER NAME LABEL
        Numbered 1, 2, ... from the top: streams, then host threads that touch memory, wait, free, or talk to
        one another, both in the order of their first use. NAME is that of the log; host threads are "host",
        "host 2", ...; what a stream captures has a lane of its own, "s1 capture 1". LABEL is what to call it.
    span OPERATION LANE START END NAME ACCESSES
        Work: a launch, or the host that touches memory. OPERATION is its id in the trace; they ascend.
        ACCESSES is like "reads m1, writes m2[0, 256)"; memory without a range is all of an allocation.
    lost OPERATION LANE START END NAME ACCESSES
        The same, but it was dropped: it did not run, and never will.
    mark OPERATION LANE START KIND NAME
        What takes no time to speak of; in the drawing it is given 1. KIND is record, wait, synchronize,
        alloc, free, publish or observe. A wait stands where it is over. Allocations that do not race are
        left out.
    arrow FROM TO LABEL
        TO waited for FROM, which is in another lane. LABEL is the event, or "implicit" for the implicit
        synchronization of the legacy stream, or "" where the host waits. What such an arrow implies has none.
    race FIRST SECOND MEMORY SENTENCE
        What cai_check_races found, and the sentence of cai_check_race_text. A race of an allocation is left
        out where later work on that memory, in the same stream, races with the same.

    Time: each call takes its host thread 1. An operation starts when all that it waits for has ended, but
    not before it was called. Work takes 8, marks take 1. A synchronization takes the host to the end of what
    it waited for.

    cai_timeline_svg takes nothing else: in a lane one thing comes after the other, an arrow does not go back
    in time, and arrows and races are between two lanes.
*/

#include "cai_check.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a trace is told. Zero and NULL are the default of each. */
typedef struct cai_timeline_options {
    const char *title;
    uint64_t first; /* the first operation to show; 0: 1 */
    /* What to call lanes: pairs of a name as in the log ("s1", "host") and a label ("producer"), ended by
       NULL. Others are called by their names. */
    const char *const *labels;
} cai_timeline_options;

/** The text of a trace as it is now, with its races. To be freed with free(). Never NULL. options: may be
 *  NULL. */
char *cai_timeline_text(cai_sim *sim, const cai_timeline_options *options);

/** An SVG of such a text, readable on a light and on a dark page. To be freed with free(). NULL: the text is
 *  not one, and *bad_line (may be NULL) is the number of the first line that is wrong. */
char *cai_timeline_svg(const char *text, int32_t *bad_line);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_TIMELINE_H_INCLUDED */
