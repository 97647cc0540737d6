/* programs_storage.c - storages and fields as arguments: copies on home, accesses, exports, given arrays
 * SPDX-License-Identifier: MIT
 *
 * What a program does is a script of steps. The copies of cai_storage.h are operations of the simulation, and
 * each access says what it touches. So a copy that is not in order with an access is a race. */
#include "programs.h"

#ifndef CAI_TESTS_LINKED
#define CAI_LAYOUT_IMPLEMENTATION
#define CAI_TRANSFER_IMPLEMENTATION
#define CAI_STORAGE_IMPLEMENTATION
#define CAI_ACCESS_IMPLEMENTATION
#endif
#include "cai_access.h"

/* Two storages, A and B. Steps are separated by blanks. Each has the letter of what it does, that of the
 * stream (@: the host), and one of r, w, o for read, write, overwrite. a, b: an access of A, of B. x: an
 * export of A on home, used by an exchange. y: an export on the stream. f: both are arguments, A with this
 * mode, B is read. = assigns A to B. ? starts a copy to the side of the
 * letter. */
typedef struct storage_case {
    const char *name, *script;
    char home, home_of_b; /* streams */
    int32_t kind;
    int32_t pool;   /* device memory is allocated and freed in the order of a stream */
    char given;     /* 0: A is allocated; else A wraps an array that is filled in this stream */
} storage_case;

typedef struct storage_world {
    proof_world world;
    const storage_case *of;
    cai_storage a, b;
} storage_world;

/* ------------------------------------------------------------------ storages */
static void make(storage_world *at, cai_storage *out, char home, int32_t kind)
{
    const int64_t extent = PROOF_BYTES / 4;
    cai_storage_options options;
    cai_layout layout;
    cai_dtype dtype;
    memset(&options, 0, sizeof options);
    memset(&layout, 0, sizeof layout);
    options.pool = &at->world.pool;
    options.hooks = &at->world.hooks;
    options.home = proof_stream(&at->world, home);
    options.kind = kind;
    layout.ndim = 1;
    layout.shape[0] = extent;
    proof_good(&at->world, cai_dtype_of(CAI_FLOAT32, &dtype, NULL), "cai_dtype_of");
    proof_good(&at->world, cai_storage_init(out, &options, &dtype, &layout, NULL), "cai_storage_init");
}

/* A over an owned array that a library filled in its stream, and frees in the order of that. */
static void wrap(storage_world *at, proof_owner *owner)
{
    const char letter = at->of->given;
    proof_world *world = &at->world;
    cai_storage_options options;
    cai_array array;
    const uint64_t memory = proof_memory_of(world, letter, CAI_SIM_MEM_POOL);
    memset(&options, 0, sizeof options);
    options.pool = &world->pool;
    options.hooks = &world->hooks;
    options.home = proof_stream(world, at->of->home);
    options.kind = at->of->kind;
    proof_array(world, &array, memory);
    array.memory = CAI_MEMORY_DEVICE;
    array.device = 0;
    proof_write(world, letter, "fill", &array);
    proof_export(world, &array, letter);
    proof_own(owner, &array, world, memory, letter);
    proof_good(world, cai_storage_wrap(&at->a, &options, NULL, &array, 0, NULL), "cai_storage_wrap");
}

/* Pinned memory by cudaHostAlloc, memory of the device by cudaMalloc or from the pool of the device. */
static void make_hooks(storage_world *at)
{
    proof_world *world = &at->world;
    cai_emm_hooks pinned;
    proof_good(world, cai_emm_hooks_cuda(&pinned, world->cuda, NULL), "cai_emm_hooks_cuda");
    world->hooks = pinned;
    if (!at->of->pool) return;
    proof_good(world, cai_emm_hooks_async(&world->hooks, world->cuda, NULL, NULL), "cai_emm_hooks_async");
    world->hooks.host_alloc = pinned.host_alloc;
    world->hooks.host_free = pinned.host_free;
}

