/* test_packed.c - values below 8 bits: dtypes, packed arrays, and which views of them exist.
 * SPDX-License-Identifier: MIT
 *
 * The model of a packed array is the list of the bit addresses of its values, in C order. A view is right if
 * its list is that of the same operation on the values. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

/* ------------------------------------------------------------------ dtypes */

static void check_dtypes(void)
{
    char text[CAI_TYPESTR_SIZE];
    cai_dtype dtype;
    int32_t i;
    for (i = 0; i < KINDS; i++) {
        const packed_kind *k = &kinds[i];
        cai_test_note(cai_dtype_name(k->packed));
        CHECK_INT(cai_dtype_of(k->packed, &dtype, NULL), CAI_OK);
        CHECK_INT(dtype.itemsize, k->bytes);
        CHECK_INT(dtype.bits, k->bits);
        CHECK_INT(dtype.alignment, 1);
        CHECK_INT(cai_dtype_values(&dtype), k->values);
        CHECK_INT(dtype.itemsize * 8, k->bits * k->values);
        (void)cai_dtype_typestr(&dtype, text, CAI_TYPESTR_SIZE);
        CHECK_STR(text, k->bytes == 3 ? "|V3" : "|V1");
        CHECK_INT(cai_dtype_of(CAI_SWAPPED(k->packed), &dtype, NULL), CAI_ERR_ARGUMENT);
        CHECK_INT(cai_dtype_of(k->single, &dtype, NULL), CAI_OK);
        CHECK_INT(dtype.itemsize, 1);
        CHECK_INT(dtype.bits, k->bits);
        CHECK_INT(cai_dtype_values(&dtype), 1);
    }
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_dtype_values(&dtype), 1);
    CHECK_INT(cai_dtype_of(CAI_CODE('f', 1, 16), &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_of(CAI_CODE('f', 1, 28), &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_of(CAI_CODE('f', 0, 31), &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_of(CAI_SWAPPED(CAI_BFLOAT16), &dtype, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_of(CAI_SWAPPED(CAI_CODE('i', 3, 0)), &dtype, NULL), CAI_ERR_ARGUMENT);
    cai_test_note("");
}

/* ------------------------------------------------------------------ the model */

static void model_permute(const model *m, const int32_t *axes, model *to)
{
    int64_t index[8] = {0};
    *to = *m;
    for (int32_t i = 0; i < m->ndim; i++) to->shape[i] = m->shape[axes[i]];
    for (int64_t n = 0; n < m->count; n++) {
        int64_t from[8] = {0};
        for (int32_t i = 0; i < m->ndim; i++) from[axes[i]] = index[i];
        to->bit[n] = m->bit[model_place(m, from)];
        for (int32_t i = m->ndim - 1; i >= 0 && ++index[i] == to->shape[i]; i--) index[i] = 0;
    }
}

/* The values of a view are those of the model. Its shape counts if `shaped` is true, else only their order. */
static void check_view(const cai_array *view, const packed_kind *k, const model *want, int shaped)
{
    static model got;
    CHECK_INT(cai_array_check(view, NULL), CAI_OK);
    model_of(view, k, &got);
    CHECK_INT(got.count, want->count);
    if (got.count == want->count) CHECK_BYTES(got.bit, want->bit, (size_t)want->count * sizeof want->bit[0]);
    if (!shaped) return;
    CHECK_INT(got.ndim, want->ndim);
    if (got.ndim == want->ndim) CHECK_BYTES(got.shape, want->shape, (size_t)want->ndim * sizeof want->shape[0]);
}

/* ------------------------------------------------------------------ arrays */

static unsigned char memory[1 << 16];

/* A random packed array of 1 to 3 axes: in C order, or with gaps between elements. */
static int random_array(const packed_kind *k, cai_array *a)
{
    int64_t shape[3], strides[3], run = k->bytes;
    int32_t ndim;
    const int32_t axis = random_values(k, &ndim, shape);
    cai_error err;
    for (int32_t i = ndim; i-- > 0;) {
        strides[i] = run * help_between(1, 2);
        run = strides[i] * (shape[i] > 0 ? shape[i] : 1);
    }
    CHECK_INT(cai_array_init_packed(a, k->packed, ndim, shape, axis, help_between(0, 1) ? NULL : strides,
                                    memory + 4096, &err), CAI_OK);
    CHECK_INT(a->packed_axis, axis);
    CHECK_INT(a->packed_extent, shape[axis]);
    CHECK_INT(a->shape[axis], (shape[axis] + k->values - 1) / k->values);
    return axis;
}

static int64_t refused, made;

/* Counts what a view returned. A refusal is right only where `exists` is false. */
static int check_made(cai_status status, const cai_error *err, int exists)
{
    CHECK_INT(status, exists ? CAI_OK : CAI_ERR_VIEW);
    if (status) CHECK(strstr(err->message, "values (as bytes: cai_view_reinterpret)") != NULL);
    if (status) refused++;
    else made++;
    return !status;
}

static void check_slice(const packed_kind *k, const cai_array *a, const model *m)
{
    static model want;
    const int32_t axis = (int32_t)help_between(0, a->ndim - 1);
    const int64_t extent = a->shape[axis], start = help_between(0, extent);
    const int64_t most = extent - start, count = help_between(0, most), step = help_between(1, 2);
    const int packed = axis == a->packed_axis;
    cai_array view;
    cai_error err;
    int64_t end = packed ? (start + count) * k->values : start + count;
    if (count && (count - 1) * step > most - 1) return;
    if (!check_made(cai_view_slice(a, axis, start, count, step, &view, &err), &err,
                    !packed || step == 1 || count < 2)) return;
    if (step > 1 && count > 1) return; /* of another axis: test_views.c has it */
    if (packed && end > a->packed_extent) end = a->packed_extent;
    model_take(m, axis, packed && count ? start * k->values : start,
               !count ? 0 : packed ? end - start * k->values : count, &want);
    check_view(&view, k, &want, 1);
}

static void check_permute(const packed_kind *k, const cai_array *a, const model *m)
{
    static model want;
    int32_t axes[3] = {0, 1, 2};
    cai_array view;
    cai_error err;
    for (int32_t i = a->ndim; i-- > 1;) {
        const int32_t other = (int32_t)help_between(0, i), kept = axes[i];
        axes[i] = axes[other];
        axes[other] = kept;
    }
    if (!check_made(cai_view_permute(a, axes, &view, &err), &err, 1)) return;
    model_permute(m, axes, &want);
    check_view(&view, k, &want, 1);
}

static void check_index(const packed_kind *k, const cai_array *a, const model *m)
{
    static model want;
    const int32_t axis = (int32_t)help_between(0, a->ndim - 1);
    const int64_t index = help_between(0, a->shape[axis] ? a->shape[axis] - 1 : 0);
    cai_array view;
    cai_error err;
    if (!a->shape[axis]) return;
    if (!check_made(cai_view_index(a, axis, index, &view, &err), &err, axis != a->packed_axis)) return;
    model_take(m, axis, index, 1, &want);
    check_view(&view, k, &want, 0);
    CHECK_INT(view.ndim, a->ndim - 1);
}

static void check_ones(const packed_kind *k, const cai_array *a, const model *m)
{
    const int32_t axis = (int32_t)help_between(0, a->ndim);
    int64_t shape[4] = {1, 1, 1, 1};
    cai_array view;
    cai_error err;
    if (!check_made(cai_view_expand(a, axis, &view, &err), &err, 1)) return;
    check_view(&view, k, m, 0);
    CHECK_INT(view.shape[axis], 1);
    if (check_made(cai_view_index(&view, axis, 0, &view, &err), &err, 1)) check_view(&view, k, m, 1);
    for (int32_t i = 0; i < a->ndim; i++) shape[i + 1] = a->shape[i];
    if (check_made(cai_view_broadcast(a, a->ndim + 1, shape, &view, &err), &err, 1)) check_view(&view, k, m, 0);
    if (a->shape[a->packed_axis] != 1) return;
    shape[a->packed_axis + 1] = 2;
    (void)check_made(cai_view_broadcast(a, a->ndim + 1, shape, &view, &err), &err, 0);
}

/* The values in C order stay, whatever the shape. */
static void reshape_to(const packed_kind *k, const cai_array *a, const model *m, int32_t ndim, const int64_t *shape)
{
    const int32_t last = a->ndim - 1;
    cai_array view, elements = *a;
    cai_error err;
    int exists;
    elements.packed_axis = -1;
    elements.packed_extent = 0;
    elements.dtype.code = CAI_VOID;
    if (cai_view_reshape(&elements, ndim, shape, &elements, NULL)) return; /* needs a copy */
    exists = a->packed_axis == last &&
             (!a->size || shape[ndim - 1] == a->shape[last] || a->packed_extent % k->values == 0);
    if (check_made(cai_view_reshape(a, ndim, shape, &view, &err), &err, exists)) {
        check_view(&view, k, m, 0);
        CHECK_INT(view.packed_axis, ndim - 1);
    }
}

static void check_reshape(const packed_kind *k, const cai_array *a, const model *m)
{
    const int32_t last = a->ndim - 1;
    int64_t shape[4] = {1, 1, 1, 1};
    cai_array view;
    cai_error err;
    reshape_to(k, a, m, a->ndim, a->shape);
    shape[1] = a->size;
    for (int32_t ndim = 1; ndim < 4; ndim++) reshape_to(k, a, m, ndim, shape + (ndim == 1));
    shape[1] = shape[2] = 1;
    for (int32_t i = 0; i < last; i++) shape[0] *= a->shape[i];
    shape[1] = a->shape[last];
    reshape_to(k, a, m, (int32_t)help_between(2, 4), shape);
    for (int32_t i = 0; i < 3; i++) shape[i] = i < a->ndim ? a->shape[i] : 1;
    reshape_to(k, a, m, (int32_t)help_between(a->ndim, 4), shape);
    if (a->ndim == 3) {
        shape[1] *= shape[2];
        shape[2] = 1;
        reshape_to(k, a, m, (int32_t)help_between(2, 3), shape);
    }
    CHECK_INT(cai_view_reshape(a, 0, NULL, &view, &err), CAI_ERR_VIEW);
}

/* Never refused. No two axes beside one another could be one, but for those of a packed axis. */
static void check_coalesce(const packed_kind *k, const cai_array *a, const model *m)
{
    cai_array view;
    cai_error err;
    if (!check_made(cai_view_coalesce(a, &view, &err), &err, 1)) return;
    check_view(&view, k, m, 0);
    CHECK(view.packed_axis >= 0 && view.ndim <= a->ndim);
    for (int32_t i = 0; i < view.ndim; i++) {
        CHECK(!a->size || view.shape[i] != 1 || i == view.packed_axis);
        if (!i || view.strides[i - 1] != view.shape[i] * view.strides[i]) continue;
        CHECK(i - 1 == view.packed_axis || i == view.packed_axis);
    }
}

/* The rule for a packed dtype where nothing else says the axis. */
static int32_t unit_axis(const cai_array *a)
{
    for (int32_t i = a->ndim; i-- > 0;) {
        if (a->strides[i] == a->dtype.itemsize) return i;
    }
    return a->ndim - 1;
}

static void check_bytes(const packed_kind *k, const cai_array *a)
{
    const int32_t axis = unit_axis(a);
    cai_array bytes, back;
    cai_dtype dtype;
    CHECK_INT(cai_view_reinterpret(a, &a->dtype, &back, NULL), CAI_OK);
    CHECK(back.packed_axis == a->packed_axis && back.packed_extent == a->packed_extent);
    if (a->dtype.itemsize != 1) return;
    CHECK_INT(cai_dtype_of(CAI_UINT8, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_view_reinterpret(a, &dtype, &bytes, NULL), CAI_OK);
    CHECK_INT(bytes.packed_axis, -1);
    CHECK_INT(bytes.packed_extent, 0);
    CHECK_INT(cai_array_check(&bytes, NULL), CAI_OK);
    CHECK_INT(cai_view_reinterpret(&bytes, &a->dtype, &back, NULL), CAI_OK);
    CHECK_INT(back.packed_axis, axis);
    CHECK_INT(back.packed_extent, a->shape[axis] * k->values);
    CHECK_INT(cai_array_init(&back, k->packed, a->ndim, a->shape, a->strides, memory + 4096, NULL), CAI_OK);
    CHECK_INT(back.packed_axis, axis);
    CHECK_INT(back.packed_extent, a->shape[axis] * k->values);
    CHECK_INT(cai_dtype_of(k->values == 2 ? CAI_UINT1_X8 : CAI_UINT4_X2, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_view_reinterpret(a, &dtype, &back, NULL), CAI_OK);
    CHECK_INT(back.packed_axis, axis);
}

/* A kernel finds the values as the model does: by the index of the element, and by bits in it. */
static void check_kernel(const packed_kind *k, const cai_array *a, const model *m)
{
    static model got;
    int64_t index[8] = {0};
    cai_kernel_view view;
    cai_error err;
    if (!CHECK_INT(cai_kernel_view_of(a, &view, &err), CAI_OK)) return;
    CHECK(view.itemsize == k->bytes && view.ndim == a->ndim);
    CHECK_BYTES(view.shape, a->shape, (size_t)a->ndim * sizeof a->shape[0]);
    model_open(a, &got);
    for (int64_t n = 0; n < got.count; n++) {
        int64_t at[8], value = index[a->packed_axis];
        memcpy(at, index, sizeof at);
        at[a->packed_axis] = value / k->values;
        got.bit[n] = 8 * (uint64_t)(uintptr_t)(a->ndim == 1   ? cai_kernel_at1(&view, at[0])
                                               : a->ndim == 2 ? cai_kernel_at2(&view, at[0], at[1])
                                                              : cai_kernel_at3(&view, at[0], at[1], at[2]));
        got.bit[n] += (uint64_t)(value % k->values * k->bits);
        next_index(got.ndim, got.shape, index);
    }
    CHECK_BYTES(got.bit, m->bit, (size_t)got.count * sizeof got.bit[0]);
}

static void check_views(void)
{
    static model m;
    for (int32_t round = 0; round < 20000; round++) {
        const packed_kind *k = random_kind();
        char text[200];
        cai_array a;
        (void)random_array(k, &a);
        (void)cai_array_text(&a, text, (int32_t)sizeof text);
        cai_test_note(text);
        CHECK_INT(cai_array_check(&a, NULL), CAI_OK);
        model_of(&a, k, &m);
        check_kernel(k, &a, &m);
        check_slice(k, &a, &m);
        check_permute(k, &a, &m);
        check_index(k, &a, &m);
        check_ones(k, &a, &m);
        check_reshape(k, &a, &m);
        check_coalesce(k, &a, &m);
        check_bytes(k, &a);
    }
    cai_test_note("");
    printf("%lld views of packed arrays, %lld refused\n", (long long)made, (long long)refused);
    CHECK(made > 100000 && refused > 50000);
}

/* ------------------------------------------------------------------ single cases */

static void refuses(cai_status status, cai_status want, const cai_error *err, const char *message)
{
    CHECK_INT(status, want);
    CHECK_STR(err->message, message);
}

static void check_arguments(void)
{
    const int64_t shape[2] = {4, 7}, full[2] = {4, 8}, other[2] = {7, 4}, huge[1] = {INT64_MAX}, wrong[1] = {-1};
    char text[200];
    cai_array a, b;
    cai_error e;
    refuses(cai_array_init_packed(&a, CAI_INT4, 2, shape, 1, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "cai_array_init_packed: int4 is not packed");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 2, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "cai_array_init_packed: axis = 2 is not one of 2 axes");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, -1, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "cai_array_init_packed: axis = -1 is not one of 2 axes");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, 65, shape, 0, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "ndim = 65 is not in 0..64");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, -1, shape, 0, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "ndim = -1 is not in 0..64");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, 1, NULL, 0, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "the argument shape is NULL");
    refuses(cai_array_init_packed(&a, CAI_INT4_X2, 1, wrong, 0, NULL, memory, &e), CAI_ERR_SHAPE, &e,
            "shape[0] = -1 is negative");
    refuses(cai_array_init_packed(&a, CAI_CODE('f', 1, 28), 1, shape, 0, NULL, memory, &e), CAI_ERR_ARGUMENT,
            &e, "code 0x1c6601 is no dtype of a fixed size (for others: cai_dtype_parse)");
    CHECK_INT(cai_array_init(&a, CAI_INT1_X8, 1, huge, NULL, memory, &e), CAI_ERR_SHAPE);
    CHECK_INT(cai_array_init(&a, CAI_INT1_X8, 1, wrong, NULL, memory, &e), CAI_ERR_SHAPE);
    CHECK_INT(cai_array_init(&a, CAI_INT1_X8, 0, NULL, NULL, memory, &e), CAI_OK);
    CHECK_INT(a.packed_axis, -1);
    CHECK_INT(cai_array_init(&a, CAI_INT4_X2, 2, shape, NULL, memory, &e), CAI_OK);
    CHECK_INT(a.packed_axis, 1);
    CHECK_INT(a.packed_extent, 14); /* shape counts elements there */
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 0, NULL, -1, NULL, memory, &e), CAI_OK);
    CHECK_INT(a.packed_axis, -1);
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 1, NULL, memory, &e), CAI_OK);
    (void)cai_array_text(&a, text, (int32_t)sizeof text);
    CHECK(strstr(text, "int4_x2 (4, 4) of 7 values along axis 1") != NULL);
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 2, a.shape, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect_same_shape(&a, "a", &b, "b", &e), CAI_OK); /* in elements */
    CHECK_INT(cai_array_init_packed(&b, CAI_INT4_X2, 2, full, 1, NULL, memory, &e), CAI_OK);
    refuses(cai_expect_same_shape(&a, "a", &b, "b", &e), CAI_ERR_EXPECT, &e,
            "axis 1 has 7 values in a, axis 1 has 8 in b");
    CHECK_INT(cai_expect_same_shape(&b, "b", &b, "b", &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&b, CAI_INT4_X2, 2, other, 0, NULL, memory, &e), CAI_OK);
    refuses(cai_expect_same_shape(&a, "a", &b, "b", &e), CAI_ERR_EXPECT, &e,
            "axis 1 has 7 values in a, axis 0 has 7 in b");
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_WRITABLE, &e), CAI_OK);
    refuses(cai_expect(&a, "a", CAI_UINT4_X2, 2, 0, &e), CAI_ERR_EXPECT, &e,
            "a: expected uint4_x2, 2-D; got int4_x2, 2-D");
}

