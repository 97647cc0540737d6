/* test_place.c - ext/cai_place.h: cai_place and cai_result_memory against the rule as brute
 * force, tables, messages, and the exchange that follows
 * SPDX-License-Identifier: MIT
 *
 *     test_place [lists [seed]]    how many random operand lists: 20,000 */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_place.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_check.h"
#else
#include "sim/cai_sim.c"
#include "sim/cai_check.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"
#include "place_rules.h"

enum {
    A = 0x50, /* two streams */
    B = 0x60,
    HERE = 0x1000
};

static cai_placement at;
static cai_error err;

/* ------------------------------------------------------------------ making arrays */

static cai_array array_of(int32_t code, int32_t ndim, const int64_t *shape, const int64_t *strides,
                          uint64_t data)
{
    cai_array array;
    cai_dtype dtype;
    CHECK_INT(cai_dtype_of(code, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, ndim, shape, strides, data, NULL), CAI_OK);
    array.device = 0;
    array.memory = CAI_MEMORY_DEVICE;
    return array;
}

/* Four floats of device 0. Stream 0: none. */
static cai_array make(uint64_t data, uint64_t stream)
{
    const int64_t four = 4;
    cai_array array = array_of(CAI_FLOAT32, 1, &four, NULL, data);
    array.sync = stream ? CAI_SYNC_STREAM : CAI_SYNC_NONE;
    array.stream = stream;
    return array;
}

static cai_array make_floats(uint64_t data, int64_t extent, int64_t stride)
{
    cai_array array = array_of(CAI_FLOAT32, 1, &extent, &stride, data);
    array.sync = CAI_SYNC_STREAM;
    array.stream = A;
    return array;
}

static call call_of(int32_t policy, uint64_t stream, const cai_array *out)
{
    call made;
    memset(&made, 0, sizeof made);
    made.policy = policy;
    made.stream = stream;
    made.out = out;
    return made;
}

static call call_with(const cai_array *x, const cai_array *y, const cai_array *out, int32_t policy)
{
    call made = call_of(policy, policy == CAI_PLACE_INTO ? 0x99 : 0, out);
    made.inputs[0] = x;
    made.inputs[1] = y;
    made.count = 2;
    return made;
}

/* ------------------------------------------------------------------ calls */

static cai_status place(const call *c, cai_error *e)
{
    cai_operand inputs[MOST];
    int32_t i;
    for (i = 0; i < c->count; i++)
        inputs[i] = cai_operand_array(c->inputs[i], c->names ? c->names[i] : NULL);
    return cai_place(inputs, c->count, c->out, c->policy, c->flags, c->stream, &at, e);
}

/* Makes the call; on failure nothing was stored, on success no error. */
static cai_status try_call(const call *c)
{
    cai_status status;
    help_fill(&at, sizeof at);
    help_fill(&err, sizeof err);
    status = place(c, &err);
    if (status) {
        CHECK_INT(err.code, status);
        CHECK_INT(err.native, 0);
        CHECK(memchr(err.message, 0, sizeof err.message) != NULL);
        CHECK(help_filled(&at, sizeof at));
        CHECK_INT(place(c, NULL), status);
        CHECK(help_filled(&at, sizeof at));
    } else {
        CHECK(help_filled(&err, sizeof err));
    }
    return status;
}

static void expect_placement(const cai_placement *expected)
{
    CHECK_UINT(at.stream, expected->stream);
    CHECK_INT(at.device, expected->device);
    CHECK_INT(at.memory, expected->memory);
    CHECK_INT(at.decided, expected->decided);
    CHECK_INT(at.overlap, expected->overlap);
}

/* Makes the call and compares with the rule. */
static cai_status by_rule(const call *c)
{
    const verdict v = rule(c);
    const cai_status status = try_call(c);
    if (!v.statuses) {
        if (CHECK_INT(status, CAI_OK)) expect_placement(&v.at);
        return status;
    }
    CHECK(v.statuses >> status & 1);
    if (status) CHECK_INT(err.index, v.index);
    return status;
}

static void good(const call *c, uint64_t stream, int32_t decided)
{
    CHECK_INT(by_rule(c), CAI_OK);
    CHECK_UINT(at.stream, stream);
    CHECK_INT(at.decided, decided);
}

static void bad(const call *c, cai_status status, int32_t index, const char *message)
{
    CHECK_INT(by_rule(c), status);
    CHECK_INT(err.index, index);
    CHECK_INT(err.entry, status == CAI_ERR_STREAM ? CAI_ENTRY_STREAM : CAI_ENTRY_NONE);
    CHECK_STR(err.message, message);
}

/* ------------------------------------------------------------------ none, A, B of x, y and out */

enum { NONE_FORMS = 7, OUT_FORMS = 4, SOME_FORMS = 3 };

/* An operand with stream `stream`, in one of its forms; NULL: a scalar. */
static const cai_array *operand_of(cai_array *array, cai_array *mask, uint64_t data, uint64_t stream,
                                   int32_t form)
{
    const int64_t zero = 0;
    *array = make(data, stream);
    if (stream) {
        if (form == 1) array->sync = CAI_SYNC_EVENT;
        if (form < 2) return array;
        *mask = make(data + 0x10000, stream);
        array->mask = mask;
        array->sync = CAI_SYNC_NONE;
        array->stream = B; /* of which nothing is to be thought */
        return array;
    }
    if (form == 3) *array = array_of(CAI_FLOAT32, 1, &zero, NULL, 0);
    if (form == 4) *array = array_of(CAI_FLOAT32, 0, NULL, NULL, data);
    if (form == 4) array->memory = CAI_MEMORY_HOST;
    array->sync = form == 0   ? CAI_SYNC_NONE
                  : form == 1 ? CAI_SYNC_UNKNOWN
                  : form == 2 ? CAI_SYNC_EVENT
                              : CAI_SYNC_STREAM;
    array->stream = form == 2 || form == 5 ? 0 : B;
    return form == 6 ? NULL : array;
}

static int32_t forms_of(uint64_t stream, int is_out)
{
    return stream ? SOME_FORMS : is_out ? OUT_FORMS : NONE_FORMS;
}

/* What dpctl says of two inputs and out: where it runs (A, B), or who is to blame (x, y, out: o), or that
 * nobody knows (!). One letter for out without a stream, with A, with B. */
static const char *const dpctl_rows[3][3] = {
    {"!!!", "AAo", "BoB"},
    {"AAo", "AAo", "yyy"},
    {"BoB", "yyy", "BoB"}};

static void check_dpctl(const call *c, int32_t x, int32_t y, int32_t out)
{
    const char said = dpctl_rows[x][y][out];
    const cai_status status = try_call(c);
    if (said == 'A' || said == 'B') {
        CHECK_INT(status, CAI_OK);
        CHECK_UINT(at.stream, said == 'A' ? A : B);
        return;
    }
    CHECK_INT(status, CAI_ERR_PLACEMENT);
    CHECK_INT(err.index, said == '!' ? -1 : said == 'y' ? 1 : 2);
}

