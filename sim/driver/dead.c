/* dead.c - what a call was given and should not have been: handles and memory that were destroyed
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEAD_NAME = 32 };

typedef struct dead_row {
    cai_driver_dead said;
    const void *thread; /* the call of this thread has no number yet; NULL: it has */
    char name[DEAD_NAME];
} dead_row;

static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static dead_row **dead_rows; /* all of a run: each is of a call, which is kept, too */
static int32_t dead_count, dead_room, dead_waiting; /* waiting: for the numbers of their calls */

/* The same call said so before: a recorder looks at handles before the real driver does, and again after it. */
static int dead_is_known(const cai_driver_dead *said, const char *name, const void *thread)
{
    const dead_row *last = dead_count ? dead_rows[dead_count - 1] : NULL;
    if (!last || strcmp(last->name, name) || last->said.argument != said->argument)
        return 0;
    return said->used ? last->said.used == said->used : last->thread == thread;
}

/* A new row, or NULL. */
static dead_row *dead_append(void)
{
    dead_row *row = (dead_row *)calloc(1, sizeof *row);
    if (row && dead_count == dead_room) {
        const int32_t room = dead_room ? 2 * dead_room : 64;
        dead_row **more = (dead_row **)realloc(dead_rows, (size_t)room * sizeof *more);
        if (!more) {
            free(row);
            return NULL;
        }
        dead_rows = more;
        dead_room = room;
    }
    if (row)
        dead_rows[dead_count++] = row;
    return row;
}

void driver_dead_add(const cai_driver_dead *said, const char *name)
{
    const void *thread = NULL;
    cai_driver_dead found = *said;
    dead_row *row = NULL;
    found.call = driver_dead_call(&found.used, &thread);
    pthread_mutex_lock(&dead_lock);
    if (!dead_is_known(&found, name, thread))
        row = dead_append();
    if (row) {
        snprintf(row->name, sizeof row->name, "%s", name);
        row->said = found;
        row->said.name = row->name;
        row->thread = found.used ? NULL : thread;
        dead_waiting += row->thread != NULL;
        if (driver_recorder) /* the real driver may crash before there is a report */
            fprintf(stderr, "cai_sim: %s is given %s %s, which was destroyed\n", found.call, said->kind, name);
    }
    pthread_mutex_unlock(&dead_lock);
}

void driver_dead_number(const void *thread, uint64_t tag)
{
    int32_t i;
    pthread_mutex_lock(&dead_lock);
    for (i = dead_count - 1; i >= 0 && dead_waiting; --i) {
        if (dead_rows[i]->thread != thread)
            continue;
        dead_rows[i]->thread = NULL;
        dead_rows[i]->said.used = tag;
        --dead_waiting;
    }
    pthread_mutex_unlock(&dead_lock);
}

/* Of cai_sim_on_undefined. The call fails, and the program goes on. A recorder does not know all handles. */
void driver_dead_handle(void *context, const cai_sim_undefined *what)
{
    cai_driver_dead said;
    (void)context;
    if (driver_recorder && !what->made)
        return;
    memset(&said, 0, sizeof said);
    said.what = what->made ? CAI_DRIVER_DESTROYED : CAI_DRIVER_NEVER_MADE;
    said.kind = what->kind;
    said.made = what->made_tag;
    said.destroyed = what->destroyed_tag;
    driver_dead_add(&said, what->name);
}

void driver_dead_argument(uint64_t address, int32_t argument)
{
    cai_sim_lifetime known;
    cai_driver_dead said;
    uint64_t freed = 0;
    char name[DEAD_NAME];
    if (driver_recorder || !cai_sim_memory_lifetime(cai_driver_sim(), address, &known))
        return;
    if (!known.live && known.kind == CAI_SIM_MEM_REGISTERED) /* it is memory of the program all the same */
        return;
    if (driver_graph_freed(address, &freed)) {
        known.live = 0;
        known.ended = freed;
    }
    memset(&said, 0, sizeof said);
    said.what = known.live ? CAI_DRIVER_OUT_OF_REACH : CAI_DRIVER_DESTROYED;
    said.argument = argument;
    said.kind = "memory";
    said.made = known.made;
    said.destroyed = known.live ? 0 : known.ended;
    said.of_device = known.device;
    said.device = driver_current_device();
    snprintf(name, sizeof name, "m%d", known.number);
    driver_dead_add(&said, name);
}

static int dead_is_memory(uint64_t address)
{
    cai_sim_lifetime known;
    uint64_t freed;
    if (!address || !cai_sim_memory_lifetime(cai_driver_sim(), address, &known))
        return 0;
    return !known.live || driver_graph_freed(address, &freed);
}

CUresult driver_dead_memory(CUresult result, uint64_t first, uint64_t second)
{
    uint64_t freed;
    if (result == CUDA_SUCCESS && (driver_graph_freed(first, &freed) || driver_graph_freed(second, &freed)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_ERROR_INVALID_VALUE)
        return result;
    if (dead_is_memory(first))
        driver_dead_argument(first, 0);
    if (dead_is_memory(second))
        driver_dead_argument(second, 0);
    return result;
}

int32_t cai_driver_undefined(int32_t index, cai_driver_dead *out)
{
    int32_t found;
    pthread_mutex_lock(&dead_lock);
    found = index >= 0 && index < dead_count;
    if (found && out)
        *out = dead_rows[index]->said;
    pthread_mutex_unlock(&dead_lock);
    return found;
}