/* A struct from elsewhere, with each of the new fields wrong. */
static void check_foreign(void)
{
    const int64_t shape[2] = {4, 7};
    cai_array a, b;
    cai_error e;
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 1, NULL, memory, &e), CAI_OK);
    b = a;
    b.must_understand = 5;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "must_understand = 0x5 has bits of a later version");
    CHECK_INT(cai_array_init(&b, CAI_FLOAT32, 2, shape, NULL, memory, &e), CAI_OK);
    b.must_understand = 1;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "must_understand = 0x1 has bits of a later version");
    b = a;
    b.packed_axis = 2;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = 2 does not fit ndim = 2, dtype.code = 0x1c6901");
    b.packed_axis = -2;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = -2 does not fit ndim = 2, dtype.code = 0x1c6901");
    b.packed_axis = -1;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = -1 does not fit ndim = 2, dtype.code = 0x1c6901");
    refuses(cai_expect(&b, "b", CAI_INT4_X2, 2, 0, &e), CAI_ERR_ABI, &e,
            "b: packed_axis = -1 does not fit ndim = 2, dtype.code = 0x1c6901");
    b.ndim = 0;
    CHECK_INT(cai_array_check(&b, &e), CAI_OK);
    b.packed_axis = -2;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = -2 does not fit ndim = 0, dtype.code = 0x1c6901");
    b.packed_axis = 0;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = 0 does not fit ndim = 0, dtype.code = 0x1c6901");
    b = a;
    b.dtype.code = CAI_INT4;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_axis = 1 does not fit ndim = 2, dtype.code = 0xc6901");
    b = a;
    b.dtype.bits = 0; /* by a maker that fills in the code alone */
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e,
            "dtype.bits = 0, itemsize = 1: dtype.code = 0x1c6901 has 4 bits");
    b.packed_axis = -1;
    CHECK_INT(cai_array_check(&b, &e), CAI_ERR_ABI);
    for (int64_t extent = -1; extent < 12; extent++) {
        b = a;
        b.packed_extent = extent;
        CHECK_INT(cai_array_check(&b, &e), extent == 7 || extent == 8 ? CAI_OK : CAI_ERR_ABI);
    }
    b.packed_extent = 9;
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "packed_extent = 9 does not fill 4 elements of 2 values");
}

