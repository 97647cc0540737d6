/* cai_check.h - what is not ordered: races, orders of work that change memory, interleavings of host threads
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_check.h and cai_check.c beside cai_sim.h and cai_sim.c. */
#ifndef CAI_CHECK_H_INCLUDED
#define CAI_CHECK_H_INCLUDED

/*
WHAT IT IS
    A wait that is missing shows only now and then on a GPU. Here it shows always. A program that exchanges
    arrays runs on the simulated CUDA of cai_sim.h, and two oracles judge it that know nothing of one another:

    races   two accesses to the same memory, one of them a write, that nothing orders. Found by vector clocks
            over the trace of one run: nothing has to go wrong for a race to be found.
    orders  the program runs again and again, each time with the queued work in another order that streams
            and events allow. Final memory that differs from that of the sequential run is a bug, whatever
            the clocks say.

    And if the program has several host threads, it runs with their calls interleaved in every way.

DO THIS
    Write the program as a function that makes everything it needs, and leaves out all assertions about order:

        static void program(cai_sim *sim, void *argument)
        {
            uint64_t producer = cai_sim_stream_create(sim, 1), consumer = cai_sim_stream_create(sim, 1);
            uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
            cai_sim_access whole = cai_sim_writes(memory, 1024);
            cai_sim_touch(sim, producer, "fill", &whole, 1);
            your_exchange(cai_sim_cuda(sim), memory, producer, consumer); // calls cai_sim_touch in its midst
            cai_sim_touch(sim, producer, "overwrite", &whole, 1);
            cai_sim_stream_synchronize(sim, producer);
            cai_sim_free(sim, memory);
            cai_sim_stream_destroy(sim, producer);
            cai_sim_stream_destroy(sim, consumer);
        }

    and give it to cai_check:

        cai_check_result result;
        if (cai_check(program, NULL, NULL, &result)) puts(result.text);

    which prints, if the consumer forgot to wait:

        race on m1[0, 1024): "fill" writes on s1 (operation 2), "scale" writes on s2 (operation 4); nothing
        makes s2 wait for s1

    What the code under test keeps in static variables must be made anew in each run: open and close your
    library in the program. Handles of one run are none in the next.

WHAT COUNTS AS AN ORDER
    One operation comes before another if they are in one stream, in that order; if the second is in a stream
    that waits for an event recorded after the first; if CUDA's implicit synchronization of the legacy stream
    says so; if the host waited for the first, or learned from a query that it had run, before it called for
    the second; and by any chain of these. What the host does comes before what it queues afterwards. Two host
    threads are ordered by cai_sim_publish and cai_sim_observe only: mutexes and queues are not seen.

WHAT COUNTS AS AN ACCESS
    What launches and cai_sim_host_access declare; memory_free_async, an immediate free and the end of a
    registration write all of the memory; memory_alloc_async writes it in its stream. Memory that is aliased
    is the same under both addresses. What was captured is compared within its capture.

THE LIMITS
    Orders are those of what was queued: CUDA makes no promise that two kernels do not overlap, so that work
    that is unordered is tried in both orders, one after the other, never half by half. An order changes
    memory only if the work does: use cai_sim_touch and cai_sim_host_touch, or functions that write something
    that depends on what they read.
    Host threads are interleaved at their starts and at calls that another thread can notice: all but queries
    of contexts, streams, captures and pointers, and changes of context or capture mode. Where another order
    of the work makes a query answer otherwise, and the thread then makes other calls, these are interleaved
    in every way, too, but only their races count, as there is no run to compare memory with.
    Of orders that differ only in work on different memory, one is run, if it is work without functions.
    Host threads take turns at these calls, so that none of them may wait for another but by a baton. A mutex
    that is held over a call of CUDA hangs the program (which ends after a minute): stand a baton in for it,
    passed once at the beginning; take it to lock, pass it to unlock.
    Who queries one event a fifth time, while nothing else has happened, is taken to wait for it in a loop.
*/

#include "cai_sim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>order */
/** "Happens before" of one trace, as it is now. */
typedef struct cai_check_order cai_check_order;

/** Works it out; never NULL. Free it with cai_check_order_free. */
cai_check_order *cai_check_order_make(cai_sim *sim);
void cai_check_order_free(cai_check_order *order);

