/* programs.h - what the programs of the proof are made of: streams by letters, arrays, owners
 * SPDX-License-Identifier: MIT
 *
 * A program exchanges arrays by cai in some way and says, by cai_sim_touch, what the work on both sides
 * really touches. It ends with the owner overwriting or freeing the memory, so that an order that is missing
 * at either end of an exchange shows. A program does not judge: cai_check does. */
#ifndef PROOF_PROGRAMS_H_INCLUDED
#define PROOF_PROGRAMS_H_INCLUDED

#include <string.h>

#include "cai_check.h"
#include "cai_manager.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROOF_PLACES = 4, PROOF_STREAMS = 26, PROOF_BYTES = 64 };

/* Streams by letters. Each stands for one stream of the world, made when it is first used:
 *     0-9  non-blocking streams of device 0        A-J  blocking ones
 *     L    the legacy stream of device 0           P    the per-thread stream of device 0
 *     q-t  non-blocking streams of device 1        x-z  blocking ones
 *     l, p as L and P, of device 1
 *     u-w  non-blocking streams of a second context of device 0, k its legacy stream */
typedef struct proof_world {
    cai_sim *sim;
    const cai_cuda *cuda;
    cai_event_pool pool;
    cai_keepalive places[PROOF_PLACES];
    uint64_t contexts[3]; /* of device 0, of device 1, the second one of device 0 */
    uint64_t streams[PROOF_STREAMS];
    char letters[PROOF_STREAMS];
    int32_t stream_count;
    cai_manager emm;
    cai_emm_hooks hooks;
    char undefined[200]; /* the first call with a dead handle */
} proof_world;

/** Who owns an array, and what the owner does when it is released. */
typedef struct proof_owner {
    proof_world *world;
    uint64_t memory;
    char letter;       /* the memory is freed in the order of this stream; 0: by the host, at once */
    int32_t overwrite; /* 1: instead of that it is written to; the program frees it */
    int32_t released;
    char drops;        /* 0, or a stream that it destroys then */
} proof_owner;

/** A program and the simulation it needs. */
typedef struct proof_program {
    const char *name;
    cai_check_program program;
    const void *argument;
    int32_t devices;
    int32_t threads; /* host threads of its own */
    int32_t samples; /* 0: every interleaving and order is run; else so many of each */
} proof_program;

/** All of them, one list after the other; the number of each. */
int32_t proof_exchanges(const proof_program **list);
int32_t proof_chains(const proof_program **list);
int32_t proof_graphs(const proof_program **list);
int32_t proof_threads(const proof_program **list);
int32_t proof_memory(const proof_program **list);
int32_t proof_recipes(const proof_program **list);
int32_t proof_storages(const proof_program **list);

/** A world with a pool that keeps up to `capacity` arrays alive, and its end: what was used is destroyed. */
void proof_open(proof_world *world, cai_sim *sim, int32_t capacity);
void proof_close(proof_world *world);

/** Something that must succeed: a call of cai, or one of the simulation. */
void proof_good(proof_world *world, cai_status status, const char *what);
void proof_zero(proof_world *world, int32_t error, const char *what);

/** The stream of a letter; its context, which current makes current, returning the one before. */
uint64_t proof_stream(proof_world *world, char letter);
uint64_t proof_context(const proof_world *world, char letter);
uint64_t proof_current(proof_world *world, char letter);
void proof_restore(proof_world *world, uint64_t context);

/** Destroys the stream of a letter if it is one by itself and was made: nobody may name it any more, and its
 *  work goes on. Streams of the second context stay, as the end of that context ends their work. */
void proof_drop(proof_world *world, char letter);

/** Memory of a kind (CAI_SIM_MEM_...) in the context of a letter, and a borrowed array that fills it. */
uint64_t proof_memory_of(proof_world *world, char letter, int32_t kind);
void proof_array(proof_world *world, cai_array *array, uint64_t memory);

/** All of an array, read or written. */
cai_sim_access proof_reads(const cai_array *array);
cai_sim_access proof_writes(const cai_array *array);

/** A kernel in the stream of a letter, or in a stream of the current context. */
void proof_touch(proof_world *world, char letter, const char *name, const cai_sim_access *accesses,
                 int32_t count);
void proof_touch_stream(proof_world *world, uint64_t stream, const char *name, const cai_sim_access *accesses,
                        int32_t count);
void proof_write(proof_world *world, char letter, const char *name, const cai_array *array);
void proof_read(proof_world *world, char letter, const char *name, const cai_array *array);

/** The host waits for the stream of a letter. */
void proof_wait(proof_world *world, char letter);

/** The array is owned from now on, with CAI_ORDERED_FREE if the letter is not 0. */
void proof_own(proof_owner *owner, cai_array *array, proof_world *world, uint64_t memory, char letter);

/** cai_stream_export of an array in the context of the letter. */
void proof_export(proof_world *world, cai_array *array, char letter);

/** A whole exchange of one array by default options, which the consumer, in the stream of a letter, writes
 *  (1) or reads (0). */
void proof_exchange(proof_world *world, cai_array *array, char letter, const char *name, int32_t writes);

/** The same with a consumer that writes and gives the array back. */
void proof_finish(proof_world *world, cai_array *array, char letter, const char *name);

/** The memory is freed by the host, which waits for the stream of the letter first (0: for none). */
void proof_free(proof_world *world, uint64_t memory, char letter);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PROOF_PROGRAMS_H_INCLUDED */