/* A code below 8 bits says bits and itemsize. A maker that writes others means another layout of the values. */
static void check_contradictions(void)
{
#define DTYPE(name, kind, bytes, format, text) name,
    static const int32_t codes[] = {CAI_DTYPE_LIST(DTYPE)};
    const int64_t shape[2] = {4, 8};
    cai_array a, b;
    cai_dtype dtype;
    cai_error e;
    int32_t narrow = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (!(codes[i] & 0xff)) continue;
        CHECK_INT(cai_array_init(&a, codes[i], 2, shape, NULL, memory, &e), CAI_OK);
        CHECK_INT(cai_array_check(&a, &e), CAI_OK);
        if (!a.dtype.bits) continue;
        narrow++;
        for (int32_t bits = -1; bits < 9; bits++) {
            b = a;
            b.dtype.bits = bits;
            CHECK_INT(cai_array_check(&b, &e), bits == a.dtype.bits ? CAI_OK : CAI_ERR_ABI);
        }
        b = a;
        b.dtype.itemsize++;
        CHECK_INT(cai_array_check(&b, &e), CAI_ERR_ABI);
    }
    CHECK_INT(narrow, 18);
    CHECK_INT(cai_array_init(&a, CAI_INT4, 2, shape, NULL, memory, &e), CAI_OK);
    a.dtype.bits = 0;
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e,
            "dtype.bits = 0, itemsize = 1: dtype.code = 0xc6901 has 4 bits");
    CHECK_INT(cai_dtype_of(CAI_FLOAT6_E2M3FN_X4, &dtype, &e), CAI_OK);
    dtype.itemsize = 4; /* as CUDA's __nv_fp6x4 */
    CHECK_INT(cai_array_init_dtype(&b, &dtype, 2, shape, NULL, 0x1000, &e), CAI_OK);
    refuses(cai_array_check(&b, &e), CAI_ERR_ABI, &e, "dtype.bits = 6, itemsize = 4: dtype.code = 0x1d6603 has 6 bits");
    a.dtype.code = CAI_CODE('f', 1, 24); /* of a later version */
    a.packed_axis = 1;
    a.dtype.bits = 4;
    a.packed_extent = 16;
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
    a.dtype.bits = 0;
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e,
            "packed_extent = 16 does not fill 8 elements of 1 values");
    a.packed_extent = a.shape[1];
    CHECK_INT(cai_array_check(&a, &e), CAI_ERR_ABI);
    a.dtype.code = CAI_CODE('f', 1, 42);
    a.packed_axis = -1;
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
}

