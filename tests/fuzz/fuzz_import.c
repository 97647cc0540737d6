/* fuzz_import.c - libFuzzer target: whatever a reader may tag, cai.h judges it without harm.
 *
 *     clang -g -O2 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_import.c -o fuzz_import
 *
 * Imports a dictionary that fuzz_dictionary.h made, strict and lenient, with and without storage;
 * then exports, prints and views what was accepted and calculates its facts anew.
 */

#define CAI_IMPLEMENTATION
#include "cai.h"

#include "fuzz.h"
#include "fuzz_dictionary.h"
#include "fuzz_naive.h"

enum {
    MAX_ROWS = 48, /* rows of a descr that are given storage */
    MAX_VIEWS = 4, /* views of views */
    MAX_AXES = 80  /* of parameters, more than an array may have */
};

/* ------------------------------------------------------------------- >>import */

/** One cai_import and all that it may write to. */
typedef struct imported {
    cai_status status;
    cai_error err;
    cai_array array, mask;
    cai_field fields[MAX_ROWS];
} imported;

JUDGE static void check_fields(const cai_array *a)
{
    int64_t i, end = 0;
    for (i = 0; i < a->field_count; i++) {
        const cai_field *field = &a->fields[i];
        MUST(field->parent >= -1 && field->parent < i && field->offset >= 0);
        MUST(field->nbytes >= 0 && field->ndim >= 0 && field->ndim <= CAI_MAX_FIELD_NDIM);
        MUST(field->child_count >= 0 && (field->title || !field->title_length));
        if (field->parent >= 0) continue;
        MUST(field->offset == end);
        end += field->nbytes;
    }
    if (a->field_count) MUST(end == a->dtype.itemsize);
}

/** Imports with the first `rows` rows of storage for fields (-1: no storage at all). */
static void import(const cai_interface *in, uint32_t flags, int32_t rows, imported *out)
{
    cai_import_options options;
    memset(&options, 0, sizeof options);
    memset(out, FILL, sizeof *out);
    options.flags = flags;
    if (rows >= 0) {
        options.mask = &out->mask;
        options.fields = out->fields;
        options.field_capacity = rows;
    }
    out->status = cai_import(in, &options, &out->array, &out->err);
    check_error(out->status, &out->err);
    if (out->status == CAI_OK) {
        MUST(!out->array.release && (!out->array.mask || out->array.mask == &out->mask));
        MUST(!out->array.mask || (!out->mask.mask && !out->mask.release));
        if (rows < 0) MUST(!out->array.mask && !out->array.fields);
        if (out->array.fields) MUST(out->array.field_count <= rows);
        if (out->array.fields) check_fields(&out->array);
        check_facts(&out->array);
        if (out->array.mask) check_facts(out->array.mask);
    } else {
        MUST(is_untouched(&out->array, sizeof out->array));
        MUST(is_untouched(&out->mask, sizeof out->mask));
        MUST(is_untouched(out->fields, sizeof out->fields));
    }
}

/** cai_import and cai_dtype_parse read a typestr alike. */
static void check_typestr(const cai_interface *in, uint32_t flags, const imported *out)
{
    const cai_token *typestr = in->typestr;
    cai_dtype dtype;
    cai_status status;
    if (!typestr || typestr->kind != CAI_TOKEN_STR) return;
    status = cai_dtype_parse(typestr->text, typestr->length, flags, &dtype, NULL);
    MUST(status == CAI_OK || status == CAI_ERR_TYPESTR);
    if (out->status == CAI_OK) MUST(status == CAI_OK && same_dtype(&dtype, &out->array.dtype));
    if (out->status == CAI_ERR_TYPESTR && out->err.entry == CAI_ENTRY_TYPESTR)
        MUST(status == CAI_ERR_TYPESTR && out->err.index >= 0);
}