/** 1: operation `first` happens before operation `second` (ids of the trace). */
int32_t cai_check_before(const cai_check_order *order, uint64_t first, uint64_t second);

/* -------------------------------------------------------------------- >>races */
/** Two accesses, at least one of them a write, that nothing orders. */
typedef struct cai_check_race {
    uint64_t first, second;  /* operations, in the order of the calls */
    uint64_t address, bytes; /* what both touch: of the first pair of accesses that meet */
    int32_t first_writes, second_writes;
} cai_check_race;

/** The races of the trace, by second, then first operation: their number, and the first `capacity`. One for
 *  each pair of operations. */
int32_t cai_check_races(cai_sim *sim, cai_check_race *races, int32_t capacity);

enum { CAI_CHECK_TEXT = 640 };

/** One line without a newline that names memory, both sites, and what is missing. text: CAI_CHECK_TEXT
 *  bytes. */
void cai_check_race_text(cai_sim *sim, const cai_check_race *race, char *text);

/* ----------------------------------------------------------------- >>programs */
/** A program to check. It runs many times, each time on a new simulation in which the primary context of
 *  device 0 is current; it must do the same each time but for what queries answer. What it leaves behind is
 *  freed. */
typedef void (*cai_check_program)(cai_sim *sim, void *argument);

/** In a program: runs `count` functions (1 to 8) on host threads of their own, and returns when all have
 *  ended. They come after what the caller did before, and before what it does then. The primary context of
 *  device 0 is current in each. Outside of cai_check they run one after the other. */
void cai_check_threads(cai_sim *sim, const cai_check_program *functions, void *const *arguments,
                       int32_t count);

/** In a program: a baton between host threads, 0 to 15. Pass: what this thread did comes before what one that
 *  takes it does. Take: waits until it was passed once more than it was taken. */
void cai_check_pass(cai_sim *sim, int32_t baton);
void cai_check_take(cai_sim *sim, int32_t baton);

/** In a program: says that something that must hold does not; the check fails, with this text unless there is
 *  a race. Outside of cai_check the text goes to the standard error stream. */
void cai_check_fail(cai_sim *sim, const char *text);

/** Options; zero is the default of each. */
typedef struct cai_check_options {
    int32_t devices;  /* of the simulation; 0: 1 */
    int32_t samples;  /* 0: every interleaving and every order; else so many of each, chosen by `seed` */
    uint64_t seed;
    int64_t limit;    /* runs at most; 0: 200,000. A search that is cut off by it fails. */
    const char *omit; /* an operation of the table whose `omit_call`-th call of each run does nothing and
                         succeeds ("event_record": the names are those of the call log); NULL: none */
    int32_t omit_call; /* 1: the first */
    int32_t omit_thread; /* 0: counted over all host threads; else only calls of host thread 1, 2, ... as
                            cai_check_threads counts them, -1: those of the program itself */
    /* Called at the end of the first run of each interleaving, whose work was run as it came; NULL: not */
    void (*each)(cai_sim *sim, void *argument);
    void *each_argument;
} cai_check_options;

/** What was found. */
typedef struct cai_check_result {
    int64_t interleavings; /* of the calls of host threads; 1 for a program with one */
    int64_t orders;        /* of the queued work that were run, over all interleavings (1 where all is
                              ordered): all of one, or until both oracles have found something */
    int64_t racy;          /* interleavings with a race */
    int64_t changed;       /* interleavings of which some order changes final memory; those whose races are
                              between host threads alone, if interleavings come out differently */
    int64_t disagreements; /* interleavings with one and not the other, but for races in captures */
    int32_t truncated;     /* 1: the limit was reached */
    int32_t omitted;       /* 1: the call to be left out was made, in some run */
    int32_t failed;        /* 1: cai_check_fail, host threads that wait for one another, something left alive,
                              and as its work ran as it came: an error of a context or of a host thread */
    char text[CAI_CHECK_TEXT]; /* an error of a context; else the first race; else what else is wrong; "" */
} cai_check_result;

/** Runs a program in every way and judges it. 0: no race, no order that changes memory, nothing failed,
 *  nothing left alive, and the search was complete; else 1, and result->text says why. options: may be NULL.
 *  result: may be NULL. */
int32_t cai_check(cai_check_program program, void *argument, const cai_check_options *options,
                  cai_check_result *result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_CHECK_H_INCLUDED */