/* A packed dtype of a later version: 5 values of 3 bits in 2 bytes, then 4 of 4 bits. Its code is not known here. */
static void check_later(void)
{
    const int64_t shape[2] = {2, 12};
    cai_array a, view;
    cai_dtype dtype;
    cai_error e;
    CHECK_INT(cai_array_init(&a, CAI_INT16, 2, shape, NULL, memory, &e), CAI_OK);
    a.dtype.code = CAI_CODE('i', 2, 0x55);
    a.dtype.bits = 3;
    CHECK_STR(cai_dtype_name(a.dtype.code), "unknown");
    CHECK_INT(cai_dtype_values(&a.dtype), 5);
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e,
            "packed_axis = -1 does not fit ndim = 2, dtype.code = 0x556902");
    a.packed_axis = 1;
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e, "packed_extent = 0 does not fill 12 elements of 5 values");
    a.packed_extent = 58;
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
    CHECK_INT(cai_view_slice(&a, 1, 2, 10, 1, &view, &e), CAI_OK);
    CHECK_INT(view.packed_extent, 48);
    CHECK_INT(cai_view_permute(&a, NULL, &view, &e), CAI_OK);
    CHECK_INT(view.packed_axis, 0);
    CHECK_INT(cai_view_slice(&a, 1, 0, 2, 2, &view, &e), CAI_ERR_VIEW);
    CHECK_INT(cai_dtype_of(CAI_INT16, &dtype, &e), CAI_OK);
    CHECK_INT(cai_view_reinterpret(&a, &dtype, &view, &e), CAI_OK);
    CHECK_INT(view.packed_axis, -1);
    a.dtype.code = CAI_CODE('i', 2, 0x65); /* a later dtype that is not packed */
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e, "packed_axis = 1 does not fit ndim = 2, dtype.code = 0x656902");
    a.packed_axis = -1;
    a.packed_extent = 0;
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
}

