/* calls.c - calls one function of the headers many times; bench.py counts or times it.
 *
 *     calls CASE N     N calls of the case; prints the nanoseconds per call
 *     calls count      the CUDA calls of each exchange, once warm: "exchange_same_1 record 0 wait 0 ..."
 *
 * Linked with an object that has the implementation, and hooks.c, without LTO, so that the calls are real. */

#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#endif

#include "cai_layout.h"
#include "cai_transfer.h"
#include "cai_manager.h"
#include "cai_storage.h"
#include "hooks.h"
#include "one_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static float buffer[4096];
static const int64_t shape2[2] = {20, 30}, shape4[4] = {2, 3, 4, 5};
/* every second element along each axis of (4, 6, 8, 20) */
static const int64_t strides4[4] = {4 * 1920, 4 * 320, 4 * 40, 8};

static cai_array out, a2, a4, even, odd;
static cai_kernel_view view;
static cai_error err;
static cai_field fields[8];
static int64_t rows;
static cai_interface dictionary, exported;
static cai_token export_tokens[64];
static char export_text[CAI_TYPESTR_SIZE];
static cai_export_storage storage;

/* ------------------------------------------------------------------ token runs */

static cai_token shape_run[5], typestr_run[1], data_run[3], version_run[1], strides_run[5];
static cai_token stream_run[1], descr_run[16];

static cai_token token(int32_t kind, uint32_t length, uint64_t number, const char *text)
{
    cai_token t;
    t.kind = kind;
    t.length = length;
    t.number = number;
    t.text = text;
    return t;
}

static cai_token string(const char *text)
{
    return token(CAI_TOKEN_STR, (uint32_t)strlen(text), 0, text);
}

static void int_tuple(cai_token *run, int32_t count, const int64_t *values)
{
    int32_t i;
    run[0] = token(CAI_TOKEN_TUPLE, (uint32_t)count, 0, NULL);
    for (i = 0; i < count; i++) run[1 + i] = token(CAI_TOKEN_INT, 0, (uint64_t)values[i], NULL);
}

/** shape, typestr, data, version, strides (NULL: None), as most producers write them. */
static void make_dictionary(int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    memset(&dictionary, 0, sizeof dictionary);
    int_tuple(shape_run, ndim, shape);
    typestr_run[0] = string("<f4");
    data_run[0] = token(CAI_TOKEN_TUPLE, 2, 0, NULL);
    data_run[1] = token(CAI_TOKEN_INT, 0, (uint64_t)(uintptr_t)buffer, NULL);
    data_run[2] = token(CAI_TOKEN_BOOL, 0, 0, NULL);
    version_run[0] = token(CAI_TOKEN_INT, 0, 3, NULL);
    if (strides) int_tuple(strides_run, ndim, strides);
    else strides_run[0] = token(CAI_TOKEN_NONE, 0, 0, NULL);
    dictionary.shape = shape_run;
    dictionary.typestr = typestr_run;
    dictionary.data = data_run;
    dictionary.version = version_run;
    dictionary.strides = strides_run;
}

static void field_tokens(cai_token *run, const char *name, const char *typestr)
{
    run[0] = token(CAI_TOKEN_TUPLE, 2, 0, NULL);
    run[1] = string(name);
    run[2] = string(typestr);
}

/* ----------------------------------------------------------------------- cases */

static void check(cai_status status)
{
    if (status == CAI_OK) return;
    fprintf(stderr, "calls: %s: %s\n", cai_status_name(status), err.message);
    exit(1);
}

static void no_setup(void)
{
}

static void arrays(void)
{
    check(cai_array_init(&a2, CAI_FLOAT32, 2, shape2, NULL, buffer, &err));
    check(cai_array_init(&a4, CAI_FLOAT32, 4, shape4, strides4, buffer, &err));
    a2.sync = a4.sync = CAI_SYNC_NONE;
    check(cai_view_slice(&a2, 1, 0, 15, 2, &even, &err));
    check(cai_view_slice(&a2, 1, 1, 15, 2, &odd, &err));
}

static void storage_too(void)
{
    arrays();
    storage.tokens = export_tokens;
    storage.token_capacity = 64;
    storage.text = export_text;
    storage.text_capacity = sizeof export_text;
}

static void dictionary2(void)
{
    make_dictionary(2, shape2, NULL);
}

static void dictionary4(void)
{
    make_dictionary(4, shape4, strides4);
}

