/* cai_check.h - what is not ordered: races, orders of work that change memory, interleavings of host threads
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Copy cai_check.h and cai_check.c beside cai_sim.h and cai_sim.c. */
#ifndef CAI_CHECK_H_INCLUDED
#define CAI_CHECK_H_INCLUDED

/*
WHAT IT IS
    On a GPU a missing wait is seldom visible. Here it is always found. A program that exchanges arrays runs
    on the simulated CUDA of cai_sim.h. Two independent oracles judge the program:

    races   Vector clocks find two accesses to the same memory, one of them a write, that nothing orders. One
            run is enough, even if its result was right.
    orders  The program runs many times, each time with the queued work in another order that streams and
            events allow. If final memory differs from that of the sequential run, this is a bug, even if the
            clocks find no race.

    If the program has several host threads, their calls are also interleaved in every way.

DO THIS
    Write the program as a function that makes everything that it needs. It asserts no order.

        static void program(cai_sim *sim, void *argument)
        {
            uint64_t producer = cai_sim_stream_create(sim, 1), consumer = cai_sim_stream_create(sim, 1);
            uint64_t memory = cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 1024);
            cai_sim_access whole = cai_sim_writes(memory, 1024);
            cai_sim_touch(sim, producer, "fill", &whole, 1);
            your_exchange(cai_sim_cuda(sim), memory, producer, consumer); // its kernel: cai_sim_touch "scale"
            cai_sim_touch(sim, producer, "overwrite", &whole, 1);
            cai_sim_stream_synchronize(sim, producer);
            cai_sim_free(sim, memory);
            cai_sim_stream_destroy(sim, producer);
            cai_sim_stream_destroy(sim, consumer);
        }

    Pass it to cai_check:

        cai_check_result result;
        if (cai_check(program, NULL, NULL, &result)) puts(result.text);

    If the consumer does not wait, this prints:

        race on m1[0, 1024): "fill" writes on s1 (operation 2), "scale" writes on s2 (operation 4); nothing
        makes s2 wait for s1

    The program must open and close your library. Handles of one run are not valid in the next run, also those
    in static variables.

WHAT COUNTS AS AN ORDER
    Operation A comes before operation B in each of these cases:
    - A is before B in the same stream.
    - The stream of B waits for an event that was recorded after A.
    - CUDA's implicit synchronization of the legacy stream orders them.
    - The host waited for A, or a query returned that A had run, before the call of B.
    Chains of these count. An act of the host comes before the work that it queues afterwards. Between host
    threads only cai_sim_publish and cai_sim_observe count. Mutexes and queues do not.

WHAT COUNTS AS AN ACCESS
    Launches and cai_sim_host_access declare accesses. A copy accesses the bytes of its rows.
    memory_free_async, an immediate free and the end of a registration write all of the memory.
    memory_alloc_async writes it in its stream. Aliased memory is the same under both addresses. Captured
    accesses are compared within their capture. At a launch of the graph its nodes access the memory, and a
    race between two branches is then found once more.

    An access of CAI_SIM_MAY_WRITE reads, and may write. A race with it is certain if the other access writes,
    else possible. An access of CAI_SIM_MAY_READ or CAI_SIM_MAY_ACCESS may not be made at all, so a race with
    it is possible at most. cai_check counts certain races, and cai_check_races lists both.

WHAT IS DEAD
    If a call uses a stream, an event or another handle that was destroyed, the simulation ends the program. It
    names this call, and the calls that made and destroyed the handle. A program that sets
    cai_sim_on_undefined decides itself. Work on memory that was freed is an error of its context, and the
    check fails.

THE LIMITS
    Each order runs whole operations one after the other. Unordered work runs in both orders, but never half
    by half. The second oracle sees an order only if it changes memory. Use cai_sim_touch and
    cai_sim_host_touch, or functions whose writes depend on their reads. If orders differ only in work without
    functions on different memory, one of them is run.

    Host threads take turns: at their starts, and at each call whose effects another thread can see. These are
    all calls but queries of contexts, streams, captures and pointers, and changes of context or capture mode.
    So a thread must wait for another thread by a baton alone. If a thread holds a mutex over a call of CUDA,
    the program hangs, and ends after a minute. Use a baton instead, and pass it once at the beginning. Take
    it to lock, pass it to unlock.

    If another order of the work changes the result of a query, and the thread then makes other calls, these
    are interleaved in every way, too. Only their races count, because there is no run to compare memory with.
    If a thread queries one event for the fifth time, and nothing else has happened meanwhile, this counts as a
    wait for the event in a loop.

    Memory that is no allocation of the simulation, such as the pageable memory of a copy, is not compared.
    The clocks find a race on it, and the race counts as a disagreement.
*/