/** Strict is the smaller profile; storage changes nothing but what is kept; err may be NULL. */
static void check_profiles(const cai_interface *in, int32_t rows, const imported *strict,
                           const imported *lenient)
{
    imported bare;
    cai_array array;
    if (strict->status == CAI_OK) {
        MUST(lenient->status == CAI_OK);
        MUST(same_array(&strict->array, &lenient->array, 0));
        MUST(same_fields(&strict->array, &lenient->array));
    }
    import(in, CAI_LENIENT, -1, &bare);
    if (bare.status == CAI_OK && lenient->status != CAI_OK)
        MUST(lenient->status == CAI_ERR_CAPACITY);
    if (bare.status == CAI_OK && lenient->status == CAI_OK)
        MUST(same_array(&bare.array, &lenient->array, 0));
    if (lenient->status == CAI_OK && bare.status != CAI_OK)
        MUST(bare.status == CAI_ERR_MASK && lenient->array.mask);
    import(in, 0, -1, &bare);
    MUST(cai_import(in, NULL, &array, NULL) == bare.status);
    if (rows == MAX_ROWS && bare.status != CAI_OK && strict->status == CAI_OK)
        MUST(bare.status == CAI_ERR_MASK);
}

/* ------------------------------------------------------------------- >>export */

enum { EXPORT_TOKENS = 4 * CAI_MAX_NDIM + 17 + 16 * MAX_ROWS };