/** With a stream and the descr that says nothing new, as CuPy writes it. */
static void dictionary_cupy(void)
{
    make_dictionary(2, shape2, NULL);
    stream_run[0] = token(CAI_TOKEN_INT, 0, 1, NULL);
    descr_run[0] = token(CAI_TOKEN_LIST, 1, 0, NULL);
    field_tokens(descr_run + 1, "", "<f4");
    dictionary.stream = stream_run;
    dictionary.descr = descr_run;
}

static cai_dtype record_dtype;

static void record(void)
{
    check(cai_dtype_parse("|V16", 4, 0, &record_dtype, &err));
    descr_run[0] = token(CAI_TOKEN_LIST, 3, 0, NULL);
    field_tokens(descr_run + 1, "x", "<f4");
    field_tokens(descr_run + 4, "y", "<f4");
    field_tokens(descr_run + 7, "id", "<i8");
}

static cai_status init_2d(void)
{
    return cai_array_init(&out, CAI_FLOAT32, 2, shape2, NULL, buffer, &err);
}

static cai_status init_4d(void)
{
    return cai_array_init(&out, CAI_FLOAT32, 4, shape4, strides4, buffer, &err);
}

static cai_status import_dictionary(void)
{
    return cai_import(&dictionary, NULL, &out, &err);
}

static cai_status expect_2d(void)
{
    return cai_expect(&a2, "a", CAI_FLOAT32, 2,
                      CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP, &err);
}

static cai_status kernel_view_4d(void)
{
    return cai_kernel_view_of(&a4, &view, &err);
}

static cai_status overlap_same(void)
{
    return cai_overlap(&a2, &a2) == CAI_OVERLAP_YES ? CAI_OK : CAI_ERR_ARGUMENT;
}

static cai_status overlap_interleaved(void)
{
    return cai_overlap(&even, &odd) == CAI_OVERLAP_NO ? CAI_OK : CAI_ERR_ARGUMENT;
}

static cai_status compile_record(void)
{
    return cai_fields_compile(descr_run, &record_dtype, 0, fields, 8, &rows, &err);
}

static cai_status export_2d(void)
{
    return cai_export(&a2, 3, &storage, &exported, &err);
}

static cai_status slice_4d(void)
{
    return cai_view_slice(&a4, 3, 4, 3, -2, &out, &err);
}

static cai_layout layout;
static cai_dtype layout_dtype;

static void field_3d(void)
{
    check(cai_dtype_of(CAI_FLOAT64, &layout_dtype, &err));
    memset(&layout, 0, sizeof layout);
    check(cai_layout_preset(&layout, "gtcuda", "IJK", &err));
    layout.shape[0] = layout.shape[1] = 134;
    layout.shape[2] = 80;
    layout.halo_low[0] = layout.halo_high[0] = layout.halo_low[1] = layout.halo_high[1] = 3;
}

static cai_status preset_3d(void)
{
    return cai_layout_preset(&layout, "gtcuda", "IJK", &err);
}

static cai_status plan_3d(void)
{
    return cai_layout_plan(&layout, &layout_dtype, &err);
}

static void planned_3d(void)
{
    field_3d();
    check(plan_3d());
    check(cai_array_init_dtype(&a4, &layout_dtype, 3, layout.shape, layout.strides, 4096, &err));
}

static cai_status domain_3d(void)
{
    return cai_view_domain(&a4, layout.halo_low, layout.halo_high, &out, &err);
}

/* A part of a field in C order, and the same part of one with padded rows. */
static void transfer_of(int32_t ndim, const int64_t *shape, const int64_t *to, const int64_t *from)
{
    check(cai_array_init(&a2, CAI_FLOAT32, ndim, shape, to, (void *)(uintptr_t)4096, &err));
    check(cai_array_init(&a4, CAI_FLOAT32, ndim, shape, from, (void *)((uintptr_t)1 << 40), &err));
}

static void pair_2d(void)
{
    static const int64_t shape[] = {98, 200}, to[] = {800, 4}, from[] = {1024, 4};
    transfer_of(2, shape, to, from);
}

static void pair_4d(void)
{
    static const int64_t shape[] = {8, 30, 30, 30}, to[] = {131072, 4096, 128, 4}, from[] = {262144, 8192, 256, 4};
    transfer_of(4, shape, to, from);
}

static cai_transfer transfer;

static cai_status transfer_pair(void)
{
    return cai_transfer_plan(&transfer, &a2, &a4, &err);
}

/* ------------------------------------------------------------------ exchanges */

/* A CUDA that only counts. */
static struct {
    int64_t record, wait, create, destroy, query;
} counted;

static int32_t context_current(void *self, uint64_t *context)
{
    (void)self;
    counted.query++;
    *context = 4096;
    return 0;
}