static void check_forms(int32_t x, int32_t y, int32_t out, const int32_t *form)
{
    static const uint64_t streams[3] = {0, A, B};
    cai_array arrays[3], masks[3];
    int32_t given;
    call c = call_of(CAI_PLACE_IDENTICAL, 0, NULL);
    c.count = 2;
    c.inputs[0] = operand_of(&arrays[0], &masks[0], HERE, streams[x], form[0]);
    c.inputs[1] = operand_of(&arrays[1], &masks[1], 2 * HERE, streams[y], form[1]);
    c.out = operand_of(&arrays[2], &masks[2], 3 * HERE, streams[out], form[2]);
    check_dpctl(&c, x, y, out);
    for (c.policy = CAI_PLACE_IDENTICAL; c.policy <= CAI_PLACE_INTO; c.policy++) {
        for (given = 0; given < 3; given++) {
            c.stream = streams[given];
            (void)by_rule(&c);
        }
    }
}

/* As dpctl_rows, of a policy: of arrays with nothing pending, and with the streams A and B. */
static void print_matrix(int32_t policy, const char *name)
{
    static const uint64_t streams[3] = {0, A, B};
    int32_t cell;
    printf("%s\n    out -AB:   y -   y A   y B\n", name);
    for (cell = 0; cell < 27; cell++) {
        cai_array arrays[3], masks[3];
        call c = call_of(policy, policy == CAI_PLACE_INTO ? B : 0, NULL);
        c.count = 2;
        c.inputs[0] = operand_of(&arrays[0], &masks[0], HERE, streams[cell / 9], 0);
        c.inputs[1] = operand_of(&arrays[1], &masks[1], 2 * HERE, streams[cell / 3 % 3], 0);
        c.out = operand_of(&arrays[2], &masks[2], 3 * HERE, streams[cell % 3], 0);
        if (cell % 9 == 0) printf("    x %c       ", "-AB"[cell / 9]);
        if (cell % 3 == 0) printf("   ");
        if (try_call(&c)) printf("%c", "!xyo"[err.index + 1]);
        else printf("%c", at.stream == A ? 'A' : 'B');
        if (cell % 9 == 8) printf("\n");
    }
}

static void test_matrix(void)
{
    int32_t cell, form[3];
    for (cell = 0; cell < 27; cell++) {
        static const uint64_t has[3] = {0, A, B};
        char note[80];
        sprintf(note, "x %c, y %c, out %c", "-AB"[cell / 9], "-AB"[cell / 3 % 3], "-AB"[cell % 3]);
        cai_test_note(note);
        for (form[0] = 0; form[0] < forms_of(has[cell / 9], 0); form[0]++)
            for (form[1] = 0; form[1] < forms_of(has[cell / 3 % 3], 0); form[1]++)
                for (form[2] = 0; form[2] < forms_of(has[cell % 3], 1); form[2]++)
                    check_forms(cell / 9, cell / 3 % 3, cell % 3, form);
    }
}

/* ------------------------------------------------------------------ more inputs, default streams, given */

static void test_three_inputs(void)
{
    const cai_array none = make(HERE, 0), a = make(2 * HERE, A), b = make(3 * HERE, B);
    const cai_array out = make(4 * HERE, B), more = make(5 * HERE, A);
    call c = call_with(&none, &a, NULL, CAI_PLACE_IDENTICAL);
    cai_test_note("three inputs");
    c.count = 3;
    good(&c, A, 1); /* the third is a scalar */
    c.inputs[2] = &more;
    good(&c, A, 1);
    c.inputs[2] = &b;
    bad(&c, CAI_ERR_PLACEMENT, 2, "input 2 is on device 0, stream 0x60, but input 1 is on device 0, stream 0x50");
    c.policy = CAI_PLACE_SAME_DEVICE;
    good(&c, A, 1);
    c.inputs[1] = NULL;
    good(&c, B, 2);
    c.out = &out;
    c.inputs[1] = &a;
    good(&c, A, 1); /* out has no say */
    c.policy = CAI_PLACE_IDENTICAL;
    c.inputs[2] = NULL;
    bad(&c, CAI_ERR_PLACEMENT, 3, "out is on device 0, stream 0x60, but input 1 is on device 0, stream 0x50");
    c.count = 0;
    bad(&c, CAI_ERR_PLACEMENT, -1, "none of 0 inputs has a stream, and stream is 0");
    c.stream = B;
    good(&c, B, -1);
    CHECK_INT(at.memory, CAI_MEMORY_UNKNOWN); /* of inputs, of which there is none */
    CHECK_INT(at.device, 0);
    CHECK_INT(cai_place(NULL, 0, NULL, CAI_PLACE_INTO, 0, A, &at, &err), CAI_OK);
    CHECK_INT(at.device, CAI_DEVICE_UNKNOWN);
}

static void test_masks(void)
{
    cai_array x = make(HERE, A), y = make(2 * HERE, 0), x_mask = make(0x11000, A), y_mask = make(0x12000, B);
    cai_array out = make(3 * HERE, 0);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("masks");
    x.mask = &x_mask;
    good(&c, A, 0);
    y.mask = &y_mask;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 0, stream 0x60, but input 0 is on device 0, stream 0x50");
    c.policy = CAI_PLACE_SAME_DEVICE;
    good(&c, A, 0);
    c.inputs[0] = NULL;
    good(&c, B, 1); /* the mask decides where its array has no stream */
    c.policy = CAI_PLACE_IDENTICAL;
    out.mask = &x_mask;
    bad(&c, CAI_ERR_PLACEMENT, 2, "out is on device 0, stream 0x50, but input 1 is on device 0, stream 0x60");
    out.mask = &y_mask;
    y_mask.sync = x_mask.sync = CAI_SYNC_EVENT;
    good(&c, B, 1);
    c.inputs[0] = &x;
    x_mask.stream = B; /* an array and its own mask */
    bad(&c, CAI_ERR_PLACEMENT, 0, "input 0 is on device 0, stream 0x60, but its array is on device 0, stream 0x50");
    x_mask.sync = CAI_SYNC_NONE;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 0, stream 0x60, but input 0 is on device 0, stream 0x50");
    y_mask.stream = 0;
    good(&c, A, 0);
}

static void test_default_streams(void)
{
    cai_array x = make(HERE, 1), y = make(2 * HERE, 1), out = make(3 * HERE, 1);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("streams 1 and 2");
    x.thread = 7, y.thread = 8; /* which is nothing to 1 */
    good(&c, 1, 0);
    y.stream = 2;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 0, stream 0x2, but input 0 is on device 0, stream 0x1");
    x.stream = out.stream = 2;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on stream 2 of host thread 0x8, but input 0 is on that of 0x7");
    y.thread = 7;
    bad(&c, CAI_ERR_PLACEMENT, 2, "out is on stream 2 of host thread 0x0, but input 0 is on that of 0x7");
    out.thread = 7;
    good(&c, 2, 0);
    out.thread = 9;
    c.policy = CAI_PLACE_SAME_DEVICE;
    good(&c, 2, 0);
    c.policy = CAI_PLACE_IDENTICAL;
    x.sync = y.sync = CAI_SYNC_NONE; /* out is not compared with what no operand said */
    c.stream = 2;
    good(&c, 2, -1);
    c.stream = 1;
    bad(&c, CAI_ERR_PLACEMENT, 2, "out is on device 0, stream 0x2, but the work is on stream 0x1");
}

