/* storages.c - exports of storages are released on other threads, while the owner of each storage works on it.
 * SPDX-License-Identifier: MIT
 *
 *     storages thin|sim THREADS ROUNDS
 *
 * CUDA is that of threads.c, which takes no lock: what orders the threads is the storage (and the pool). Half of the
 * threads own a storage each, the others release what these export. Home waits for the work of an export as it is
 * released, and the host for home before it writes: so what the host waited for must be all that home waits for.
 * Prints one line; the exit status is 1 if that was not so, or something is left over. */
int main_of_threads(int argc, char **argv);
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#define main main_of_threads
#include "threads.c"
#undef main
#include "cai_storage.h"

enum { OWNERS = MOST_THREADS / 2, WAITING = 4 };

typedef struct owner {
    pthread_t thread;
    int64_t number, rounds, operations, conflicts, failures;
    uint64_t random, home, stream;
    cai_storage storage;
    cai_array *waiting[WAITING]; /* exports that a thread may release */
} owner;

static owner owners[OWNERS];
static cai_emm_hooks hooks;
static int64_t ended, early; /* owners; the host wrote before home had waited */
static int64_t joined[OWNERS], waited[OWNERS]; /* waits of home; those that had been when the host waited */

/* ------------------------------------------------------------------ table */
static int64_t owner_of_home(uint64_t stream)
{
    return stream >= STREAM_BASE && stream < STREAM_BASE + 2 * OWNERS ? (int64_t)(stream - STREAM_BASE) / 2 : -1;
}

static int32_t count_wait(void *self, uint64_t stream, uint64_t number)
{
    const int32_t error = thin_wait(self, stream, number);
    if (owner_of_home(stream) >= 0) add(&joined[owner_of_home(stream)], 1);
    return error;
}

static int32_t count_synchronize(void *self, uint64_t stream)
{
    (void)self;
    if (owner_of_home(stream) >= 0) set(&waited[owner_of_home(stream)], get(&joined[owner_of_home(stream)]));
    sched_yield();
    return 0;
}

static int32_t copy_line(void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream)
{
    (void)self, (void)to, (void)from, (void)size, (void)stream;
    return 0;
}

static int32_t copy_rows(void *self, const struct cai_cuda_copy_v0 *copy, uint64_t stream)
{
    (void)self, (void)copy, (void)stream;
    return 0;
}

static int32_t set_line(void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream)
{
    (void)self, (void)to, (void)value, (void)size, (void)stream;
    return 0;
}

static int give_plain(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)stream;
    return posix_memalign(ptr, 256, size) ? 2 : 0; /* as aligned as CUDA's */
}

static int take_plain(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    (void)ctx, (void)size, (void)stream;
    free(ptr);
    return 0;
}

static int give_pinned(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    (void)flags;
    return give_plain(ctx, ptr, size, NULL);
}

static void fill_hooks(void)
{
    memset(&hooks, 0, sizeof hooks);
    hooks.struct_size = (uint32_t)sizeof hooks;
    hooks.version = CAI_EMM_VERSION;
    hooks.kind = CAI_MEMORY_DEVICE;
    hooks.device_alloc = give_plain;
    hooks.device_free = take_plain;
    hooks.host_alloc = give_pinned;
    hooks.host_free = take_plain;
}

/* ------------------------------------------------------------------- work */
/* This thread is one of CUDA's host threads, and context 1 is current. */
static void play(int64_t number)
{
    me = number;
    if (sim) cai_sim_set_context(sim, cai_sim_primary(sim, 0));
}

static void release_one(cai_array **place)
{
    cai_array *array = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL);
    if (!array) return;
    cai_array_release(array);
    free(array);
}

/* An export goes on the shelf; what was there is released here. */
static cai_status export_side(owner *o, int32_t side, int32_t mode, cai_error *err)
{
    cai_array *array = (cai_array *)malloc(sizeof *array);
    cai_array **place = &o->waiting[(o->random >> 50) % WAITING];
    cai_status status;
    if (!array) return CAI_ERR_OUT_OF_MEMORY;
    status = cai_storage_export(&o->storage, side, mode, o->stream, array, err);
    if (status) {
        free(array);
        return status;
    }
    release_one(place);
    __atomic_store_n(place, array, __ATOMIC_RELEASE);
    return CAI_OK;
}

/* While it writes, no export is open: home waits for all of them, and the host waited for home. */
static cai_status write_on_host(owner *o, cai_error *err)
{
    cai_storage_access a;
    CAI_TRY(cai_storage_begin(&a, &o->storage, CAI_SIDE_HOST, CAI_OVERWRITE, 0, err));
    if (!sim && get(&joined[o->number]) != get(&waited[o->number])) add(&early, 1);
    return cai_storage_end(&a, CAI_OK, err);
}

static cai_status work_on_device(owner *o, int32_t mode, cai_error *err)
{
    cai_storage_access a;
    CAI_TRY(cai_storage_begin(&a, &o->storage, CAI_SIDE_DEVICE, mode, o->stream, err));
    return cai_storage_end(&a, CAI_OK, err);
}