/* A kernel that requires an order reads the values in it: the last (first) axis has those of an element. */
static void check_order(void)
{
    const int64_t shape[2] = {4, 6}, one[1] = {6}, column[2] = {8, 1};
    cai_array a;
    cai_error e;
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 1, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_C_CONTIGUOUS, &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 0, NULL, memory, &e), CAI_OK);
    CHECK(a.flags & CAI_C_CONTIGUOUS); /* its elements are */
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, 0, &e), CAI_OK);
    refuses(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_C_CONTIGUOUS, &e), CAI_ERR_EXPECT, &e,
            "a: expected int4_x2, 2-D, C-contiguous; got int4_x2, 2-D of 4 values along axis 0, strides (6, 1)");
    CHECK_INT(cai_view_permute(&a, NULL, &a, &e), CAI_OK);
    CHECK(a.flags & CAI_F_CONTIGUOUS);
    refuses(cai_expect(&a, "a", CAI_ANY_DTYPE, 2, CAI_F_CONTIGUOUS, &e), CAI_ERR_EXPECT, &e,
            "a: expected 2-D, F-contiguous; got int4_x2, 2-D of 4 values along axis 1, strides (1, 6)");
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, shape, 1, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_view_permute(&a, NULL, &a, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_F_CONTIGUOUS, &e), CAI_OK);
    refuses(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_F_CONTIGUOUS | CAI_WRITABLE | CAI_C_CONTIGUOUS, &e),
            CAI_ERR_EXPECT, &e, "a: expected int4_x2, 2-D, C-contiguous, F-contiguous, writable; got int4_x2, 2-D of 6 "
                                "values along axis 0, strides (1, 3)");
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, column, 0, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_C_CONTIGUOUS, &e), CAI_ERR_EXPECT);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 2, CAI_F_CONTIGUOUS, &e), CAI_OK);
    CHECK_INT(cai_array_init(&a, CAI_INT4, 2, column, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4, 2, CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS, &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 1, one, 0, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 1, CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS, &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 0, NULL, -1, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_expect(&a, "a", CAI_INT4_X2, 0, CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS, &e), CAI_OK);
}