/* Managed and pinned memory is not bound to a device, its default streams are. */
static void check_default_stream_of(uint64_t stream, int32_t memory)
{
    cai_array x = make(HERE, stream), y = make(2 * HERE, stream), out = make(3 * HERE, 0), mask;
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    y.memory = memory;
    good(&c, stream, 0);
    y.device = 1;
    CHECK_INT(by_rule(&c), stream == A ? CAI_OK : CAI_ERR_PLACEMENT);
    if (stream == 1)
        CHECK_STR(err.message, "input 1 is on device 1, stream 0x1, but input 0 is on device 0, stream 0x1");
    if (stream == 2)
        CHECK_STR(err.message, "input 1 is on device 1, stream 0x2, but input 0 is on device 0, stream 0x2");
    if (stream != A) CHECK_INT(err.rule, 83);
    c.inputs[0] = &y;
    c.inputs[1] = &x;
    CHECK_INT(by_rule(&c), stream == A ? CAI_OK : CAI_ERR_PLACEMENT);
    c.policy = CAI_PLACE_SAME_DEVICE; /* the one that is bound to a device */
    good(&c, stream, memory == CAI_MEMORY_DEVICE ? 0 : 1);
    c.policy = CAI_PLACE_IDENTICAL;
    c.inputs[0] = c.inputs[1];
    c.inputs[1] = NULL;
    out = y;
    out.data = 3 * HERE;
    CHECK_INT(by_rule(&c), stream == A ? CAI_OK : CAI_ERR_PLACEMENT);
    x.sync = CAI_SYNC_NONE; /* not compared with what no operand said */
    c.stream = stream;
    good(&c, stream, -1);
    x.sync = CAI_SYNC_STREAM;
    out = make(3 * HERE, 0);
    mask = y;
    out.mask = &mask;
    CHECK_INT(by_rule(&c), stream == A ? CAI_OK : CAI_ERR_PLACEMENT);
}

static void test_default_streams_of_devices(void)
{
    static const uint64_t streams[] = {1, 2, A};
    int32_t i, memory;
    cai_test_note("streams 1 and 2 of two devices");
    for (i = 0; i < 3; i++)
        for (memory = CAI_MEMORY_PINNED; memory <= CAI_MEMORY_MANAGED; memory++)
            check_default_stream_of(streams[i], memory);
}

static void test_given_stream(void)
{
    const cai_array x = make(HERE, A), none = make(2 * HERE, 0), out = make(3 * HERE, B);
    call c = call_with(&x, &none, &out, CAI_PLACE_INTO);
    cai_test_note("a stream is given");
    c.stream = 0x77;
    good(&c, 0x77, -1);
    c.stream = 1;
    good(&c, 1, -1);
    c.stream = 0;
    bad(&c, CAI_ERR_STREAM, -1,
        "stream 0 is ambiguous: CAI_STREAM(stream) returns the number of a cudaStream_t");
    for (c.policy = CAI_PLACE_IDENTICAL; c.policy <= CAI_PLACE_INTO; c.policy++) {
        c.stream = UINT64_MAX;
        bad(&c, CAI_ERR_STREAM, -1, "stream -1 is no stream: use CAI_MODE_IGNORE for no order");
    }
    c.policy = CAI_PLACE_SAME_DEVICE;
    c.stream = 0x77;
    good(&c, A, 0); /* not asked */
    c.inputs[0] = &none;
    good(&c, 0x77, -1);
    c.policy = CAI_PLACE_IDENTICAL;
    bad(&c, CAI_ERR_PLACEMENT, 2, "out is on device 0, stream 0x60, but the work is on stream 0x77");
    c.stream = B;
    good(&c, B, -1);
    c.stream = 0;
    bad(&c, CAI_ERR_PLACEMENT, -1, "none of 2 inputs has a stream, and stream is 0");
    c.policy = CAI_PLACE_SAME_DEVICE;
    bad(&c, CAI_ERR_PLACEMENT, -1, "none of 2 inputs has a stream, and stream is 0");
}

/* ------------------------------------------------------------------ memory and devices */

/* Two inputs on devices 0 and 1, of two kinds of memory. */
static void check_devices_of(int32_t x_memory, int32_t y_memory, int32_t policy)
{
    const int bound = x_memory == CAI_MEMORY_DEVICE && y_memory == CAI_MEMORY_DEVICE;
    cai_array x = make(HERE, A), y = make(2 * HERE, A), out = make(3 * HERE, A);
    call c = call_with(&x, &y, NULL, policy);
    x.memory = x_memory;
    y.memory = y_memory;
    CHECK_INT(by_rule(&c), CAI_OK);
    y.device = 1;
    CHECK_INT(by_rule(&c), bound ? CAI_ERR_PLACEMENT : CAI_OK);
    if (!bound) CHECK_INT(at.memory, x_memory > y_memory ? x_memory : y_memory);
    c.out = &y;
    c.inputs[1] = &out; /* y is out, another one the input */
    out.memory = x_memory;
    CHECK_INT(by_rule(&c), bound ? CAI_ERR_PLACEMENT : CAI_OK);
    if (bound) CHECK_INT(err.index, 2);
    else CHECK_INT(at.memory, x_memory); /* out has no say in it */
}

static void test_devices(void)
{
    cai_array x = make(HERE, A), y = make(2 * HERE, B), out = make(3 * HERE, A);
    call c = call_with(&x, &y, &out, CAI_PLACE_SAME_DEVICE);
    int32_t a, b;
    cai_test_note("devices");
    for (a = CAI_MEMORY_PINNED; a <= CAI_MEMORY_DEVICE; a++)
        for (b = CAI_MEMORY_PINNED; b <= CAI_MEMORY_DEVICE; b++)
            for (c.policy = CAI_PLACE_IDENTICAL; c.policy <= CAI_PLACE_INTO; c.policy++)
                check_devices_of(a, b, c.policy);
    c.policy = CAI_PLACE_SAME_DEVICE;
    x.device = y.device = out.device = 1;
    good(&c, A, 0);
    CHECK_INT(at.device, 1);
    x.memory = CAI_MEMORY_PINNED;
    x.device = 0;
    good(&c, B, 1); /* the stream of pinned memory may be of another device */
    CHECK_INT(at.device, 1);
    y.memory = CAI_MEMORY_MANAGED;
    out.memory = CAI_MEMORY_PINNED;
    good(&c, A, 0);
    CHECK_INT(at.device, CAI_DEVICE_UNKNOWN);
    CHECK_INT(at.memory, CAI_MEMORY_MANAGED);
    out.memory = CAI_MEMORY_DEVICE;
    out.device = 5;
    good(&c, A, 0);
    CHECK_INT(at.device, 5);
    x.memory = CAI_MEMORY_DEVICE;
    bad(&c, CAI_ERR_PLACEMENT, 2, "out is on device 5, stream 0x50, but input 0 is on device 0, stream 0x50");
    y.memory = CAI_MEMORY_DEVICE;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 1, stream 0x60, but input 0 is on device 0, stream 0x50");
}