static int32_t stream_context(void *self, uint64_t stream, uint64_t *context)
{
    (void)stream;
    return context_current(self, context);
}

static int32_t stream_capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    (void)self;
    (void)stream;
    counted.query++;
    memset(capture, 0, sizeof *capture);
    return 0;
}

static int32_t event_create(void *self, uint64_t *event)
{
    (void)self;
    *event = 4096 + (uint64_t)++counted.create;
    return 0;
}

static int32_t event_destroy(void *self, uint64_t event)
{
    (void)self;
    (void)event;
    counted.destroy++;
    return 0;
}

static int32_t event_record(void *self, uint64_t event, uint64_t stream)
{
    (void)self;
    (void)event;
    (void)stream;
    counted.record++;
    return 0;
}

static int32_t stream_wait_event(void *self, uint64_t stream, uint64_t event)
{
    (void)self;
    (void)event;
    (void)stream;
    counted.wait++;
    return 0;
}

static cai_array exchanged[8];
static cai_array *to_exchange[8];
static cai_cuda counting;
static cai_event_pool pool;

enum { CONSUMER = 5000 };

/* Eight arrays on the consumer's stream (streams 0), or spread over `streams` others. */
static void exchange_over(int32_t streams)
{
    int32_t i;
    one_context_fill(&counting);
    counting.context_current = context_current;
    counting.stream_context = stream_context;
    counting.stream_capture = stream_capture;
    counting.event_create = event_create;
    counting.event_destroy = event_destroy;
    counting.event_record = event_record;
    counting.stream_wait_event = stream_wait_event;
    check(cai_event_pool_init(&pool, &counting, NULL, 0, 0, &err));
    for (i = 0; i < 8; i++) {
        check(cai_array_init(&exchanged[i], CAI_FLOAT32, 2, shape2, NULL, buffer, &err));
        exchanged[i].sync = CAI_SYNC_STREAM;
        exchanged[i].stream = streams ? CONSUMER + 1 + (uint64_t)(i % streams) : CONSUMER;
        to_exchange[i] = &exchanged[i];
    }
}

static void exchange_same(void)
{
    exchange_over(0);
}

static void exchange_over_1(void)
{
    exchange_over(1);
}

static void exchange_over_4(void)
{
    exchange_over(4);
}

static cai_status exchange(int32_t count)
{
    cai_exchange ex;
    CAI_TRY(cai_exchange_begin(&ex, &pool, to_exchange, count, CONSUMER, &err));
    return cai_exchange_end(&ex, CAI_OK, &err);
}

static cai_status exchange_1(void)
{
    return exchange(1);
}

static cai_status exchange_8(void)
{
    return exchange(8);
}

/* -------------------------------------------------------------------- memory */

static cai_manager emm;
static cai_memory_handle memory;
static cai_emm_hooks no_op;

static int32_t context_push(void *self, uint64_t context)
{
    (void)self;
    (void)context;
    return 0;
}

static int32_t context_pop(void *self)
{
    (void)self;
    return 0;
}

/* Hooks that do nothing, and a CUDA that could make a context current. */
static void table(void)
{
    exchange_over(0);
    counting.context_push = context_push;
    counting.context_pop = context_pop;
    no_op_hooks(&no_op);
}

static cai_status table_alloc_free(void)
{
    void *ptr;
    CAI_TRY(cai_emm_alloc(&ptr, &no_op, 4096, CONSUMER, &err));
    return cai_emm_free(&no_op, ptr, 4096, CONSUMER, &err);
}

static cai_status table_array_release(void)
{
    CAI_TRY(cai_emm_array(&out, &pool, &no_op, CAI_FLOAT32, 2, shape2, CONSUMER, &err));
    cai_array_release(&out);
    return CAI_OK;
}

static int32_t copy_async(void *self, uint64_t to, uint64_t from, uint64_t size, uint64_t stream)
{
    (void)self;
    (void)to;
    (void)from;
    (void)size;
    (void)stream;
    return 0;
}

static int32_t copy_3d_async(void *self, const cai_cuda_copy *copy, uint64_t stream)
{
    (void)self;
    (void)copy;
    (void)stream;
    return 0;
}

static int32_t set_async(void *self, uint64_t to, uint32_t value, uint64_t size, uint64_t stream)
{
    (void)self;
    (void)to;
    (void)value;
    (void)size;
    (void)stream;
    return 0;
}

static int32_t stream_synchronize(void *self, uint64_t stream)
{
    (void)self;
    (void)stream;
    return 0;
}

static cai_storage field;
static cai_emm_hooks plain;