/* One element without axes: its values lie along no axis, so no view has more axes than it. */
static void check_one_element(void)
{
    static const char says[] = "axis -1 cannot be added: an element is 2 values (as bytes: cai_view_reinterpret)";
    const int64_t shape[2] = {2, 32}, one[1] = {1};
    cai_array a, view;
    cai_dtype dtype;
    cai_error e;
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 0, NULL, -1, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_view_values(&a, &view, &e), CAI_OK);
    CHECK_INT(cai_view_permute(&a, NULL, &view, &e), CAI_OK);
    CHECK_INT(cai_view_broadcast(&a, 0, NULL, &view, &e), CAI_OK);
    memset(&view, 0x55, sizeof view);
    refuses(cai_view_broadcast(&a, 2, shape, &view, &e), CAI_ERR_VIEW, &e, says);
    refuses(cai_view_expand(&a, 0, &view, &e), CAI_ERR_VIEW, &e, says);
    refuses(cai_view_reshape(&a, 1, one, &view, &e), CAI_ERR_VIEW, &e, says);
    CHECK(view.abi == 0x55555555u && view.packed_axis == 0x55555555);
    CHECK_INT(cai_dtype_of(CAI_UINT8, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_view_reinterpret(&a, &dtype, &view, &e), CAI_OK);
    CHECK_INT(cai_view_broadcast(&view, 2, shape, &view, &e), CAI_OK);
}

