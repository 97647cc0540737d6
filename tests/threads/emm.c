/* emm.c - many host threads on one manager of cai_manager.h: every block freed once, by the table that gave it.
 * SPDX-License-Identifier: MIT
 *
 *     emm thin|sim THREADS ROUNDS
 *
 * CUDA is that of threads.c, which takes no lock: what orders the threads is the manager (and its pool).
 * Handles and arrays lie on a shelf that all threads take from and put on, so that what one thread allocates
 * another frees, retains or keeps, while others defer and flush, over each of the tables. The memory of the hooks is
 * plain: a manager that does not order what its threads do shows as a race. Prints one line; the exit status is
 * 1 if a block was freed twice, by another table, or is left over, or a handle was not what it had to be. */
int main_of_threads(int argc, char **argv);
#define main main_of_threads
#include "threads.c"
#undef main
#include "cai_manager.h"

enum { BLOCKS = 1 << 14, SHELF = 48, ARRAYS_ON_SHELF = 16, TABLES_OF_HOOKS = 3, BLOCK_SIZE = 1 << 12 };

/* Memory that hooks give: `used` is atomic, the rest is plain. */
typedef struct block {
    int64_t used;
    int64_t table, thread, size;
} block;

static block blocks[BLOCKS];
static int64_t given, taken, out_of_memory; /* by hooks */
static int64_t wrong_blocks;                /* what must stay 0 */
static int64_t of_lists;                    /* of the manager's allocator */
static int64_t shelf[SHELF];                /* handles */
static cai_array *array_shelf[ARRAYS_ON_SHELF];
static cai_manager emm;
static cai_emm_hooks tables[TABLES_OF_HOOKS];
static int64_t table_numbers[TABLES_OF_HOOKS];
static __thread uint64_t hook_random;

/* ------------------------------------------------------------------ hooks */

#define FIRST_BLOCK 0x40000000u

static int give_block(void *ctx, void **ptr, size_t size, struct CUstream_st *stream)
{
    const int64_t number = *(const int64_t *)ctx;
    int64_t i, n;
    (void)stream;
    hook_random = hook_random * 6364136223846793005u + 1442695040888963407u + (uint64_t)me;
    if (hook_random >> 58 == 0) {
        add(&out_of_memory, 1);
        return 2;
    }
    for (n = 0, i = (int64_t)(hook_random >> 40) % BLOCKS; n < BLOCKS; n++, i = (i + 1) % BLOCKS) {
        block *b = &blocks[i];
        if (__atomic_exchange_n(&b->used, 1, __ATOMIC_ACQUIRE)) continue;
        b->table = number;
        b->thread = me;
        b->size = (int64_t)size;
        add(&given, 1);
        *ptr = (void *)(uintptr_t)(FIRST_BLOCK + (uint64_t)i * BLOCK_SIZE);
        return 0;
    }
    return 2;
}

static int take_block(void *ctx, void *ptr, size_t size, struct CUstream_st *stream)
{
    const uint64_t at = ((uint64_t)(uintptr_t)ptr - FIRST_BLOCK) / BLOCK_SIZE;
    block *b = &blocks[at % BLOCKS];
    (void)stream;
    if (at >= BLOCKS || b->table != *(const int64_t *)ctx || b->size != (int64_t)size) add(&wrong_blocks, 1);
    b->table = b->size = -1;
    add(&taken, 1);
    if (__atomic_exchange_n(&b->used, 0, __ATOMIC_RELEASE) != 1) add(&wrong_blocks, 1);
    return 0;
}

static int give_host(void *ctx, void **ptr, size_t size, unsigned int flags)
{
    (void)flags;
    return give_block(ctx, ptr, size, NULL);
}

static int tell_base(void *ctx, void *ptr, void *handle, void **base)
{
    (void)ctx;
    memset(handle, 1, 64);
    *base = ptr;
    return 0;
}

static int ignore_defer(void *ctx, int on)
{
    (void)ctx;
    (void)on;
    return 0;
}