static void open_storages(storage_world *at, cai_sim *sim, void *argument, proof_owner *owner)
{
    proof_world *world = &at->world;
    memset(at, 0, sizeof *at);
    at->of = (const storage_case *)argument;
    proof_open(world, sim, PROOF_PLACES);
    make_hooks(at);
    if (at->of->given) wrap(at, owner);
    else make(at, &at->a, at->of->home, at->of->kind);
    if (at->of->home_of_b) make(at, &at->b, at->of->home_of_b, CAI_STORAGE_BOTH);
}

static void close_storages(storage_world *at)
{
    proof_good(&at->world, cai_storage_release(&at->a, NULL), "cai_storage_release");
    proof_good(&at->world, cai_storage_release(&at->b, NULL), "cai_storage_release");
    proof_good(&at->world, cai_keepalive_drain(&at->world.pool, NULL), "drain");
    proof_close(&at->world);
}

/* --------------------------------------------------------------------- steps */
static int32_t mode_of(char letter)
{
    return letter == 'r' ? CAI_READ : letter == 'w' ? CAI_WRITE : CAI_OVERWRITE;
}

/* The work: a kernel, or the host's. */
static void touch(storage_world *at, char letter, const char *name, const cai_array *array, int32_t mode)
{
    const cai_sim_access access = mode == CAI_READ ? proof_reads(array) : proof_writes(array);
    if (letter == '@') cai_sim_host_touch(at->world.sim, name, &access, 1);
    else proof_touch(&at->world, letter, name, &access, 1);
}

static void access_step(storage_world *at, cai_storage *storage, char letter, int32_t mode)
{
    const int32_t side = letter == '@' ? CAI_SIDE_HOST : CAI_SIDE_DEVICE;
    const uint64_t stream = letter == '@' ? 0 : proof_stream(&at->world, letter);
    cai_storage_access a;
    proof_good(&at->world, cai_storage_begin(&a, storage, side, mode, stream, NULL), "cai_storage_begin");
    if (!a.storage) return;
    touch(at, letter, mode == CAI_READ ? "read" : "write", &a.array, mode);
    proof_good(&at->world, cai_storage_end(&a, CAI_OK, NULL), "cai_storage_end");
}

/* Exported on home, and exchanged with the stream of the letter; or exported on that one. */
static void export_step(storage_world *at, int exchanged, char letter, int32_t mode)
{
    const uint64_t stream = proof_stream(&at->world, exchanged ? at->of->home : letter);
    cai_array array;
    proof_good(&at->world, cai_storage_export(&at->a, CAI_SIDE_DEVICE, mode, stream, &array, NULL),
               "cai_storage_export");
    if (exchanged) proof_exchange(&at->world, &array, letter, "exported", mode != CAI_READ);
    else touch(at, letter, "exported", &array, mode);
    cai_array_release(&array);
}

static void arguments_step(storage_world *at, char letter, int32_t mode)
{
    const int32_t side = letter == '@' ? CAI_SIDE_HOST : CAI_SIDE_DEVICE;
    const uint64_t stream = letter == '@' ? 0 : proof_stream(&at->world, letter);
    cai_storage_field fields[2];
    cai_argument io[2];
    memset(io, 0, sizeof io);
    proof_good(&at->world, cai_storage_as_field(&fields[0], &at->a, NULL, NULL), "cai_storage_as_field");
    proof_good(&at->world, cai_storage_as_field(&fields[1], &at->b, NULL, NULL), "cai_storage_as_field");
    io[0].access = &fields[0].access;
    io[0].mode = mode;
    io[1].access = &fields[1].access;
    io[1].mode = CAI_READ;
    proof_good(&at->world, cai_access_begin(io, 2, &at->b.options, side, stream, NULL), "cai_access_begin");
    touch(at, letter, "first argument", &io[0].array, mode);
    touch(at, letter, "second argument", &io[1].array, CAI_READ);
    proof_good(&at->world, cai_access_end(io, 2, CAI_OK, NULL), "cai_access_end");
}