/* A field has no axis for values. A table from elsewhere may say a packed dtype. */
static void check_field(void)
{
    const int64_t shape[1] = {3};
    cai_array a, view;
    cai_dtype dtype;
    cai_field field;
    cai_error e;
    memset(&field, 0, sizeof field);
    CHECK_INT(cai_dtype_parse("|V1", 3, 0, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, 1, shape, NULL, 4096, &e), CAI_OK);
    CHECK_INT(cai_dtype_of(CAI_INT4_X2, &field.dtype, NULL), CAI_OK);
    field.name = "x";
    field.name_length = 1;
    field.nbytes = 1;
    field.parent = -1;
    a.fields = &field;
    a.field_count = 1;
    CHECK_INT(cai_view_field(&a, 0, &view, &e), CAI_ERR_VIEW);
    CHECK_INT(cai_dtype_of(CAI_INT4, &field.dtype, NULL), CAI_OK);
    CHECK_INT(cai_view_field(&a, 0, &view, &e), CAI_OK);
}

/* Extents above 2^60, which only a stride of 0 can have. */
static void check_long(void)
{
    const int64_t one[2] = {1, 1}, many[2] = {INT64_C(1) << 61, 1}, flat[1] = {INT64_C(1) << 61};
    const int64_t two[2] = {INT64_C(1) << 30, INT64_C(1) << 31}, none[2] = {0, 0};
    cai_array a;
    cai_dtype dtype;
    cai_error e;
    CHECK_INT(cai_array_init(&a, CAI_UINT1_X8, 2, one, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_view_broadcast(&a, 2, many, &a, &e), CAI_OK);
    CHECK_INT(cai_view_reshape(&a, 1, flat, &a, &e), CAI_ERR_VIEW);
    CHECK_INT(cai_view_coalesce(&a, &a, &e), CAI_OK);
    CHECK(a.ndim == 2 && a.packed_axis == 1);
    CHECK_INT(cai_array_init(&a, CAI_UINT1_X8, 2, two, none, memory, &e), CAI_OK);
    CHECK_INT(cai_view_coalesce(&a, &a, &e), CAI_OK);
    CHECK_INT(a.ndim, 2); /* as one axis it would have 2^64 values */
    CHECK_INT(cai_array_init(&a, CAI_UINT8, 1, one, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_view_broadcast(&a, 1, flat, &a, &e), CAI_OK);
    CHECK_INT(cai_dtype_of(CAI_UINT1_X8, &dtype, &e), CAI_OK);
    CHECK_INT(cai_view_reinterpret(&a, &dtype, &a, &e), CAI_ERR_VIEW);
}

/* The shape may be that of the array to fill. */
static void check_alias(void)
{
    const int64_t shape[2] = {7, 4};
    cai_array a;
    cai_error e;
    for (int32_t axis = 0; axis < 2; axis++) {
        memcpy(a.shape, shape, sizeof shape);
        CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, a.shape, axis, NULL, memory, &e), CAI_OK);
        CHECK_INT(a.packed_extent, shape[axis]);
        CHECK_INT(cai_array_check(&a, &e), CAI_OK);
    }
    refuses(cai_array_init_packed(NULL, CAI_INT4_X2, 2, shape, 0, NULL, memory, &e), CAI_ERR_ARGUMENT, &e,
            "cai_array_init_packed: out is NULL");
}