static void fill_hooks(int64_t n)
{
    cai_emm_hooks *hooks = &tables[n];
    memset(hooks, 0, sizeof *hooks);
    table_numbers[n] = n;
    hooks->struct_size = (uint32_t)sizeof *hooks;
    hooks->version = CAI_EMM_VERSION;
    hooks->flags = n == 1 ? CAI_EMM_FREES_WAIT : 0;
    hooks->kind = n == 2 ? CAI_MEMORY_POOL : CAI_MEMORY_DEVICE;
    hooks->ctx = &table_numbers[n];
    hooks->device_alloc = give_block;
    hooks->device_free = take_block;
    hooks->host_alloc = give_host;
    hooks->host_free = take_block;
    hooks->ipc_handle = tell_base;
    if (n) hooks->defer = ignore_defer;
    memcpy(hooks->name, "blocks", 7);
}

static void *list_alloc(void *user_data, size_t size)
{
    (void)user_data;
    add(&of_lists, (int64_t)size);
    return malloc(size);
}

static void list_free(void *user_data, void *ptr, size_t size)
{
    (void)user_data;
    add(&of_lists, -(int64_t)size);
    free(ptr);
}

/* ------------------------------------------------------------------ what threads do */

/* Out of memory is no failure of a manager. */
static void expect_ok(worker *w, cai_status status, const cai_error *err)
{
    if (status != CAI_ERR_OUT_OF_MEMORY) ok(w, status, err);
}

/* On stream 2 of this thread, too: another one waits for the context before it frees what is there. */
static void free_handle(worker *w, cai_memory_handle handle)
{
    cai_error err;
    ok(w, cai_manager_free(&emm, handle, any_stream(w), &err), &err);
}

static void put_on_shelf(worker *w, cai_memory_handle handle)
{
    free_handle(w, (cai_memory_handle)swap(&shelf[draw(w, SHELF)], (int64_t)handle));
}

static void do_alloc(worker *w)
{
    cai_memory_handle made = 0;
    cai_error err;
    const size_t size = 1 + draw(w, BLOCK_SIZE / 2);
    cai_status status;
    if (draw(w, 8)) status = cai_manager_alloc(&made, &emm, size, draw(w, 4) ? 0 : 1024, any_stream(w), &err);
    else status = cai_manager_pinned_alloc(&made, &emm, size, CAI_HOST_MAPPED, &err);
    expect_ok(w, status, &err);
    if (status) return;
    put_on_shelf(w, made);
}

/* Memory on a thread's own default stream that stays with it. */
static void do_own_stream(worker *w)
{
    cai_memory_handle made = 0;
    cai_error err;
    cai_status status = cai_manager_alloc(&made, &emm, 64, 0, CAI_STREAM_PER_THREAD, &err);
    expect_ok(w, status, &err);
    if (!status) ok(w, cai_manager_free(&emm, made, any_stream(w), &err), &err);
}

static void do_free(worker *w) { free_handle(w, (cai_memory_handle)swap(&shelf[draw(w, SHELF)], 0)); }

/* Of a handle that somebody else may be freeing just now: a reference of one's own, or it is stale. */
static void do_retain(worker *w)
{
    const cai_memory_handle handle = (cai_memory_handle)get(&shelf[draw(w, SHELF)]);
    cai_error err;
    const cai_status status = handle ? cai_manager_retain(&emm, handle, &err) : CAI_ERR_STALE;
    if (status == CAI_ERR_STALE) return;
    ok(w, status, &err);
    if (!status) put_on_shelf(w, handle);
}

static void release_array(cai_array *array)
{
    if (!array) return;
    cai_array_release(array);
    free(array);
}