#include "cai_sim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>order */
/** The relation "happens before" of one trace, when it was made. */
typedef struct cai_check_order cai_check_order;

/** Computes the relation. Never returns NULL. Free the result with cai_check_order_free. */
cai_check_order *cai_check_order_make(cai_sim *sim);
void cai_check_order_free(cai_check_order *order);

/** Returns 1 if operation `first` happens before operation `second` (ids of the trace), else 0. */
int32_t cai_check_before(const cai_check_order *order, uint64_t first, uint64_t second);

/* -------------------------------------------------------------------- >>races */
/** Two accesses, at least one of them a write, that nothing orders. */
typedef struct cai_check_race {
    uint64_t first, second;  /* operations, in the order of the calls */
    uint64_t address, bytes; /* the memory of both, of the first pair of accesses that overlap */
    int32_t first_writes, second_writes;
    int32_t memory; /* the number of the allocation; 0: of none. Another one may have the address later on */
    int32_t certain; /* 1: one of the two is known to write, the other one to read or write; 0: possible */
} cai_check_race;

/** Stores the first `capacity` races of the trace, by second, then first operation. Returns the number of all
 *  races. Each pair of operations has at most one. */
int32_t cai_check_races(cai_sim *sim, cai_check_race *races, int32_t capacity);

enum { CAI_CHECK_TEXT = 640 };

/** Writes one line without a newline that names memory, both sites, and the missing order. `text` has
 *  CAI_CHECK_TEXT bytes. */
void cai_check_race_text(cai_sim *sim, const cai_check_race *race, char *text);

/* ----------------------------------------------------------------- >>programs */
/** A program to check. It runs many times, each time on a new simulation in which the primary context of
 *  device 0 is current. It must do the same each time, except where queries return other results. All that is
 *  left over is freed. Options of the simulation come from the environment (CAI_SIM_OPTIONS), until the
 *  program sets others. */
typedef void (*cai_check_program)(cai_sim *sim, void *argument);

/** Runs `count` functions (1 to 8) on host threads of their own, and returns when all have ended. For
 *  programs. They come after the earlier acts of the caller, and before its later ones. The primary context
 *  of device 0 is current in each. Outside of cai_check they run one after the other. */
void cai_check_threads(cai_sim *sim, const cai_check_program *functions, void *const *arguments,
                       int32_t count);

/** Pass or take a baton (0 to 15) between host threads of a program. The acts before a pass come before the
 *  acts after the take. A take waits until the baton was passed more often than taken. */
void cai_check_pass(cai_sim *sim, int32_t baton);
void cai_check_take(cai_sim *sim, int32_t baton);

/** Reports, from a program, that a condition does not hold. The check fails, with this text unless there is a
 *  race. Outside of cai_check the text is written to the standard error stream. */
void cai_check_fail(cai_sim *sim, const char *text);

/** Options. Zero is the default of each. */
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

/** Runs a program in every way and judges it. Returns 0 if there is no race and no order that changes memory,
 *  nothing failed, nothing is left alive, and the search was complete. Else returns 1, and result->text has
 *  the reason. `options` and `result` may be NULL. */
int32_t cai_check(cai_check_program program, void *argument, const cai_check_options *options,
                  cai_check_result *result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_CHECK_H_INCLUDED */