/* The code says whether a dtype is packed, and bits and itemsize how many values an element has. */
static void check_values(void)
{
    static const int32_t bits[] = {0, -1, INT32_MIN, 8, 3, 1}, sizes[] = {1, 1, 1, 1, INT32_MAX, 0};
    cai_dtype dtype;
    int32_t i;
    CHECK_INT(cai_dtype_values(NULL), 1);
    CHECK_INT(cai_dtype_of(CAI_INT4_X2, &dtype, NULL), CAI_OK);
    for (int32_t format = 0; format < 256; format++) {
        dtype.code = (int32_t)(((uint32_t)CAI_INT4_X2 & 0xff00ffffu) | (uint32_t)format << 16);
        CHECK_INT(cai_dtype_values(&dtype), format & 16 ? 2 : 1);
    }
    dtype.code = CAI_INT4_X2; /* by a maker that fills in something else */
    for (i = 0; i < 6; i++) {
        dtype.bits = bits[i];
        dtype.itemsize = sizes[i];
        CHECK_INT(cai_dtype_values(&dtype), 1);
    }
}

static void check_bit_field(void)
{
    const int64_t shape[1] = {5}, strides[1] = {1};
    cai_array a;
    cai_error e;
    cai_dtype dtype;
    CHECK_INT(cai_dtype_parse("|t3", 3, 0, &dtype, NULL), CAI_OK);
    dtype.bits = 0; /* a struct filled by hand */
    refuses(cai_array_init_dtype(&a, &dtype, 1, shape, strides, 4096, &e), CAI_ERR_STRIDES, &e,
            "strides must be None or NULL for a bit field: bytes cannot address bits");
}

/* A dictionary says nothing of values. */
static void check_export(void)
{
    const int64_t full[2] = {4, 8}, odd[2] = {4, 7}, strides[2] = {1, 2};
    cai_export_storage storage;
    cai_interface entries;
    cai_token tokens[16];
    char text[CAI_TYPESTR_SIZE];
    cai_array a;
    cai_error e;
    memset(&storage, 0, sizeof storage);
    storage.tokens = tokens;
    storage.token_capacity = 16;
    storage.text = text;
    storage.text_capacity = CAI_TYPESTR_SIZE;
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, full, 1, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_export(&a, 2, &storage, &entries, &e), CAI_OK);
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, odd, 1, NULL, memory, &e), CAI_OK);
    refuses(cai_export(&a, 2, &storage, &entries, &e), CAI_ERR_EXPORT, &e,
            "typestr: no version can say that 7 values lie along axis 1");
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, full, 0, NULL, memory, &e), CAI_OK);
    refuses(cai_export(&a, 2, &storage, &entries, &e), CAI_ERR_EXPORT, &e,
            "typestr: no version can say that 4 values lie along axis 0");
    CHECK_INT(cai_array_init_packed(&a, CAI_INT4_X2, 2, full, 0, strides, memory, &e), CAI_OK);
    CHECK_INT(cai_export(&a, 2, &storage, &entries, &e), CAI_OK);
}

/* A mask comes from elsewhere as the array does. */
static void check_mask(void)
{
    const int64_t shape[1] = {4};
    cai_array a, mask;
    cai_error e;
    CHECK_INT(cai_array_init(&a, CAI_FLOAT32, 1, shape, NULL, memory, &e), CAI_OK);
    CHECK_INT(cai_array_init(&mask, CAI_BOOL, 1, shape, NULL, memory, &e), CAI_OK);
    a.mask = &mask;
    CHECK_INT(cai_array_check(&a, &e), CAI_OK);
    mask.must_understand = 1;
    refuses(cai_array_check(&a, &e), CAI_ERR_ABI, &e,
            "mask: must_understand = 0x1 has bits of a later version");
    mask.must_understand = 0;
    mask.abi = 7;
    CHECK_INT(cai_array_check(&a, &e), CAI_ERR_ABI);
}

static void run(void)
{
    check_alias();
    check_values();
    check_bit_field();
    check_export();
    check_mask();
    check_dtypes();
    check_views();
    check_arguments();
    check_foreign();
    check_contradictions();
    check_order();
    check_later();
    check_one_element();
    check_field();
    check_long();
}

CAI_TEST_MAIN(run)