static void test_memory(void)
{
    cai_array x = make(HERE, A), y = make(2 * HERE, A), out = make(3 * HERE, A);
    cai_array scalar = array_of(CAI_FLOAT32, 0, NULL, NULL, 5 * HERE);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("memory that no kernel can use");
    y.memory = CAI_MEMORY_HOST;
    y.device = CAI_DEVICE_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 1, "input 1 is plain host memory, 16 bytes: no kernel can use it");
    y.device = 0; /* which cai_locate stores with CAI_LOCATE_PAGEABLE */
    good(&c, A, 0);
    CHECK_INT(at.device, 0);
    CHECK_INT(at.memory, CAI_MEMORY_DEVICE);
    y.device = 1;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 1, stream 0x50, but input 0 is on device 0, stream 0x50");
    c.inputs[0] = &y;
    out.memory = CAI_MEMORY_MANAGED;
    good(&c, A, 0);
    CHECK_INT(at.device, 1);
    CHECK_INT(at.memory, CAI_MEMORY_MANAGED);
    out.memory = CAI_MEMORY_DEVICE;
    c.inputs[0] = &x;
    y.memory = CAI_MEMORY_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 1, "input 1: its kind of memory or its device is unknown, call cai_locate");
    y.memory = CAI_MEMORY_DEVICE + 1;
    bad(&c, CAI_ERR_MEMORY, 1, "input 1: its kind of memory or its device is unknown, call cai_locate");
    y.memory = CAI_MEMORY_DEVICE;
    y.device = CAI_DEVICE_UNKNOWN; /* on a device, but on which? */
    bad(&c, CAI_ERR_MEMORY, 1, "input 1: its kind of memory or its device is unknown, call cai_locate");
    c.inputs[0] = &y;
    bad(&c, CAI_ERR_MEMORY, 0, "input 0: its kind of memory or its device is unknown, call cai_locate");
    c.inputs[0] = &x;
    y.memory = CAI_MEMORY_MANAGED; /* which is nothing to managed memory */
    good(&c, A, 0);
    y.memory = CAI_MEMORY_DEVICE;
    y.device = 0;
    out.device = CAI_DEVICE_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 2, "out: its kind of memory or its device is unknown, call cai_locate");
    out.memory = CAI_MEMORY_HOST;
    bad(&c, CAI_ERR_MEMORY, 2, "out is plain host memory, 16 bytes: no kernel can use it");
    out.memory = CAI_MEMORY_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 2, "out: its kind of memory or its device is unknown, call cai_locate");
    out.memory = CAI_MEMORY_DEVICE;
    out.device = 0;
    c.inputs[1] = &scalar; /* on the device: an operand as any other */
    scalar.sync = CAI_SYNC_STREAM;
    scalar.stream = B;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 0, stream 0x60, but input 0 is on device 0, stream 0x50");
    scalar.memory = CAI_MEMORY_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 1, "input 1: its kind of memory or its device is unknown, call cai_locate");
    scalar.memory = CAI_MEMORY_HOST; /* passed by value */
    scalar.device = CAI_DEVICE_UNKNOWN;
    good(&c, A, 0);
    CHECK_INT(at.memory, CAI_MEMORY_DEVICE);
    c.inputs[0] = &scalar;
    bad(&c, CAI_ERR_PLACEMENT, -1, "none of 2 inputs has a stream, and stream is 0");
    c.inputs[0] = &x;
    c.out = &scalar;
    c.inputs[1] = &y;
    bad(&c, CAI_ERR_MEMORY, 2, "out is plain host memory, 4 bytes: no kernel can use it");
}

/* dpctl's order: device, shared, host. Rows and columns by number: unknown, host, pinned, managed, device. */
static void test_coercion(void)
{
    static const int32_t expected[5][5] = {
        {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, 0, 2, 3, 4}, {0, 0, 3, 3, 4}, {0, 0, 4, 4, 4}};
    static const int32_t none[] = {-1, 5, INT32_MIN, INT32_MAX};
    int32_t a, b, i;
    cai_test_note("cai_result_memory");
    for (a = 0; a < 5; a++)
        for (b = 0; b < 5; b++) CHECK_INT(cai_result_memory(a, b), expected[a][b]);
    for (i = 0; i < 4; i++) {
        for (a = 0; a < 5; a++) {
            CHECK_INT(cai_result_memory(a, none[i]), CAI_MEMORY_UNKNOWN);
            CHECK_INT(cai_result_memory(none[i], a), CAI_MEMORY_UNKNOWN);
        }
        CHECK_INT(cai_result_memory(none[i], none[i]), CAI_MEMORY_UNKNOWN);
    }
    CHECK_INT(CAI_MEMORY_PINNED, 2);
    CHECK_INT(CAI_MEMORY_MANAGED, 3);
    CHECK_INT(CAI_MEMORY_DEVICE, 4);
}

/* ------------------------------------------------------------------ out */

static const char shares_0[] = "input 0 shares, or may share, bytes with out, and not element by element";
static const char shares_1[] = "input 1 shares, or may share, bytes with out, and not element by element";

