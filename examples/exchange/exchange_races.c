/* exchange_races.c - the same exchange with a wait left out: what goes wrong, in words and as a picture
 * SPDX-License-Identifier: MIT
 *
 * The program stays as it is. The simulated runtime leaves out one call of it, and runs the work in the
 * order of the calls, so that the numbers come out right, as they mostly do on a GPU. cai_check.h finds the
 * race all the same. */

#include "exchange_device.h"

#include "cai_timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };

typedef struct mistake {
    int32_t wait; /* which of the exchange's two is left out: 1, 2; 0: none */
    const char *says, *title, *file;
} mistake;

static const mistake mistakes[] = {
    {0, NULL, "An exchange, in order at both ends", "exchange.svg"},
    {1, "Without the wait of s2, the consumer may read before the producer has written:",
     "Without the wait for the producer", "exchange-no-wait.svg"},
    {2, "Without the wait of s1, the producer may free what the consumer still reads:",
     "Without the wait for the consumer (the back edge)", "exchange-no-back-edge.svg"}};

static const mistake *now;
static const char *folder; /* where to draw, or NULL */
static int32_t (*close_simulation)(void);

/* 0: written */
static int32_t write_file(const char *name, const char *text)
{
    char path[1024];
    FILE *file;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 1;
    file = fopen(path, "wb");
    if (!file) {
        printf("cannot write %s\n", path);
        return 1;
    }
    (void)fputs(text, file);
    return fclose(file) != 0;
}

static int32_t draw(cai_sim *sim)
{
    static const char *const labels[] = {"s1", "producer", "s2", "consumer", NULL};
    cai_timeline_options options;
    char *text, *svg;
    int32_t bad;
    memset(&options, 0, sizeof options);
    options.title = now->title;
    options.labels = labels;
    text = cai_timeline_text(sim, &options);
    svg = cai_timeline_svg(text, NULL);
    bad = !svg || write_file(now->file, svg);
    free(svg);
    free(text);
    return bad;
}

/* The sentence of a race, with CUDA's name for the function that the simulation calls memory_free_async. */
static void say(const char *race)
{
    static const char slot[] = "memory_free_async";
    const char *at = strstr(race, slot);
    if (at) printf("  %.*scudaFreeAsync%s\n", (int)(at - race), race, at + strlen(slot));
    else printf("  %s\n", race);
}

/* In place of the device's own close: looks at what happened before all is gone. 0: as expected. */
static int32_t look_and_close(void)
{
    cai_sim *sim = exchange_simulation(0);
    char text[CAI_CHECK_TEXT];
    uint64_t seen = 0;
    cai_check_race races[MOST];
    const int32_t count = cai_check_races(sim, races, MOST);
    int32_t bad = count > MOST || (count != 0) != (now->wait != 0);
    if (!bad && count) {
        cai_check_race_text(sim, &races[count - 1], text); /* those before it are with the allocation */
        printf("\n%s\n%s", now->says, exchange_operations(&seen));
        say(text);
        if (folder) printf("  drawn: %s/%s\n", folder, now->file);
    }
    if (folder && draw(sim)) bad = 1;
    return close_simulation() || bad;
}

static int run_with(exchange_program program, const mistake *which)
{
    exchange_device device;
    cai_sim *sim;
    now = which;
    if (!exchange_simulated(&device)) return 1;
    close_simulation = device.close;
    device.close = look_and_close;
    device.quiet = 1;
    sim = exchange_simulation(0);
    if (now->wait) (void)cai_sim_omit_op(sim, "stream_wait_event", now->wait);
    return program(&device);
}

int exchange_races(exchange_program program, const char *drawings)
{
    folder = drawings;
    if (run_with(program, &mistakes[0])) return 1;
    if (folder) printf("drawn: %s/%s\n", folder, mistakes[0].file);
    printf("\nThe same with one wait left out. This is the bug in your extension.\n");
    if (run_with(program, &mistakes[1]) || run_with(program, &mistakes[2])) return 1;
    printf("\nIn these runs all numbers were right. Nothing makes a GPU run in that order.\n");
    return 0;
}