/* A storage with two buffers, which are equal; its home is the consumer's stream. */
static void field_on_both(void)
{
    cai_storage_options options;
    field_3d();
    table();
    counting.copy_async = copy_async;
    counting.copy_3d_async = copy_3d_async;
    counting.set_async = set_async;
    counting.stream_synchronize = counting.event_synchronize = stream_synchronize;
    counting.context_synchronize = context_pop;
    cai_emm_hooks_malloc(&plain);
    memset(&options, 0, sizeof options);
    options.pool = &pool;
    options.hooks = &no_op;
    options.host = &plain;
    options.home = CONSUMER;
    options.kind = CAI_STORAGE_BOTH;
    check(cai_storage_init(&field, &options, &layout_dtype, &layout, &err));
}

static cai_status storage_read(void)
{
    cai_storage_access access;
    CAI_TRY(cai_storage_begin(&access, &field, CAI_SIDE_DEVICE, CAI_READ, CONSUMER, &err));
    return cai_storage_end(&access, CAI_OK, &err);
}

/* A manager that allocates on a stream with hooks that do nothing; one object lives. */
static void manager(void)
{
    cai_emm_hooks hooks;
    exchange_over(0);
    no_op_hooks(&hooks);
    check(cai_manager_init(&emm, &pool, &hooks, NULL, &err));
    check(cai_manager_alloc(&memory, &emm, 4096, 0, CONSUMER, &err));
}

static cai_status alloc_free(void)
{
    cai_memory_handle made;
    CAI_TRY(cai_manager_alloc(&made, &emm, 4096, 0, CONSUMER, &err));
    return cai_manager_free(&emm, made, CONSUMER, &err);
}

static cai_status retain_free(void)
{
    CAI_TRY(cai_manager_retain(&emm, memory, &err));
    return cai_manager_free(&emm, memory, CONSUMER, &err);
}

static cai_status array_release(void)
{
    CAI_TRY(cai_manager_array(&out, &emm, CAI_FLOAT32, 2, shape2, CONSUMER, &err));
    cai_array_release(&out);
    return CAI_OK;
}

static const struct {
    const char *name;
    void (*prepare)(void);
    cai_status (*call)(void);
} cases[] = {
    {"init_2d", no_setup, init_2d},
    {"init_4d", no_setup, init_4d},
    {"import_2d", dictionary2, import_dictionary},
    {"import_4d", dictionary4, import_dictionary},
    {"import_cupy", dictionary_cupy, import_dictionary},
    {"expect_2d", arrays, expect_2d},
    {"kernel_view_4d", arrays, kernel_view_4d},
    {"overlap_same", arrays, overlap_same},
    {"overlap_interleaved", arrays, overlap_interleaved},
    {"compile_record", record, compile_record},
    {"export_2d", storage_too, export_2d},
    {"slice_4d", arrays, slice_4d},
    {"preset_3d", field_3d, preset_3d},
    {"plan_3d", field_3d, plan_3d},
    {"transfer_2d", pair_2d, transfer_pair},
    {"transfer_4d", pair_4d, transfer_pair},
    {"domain_3d", planned_3d, domain_3d},
    {"exchange_same_1", exchange_same, exchange_1},
    {"exchange_same_8", exchange_same, exchange_8},
    {"exchange_across_1", exchange_over_1, exchange_8},
    {"exchange_across_4", exchange_over_4, exchange_8},
    {"storage_read", field_on_both, storage_read},
    {"table_alloc_free", table, table_alloc_free},
    {"table_array_release", table, table_array_release},
    {"alloc_free", manager, alloc_free},
    {"retain_free", manager, retain_free},
    {"array_release", manager, array_release},
};

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int run(size_t which, long n)
{
    double start;
    long i;
    cases[which].prepare();
    start = seconds();
    for (i = 0; i < n; i++) check(cases[which].call());
    printf("%.2f\n", (seconds() - start) * 1e9 / (double)n);
    return 0;
}

static int count(void)
{
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strncmp(cases[i].name, "exchange", 8) != 0) continue;
        cases[i].prepare();
        check(cases[i].call());
        memset(&counted, 0, sizeof counted);
        check(cases[i].call());
        printf("%s record %ld wait %ld create %ld destroy %ld query %ld\n", cases[i].name,
               (long)counted.record, (long)counted.wait, (long)counted.create, (long)counted.destroy,
               (long)counted.query);
    }
    return 0;
}

int main(int argc, char **argv)
{
    size_t i;
    if (argc == 2 && strcmp(argv[1], "count") == 0) return count();
    for (i = 0; argc == 3 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0) return run(i, strtol(argv[2], NULL, 10));
    fprintf(stderr, "usage: calls CASE N\n");
    return 2;
}