static void test_out(void)
{
    const int64_t zero = 0;
    cai_array x = make(HERE, A), out = make(2 * HERE, A);
    call c = call_with(&x, NULL, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("out that cannot be written");
    out.flags &= ~(uint32_t)CAI_WRITABLE;
    bad(&c, CAI_ERR_EXPECT, 2, "out is read-only");
    c.flags = CAI_PLACE_ALLOW_OVERLAP;
    bad(&c, CAI_ERR_EXPECT, 2, "out is read-only");
    out = make_floats(2 * HERE, 4, 0);
    bad(&c, CAI_ERR_EXPECT, 2, "out has, or may have, elements that share bytes");
    c.flags = 0;
    out = make_floats(2 * HERE, 4, 3);
    bad(&c, CAI_ERR_EXPECT, 2, "out has, or may have, elements that share bytes");
    out = make_floats(2 * HERE, 1, 0); /* one element */
    good(&c, A, 0);
    out = array_of(CAI_FLOAT32, 1, &zero, NULL, 0);
    out.memory = CAI_MEMORY_UNKNOWN;
    out.device = 1;
    out.sync = CAI_SYNC_STREAM;
    out.stream = B;
    good(&c, A, 0); /* nothing to write */
    out.flags &= ~(uint32_t)CAI_WRITABLE;
    bad(&c, CAI_ERR_EXPECT, 2, "out is read-only");
    c.inputs[0] = &out;
    c.inputs[1] = &x;
    c.out = NULL;
    good(&c, A, 1); /* an input is read only */
}

static void overlaps(const call *c, int32_t index, const char *message)
{
    call allowed = *c;
    bad(c, CAI_ERR_EXPECT, c->count, message);
    allowed.flags = CAI_PLACE_ALLOW_OVERLAP;
    CHECK_INT(by_rule(&allowed), CAI_OK);
    CHECK_INT(at.overlap, index);
}

static void test_overlap(void)
{
    cai_array x = make_floats(HERE, 4, 4), y = make_floats(2 * HERE, 4, 8), out = make_floats(HERE, 4, 4);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("out and inputs that share bytes");
    good(&c, A, 0); /* in place */
    CHECK_INT(at.overlap, -1);
    c.inputs[1] = &x; /* twice */
    good(&c, A, 0);
    c.inputs[1] = &y;
    out = make_floats(HERE + 4, 4, 4); /* by one element */
    overlaps(&c, 0, shares_0);
    out = make_floats(HERE + 12, 4, -4); /* from behind */
    overlaps(&c, 0, shares_0);
    out = make_floats(HERE + 16, 4, 4); /* just behind */
    good(&c, A, 0);
    out = make_floats(HERE - 16, 4, 4);
    good(&c, A, 0);
    out = make_floats(2 * HERE + 4, 4, 8); /* odd and even columns */
    good(&c, A, 0);
    out = make_floats(2 * HERE + 2, 4, 8);
    overlaps(&c, 1, shares_1);
    out = make_floats(2 * HERE, 4, 4); /* the same data, other strides */
    overlaps(&c, 1, shares_1);
    x = make_floats(2 * HERE, 4, -4);
    overlaps(&c, 0, shares_0); /* the first */
    x = make_floats(2 * HERE, 4, 4);
    overlaps(&c, 1, shares_1); /* x is in place */
    c.inputs[1] = NULL;
    good(&c, A, 0);
}

static void test_overlap_of_shapes(void)
{
    static const int64_t two[] = {2}, three[] = {3}, flat[] = {4}, row[] = {1, 4}, column[] = {4, 1};
    static const int64_t square[] = {2, 2}, wide[] = {2, 3}, tall[] = {3, 2};
    static const int64_t padded[] = {1024, 4}, apart[] = {4, 4}, turned[] = {4, 12};
    cai_array x, out = array_of(CAI_FLOAT32, 1, flat, NULL, HERE);
    call c = call_with(&x, NULL, &out, CAI_PLACE_INTO);
    cai_test_note("the same bytes as other elements");
    x = array_of(CAI_INT32, 1, flat, NULL, HERE); /* of one size: element by element all the same */
    good(&c, 0x99, -1);
    x = array_of(CAI_INT64, 1, two, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_INT16, 1, flat, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 1, three, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 2, square, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 2, row, NULL, HERE);
    overlaps(&c, 0, shares_0);
    out = array_of(CAI_FLOAT32, 2, row, padded, HERE); /* the stride of one element is nothing */
    good(&c, 0x99, -1);
    out = array_of(CAI_FLOAT32, 2, column, NULL, HERE); /* (4, 1) and (4,) are broadcast to (4, 4) */
    x = array_of(CAI_FLOAT32, 1, flat, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_INT16, 2, column, apart, HERE); /* where out's elements are, and smaller */
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 2, tall, turned, HERE);
    out = array_of(CAI_FLOAT32, 2, wide, turned, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 2, square, turned, HERE);
    out = array_of(CAI_FLOAT32, 2, square, NULL, HERE);
    overlaps(&c, 0, shares_0);
    x = array_of(CAI_FLOAT32, 0, NULL, NULL, HERE);
    x.memory = CAI_MEMORY_HOST; /* a scalar that is to be read from out's memory, if that is mapped */
    overlaps(&c, 0, shares_0);
}