static void sync_step(storage_world *at, char letter)
{
    const int32_t side = letter == '@' ? CAI_SIDE_HOST : CAI_SIDE_DEVICE;
    proof_good(&at->world, cai_storage_sync(&at->a, side, 0, NULL), "cai_storage_sync");
}

static void run_script(cai_sim *sim, void *argument)
{
    storage_world at;
    proof_owner owner;
    const char *step;
    open_storages(&at, sim, argument, &owner);
    for (step = at.of->script; *step; step += step[3] ? 4 : 3) {
        const int32_t mode = mode_of(step[2]);
        if (step[0] == 'x' || step[0] == 'y') export_step(&at, step[0] == 'x', step[1], mode);
        else if (step[0] == 'f') arguments_step(&at, step[1], mode);
        else if (step[0] == '=') proof_good(&at.world, cai_storage_assign(&at.b, &at.a, NULL), "assign");
        else if (step[0] == '?') sync_step(&at, step[1]);
        else access_step(&at, step[0] == 'b' ? &at.b : &at.a, step[1], mode);
    }
    close_storages(&at);
}

/* ---------------------------------------------------------------------- list */
static const storage_case cases[] = {
    {"storage: there and back", "a@o a1w a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: there and back on home", "a@o a3w a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: there and back, home is the legacy stream", "a@o a1w a@r", 'L', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: there and back, memory of a pool", "a@o a1w a@r", '3', 0, CAI_STORAGE_BOTH, 1, 0},
    {"storage: there and back on another device", "a@o aqw a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: two readers, then the host writes", "a@o a1r a2r a@w a1r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: two writers on the device", "a1o a2w a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: overwritten on the host", "a@o a1r a@o a1r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: a copy ahead", "a1o ?@r a@w a2r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: a copy ahead to the device", "a@o ?3r a@o", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: device only", "a1o a2w a1r", '3', 0, CAI_STORAGE_DEVICE, 1, 0},
    {"storage: managed", "a@o a1w a@w a2r", '3', 0, CAI_STORAGE_MANAGED, 0, 0},
    {"storage: exported", "a@o x1w a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: exported twice on the legacy stream", "a@o x1w x2r aLw a@r", 'L', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: exported on the streams of consumers", "a@o y1w y2r a3w a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: exported on the legacy stream", "a@o yLw a@r", '3', 0, CAI_STORAGE_BOTH, 0, 0},
    {"storage: given, its owner frees in its stream", "a1w", '3', 0, CAI_STORAGE_DEVICE, 1, '5'},
    {"storage: given, with a host side", "a@w a1r", '3', 0, CAI_STORAGE_BOTH, 1, '5'},
    {"storage: assigned to one with another home", "a1o === b2w b@r", '3', '5', CAI_STORAGE_BOTH, 0, 0},
    {"storage: assigned, and the source is written", "a1o === a1w b@r a@r", '3', '5', CAI_STORAGE_BOTH, 0, 0},
    {"storage: assigned from the host", "a@o === a@w b1r", '3', '5', CAI_STORAGE_BOTH, 0, 0},
    {"fields: two storages as arguments", "b@o f1o a@r", '3', '5', CAI_STORAGE_BOTH, 0, 0},
    {"fields: a temporary buffer", "b@o f@w a1r", '3', '5', CAI_STORAGE_DEVICE, 1, 0},
};

enum { CASES = (int)(sizeof cases / sizeof cases[0]) };

int32_t proof_storages(const proof_program **list)
{
    static proof_program programs[CASES];
    int32_t i;
    for (i = 0; i < CASES; i++) {
        programs[i].name = cases[i].name;
        programs[i].program = run_script;
        programs[i].argument = &cases[i];
        programs[i].devices = strchr(cases[i].script, 'q') ? 2 : 1;
    }
    *list = programs;
    return CASES;
}