static cai_status one_operation(owner *o, cai_error *err)
{
    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    switch ((o->random >> 33) % 8) {
    case 0: return export_side(o, CAI_SIDE_HOST, CAI_READ, err);
    case 1: return export_side(o, CAI_SIDE_DEVICE, CAI_READ, err);
    case 2: return export_side(o, CAI_SIDE_DEVICE, CAI_WRITE, err);
    case 3: return work_on_device(o, CAI_WRITE, err);
    case 4: return work_on_device(o, CAI_OVERWRITE, err);
    case 5: return cai_storage_sync(&o->storage, 0, 0, err);
    default: return write_on_host(o, err);
    }
}

static cai_status open_storage(owner *o, cai_error *err)
{
    const cai_storage_options zero = {NULL, NULL, NULL, 0, 0, 0};
    cai_storage_options options = zero;
    cai_layout layout;
    cai_dtype dtype;
    memset(&layout, 0, sizeof layout);
    layout.ndim = 1;
    layout.shape[0] = 16;
    options.pool = &pool;
    options.hooks = &hooks;
    options.home = o->home;
    options.kind = CAI_STORAGE_BOTH;
    CAI_TRY(cai_dtype_of(CAI_FLOAT32, &dtype, err));
    return cai_storage_init(&o->storage, &options, &dtype, &layout, err);
}

static void *work_on_storage(void *argument)
{
    owner *o = (owner *)argument;
    cai_error err;
    int64_t i;
    play(o->number + 1);
    if (open_storage(o, &err)) {
        printf("%s\n", err.message);
        o->failures++;
    }
    for (i = 0; i < o->rounds && !o->failures; i++) {
        const cai_status status = one_operation(o, &err);
        o->operations++;
        o->conflicts += status == CAI_ERR_CONFLICT;
        if (status && status != CAI_ERR_CONFLICT) {
            printf("%s\n", err.message);
            o->failures++;
        }
    }
    for (i = 0; i < WAITING; i++) release_one(&o->waiting[i]);
    while (cai_storage_release(&o->storage, &err) == CAI_ERR_PENDING) sched_yield(); /* one is being released */
    add(&ended, 1);
    return NULL;
}

static int64_t owner_count;

static void *release_all(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;
    play((int64_t)(uintptr_t)argument + 1);
    while (get(&ended) < owner_count) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        release_one(&owners[(random >> 33) % (uint64_t)owner_count].waiting[(random >> 60) % WAITING]);
    }
    return NULL;
}

/* ------------------------------------------------------------------ main */
static void add_copies(int simulated)
{
    if (simulated) return;
    table.copy_async = copy_line;
    table.copy_3d_async = copy_rows;
    table.set_async = set_line;
    table.stream_wait_event = count_wait;
    table.stream_synchronize = count_synchronize;
}

static int run_storages(int64_t threads, int64_t rounds)
{
    pthread_t releasers[OWNERS];
    int64_t i, operations = 0, conflicts = 0, failures = 0;
    cai_error err;
    owner_count = threads / 2;
    for (i = 0; i < owner_count; i++) {
        owners[i].number = i;
        owners[i].rounds = rounds;
        owners[i].random = (uint64_t)i * 7919 + 1;
        owners[i].home = sim ? cai_sim_stream_create(sim, 1) : STREAM_BASE + 2 * (uint64_t)i;
        owners[i].stream = sim ? cai_sim_stream_create(sim, 1) : STREAM_BASE + 4096 + 2 * (uint64_t)i;
    }
    for (i = 0; i < owner_count; i++) {
        if (pthread_create(&owners[i].thread, NULL, work_on_storage, &owners[i])) return 2;
        if (pthread_create(&releasers[i], NULL, release_all, (void *)(uintptr_t)(owner_count + i))) return 2;
    }
    for (i = 0; i < owner_count; i++) {
        pthread_join(owners[i].thread, NULL);
        pthread_join(releasers[i], NULL);
        operations += owners[i].operations;
        conflicts += owners[i].conflicts;
        failures += owners[i].failures;
    }
    play(threads + 1);
    if (cai_keepalive_drain(&pool, &err) || cai_event_pool_destroy(&pool, &err)) failures++;
    printf("%lld storages: %lld operations, %lld conflicts; %lld early writes, %lld event errors, %lld failures\n",
           (long long)owner_count, (long long)operations, (long long)conflicts, (long long)get(&early),
           (long long)(get(&two_threads) + get(&bad_events) + get(&bad_contexts)), (long long)failures);
    return get(&early) || failures || get(&two_threads) || get(&bad_events) || get(&bad_contexts) || !conflicts;
}

int main(int argc, char **argv)
{
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 8, rounds = argc > 3 ? atoll(argv[3]) : 4000;
    const int simulated = argc > 1 && strcmp(argv[1], "sim") == 0;
    cai_error err;
    if (threads < 2 || threads > MOST_THREADS || rounds < 1) return 2;
    if (!open_table(simulated)) return 2;
    play(threads + 1);
    add_copies(simulated);
    fill_hooks();
    if (cai_event_pool_init(&pool, &table, storage, LIST, 0, &err)) return 2;
    return run_storages(threads, rounds);
}