/** Exports with the storage that cai.h says suffices; whether it did. */
static int export_again(const cai_array *a, int32_t version, cai_token *tokens, char *text,
                        cai_interface *mask, cai_interface *out)
{
    cai_export_storage storage;
    cai_error err;
    cai_status status;
    int64_t rows = a->fields ? a->field_count : 0;
    memset(&storage, 0, sizeof storage);
    memset(&err, FILL, sizeof err);
    memset(out, FILL, sizeof *out);
    storage.tokens = tokens;
    storage.token_capacity = 2 * a->ndim + 8 + (a->mask ? 2 * a->mask->ndim + 9 : 0) + 16 * rows;
    storage.text = text;
    storage.text_capacity = CAI_TYPESTR_SIZE * (1 + (a->mask ? 1 : 0) + rows);
    storage.mask = mask;
    status = cai_export(a, version, &storage, out, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(status == CAI_ERR_EXPORT && is_untouched(out, sizeof *out));
    return status == CAI_OK;
}

/** Storage that may be too small is never written past its end. */
static void check_small_export(const cai_array *a, source *in)
{
    cai_export_storage storage;
    cai_interface mask, out;
    cai_status status;
    memset(&storage, 0, sizeof storage);
    memset(&out, FILL, sizeof out);
    storage.token_capacity = pick(in, 40);
    storage.text_capacity = pick(in, 60);
    storage.tokens = keep(in, NULL, (size_t)storage.token_capacity * sizeof(cai_token));
    storage.text = keep(in, NULL, (size_t)storage.text_capacity);
    storage.mask = pick(in, 2) ? &mask : NULL;
    status = cai_export(a, pick(in, 4), &storage, &out, NULL);
    MUST(status == CAI_OK || status == CAI_ERR_EXPORT || status == CAI_ERR_CAPACITY);
    if (status != CAI_OK) MUST(is_untouched(&out, sizeof out));
}

static void check_export(const cai_array *a)
{
    cai_token tokens[EXPORT_TOKENS];
    char text[CAI_TYPESTR_SIZE * (MAX_ROWS + 2)];
    cai_interface mask, dictionary;
    imported back;
    int32_t version, exported = 0;
    for (version = 0; version <= 3; version++) {
        if (!export_again(a, version, tokens, text, &mask, &dictionary)) continue;
        exported++;
        MUST(!a->mask || version > 0);
        import(&dictionary, 0, MAX_ROWS, &back);
        MUST(back.status == CAI_OK && back.array.version == version);
        MUST(same_array(a, &back.array, 1));
        MUST(same_fields(a, &back.array) || is_default_descr(a));
        MUST(same_sync(a, &back.array, version));
    }
    MUST(exported > 0 || a->mask);
}

/* --------------------------------------------------------------------- >>text */

JUDGE static void check_text(const cai_array *a, source *in)
{
    char whole[4096], part[64];
    int32_t length, capacity = pick(in, sizeof part), full;
    memset(whole, FILL, sizeof whole);
    memset(part, FILL, sizeof part);
    full = cai_array_text(a, whole, sizeof whole);
    MUST(full > 0 && full < (int32_t)sizeof whole && strlen(whole) == (size_t)full);
    length = cai_array_text(a, part, capacity);
    MUST(is_untouched(part + capacity, sizeof part - (size_t)capacity));
    if (capacity == 0) return;
    MUST(length < capacity && strlen(part) == (size_t)length);
    if (full < capacity) MUST(strcmp(part, whole) == 0);
    else if (capacity > 3) MUST(strcmp(part + length - 3, "...") == 0);
}

static void check_dtype(const cai_dtype *dtype)
{
    char text[CAI_TYPESTR_SIZE];
    cai_dtype again;
    int32_t length = cai_dtype_typestr(dtype, text, sizeof text);
    MUST(length > 0 && length < CAI_TYPESTR_SIZE && strlen(text) == (size_t)length);
    MUST(cai_dtype_parse(text, length, 0, &again, NULL) == CAI_OK && same_dtype(dtype, &again));
    MUST(cai_dtype_name(dtype->code)[0]);
}

/* ------------------------------------------------------------------- >>expect */

static void check_expect(const cai_array *a, source *in)
{
    cai_error err;
    cai_status status;
    int32_t code = pick(in, 4) ? a->dtype.code : pick(in, 2) ? (int32_t)take_u64(in) : 0;
    int32_t ndim = pick(in, 4) ? a->ndim : pick(in, 66) - 1;
    uint32_t needs = take(in) & 31u;
    uint32_t wanted = needs | (take(in) & 7u) << 16;
    memset(&err, FILL, sizeof err);
    status = cai_expect(a, "x", code, ndim, wanted, &err);
    check_error(status, &err);
    if (status == CAI_OK) {
        MUST((a->flags & needs) == needs);
        MUST(code == CAI_ANY_DTYPE || code == a->dtype.code);
        MUST(ndim == CAI_ANY_NDIM || ndim == a->ndim);
        MUST(!a->mask || (wanted & CAI_ALLOW_MASK));
        MUST((a->flags & CAI_ALIGNED) || (wanted & CAI_ALLOW_UNALIGNED) || a->size == 0);
    }
    MUST(cai_expect_same_shape(a, "a", a, "a", NULL) == CAI_OK);
}

/* The shape of two arrays is the same in either order, and each extent is that of both, or of one beside 1. */
JUDGE static void check_joint_shape(const cai_array *a, const cai_array *b)
{
    int64_t shape[2][CAI_MAX_NDIM];
    int32_t i, ndim[2] = {0, 0}, fits = 1;
    int good[2];
    for (i = 0; i < a->ndim && i < b->ndim; ++i) {
        const int64_t x = a->shape[a->ndim - 1 - i], y = b->shape[b->ndim - 1 - i];
        fits &= x == y || x == 1 || y == 1;
    }
    for (i = 0; i < 2; ++i) {
        MUST(cai_broadcast_shape(i ? b : a, "x", &ndim[i], shape[i], NULL) == CAI_OK);
        good[i] = cai_broadcast_shape(i ? a : b, "y", &ndim[i], shape[i], NULL) == CAI_OK;
    }
    MUST(good[0] == good[1] && (fits || !good[0]));
    if (!good[0]) return;
    MUST(ndim[0] == ndim[1] && ndim[0] == (a->ndim > b->ndim ? a->ndim : b->ndim));
    for (i = 0; i < ndim[0]; ++i) {
        const int32_t of_a = i - (ndim[0] - a->ndim), of_b = i - (ndim[0] - b->ndim);
        const int64_t x = of_a < 0 ? 1 : a->shape[of_a], y = of_b < 0 ? 1 : b->shape[of_b];
        MUST(shape[0][i] == (x == 1 ? y : x) && shape[1][i] == shape[0][i]);
    }
}

/* ------------------------------------------------------------------- >>kernel */

JUDGE static void check_kernel_view(const cai_array *a)
{
    int64_t offsets[MAX_NAIVE];
    cai_kernel_view view;
    cai_error err;
    cai_status status;
    int32_t i, count;
    memset(&view, FILL, sizeof view);
    memset(&err, FILL, sizeof err);
    status = cai_kernel_view_of(a, &view, &err);
    check_error(status, &err);
    if (status != CAI_OK) {
        MUST(is_untouched(&view, sizeof view));
        return;
    }
    MUST((uint64_t)(uintptr_t)view.data == a->data);
    MUST(view.ndim == a->ndim && view.itemsize == a->dtype.itemsize && view.ndim <= 8);
    for (i = 0; i < 8; i++) {
        MUST(view.shape[i] == (i < a->ndim ? a->shape[i] : 1));
        MUST(view.strides[i] == (i < a->ndim ? a->strides[i] : 0));
    }
    count = a->data + (uint64_t)a->lo ? element_offsets(a, offsets) : 0; /* C has no element at 0 */
    for (i = 0; i < count; i++) {
        uint64_t at = (uint64_t)(uintptr_t)cai_kernel_element(&view, i);
        MUST(at - a->data == (uint64_t)offsets[i]);
    }
}

/* -------------------------------------------------------------------- >>views */

/** What a view does. Corpora have these numbers. */
enum { SLICE, PERMUTE, REVERSE, INDEX, EXPAND, BROADCAST, RESHAPE, REINTERPRET, COALESCE, FIELD, VIEWS };

/** The parameters of one view. */
typedef struct view_call {
    int32_t which, axis, ndim;
    int64_t start, count, step, row;
    int32_t axes[MAX_AXES];
    int64_t shape[MAX_AXES];
    cai_dtype dtype;
} view_call;

static int32_t some_axis(source *in, const cai_array *a)
{
    int32_t choice = pick(in, 16);
    if (choice == 15) return (int32_t)(uint32_t)take_u64(in);
    if (choice == 14) return pick(in, 130) - 65;
    return a->ndim ? choice % a->ndim : 0;
}

static void choose_slice(source *in, const cai_array *a, view_call *call)
{
    int64_t extent = call->axis >= 0 && call->axis < a->ndim ? a->shape[call->axis] : 1;
    call->start = extent > 0 ? (int64_t)take(in) % extent : 0;
    call->step = pick(in, 7) - 3;
    call->count = pick(in, 6);
    switch (pick(in, 8)) {
    case 5: call->start = any_number(in); break;
    case 6: call->count = any_number(in); break;
    case 7: call->step = any_number(in); break;
    default: break;
    }
}

/** Writes one extent of the array, changed or not, as 0, 1 or 2 extents of the view. */
static int32_t choose_extent(source *in, int64_t extent, int64_t *shape, int32_t n)
{
    const int merges = n > 0 && shape[n - 1] > 0 && shape[n - 1] < 1000 && extent < 1000;
    switch (pick(in, 8)) {
    case 1:
        if (!merges) break;
        shape[n - 1] *= extent;
        return n;
    case 2:
        if (extent <= 0 || extent % 2) break;
        shape[n] = 2;
        shape[n + 1] = extent / 2;
        return n + 2;
    case 3: extent = -1; break;
    case 4: extent = pick(in, 6); break;
    case 5: extent = any_number(in); break;
    default: break;
    }
    shape[n] = extent;
    return n + 1;
}

/** A shape near the array's: some axes merged, split or replaced. */
static void choose_shape(source *in, const cai_array *a, view_call *call)
{
    int32_t i, n = 0;
    if (pick(in, 8) == 7) call->shape[n++] = pick(in, 5);
    for (i = 0; i < a->ndim && n < MAX_AXES - 2; i++)
        n = choose_extent(in, a->shape[i], call->shape, n);
    call->ndim = pick(in, 16) == 15 ? pick(in, MAX_AXES) - 5 : n;
}

static void choose_axes(source *in, const cai_array *a, view_call *call)
{
    int32_t i, j, swap;
    for (i = 0; i < MAX_AXES; i++) call->axes[i] = i;
    for (i = a->ndim - 1; i > 0; i--) {
        j = pick(in, (uint32_t)i + 1);
        swap = call->axes[i];
        call->axes[i] = call->axes[j];
        call->axes[j] = swap;
    }
    if (pick(in, 8) == 7) call->axes[pick(in, 8)] = some_axis(in, a);
    if (pick(in, 8) == 6 && a->ndim) call->axes[0] -= a->ndim;
}

static void choose_dtype(source *in, const cai_array *a, view_call *call)
{
    size_t i = take(in) % (sizeof typestrs / sizeof typestrs[0]);
    const char *text = typestrs[i].text;
    static const int32_t codes[] = {CAI_BFLOAT16, CAI_FLOAT8_E4M3FN, CAI_FLOAT16, CAI_UINT8, CAI_INT4,
                                    CAI_INT4_X2, CAI_UINT2_X4, CAI_INT1_X8, CAI_FLOAT6_E2M3FN_X4,
                                    CAI_FLOAT4_E2M1FN_X2};
    call->dtype = a->dtype;
    if (pick(in, 4) == 3) {
        MUST(cai_dtype_of(codes[pick(in, 10)], &call->dtype, NULL) == CAI_OK);
        return;
    }
    if (cai_dtype_parse(text, (int64_t)strlen(text), 0, &call->dtype, NULL) != CAI_OK) return;
}

static void choose_view(source *in, const cai_array *a, view_call *call)
{
    memset(call, 0, sizeof *call);
    call->which = pick(in, VIEWS);
    call->axis = some_axis(in, a);
    call->row = pick(in, 8) == 7 ? any_number(in) : pick(in, 8);
    choose_slice(in, a, call);
    if (call->which == PERMUTE) choose_axes(in, a, call);
    if (call->which == BROADCAST || call->which == RESHAPE) choose_shape(in, a, call);
    if (call->which == REINTERPRET) choose_dtype(in, a, call);
}

/** Returns whether the elements of the view are those of the array, in C order. */
static int keeps_order(const view_call *call)
{
    return call->which == RESHAPE || call->which == COALESCE;
}

static cai_status take_view(const view_call *call, const cai_array *a, cai_array *out,
                            cai_error *err)
{
    switch (call->which) {
    case SLICE: return cai_view_slice(a, call->axis, call->start, call->count, call->step, out, err);
    case PERMUTE: return cai_view_permute(a, call->axes, out, err);
    case REVERSE: return cai_view_permute(a, NULL, out, err);
    case INDEX: return cai_view_index(a, call->axis, call->start, out, err);
    case EXPAND: return cai_view_expand(a, call->axis, out, err);
    case BROADCAST: return cai_view_broadcast(a, call->ndim, call->shape, out, err);
    case RESHAPE: return cai_view_reshape(a, call->ndim, call->shape, out, err);
    case REINTERPRET: return cai_view_reinterpret(a, &call->dtype, out, err);
    case COALESCE: return cai_view_coalesce(a, out, err);
    default: return cai_view_field(a, call->row, out, err);
    }
}

JUDGE static void check_overlap(const cai_array *a, const cai_array *b)
{
    int32_t answer = cai_overlap(a, b), naive = naive_overlap(a, b);
    MUST(answer >= CAI_OVERLAP_NO && answer <= CAI_OVERLAP_UNDECIDED);
    if (naive >= 0 && answer != CAI_OVERLAP_UNDECIDED) MUST(answer == naive);
    answer = cai_overlap(b, a);
    if (naive >= 0 && answer != CAI_OVERLAP_UNDECIDED) MUST(answer == naive);
}

/** A view lies within its array, can do no more than it, and visits its own elements. */
JUDGE static void check_view(const view_call *call, const cai_array *a, const cai_array *view)
{
    check_facts(view);
    MUST(!view->release && !view->mask && view->sync == a->sync && view->stream == a->stream);
    MUST(view->device == a->device && view->memory == a->memory && view->version == a->version);
    MUST(!(view->flags & CAI_WRITABLE) || (a->flags & CAI_WRITABLE));
    check_overlap(a, view);
    if (view->size == 0) return;
    MUST(cai_overlap(a, view) != CAI_OVERLAP_NO);
    MUST(view->data + (uint64_t)view->lo >= a->data + (uint64_t)a->lo);
    MUST(view->data + (uint64_t)view->hi - 1 <= a->data + (uint64_t)a->hi - 1);
    if (keeps_order(call)) MUST(view->size == a->size);
    if (call->which == REINTERPRET) MUST(view->nbytes == a->nbytes && same_dtype(&view->dtype, &call->dtype));
}

/** Elements of a reshaped or coalesced array are those of the array, in C order. */
JUDGE static void check_same_order(const cai_array *a, const cai_array *view)
{
    int64_t before[MAX_NAIVE], after[MAX_NAIVE];
    int32_t count = element_offsets(a, before);
    if (count < 0) return;
    MUST(element_offsets(view, after) == count && view->data == a->data);
    MUST(memcmp(before, after, (size_t)count * sizeof before[0]) == 0);
}

/** The values of a view of a packed array are values of the array, with the same bits. */
JUDGE static void check_values(const view_call *call, const cai_array *a, const cai_array *view)
{
    int64_t before[MAX_NAIVE], after[MAX_NAIVE];
    const uint64_t moved = (view->data - a->data) * 8;
    const int32_t count = value_bits(a, before), left = value_bits(view, after);
    int32_t i, j;
    if (count < 0 || left < 0 || !same_dtype(&a->dtype, &view->dtype)) return;
    if (keeps_order(call)) MUST(left == count);
    if (keeps_order(call)) MUST(!memcmp(before, after, (size_t)count * sizeof before[0]));
    qsort(before, (size_t)count, sizeof before[0], compare_offsets);
    for (i = 0; i < left; i++) after[i] = (int64_t)((uint64_t)after[i] + moved);
    qsort(after, (size_t)left, sizeof after[0], compare_offsets);
    for (i = j = 0; i < left; i++) {
        while (j < count && before[j] < after[i]) j++;
        MUST(j < count && before[j] == after[i]);
    }
}

/** Views of views, each taken into memory of its own and in place. */
static void check_views(const cai_array *array, source *in)
{
    cai_array at = *array, out, in_place;
    view_call call;
    cai_error err;
    cai_status status;
    int32_t i;
    for (i = 0; i < MAX_VIEWS && in->left > 0; i++) {
        choose_view(in, &at, &call);
        memset(&out, FILL, sizeof out);
        memset(&err, FILL, sizeof err);
        status = take_view(&call, &at, &out, &err);
        check_error(status, &err);
        in_place = at;
        MUST(take_view(&call, &in_place, &in_place, NULL) == status);
        if (status != CAI_OK) {
            MUST(is_untouched(&out, sizeof out) && memcmp(&in_place, &at, sizeof at) == 0);
            continue;
        }
        MUST(same_array(&in_place, &out, 0) && same_fields(&in_place, &out));
        check_view(&call, &at, &out);
        check_values(&call, &at, &out);
        MUST((cai_expect_same_shape(&at, "at", &out, "out", NULL) == CAI_OK) == same_values(&at, &out));
        check_joint_shape(&at, &out);
        if (keeps_order(&call)) check_same_order(&at, &out);
        at = out;
    }
}

/* -------------------------------------------------------------------- >>arrays */

/** A second array near the first: moved by some bytes, its axes reversed. */
static void check_neighbour(const cai_array *a, source *in)
{
    cai_array b;
    uint64_t by = take(in);
    if (cai_view_permute(a, NULL, &b, NULL) != CAI_OK || b.size == 0) return;
    b.data += by;
    if (b.data < by || (b.data + (uint64_t)b.hi < b.data)) return;
    check_overlap(a, &b);
}

/** The same array from its parts; then one from parts of any value. */
static void check_init(const cai_array *a, source *in)
{
    const uint32_t other = CAI_WRITABLE | CAI_HAD_STRIDES | CAI_FUTURE_VERSION;
    const int64_t *strides = a->dtype.code == CAI_BITFIELD ? NULL : a->strides;
    int64_t shape[MAX_AXES], any_strides[MAX_AXES];
    int32_t ndim = pick(in, 8) ? pick(in, 5) : pick(in, MAX_AXES) - 5, i;
    uint64_t data;
    uint32_t faults;
    cai_array b;
    cai_error err;
    cai_status status;
    MUST(cai_array_init_dtype(&b, &a->dtype, a->ndim, a->shape, strides, a->data, NULL) == CAI_OK);
    MUST(b.size == a->size && b.lo == a->lo && b.hi == a->hi && b.data == a->data);
    MUST(((b.flags ^ a->flags) & ~other) == 0 && same_strides(a, &b, 0));
    for (i = 0; i < MAX_AXES; i++) shape[i] = pick(in, 8) ? pick(in, 4) : any_number(in);
    for (i = 0; i < MAX_AXES; i++) any_strides[i] = pick(in, 8) ? (int8_t)take(in) : any_number(in);
    memset(&b, FILL, sizeof b);
    memset(&err, FILL, sizeof err);
    strides = pick(in, 2) ? any_strides : NULL;
    data = take_u64(in);
    status = cai_array_init_dtype(&b, &a->dtype, ndim, shape, strides, data, &err);
    check_error(status, &err);
    if (status == CAI_OK) check_facts(&b);
    else MUST(is_untouched(&b, sizeof b));
    if (a->dtype.itemsize == 0) return;
    faults = ndim < 0 || ndim > CAI_MAX_NDIM ? 1u << CAI_ERR_ARGUMENT
                                             : faults_of(a->dtype.itemsize, ndim, shape, strides, data);
    MUST(status == CAI_OK ? faults == 0 : faults >> status & 1);
}

/** Another state than an import gives; cai_stream.h and bindings store such. */
static void check_state(const cai_array *a, source *in)
{
    cai_array b = *a;
    b.device = pick(in, 3) - 1;
    b.memory = pick(in, 6);
    b.sync = pick(in, 5);
    b.stream = take(in);
    b.event = b.sync == CAI_SYNC_EVENT ? 1 + take_u64(in) : 0;
    check_text(&b, in);
    check_expect(&b, in);
    b.device = a->device;
    b.memory = a->memory;
    if (b.sync == CAI_SYNC_EVENT) b.event = 1;
    if (b.sync == CAI_SYNC_STREAM && b.stream > 0) check_export(&b);
}

/** A struct of another layout is refused by every function that reads one. */
static void check_foreign(const cai_array *a, source *in)
{
    cai_array b = *a, out;
    cai_kernel_view view;
    cai_interface dictionary;
    cai_export_storage storage;
    char text[16];
    int32_t axis = 0;
    memset(&storage, 0, sizeof storage);
    switch (pick(in, 5)) {
    case 0: b.abi++; break;
    case 1: b.struct_size = take(in); break;
    case 2: b.ndim = CAI_MAX_NDIM + 1 + pick(in, 9); break;
    case 3: b.ndim = -1 - pick(in, 9); break;
    default: b.field_count = -1 - pick(in, 9); break;
    }
    MUST(cai_array_check(&b, NULL) == CAI_ERR_ABI);
    MUST(cai_expect(&b, "b", CAI_ANY_DTYPE, CAI_ANY_NDIM, 0, NULL) == CAI_ERR_ABI);
    MUST(cai_expect_same_shape(a, "a", &b, "b", NULL) == CAI_ERR_ABI);
    MUST(cai_broadcast_shape(&b, "b", &axis, out.shape, NULL) == CAI_ERR_ABI);
    MUST(cai_kernel_view_of(&b, &view, NULL) == CAI_ERR_ABI);
    MUST(cai_export(&b, 3, &storage, &dictionary, NULL) == CAI_ERR_ABI);
    MUST(cai_overlap(a, &b) == CAI_OVERLAP_UNDECIDED);
    MUST(cai_array_text(&b, text, sizeof text) > 0);
    MUST(cai_view_values(&b, &out, NULL) == CAI_ERR_ABI);
    MUST(cai_view_permute(&b, &axis, &out, NULL) == CAI_ERR_ABI);
    MUST(cai_view_coalesce(&b, &out, NULL) == CAI_ERR_ABI);
}

static void check_array(const cai_array *a, source *in)
{
    cai_array values;
    check_dtype(&a->dtype);
    check_text(a, in);
    check_export(a);
    check_small_export(a, in);
    check_expect(a, in);
    check_kernel_view(a);
    MUST(cai_view_values(a, &values, NULL) == CAI_OK && !values.mask);
    check_facts(&values);
    check_overlap(a, a);
    MUST(a->size == 0 || cai_overlap(a, a) != CAI_OVERLAP_NO);
    check_neighbour(&values, in);
    check_views(&values, in);
    check_init(&values, in);
    check_state(a, in);
    check_foreign(a, in);
}

/* --------------------------------------------------------------------- >>parts */

typedef cai_status (*stream_decoder)(const cai_token *, int32_t *, uint64_t *, cai_error *);

static cai_status from_interface_3(const cai_token *value, int32_t *sync, uint64_t *stream,
                                   cai_error *err)
{
    return cai_decode_stream_interface(value, 3, sync, stream, err);
}

static cai_status from_interface_2(const cai_token *value, int32_t *sync, uint64_t *stream,
                                   cai_error *err)
{
    return cai_decode_stream_interface(value, 2, sync, stream, err);
}

static cai_status from_protocol(const cai_token *value, int32_t *sync, uint64_t *stream,
                                cai_error *err)
{
    cai_status status = cai_decode_stream_protocol(value, stream, err);
    if (status == CAI_OK) *sync = CAI_SYNC_STREAM;
    return status;
}

/** The three decoders of stream numbers, on anything. None ever yields stream 0 to wait for. */
static void check_streams(source *in)
{
    static const stream_decoder decoders[] = {from_interface_3, from_interface_2, from_protocol,
                                              cai_decode_stream_dlpack};
    const cai_token *value = pick(in, 8) ? any_entry(in) : NULL;
    size_t i;
    for (i = 0; i < sizeof decoders / sizeof decoders[0]; i++) {
        int32_t sync;
        uint64_t stream;
        cai_error err;
        cai_status status;
        if (!value && decoders[i] == from_protocol) continue;
        memset(&sync, FILL, sizeof sync);
        memset(&stream, FILL, sizeof stream);
        memset(&err, FILL, sizeof err);
        status = decoders[i](value, &sync, &stream, &err);
        check_error(status, &err);
        if (status != CAI_OK) MUST(is_untouched(&sync, sizeof sync));
        if (status != CAI_OK) MUST(is_untouched(&stream, sizeof stream));
        else MUST((sync == CAI_SYNC_STREAM) == (stream != 0));
    }
}

/** cai_fields_compile by itself: counting and storing agree. */
static void check_descr(const cai_interface *dictionary, uint32_t flags)
{
    cai_field fields[MAX_ROWS];
    cai_dtype dtype;
    cai_error err;
    int64_t count = -7, stored = -7;
    cai_status counting, storing;
    const cai_token *typestr = dictionary->typestr;
    if (!dictionary->descr || !typestr || typestr->kind != CAI_TOKEN_STR) return;
    if (cai_dtype_parse(typestr->text, typestr->length, flags, &dtype, NULL) != CAI_OK) return;
    memset(&err, FILL, sizeof err);
    counting = cai_fields_compile(dictionary->descr, &dtype, flags, NULL, 0, &count, &err);
    check_error(counting, &err);
    memset(&err, FILL, sizeof err);
    memset(fields, FILL, sizeof fields);
    storing = cai_fields_compile(dictionary->descr, &dtype, flags, fields, MAX_ROWS, &stored, &err);
    check_error(storing, &err);
    if (counting == CAI_OK) MUST(storing == (count > MAX_ROWS ? CAI_ERR_CAPACITY : CAI_OK));
    if (counting != CAI_OK) MUST(count == -7 && storing == counting);
    if (storing == CAI_OK) MUST(stored == count);
    else MUST(stored == -7 && is_untouched(fields, sizeof fields));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static imported strict, lenient;
    static source in;
    cai_interface dictionary;
    int32_t rows;
    if (size > 4096) return 0;
    in.bytes = data;
    in.left = size;
    in.block_count = 0;
    rows = pick(&in, 8) ? MAX_ROWS : pick(&in, MAX_ROWS + 1);
    make_interface(&in, 2, &dictionary);
    import(&dictionary, 0, rows, &strict);
    import(&dictionary, CAI_LENIENT, rows, &lenient);
    check_profiles(&dictionary, rows, &strict, &lenient);
    check_typestr(&dictionary, 0, &strict);
    check_typestr(&dictionary, CAI_LENIENT, &lenient);
    check_descr(&dictionary, 0);
    check_descr(&dictionary, CAI_LENIENT);
    if (lenient.status == CAI_OK) check_array(&lenient.array, &in);
    check_streams(&in);
    free_blocks(&in);
    return 0;
}