static void do_array(worker *w)
{
    const int64_t shape[2] = {1 + (int64_t)draw(w, 8), 1 + (int64_t)draw(w, 32)};
    cai_array *array = (cai_array *)calloc(1, sizeof *array);
    const cai_memory_handle handle = (cai_memory_handle)swap(&shelf[draw(w, SHELF)], 0);
    cai_error err;
    cai_status status = CAI_ERR_STALE;
    if (!array) exit(2);
    if (handle && draw(w, 2)) {
        ok(w, cai_array_init(array, CAI_UINT8, 0, NULL, NULL, cai_manager_pointer(&emm, handle), &err), &err);
        array->sync = (int32_t)draw(w, 2);
        status = cai_manager_own(array, &emm, handle, &err);
        ok(w, status, &err);
    } else {
        status = cai_manager_array(array, &emm, CAI_FLOAT32, 2, shape, any_stream(w), &err);
        expect_ok(w, status, &err);
    }
    if (handle) put_on_shelf(w, handle);
    if (status) free(array);
    else release_array(__atomic_exchange_n(&array_shelf[draw(w, ARRAYS_ON_SHELF)], array, __ATOMIC_ACQ_REL));
}

static void do_release(worker *w)
{
    release_array(__atomic_exchange_n(&array_shelf[draw(w, ARRAYS_ON_SHELF)], NULL, __ATOMIC_ACQ_REL));
}

/* An array that waits in the pool: released by whoever drains it, or runs out of memory. */
static void do_keep(worker *w)
{
    cai_array *array = __atomic_exchange_n(&array_shelf[draw(w, ARRAYS_ON_SHELF)], NULL, __ATOMIC_ACQ_REL);
    if (!array) return;
    push(w, array, any_stream(w));
    free(array);
}

/* So it is of a question for its handle: what it answers is of one object. */
static void do_ipc(worker *w)
{
    const cai_memory_handle handle = (cai_memory_handle)get(&shelf[draw(w, SHELF)]);
    cai_memory_ipc ipc;
    cai_error err;
    const cai_status status = handle ? cai_manager_ipc_handle(&emm, handle, &ipc, &err) : CAI_ERR_STALE;
    if (status == CAI_ERR_STALE || status == CAI_ERR_MEMORY) return;
    ok(w, status, &err);
    if (ipc.offset + ipc.size > BLOCK_SIZE) w->failures++;
}

static void do_look(worker *w)
{
    cai_memory_object info[16];
    cai_manager_count count;
    if (cai_manager_list(&emm, info, 16) < 0) w->failures++;
    cai_manager_counts(&emm, &count);
    if (count.freed > count.allocated || count.deferred > count.allocated) w->failures++;
}

static void do_one(worker *w)
{
    cai_error err;
    switch (draw(w, 32)) {
    case 0: ok(w, cai_manager_flush(&emm, &err), &err); break;
    case 1:
    case 2:
    case 3: do_look(w); break;
    case 4:
    case 5: do_array(w); break;
    case 6:
    case 7: do_release(w); break;
    case 8: do_keep(w); break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13: do_retain(w); break;
    case 14: do_own_stream(w); break;
    case 24: do_ipc(w); break;
    case 15:
    case 16:
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22: do_alloc(w); break;
    default: do_free(w); break;
    }
    w->exchanges++;
}

/* This thread is host thread `number` to CUDA. */
static void play(int64_t number)
{
    me = number;
    if (!sim) return;
    cai_sim_host_thread(sim, (uint64_t)number);
    if (cai_sim_set_context(sim, cai_sim_primary(sim, 0))) add(&bad_contexts, 1);
}

/* A thread is now and then in another context, and in a scope of defer. */
static void *work_on_memory(void *argument)
{
    worker *w = (worker *)argument;
    cai_error err;
    int64_t n;
    int32_t elsewhere;
    play(w->number + 1);
    for (n = 0; n < w->rounds; n++) {
        elsewhere = draw(w, 8) == 0 && !table.context_push(table.self, sim ? cai_sim_primary(sim, 1) : 2);
        if (draw(w, 16) == 0) {
            ok(w, cai_manager_defer_begin(&emm, &err), &err);
            do_one(w);
            do_one(w);
            ok(w, cai_manager_defer_end(&emm, &err), &err);
        }
        do_one(w);
        if (elsewhere && table.context_pop(table.self)) w->failures++;
    }
    if (depth != 0 || mode_of_thread != 0) add(&bad_contexts, 1);
    if (sim && cai_sim_current(sim) != cai_sim_primary(sim, 0)) add(&bad_contexts, 1);
    return NULL;
}