static void test_overlap_undecided(void)
{
    const int64_t apart = (int64_t)1 << 60;
    cai_array x = make_floats(HERE, 3, apart), out = make_floats(HERE + 8, 3, apart);
    call c = call_with(&x, NULL, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("overlap that is not decided");
    CHECK_INT(cai_overlap(&x, &out), CAI_OVERLAP_UNDECIDED);
    CHECK_INT(try_call(&c), CAI_ERR_EXPECT);
    CHECK_INT(err.index, 2);
    CHECK_STR(err.message, shares_0);
    c.flags = CAI_PLACE_ALLOW_OVERLAP;
    CHECK_INT(try_call(&c), CAI_OK);
    CHECK_INT(at.overlap, 0);
    c.flags = 0;
    out.data = HERE; /* in place is known to be so */
    CHECK_INT(cai_overlap(&x, &out), CAI_OVERLAP_UNDECIDED);
    good(&c, A, 0);
    out.flags &= ~(uint32_t)CAI_NO_SELF_OVERLAP; /* nor is it known of itself */
    CHECK_INT(try_call(&c), CAI_ERR_EXPECT);
    CHECK_STR(err.message, "out has, or may have, elements that share bytes");
}

/* ------------------------------------------------------------------ misuse, messages */

static void misused(cai_status got, cai_status status, const char *message)
{
    CHECK_INT(got, status);
    CHECK_INT(err.code, status);
    CHECK_INT(err.index, -1);
    CHECK_STR(err.message, message);
    CHECK(help_filled(&at, sizeof at));
}

static void test_misuse(void)
{
    static const char nothing[] = "cai_place: placement or inputs is NULL, or count is negative";
    const cai_array x = make(HERE, A);
    cai_operand inputs[1];
    inputs[0] = cai_operand_array(&x, NULL);
    cai_test_note("misuse");
    help_fill(&at, sizeof at);
    misused(cai_place(NULL, 1, NULL, 0, 0, 0, &at, &err), CAI_ERR_ARGUMENT, nothing);
    misused(cai_place(inputs, -1, NULL, 0, 0, 0, &at, &err), CAI_ERR_ARGUMENT, nothing);
    misused(cai_place(inputs, 1, NULL, 0, 0, 0, NULL, &err), CAI_ERR_ARGUMENT, nothing);
    misused(cai_place(inputs, 1, NULL, 3, 0, A, &at, &err), CAI_ERR_ARGUMENT,
            "cai_place: policy = 3 is unknown");
    misused(cai_place(inputs, 1, NULL, -1, 0, A, &at, &err), CAI_ERR_ARGUMENT,
            "cai_place: policy = -1 is unknown");
    misused(cai_place(inputs, 1, NULL, 0, 2, A, &at, &err), CAI_ERR_ARGUMENT,
            "cai_place: flags = 0x2 has unknown bits");
    misused(cai_place(inputs, 1, NULL, 0, 0x80000001u, A, &at, &err), CAI_ERR_ARGUMENT,
            "cai_place: flags = 0x80000001 has unknown bits");
    CHECK_INT(cai_place(NULL, -1, NULL, 9, 9, 0, NULL, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_place(inputs, 1, NULL, 9, 0, 0, &at, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_place(inputs, 1, NULL, 0, 9, 0, &at, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_place(inputs, 1, NULL, CAI_PLACE_INTO, 0, 0, &at, NULL), CAI_ERR_STREAM);
    CHECK(help_filled(&at, sizeof at));
}

/* cai_error.rule. The status is the same without an error. */
static void test_rules(void)
{
    enum { ZERO, MINUS_ONE, HOST, NOWHERE, DEVICE, CONTEXT, THREAD, READ_ONLY, COUNT };
    static const struct {
        cai_status status;
        int32_t rule;
    } rows[COUNT] = {{CAI_ERR_STREAM, 71}, {CAI_ERR_STREAM, 74}, {CAI_ERR_MEMORY, 7}, {CAI_ERR_MEMORY, 0},
                     {CAI_ERR_PLACEMENT, 0}, {CAI_ERR_PLACEMENT, 83}, {CAI_ERR_PLACEMENT, 84},
                     {CAI_ERR_EXPECT, 6}};
    int32_t i;
    for (i = 0; i < COUNT; i++) {
        const uint64_t stream = i == CONTEXT ? 1 : i == THREAD ? 2 : A;
        cai_array x = make(HERE, stream), y = make(2 * HERE, stream), out = make(3 * HERE, stream);
        cai_operand inputs[2];
        const int32_t policy = i == ZERO ? CAI_PLACE_INTO : CAI_PLACE_IDENTICAL;
        const uint64_t given = i == MINUS_ONE ? UINT64_MAX : 0;
        inputs[0] = cai_operand_array(&x, NULL);
        inputs[1] = cai_operand_array(&y, NULL);
        if (i == HOST) y.memory = CAI_MEMORY_HOST;
        if (i == HOST) y.device = CAI_DEVICE_UNKNOWN;
        if (i == NOWHERE) y.memory = CAI_MEMORY_UNKNOWN;
        if (i == CONTEXT) y.memory = CAI_MEMORY_MANAGED;
        if (i == CONTEXT || i == DEVICE) y.device = 1;
        if (i == THREAD) y.thread = 5;
        if (i == READ_ONLY) out.flags &= ~(uint32_t)CAI_WRITABLE;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(cai_place(inputs, 2, &out, policy, 0, given, &at, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(cai_place(inputs, 2, &out, policy, 0, given, &at, NULL), rows[i].status);
    }
}

static void test_abi(void)
{
    cai_array x = make(HERE, A), y = make(2 * HERE, A), out = make(3 * HERE, A);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("a struct of another layout");
    y.abi = 7;
    bad(&c, CAI_ERR_ABI, 1, "abi = 0x7 is not 0x43414931, that of this header");
    out.abi = 8;
    bad(&c, CAI_ERR_ABI, 1, "abi = 0x7 is not 0x43414931, that of this header");
    y.abi = CAI_ABI;
    bad(&c, CAI_ERR_ABI, 2, "abi = 0x8 is not 0x43414931, that of this header");
    out.abi = CAI_ABI;
    y.ndim = 65;
    CHECK_INT(try_call(&c), CAI_ERR_ABI);
    CHECK_INT(err.index, 1);
    CHECK_STR(err.message, "ndim = 65 is not in 0..64");
    y.ndim = 1;
    out.struct_size = 8;
    CHECK_INT(try_call(&c), CAI_ERR_ABI);
    CHECK_INT(err.index, 2);
}

static void test_names(void)
{
#define SIXTY_THREE "a name of a parameter that somebody took the trouble to write o"
    static const char *const names[] = {"x", NULL, SIXTY_THREE "ut in full, with all its units", ""};
    cai_array x = make(HERE, A), y = make(2 * HERE, A), z = make(3 * HERE, A), out = make(4 * HERE, A);
    call c = call_with(&x, &y, &out, CAI_PLACE_IDENTICAL);
    cai_test_note("names of operands");
    c.names = names;
    c.inputs[2] = &z;
    c.inputs[3] = &z;
    c.count = 4;
    x.memory = CAI_MEMORY_HOST;
    x.device = CAI_DEVICE_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 0, "x is plain host memory, 16 bytes: no kernel can use it");
    x.memory = CAI_MEMORY_UNKNOWN;
    bad(&c, CAI_ERR_MEMORY, 0, "x: its kind of memory or its device is unknown, call cai_locate");
    x.memory = CAI_MEMORY_DEVICE;
    x.device = 0;
    y.stream = 0x7f00deadbeef;
    bad(&c, CAI_ERR_PLACEMENT, 1, "input 1 is on device 0, stream 0x7f00deadbeef, but x is on device 0, stream 0x50");
    y.stream = A;
    z.device = 3;
    bad(&c, CAI_ERR_PLACEMENT, 2, SIXTY_THREE " is on device 3, stream 0x50, but x is on device 0, stream 0x50");
    z.device = 0;
    z.stream = UINT64_MAX - 15;
    bad(&c, CAI_ERR_PLACEMENT, 2,
        SIXTY_THREE " is on device 0, stream 0xfffffffffffffff0, but x is on device 0, stream 0x50");
    out.data = 3 * HERE + 4;
    z.stream = A;
    bad(&c, CAI_ERR_EXPECT, 4,
        SIXTY_THREE " shares, or may share, bytes with out, and not element by element");
    z.memory = CAI_MEMORY_UNKNOWN;
    c.inputs[2] = &y;
    bad(&c, CAI_ERR_MEMORY, 3, ": its kind of memory or its device is unknown, call cai_locate");
#undef SIXTY_THREE
}

/* ------------------------------------------------------------------ the exchange that follows */

/* x is filled on one stream, y on another, out cleared on a third; then out = x + y where cai_place says, by
 * way of an exchange; then all three are used again by those they belong to. */
typedef struct sum {
    int32_t policy;
    int32_t exchanges;  /* 0: it is left out */
    int32_t without;    /* the operand that is not told to the exchange; -1: none */
    int32_t decided;    /* what is to be expected */
} sum;

enum { SUM_STREAMS = 4, SUM_BYTES = 16 };

static void fail_unless(cai_sim *sim, int good, const char *what)
{
    if (!good) cai_check_fail(sim, what);
}

static void add(cai_sim *sim, const sum *s, cai_array *const *arrays, uint64_t stream)
{
    cai_event_pool pool;
    cai_exchange ex;
    cai_sim_access use[3];
    cai_array *told[3];
    int32_t i, count = 0;
    for (i = 0; i < 3; i++) {
        use[i] = cai_sim_reads(arrays[i]->data, SUM_BYTES);
        use[i].write = i == 2;
        if (i != s->without) told[count++] = arrays[i];
    }
    if (!s->exchanges) {
        (void)cai_sim_touch(sim, stream, "add", use, 3);
        return;
    }
    fail_unless(sim, !cai_event_pool_init(&pool, cai_sim_cuda(sim), NULL, 0, 0, NULL), "no pool");
    fail_unless(sim, !cai_exchange_begin(&ex, &pool, told, count, stream, NULL), "not begun");
    (void)cai_sim_touch(sim, stream, "add", use, 3);
    fail_unless(sim, !cai_exchange_end(&ex, CAI_OK, NULL), "not ended");
    fail_unless(sim, !cai_event_pool_destroy(&pool, NULL), "not destroyed");
}

static void locate(cai_sim *sim, cai_array *array, uint64_t stream)
{
    *array = make(cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, SUM_BYTES), stream);
    array->memory = CAI_MEMORY_UNKNOWN;
    fail_unless(sim, !cai_locate(array, "array", cai_sim_cuda(sim), 0, NULL, NULL), "not located");
}

static void sum_program(cai_sim *sim, void *argument)
{
    static const char *const before[3] = {"fill x", "fill y", "clear out"};
    static const char *const after[3] = {"overwrite x", "overwrite y", "use out"};
    const sum *s = (const sum *)argument;
    uint64_t streams[SUM_STREAMS];
    cai_array arrays[3];
    cai_array *operands[3];
    cai_operand inputs[2];
    cai_placement placement;
    int32_t i;
    for (i = 0; i < SUM_STREAMS; i++) streams[i] = cai_sim_stream_create(sim, 1);
    for (i = 0; i < 3; i++) {
        cai_sim_access write;
        locate(sim, &arrays[i], streams[i]);
        operands[i] = &arrays[i];
        write = cai_sim_writes(arrays[i].data, SUM_BYTES);
        (void)cai_sim_touch(sim, streams[i], before[i], &write, 1);
    }
    inputs[0] = cai_operand_array(operands[0], NULL);
    inputs[1] = cai_operand_array(operands[1], NULL);
    fail_unless(sim,
                !cai_place(inputs, 2, operands[2], s->policy, 0,
                           s->policy == CAI_PLACE_INTO ? streams[3] : 0, &placement, NULL), "not placed");
    fail_unless(sim, placement.decided == s->decided && placement.device == 0, "placed wrongly");
    fail_unless(sim, placement.stream == (s->decided < 0 ? streams[3] : streams[0]), "on another stream");
    add(sim, s, operands, placement.stream);
    for (i = 0; i < 3; i++) {
        const cai_sim_access write = cai_sim_writes(arrays[i].data, SUM_BYTES);
        (void)cai_sim_touch(sim, streams[i], after[i], &write, 1);
    }
    (void)cai_sim_context_synchronize(sim);
    for (i = 0; i < 3; i++) (void)cai_sim_free(sim, arrays[i].data);
    for (i = 0; i < SUM_STREAMS; i++) (void)cai_sim_stream_destroy(sim, streams[i]);
}

static void check_sum(int32_t policy, int32_t exchanges, int32_t without, int racy)
{
    sum s;
    cai_check_result result;
    int32_t found;
    s.policy = policy;
    s.exchanges = exchanges;
    s.without = without;
    s.decided = policy == CAI_PLACE_INTO ? -1 : 0;
    found = cai_check(sum_program, &s, NULL, &result);
    if (!racy) CHECK_STR(result.text, "");
    CHECK_INT(found, racy);
    CHECK_INT(result.racy, racy);
    CHECK_INT(result.changed, racy);
    CHECK_INT(result.disagreements, 0);
    CHECK_INT(result.failed, 0);
    if (racy) CHECK(strstr(result.text, "race on m") != NULL && strstr(result.text, "\"add\"") != NULL);
}

static void test_exchange(void)
{
    int32_t policy, without;
    cai_test_note("place, then exchange");
    for (policy = CAI_PLACE_SAME_DEVICE; policy <= CAI_PLACE_INTO; policy++) {
        check_sum(policy, 1, -1, 0);
        check_sum(policy, 0, -1, 1);
        for (without = 0; without < 3; without++) /* only the one that decided needs no exchange */
            check_sum(policy, 1, without, policy == CAI_PLACE_INTO || without > 0);
    }
}

/* ------------------------------------------------------------------ at random */

enum { STATUSES = 64 };
static int64_t seen[STATUSES], overlapped, in_place;

/* Now and then. */
static int once_in(int64_t n)
{
    return help_between(1, n) == 1;
}

static int32_t random_memory(int agree)
{
    if (agree || once_in(2)) return CAI_MEMORY_DEVICE;
    return once_in(6) ? (int32_t)help_between(0, 1) : (int32_t)help_between(2, 3);
}

static uint64_t random_stream(int agree)
{
    static const uint64_t streams[] = {0, 1, 2, A, B};
    return streams[agree ? 3 : help_between(0, 4)];
}

/* What pends on an array: mostly the same on all, as few lists would do otherwise. */
static void random_work(cai_array *array, int agree)
{
    array->sync = agree ? CAI_SYNC_STREAM : (int32_t)help_between(0, 3);
    array->stream = random_stream(agree);
    array->thread = once_in(3) ? 12 : 11;
}

/* At most 3 x 4 elements around HERE or, if not crowded, somewhere else. */
static cai_array random_array(int agree, int crowded)
{
    static const int32_t codes[] = {CAI_INT8, CAI_INT16, CAI_FLOAT32, CAI_UINT32, CAI_INT64};
    int64_t shape[2], strides[2];
    const int32_t code = codes[help_between(0, 4)];
    const int32_t ndim = once_in(8) ? 0 : (int32_t)help_between(1, 2);
    const uint64_t page = (uint64_t)(crowded ? 1 : help_between(2, 9)), start = (uint64_t)help_between(0, 40);
    const int packed = once_in(2);
    cai_array array;
    shape[0] = once_in(12) ? 0 : help_between(1, 3);
    shape[1] = help_between(1, 4);
    strides[0] = once_in(2) ? shape[1] * 4 : help_between(-20, 20);
    strides[1] = once_in(2) ? 8 : help_between(-20, 20);
    array = array_of(code, ndim, shape, packed ? NULL : strides, page * HERE + start);
    array.memory = random_memory(agree);
    array.device = agree ? 0 : (int32_t)help_between(once_in(20) ? CAI_DEVICE_UNKNOWN : 0, 1);
    random_work(&array, agree);
    if (once_in(10)) array.flags &= ~(uint32_t)CAI_WRITABLE;
    if (once_in(60)) array.abi = 1;
    return array;
}

static void random_call(cai_array *arrays, cai_array *masks, call *c)
{
    const int agree = !once_in(3), crowded = once_in(2);
    int32_t i;
    memset(c, 0, sizeof *c);
    c->count = (int32_t)help_between(0, MOST);
    c->policy = (int32_t)help_between(0, 2);
    c->flags = once_in(3) ? CAI_PLACE_ALLOW_OVERLAP : 0;
    c->stream = once_in(20) ? UINT64_MAX : random_stream(once_in(2));
    for (i = 0; i <= c->count; i++) {
        arrays[i] = random_array(agree && !once_in(6), crowded);
        if (i == c->count && i > 0 && once_in(3)) arrays[i] = arrays[help_between(0, i - 1)];
        masks[i] = random_array(1, 0);
        masks[i].device = arrays[i].device;
        masks[i].memory = arrays[i].memory;
        random_work(&masks[i], agree);
        if (once_in(5)) arrays[i].mask = &masks[i];
        if (i < c->count) c->inputs[i] = once_in(8) ? NULL : &arrays[i];
    }
    c->out = once_in(4) ? NULL : &arrays[c->count];
}

static void test_random(int64_t lists)
{
    cai_array arrays[MOST + 1], masks[MOST + 1];
    call c;
    int64_t n;
    int32_t i;
    for (n = 0; n < lists; n++) {
        char note[60];
        cai_status status;
        sprintf(note, "random list %lld", (long long)n);
        cai_test_note(note);
        random_call(arrays, masks, &c);
        status = by_rule(&c);
        seen[status % STATUSES]++;
        if (status || !c.out) continue;
        overlapped += at.overlap >= 0;
        for (i = 0; i < c.count; i++)
            in_place += c.out->size && c.inputs[i] && c.inputs[i]->data == c.out->data;
    }
    cai_test_note("random lists");
    if (lists < 20000) return;
    CHECK(seen[CAI_OK] > lists / 4 && overlapped > lists / 200 && in_place > lists / 200);
    CHECK(seen[CAI_ERR_PLACEMENT] > lists / 20 && seen[CAI_ERR_EXPECT] > lists / 20);
    CHECK(seen[CAI_ERR_MEMORY] > lists / 200 && seen[CAI_ERR_ABI] > lists / 200);
    CHECK(seen[CAI_ERR_STREAM] > lists / 200);
}

/* Memory of each kind, as cai_locate finds it on a simulation with two devices. */
static void test_access(void)
{
    static const struct {
        int32_t kind, host, own, other; /* who can use it: the host, its device, another one */
    } rows[] = {{CAI_SIM_MEM_DEVICE, 0, 1, 0},  {CAI_SIM_MEM_MANAGED, 1, 1, 1}, {CAI_SIM_MEM_PINNED, 1, 1, 1},
                {CAI_SIM_MEM_ALIASED, 1, 1, 1}, {CAI_SIM_MEM_POOL, 0, 1, 0},    {CAI_SIM_MEM_VIRTUAL, 0, 1, 0}};
    cai_sim *sim = cai_sim_create(2);
    const int64_t shape[1] = {16}, none[1] = {0};
    cai_location location;
    cai_kernel_view view, plain;
    float plain_bytes[16];
    cai_array x;
    size_t i;
    cai_sim_set_context(sim, cai_sim_primary(sim, 0));
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t memory = cai_sim_alloc(sim, rows[i].kind, 64);
        CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, (void *)(uintptr_t)memory, &err), CAI_OK);
        CHECK_INT(cai_host_access(&x), -1);
        CHECK_INT(cai_device_access(&x, 0), -1);
        CHECK_INT(cai_locate(&x, "x", cai_sim_cuda(sim), 0, &location, &err), CAI_OK);
        CHECK_INT(cai_host_access(&x), rows[i].host);
        CHECK_INT(cai_device_access(&x, 0), rows[i].own);
        CHECK_INT(cai_device_access(&x, 1), rows[i].other);
        CHECK_INT(cai_kernel_view_of(&x, &plain, &err), CAI_OK);
        CHECK_INT(cai_kernel_view_at(&x, &location, &view, &err), CAI_OK);
        CHECK_UINT((uintptr_t)view.data, location.data);
        CHECK_INT(view.data != plain.data, rows[i].kind == CAI_SIM_MEM_ALIASED);
        CHECK_INT(view.shape[0], 16);
    }
    CHECK_INT(cai_kernel_view_at(&x, NULL, &view, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_kernel_view_at(&x, &location, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_kernel_view_at(NULL, &location, &view, &err), CAI_ERR_ARGUMENT);
    location.data = 0;
    view = plain;
    CHECK_INT(cai_kernel_view_at(&x, &location, &view, &err), CAI_ERR_MEMORY);
    CHECK(view.data == plain.data);
    x.device = CAI_DEVICE_UNKNOWN;
    CHECK_INT(cai_device_access(&x, 0), -1);
    x.memory = CAI_MEMORY_HOST;
    CHECK_INT(cai_host_access(&x), 1);
    CHECK_INT(cai_device_access(&x, 0), 0);
    CHECK_INT(cai_device_access(&x, -1), -1);
    cai_sim_set_device_attribute(sim, 0, CAI_ATTRIBUTE_PAGEABLE_ACCESS, 1);
    x.data = (uint64_t)(uintptr_t)plain_bytes;
    CHECK_INT(cai_locate(&x, "x", cai_sim_cuda(sim), CAI_LOCATE_PAGEABLE, &location, &err), CAI_OK);
    CHECK_INT(x.memory, CAI_MEMORY_HOST);
    CHECK_INT(cai_host_access(&x), 1);
    CHECK_INT(cai_device_access(&x, 0), 1);
    CHECK_INT(cai_device_access(&x, 1), -1);
    CHECK_INT(cai_expect(&x, "x", CAI_FLOAT32, 1, CAI_ON_DEVICE, &err), CAI_OK);
    CHECK_INT(cai_host_access(NULL), -1);
    CHECK_INT(cai_device_access(NULL, 0), -1);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, none, NULL, NULL, &err), CAI_OK);
    CHECK_INT(cai_host_access(&x), 1);
    CHECK_INT(cai_device_access(&x, 1), 1);
    CHECK_INT(cai_kernel_view_at(&x, &location, &view, &err), CAI_OK);
    CHECK(!view.data);
    cai_sim_destroy(sim);
}

int main(int argc, char **argv)
{
    const int64_t lists = argc > 1 ? strtoll(argv[1], NULL, 10) : 20000;
    if (argc > 2) help_random_state = strtoull(argv[2], NULL, 10);
    test_matrix();
    print_matrix(CAI_PLACE_IDENTICAL, "CAI_PLACE_IDENTICAL: stream, or at fault x, y, o (out), ! (none)");
    print_matrix(CAI_PLACE_SAME_DEVICE, "CAI_PLACE_SAME_DEVICE");
    print_matrix(CAI_PLACE_INTO, "CAI_PLACE_INTO, B");
    test_three_inputs();
    test_masks();
    test_default_streams();
    test_default_streams_of_devices();
    test_given_stream();
    test_access();
    test_devices();
    test_memory();
    test_coercion();
    test_out();
    test_overlap();
    test_overlap_of_shapes();
    test_overlap_undecided();
    test_misuse();
    test_rules();
    test_abi();
    test_names();
    test_exchange();
    test_random(lists);
    return cai_test_end();
}