/* ------------------------------------------------------------------ all of it */

/* What lies on the shelves is freed; then one thread carries out the frees that are left, also those on the
 * streams 2 of the others, which have ended. */
static void finish(worker *workers, int64_t threads)
{
    cai_error err;
    int64_t n;
    for (n = 0; n < ARRAYS_ON_SHELF; n++) release_array(array_shelf[n]);
    for (n = 0; n < SHELF; n++) free_handle(&workers[0], (cai_memory_handle)shelf[n]);
    ok(&workers[0], cai_keepalive_drain(&pool, &err), &err);
    play(threads + 1);
    ok(&workers[0], cai_manager_flush(&emm, &err), &err);
}

static int tell(const worker *workers, int64_t threads)
{
    cai_manager_count count;
    cai_error err;
    int64_t operations = 0, failures = 0, left = 0, n;
    cai_status status;
    for (n = 0; n < threads; n++) {
        operations += workers[n].exchanges;
        failures += workers[n].failures;
    }
    cai_manager_counts(&emm, &count);
    status = cai_manager_destroy(&emm, &err);
    if (status) printf("destroy: %s\n", err.message);
    for (n = 0; n < BLOCKS; n++) left += blocks[n].used;
    left += get(&given) - get(&taken) + get(&of_lists);
    if (cai_event_pool_destroy(&pool, &err)) failures++;
    left += close_table();
    printf("%lld threads: %lld operations, %lld blocks, %lld times out of memory, %lld retries, "
           "%lld objects; %lld wrong blocks, %lld left over, %lld context errors, %lld failures\n",
           (long long)threads, (long long)operations, (long long)get(&given), (long long)get(&out_of_memory),
           (long long)count.retries, (long long)count.allocated, (long long)get(&wrong_blocks), (long long)left,
           (long long)get(&bad_contexts), (long long)failures);
    return status || failures || left || get(&wrong_blocks) || get(&bad_contexts) || get(&two_threads) ||
           get(&bad_events) || count.live || !operations;
}

static int run_on_memory(int64_t threads, int64_t rounds)
{
    static worker workers[MOST_THREADS];
    int64_t n;
    memset(workers, 0, sizeof workers);
    memset(shelf, 0, sizeof shelf);
    memset(array_shelf, 0, sizeof array_shelf);
    for (n = 0; n < threads; n++) {
        workers[n].number = n;
        workers[n].rounds = rounds;
        workers[n].random = (uint64_t)n * 7919 + 1;
        if (pthread_create(&workers[n].thread, NULL, work_on_memory, &workers[n])) return 2;
    }
    for (n = 0; n < threads; n++) pthread_join(workers[n].thread, NULL);
    finish(workers, threads);
    return tell(workers, threads);
}

/* All of it over one table. */
static int run_over(int64_t number, int simulated, int64_t threads, int64_t rounds)
{
    cai_manager_options options;
    cai_error err;
    handed_on = 1; /* the event of a deferred free, which any thread carries out */
    if (!open_table(simulated)) return 2;
    play(threads + 1);
    fill_hooks(number);
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    if (cai_event_pool_init(&pool, &table, storage, LIST, 0, &err) ||
        cai_manager_init(&emm, &pool, &tables[number], &options, &err)) {
        printf("%s\n", err.message);
        return 2;
    }
    return run_on_memory(threads, rounds);
}

int main(int argc, char **argv)
{
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 8, rounds = argc > 3 ? atoll(argv[3]) : 4000;
    const int simulated = argc > 1 && strcmp(argv[1], "sim") == 0;
    int64_t n;
    int failed = 0;
    if (threads < 1 || threads > MOST_THREADS || rounds < 1 || rounds > 1000000) return 2;
    for (n = 0; n < TABLES_OF_HOOKS && !failed; n++) failed = run_over(n, simulated, threads, rounds / 3 + 1);
    return failed;
}
