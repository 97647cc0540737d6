/* fuzz_layout.c - libFuzzer target: the headers that calculate from an array and numbers of a caller.
 *
 *     clang -g -O2 -fsanitize=fuzzer,address,undefined -I. -Iext -Itests/ext tests/fuzz/fuzz_layout.c
 *
 * Layouts and domains, plans of transfers, tensor maps, scales of blocks, small views and packed arrays. The
 * first byte chooses one. Each result is calculated here again: in 128 bits, element by element, by copies
 * in blocks of their exact sizes, or by the sentences of CUDA's document (tests/ext/tensor_map_world.h). */

#define CAI_IMPLEMENTATION
#include "ext/cai_layout.h"
#include "ext/cai_scaled.h"
#include "ext/cai_small_view.h"
#include "ext/cai_tensor_map.h"
#include "ext/cai_transfer.h"

#include "fuzz.h"
#include "fuzz_naive.h"
#include "fuzz_source.h"
#include "im2col_world.h"

enum { MOST_BYTES = 4096 }; /* of memory that is copied */

/* -------------------------------------------------------------------- >>arrays */

static const int32_t codes[] = {
    CAI_FLOAT32, CAI_UINT8, CAI_FLOAT16, CAI_FLOAT64, CAI_COMPLEX128, CAI_INT16, CAI_BFLOAT16, CAI_FLOAT8_E4M3FN,
    CAI_FLOAT8_E8M0FNU, CAI_INT32, CAI_UINT64, CAI_COMPLEX64, CAI_BOOL, CAI_FLOAT8_E5M2, CAI_INT4,
    CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT6_E2M3FN_X4, CAI_INT4_X2, CAI_INT1_X8, CAI_UINT2_X4};

static void choose_dtype(source *in, cai_dtype *out)
{
    const uint32_t choice = take(in);
    char text[8];
    MUST(cai_dtype_of(codes[choice % (sizeof codes / sizeof codes[0])], out, NULL) == CAI_OK);
    if (choice < 240) return;
    snprintf(text, sizeof text, "|V%d", 1 + pick(in, 20));
    MUST(cai_dtype_parse(text, (int64_t)strlen(text), 0, out, NULL) == CAI_OK);
}

static int64_t choose_extent(source *in)
{
    const uint32_t byte = take(in);
    if (byte < 224) return 1 + byte % 6;
    if (byte < 244) return byte % 2 ? 0 : 16 * (int64_t)take(in);
    return any_number(in);
}

static int32_t choose_ndim(source *in)
{
    const int32_t choice = pick(in, 16);
    return choice < 15 ? choice % 5 : pick(in, 9);
}

/** Strides in bytes: of C order, of the order that is turned, with gaps, negative, or any. */
static void choose_strides(source *in, int32_t ndim, const int64_t *shape, int64_t itemsize, int64_t *strides)
{
    const uint32_t kind = take(in);
    uint64_t run = (uint64_t)itemsize;
    int32_t i;
    for (i = ndim - 1; i >= 0; i--) {
        const int32_t axis = kind & 1 ? ndim - 1 - i : i;
        strides[axis] = (int64_t)run;
        run *= (uint64_t)shape[axis];
        if (kind & 2) run = (run + 31) / 32 * 32;
        if (kind & 4) run += (uint64_t)(itemsize * pick(in, 4));
        if ((kind & 8) && pick(in, 2)) strides[axis] = (int64_t)(0 - (uint64_t)strides[axis]);
        if (kind >= 240) strides[axis] = any_number(in);
        else if (kind >= 192) strides[axis] = (int8_t)take(in) * (kind & 1 ? itemsize : 1);
    }
}

/** An array of any layout, in any memory; returns whether there is one. */
static int choose_array(source *in, cai_array *a)
{
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
    const uint32_t choice = take(in);
    const int32_t ndim = choose_ndim(in);
    uint64_t data = UINT64_C(0x7f0000000000) + (choice >= 128 ? take(in) : 0);
    uint32_t faults;
    cai_dtype dtype;
    cai_status status;
    int32_t i;
    if (choice >= 248) data = (uint64_t)any_number(in);
    choose_dtype(in, &dtype);
    for (i = 0; i < ndim; i++) shape[i] = choose_extent(in);
    if (choice & 1) choose_strides(in, ndim, shape, dtype.itemsize, strides);
    faults = faults_of(dtype.itemsize, ndim, shape, choice & 1 ? strides : NULL, data);
    memset(a, FILL, sizeof *a);
    status = cai_array_init_dtype(a, &dtype, ndim, shape, choice & 1 ? strides : NULL, data, NULL);
    if (status != CAI_OK) {
        MUST(is_untouched(a, sizeof *a) && (faults >> status & 1 || cai_dtype_values(&dtype) > 1));
        return 0;
    }
    MUST(faults == 0);
    if (choice & 2) check_facts(a);
    if (choice & 4) cai_array_set_read_only(a, 1);
    a->device = choice >> 3 & 3;
    return 1;
}

/* -------------------------------------------------------------------- >>packed */

/** What an array of packed values must be: each axis as it was given. */
JUDGE static void check_packed_array(const cai_array *a, int32_t axis, const int64_t *shape,
                                     const int64_t *strides)
{
    const int64_t values = cai_dtype_values(&a->dtype);
    int32_t i;
    check_facts(a);
    MUST(a->packed_axis == axis && values > 1);
    for (i = 0; i < a->ndim; i++) {
        MUST(value_extent(a, i) == shape[i]);
        MUST(a->shape[i] == (i == axis && shape[i] ? (shape[i] - 1) / values + 1 : shape[i]));
        if (strides) MUST(a->strides[i] == strides[i]);
    }
    if (!strides) MUST(a->flags & CAI_C_CONTIGUOUS);
}

static void check_init_packed(source *in)
{
    int64_t shape[CAI_MAX_NDIM], elements[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
    const int32_t code = pick(in, 8) ? codes[14 + pick(in, 6)] : pick(in, 2) ? (int32_t)any_number(in) : codes[0];
    const int32_t ndim = pick(in, 32) < 31 ? choose_ndim(in) : (int32_t)any_number(in);
    const int32_t axis = pick(in, 16) < 15 ? (ndim > 0 ? pick(in, (uint32_t)ndim) : -1) : pick(in, 12) - 2;
    const uint64_t data = pick(in, 8) < 7 ? UINT64_C(0x7f0000000000) : (uint64_t)any_number(in);
    const int32_t count = ndim < 0 || ndim > CAI_MAX_NDIM ? 0 : ndim, given = take(in) & 1;
    uint32_t faults;
    cai_array a;
    cai_error err;
    cai_status status;
    cai_dtype dtype;
    int64_t values, *given_shape = NULL, *given_strides = NULL;
    int32_t i;
    const int known = cai_dtype_of(code, &dtype, NULL) == CAI_OK && cai_dtype_values(&dtype) > 1;
    values = known ? cai_dtype_values(&dtype) : 1;
    for (i = 0; i < count; i++) elements[i] = shape[i] = choose_extent(in);
    if (axis >= 0 && axis < count && shape[axis] > 0) elements[axis] = (shape[axis] - 1) / values + 1;
    if (given) choose_strides(in, count, elements, known ? dtype.itemsize : 1, strides);
    memset(&a, FILL, sizeof a);
    memset(&err, FILL, sizeof err);
    if (count) given_shape = (int64_t *)keep(in, shape, sizeof *shape * (size_t)count);
    if (given) given_strides = (int64_t *)keep(in, strides, sizeof *strides * (size_t)count);
    status = cai_array_init_packed(&a, code, ndim, given_shape, axis, given_strides, (void *)(uintptr_t)data,
                                   &err);
    check_error(status, &err);
    faults = faults_of(known ? dtype.itemsize : 1, ndim, elements, given ? strides : NULL, data);
    if (!known || ndim != count || axis >= ndim || axis < (ndim ? 0 : -1)) faults |= 1u << CAI_ERR_ARGUMENT;
    if (status != CAI_OK) MUST(is_untouched(&a, sizeof a) && faults >> status & 1);
    else MUST(faults == 0);
    if (status == CAI_OK) check_packed_array(&a, axis, shape, given ? strides : NULL);
}

/* --------------------------------------------------------------- >>small views */

static void check_small_view(source *in)
{
    int64_t offsets[MAX_NAIVE];
    cai_small_view *const view = (cai_small_view *)keep(in, NULL, sizeof *view);
    cai_kernel_view large;
    cai_array a;
    cai_error err;
    cai_status status;
    int32_t i, count;
    if (!choose_array(in, &a)) return;
    memset(view, FILL, sizeof *view);
    memset(&err, FILL, sizeof err);
    status = cai_small_view_of(&a, view, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(is_untouched(view, sizeof *view) && (a.ndim > 4 || a.dtype.itemsize == 0));
    if (status != CAI_OK) return;
    MUST(a.ndim <= 4 && view->ndim == a.ndim && view->itemsize == a.dtype.itemsize);
    MUST((uint64_t)(uintptr_t)view->data == a.data && cai_kernel_view_of(&a, &large, NULL) == CAI_OK);
    for (i = 0; i < 4; i++) {
        MUST(view->shape[i] == (i < a.ndim ? a.shape[i] : 1) && view->shape[i] == large.shape[i]);
        MUST(view->strides[i] == (i < a.ndim ? a.strides[i] : 0) && view->strides[i] == large.strides[i]);
    }
    count = a.data + (uint64_t)a.lo ? element_offsets(&a, offsets) : 0; /* C has no element at 0 */
    for (i = 0; i < count; i++)
        MUST((uint64_t)(uintptr_t)cai_small_element(view, i) - a.data == (uint64_t)offsets[i]);
    if (count > 0 && a.ndim == 2)
        MUST((char *)cai_small_at2(view, a.shape[0] - 1, a.shape[1] - 1) - view->data == offsets[count - 1]);
}

/* ------------------------------------------------------------------- >>layouts */

/** Text in a block of its exact size. */
static const char *choose_dims(source *in, int32_t ndim)
{
    static const char letters[] = "IJK0123IJ";
    char text[12];
    int32_t i, count = pick(in, 16) < 15 ? ndim : pick(in, 11);
    const int32_t first = pick(in, 4), step = 1 + pick(in, 2);
    if (count < 0 || count > 10) count = 10;
    for (i = 0; i < count; i++) text[i] = letters[(first + i * step) % 7];
    if (count && pick(in, 8) == 7) text[pick(in, (uint32_t)count)] = (char)(take(in) | 1);
    text[count] = 0;
    return (const char *)keep(in, text, (size_t)count + 1);
}

static void choose_preset(source *in, cai_layout *layout)
{
    static const char *const presets[] = {"C", "F", "gtx86", "gtmc", "gtcuda", "debug", "numpy", "gt:gpu", "none",
                                          "gt:cpu_ifirst", "dace:cpu", "dace:gpu", "", "gt", "dace:cpu_KJI"};
    const char *name = presets[pick(in, 15)], *dims = choose_dims(in, 1 + pick(in, 5));
    cai_layout before = *layout;
    cai_error err;
    cai_status status;
    int32_t i, seen = 0;
    memset(&err, FILL, sizeof err);
    status = cai_layout_preset(layout, name, dims, &err);
    check_error(status, &err);
    if (status != CAI_OK) {
        MUST(status == CAI_ERR_ARGUMENT && memcmp(layout, &before, sizeof before) == 0);
        return;
    }
    MUST(layout->ndim == (int32_t)strlen(dims) && layout->ndim <= 8);
    for (i = 0; i < layout->ndim; i++) seen |= 1 << layout->map[i];
    MUST(seen == (1 << layout->ndim) - 1);
}

static void choose_layout(source *in, cai_layout *layout)
{
    static const int32_t alignments[] = {0, 0, 1, 4, 8, 16, 32, 64, 3, 128};
    const uint32_t choice = take(in);
    int32_t i, swap, other;
    memset(layout, 0, sizeof *layout);
    for (i = 0; i < 8; i++) layout->map[i] = choice & 1 ? i : 0;
    if (choice & 2) choose_preset(in, layout);
    else layout->ndim = choose_ndim(in);
    if (!(choice & 2) || choice & 4) layout->alignment = alignments[pick(in, 10)];
    if (choice & 4) layout->flags = (uint32_t)pick(in, 4);
    for (i = 0; i < layout->ndim; i++) {
        const uint32_t halo = choice & 8 ? take(in) : 0;
        layout->shape[i] = choose_extent(in);
        layout->halo_low[i] = halo & 3;
        layout->halo_high[i] = halo >> 2 & 3;
        layout->aligned[i] = halo >> 4 & 7;
        if (halo >= 250) layout->halo_low[i] = any_number(in), layout->halo_high[i] = any_number(in);
        if (halo >= 250) layout->aligned[i] = any_number(in);
    }
    for (i = layout->ndim - 1; i > 0 && choice & 1; i--) {
        other = pick(in, (uint32_t)i + 1);
        swap = layout->map[i], layout->map[i] = layout->map[other], layout->map[other] = swap;
    }
    if (choice < 244) return;
    if (choice & 1) layout->ndim = (int32_t)any_number(in);
    else if (choice & 2) layout->flags = (uint32_t)take_u64(in);
    else if (choice & 4) layout->alignment = (int32_t)any_number(in);
    else layout->map[pick(in, 8)] = (int32_t)any_number(in);
}

/** The axis of each place, the innermost last; 0 if the map is no permutation. */
JUDGE static int order_of(const cai_layout *l, int32_t *order)
{
    int32_t i, any = 0;
    for (i = 0; i < 8; i++) order[i] = -1;
    for (i = 0; i < l->ndim; i++) any |= l->map[i] != 0;
    for (i = 0; i < l->ndim; i++) {
        const int32_t place = any ? l->map[i] : i;
        if (place < 0 || place >= l->ndim || order[place] >= 0) return 0;
        order[place] = i;
    }
    return 1;
}

JUDGE static wide alignment_of(const cai_layout *l, int64_t itemsize)
{
    if (l->alignment == 0) return 1;
    return (wide)l->alignment * (l->flags & CAI_LAYOUT_ALIGN_ITEMS ? itemsize : 1);
}

/** Whether shape, halo and the aligned index fit each other. */
JUDGE static int fits_shape(const cai_layout *l)
{
    int32_t i;
    for (i = 0; i < l->ndim; i++) {
        const wide extent = l->shape[i], low = l->halo_low[i], high = l->halo_high[i];
        if (extent < 0 || low < 0 || high < 0 || low + high > extent) return 0;
        if (!(l->flags & CAI_LAYOUT_ALIGN_INDEX)) continue;
        if (l->aligned[i] < 0 || l->aligned[i] >= (extent ? extent : 1)) return 0;
    }
    return 1;
}

JUDGE static int fits_arguments(const cai_layout *l, int64_t itemsize)
{
    const wide bytes = alignment_of(l, itemsize);
    int32_t order[8];
    if (l->flags > 3 || l->alignment < 0 || itemsize < 1 || bytes > INT32_MAX) return 0;
    return order_of(l, order) && (bytes % itemsize == 0 || itemsize % bytes == 0);
}

/** Strides and bytes by the formulas of GDP-3, and what alignment means. */
JUDGE static void check_plan(const cai_layout *given, const cai_layout *made, int64_t itemsize)
{
    const wide bytes = alignment_of(given, itemsize), unit = bytes > itemsize ? bytes / itemsize : 1;
    wide stride = itemsize;
    int32_t order[8], place, empty = 0;
    MUST(order_of(given, order) && made->boundary == bytes);
    for (place = given->ndim - 1; place >= 0; place--) {
        const int32_t axis = order[place];
        wide extent = given->shape[axis] ? given->shape[axis] : 1;
        empty |= !given->shape[axis];
        if (place == given->ndim - 1) extent = (extent + unit - 1) / unit * unit;
        MUST(made->strides[axis] == stride && made->shape[axis] == given->shape[axis]);
        if (place < given->ndim - 1) MUST(stride % bytes == 0);
        stride *= extent;
    }
    MUST(made->nbytes == (empty ? 0 : stride + bytes - 1));
    MUST(made->offset >= 0 && made->offset < bytes && (made->offset == 0 || !empty));
    if (!empty && given->ndim)
        MUST((made->offset + (wide)made->aligned[order[given->ndim - 1]] * itemsize) % bytes == 0);
}

/** Bytes of a layout in 128 bits, 0 if one axis is empty, -1 if they exceed 64 bits. */
JUDGE static wide bytes_of(const cai_layout *l, int64_t itemsize)
{
    const wide bytes = alignment_of(l, itemsize), unit = bytes > itemsize ? bytes / itemsize : 1;
    wide stride = itemsize;
    int32_t order[8], place;
    MUST(order_of(l, order));
    for (place = l->ndim - 1; place >= 0; place--) {
        wide extent = l->shape[order[place]] ? l->shape[order[place]] : 1;
        if (place == l->ndim - 1) extent = (extent + unit - 1) / unit * unit;
        stride = product(stride, extent);
    }
    return stride + bytes - 1 > INT64_MAX ? -1 : stride;
}

/** An array in a block at any address begins where cai_layout_offset says, and fits the layout. */
static void check_block(source *in, const cai_layout *l, const cai_dtype *dtype, cai_array *field)
{
    const uint64_t block = UINT64_C(0x7f0000000000) + take(in);
    const int64_t offset = cai_layout_offset(l, block);
    const uint64_t boundary = (uint64_t)l->boundary;
    MUST(offset >= 0 && offset < l->boundary && cai_layout_offset(l, boundary * 3) == l->offset % l->boundary);
    MUST(cai_array_init_dtype(field, dtype, l->ndim, l->shape, l->strides, block + (uint64_t)offset, NULL) ==
         CAI_OK);
    MUST(field->lo == 0 && offset + field->hi <= l->nbytes);
    if (cai_dtype_values(dtype) == 1) MUST(field->size == 0 || (field->flags & CAI_NO_SELF_OVERLAP));
    MUST(cai_layout_check(l, field, NULL) == CAI_OK);
}

/** The layout of an array has its strides, the largest first. */
static void check_layout_of(const cai_array *a)
{
    cai_layout made;
    cai_error err;
    cai_status status;
    int32_t i, order[8];
    memset(&made, FILL, sizeof made);
    memset(&err, FILL, sizeof err);
    status = cai_layout_of(a, &made, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(a->ndim > 8 && is_untouched(&made, sizeof made));
    if (status != CAI_OK) return;
    MUST(made.ndim == a->ndim && made.nbytes == a->nbytes && order_of(&made, order));
    for (i = 0; i < a->ndim; i++) MUST(made.shape[i] == a->shape[i] && made.strides[i] == a->strides[i]);
    for (i = 1; i < a->ndim; i++) {
        const wide before = a->strides[order[i - 1]], after = a->strides[order[i]];
        MUST((before < 0 ? -before : before) >= (after < 0 ? -after : after));
    }
}

/** An array that was accepted as of a layout is of it. */
static void check_given(source *in, const cai_layout *l)
{
    cai_array a;
    cai_error err;
    cai_status status;
    int32_t order[8], place;
    wide inside, address;
    if (!choose_array(in, &a)) return;
    check_layout_of(&a);
    memset(&err, FILL, sizeof err);
    status = cai_layout_check(l, &a, &err);
    check_error(status, &err);
    if (status != CAI_OK) return;
    MUST(fits_shape(l) && fits_arguments(l, a.dtype.itemsize) && order_of(l, order) && a.ndim == l->ndim);
    inside = a.dtype.itemsize;
    address = (wide)a.data;
    for (place = a.ndim - 1; place >= 0 && a.size; place--) {
        const int32_t axis = order[place];
        const wide last = a.shape[axis] ? a.shape[axis] - 1 : 0;
        const wide index = l->flags & CAI_LAYOUT_ALIGN_INDEX ? l->aligned[axis]
                           : l->halo_low[axis] < last ? l->halo_low[axis] : last;
        MUST(a.shape[axis] == l->shape[axis]);
        if (a.shape[axis] == 1) continue;
        MUST(a.strides[axis] >= inside);
        inside += last * a.strides[axis];
        address += index * a.strides[axis];
    }
    if (a.size) MUST(address % alignment_of(l, a.dtype.itemsize) == 0);
}

static void check_permuted(source *in, const cai_layout *l, const cai_dtype *dtype)
{
    int32_t axes[8], i, other, swap;
    cai_layout turned, back;
    cai_status status;
    for (i = 0; i < 8; i++) axes[i] = i;
    for (i = l->ndim - 1; i > 0; i--) {
        other = pick(in, (uint32_t)i + 1);
        swap = axes[i], axes[i] = axes[other], axes[other] = swap;
    }
    if (l->ndim && pick(in, 16) == 15) axes[0] = (int32_t)any_number(in);
    memset(&turned, FILL, sizeof turned);
    status = cai_layout_permute(l, axes, &turned, NULL);
    if (status != CAI_OK) MUST(status == CAI_ERR_ARGUMENT && is_untouched(&turned, sizeof turned));
    if (status != CAI_OK) return;
    back = turned;
    MUST(cai_layout_plan(&turned, dtype, NULL) == CAI_OK && turned.nbytes == l->nbytes);
    for (i = 0; i < l->ndim; i++)
        MUST(turned.strides[i] == l->strides[axes[i]] && back.strides[i] == l->strides[axes[i]]);
}

static void check_domain(const cai_layout *l, const cai_array *field)
{
    cai_array domain;
    uint64_t data = field->data;
    int32_t i;
    int64_t extents[8];
    cai_grid_field grid = {field, "abcdefgh", l->halo_low, l->halo_high};
    MUST(cai_view_domain(field, l->halo_low, l->halo_high, &domain, NULL) == CAI_OK);
    check_facts(&domain);
    for (i = 0; i < l->ndim; i++) {
        MUST(domain.shape[i] == l->shape[i] - l->halo_low[i] - l->halo_high[i]);
        data += (uint64_t)l->halo_low[i] * (uint64_t)l->strides[i];
    }
    if (domain.size) MUST(domain.data == data);
    if (l->ndim != 8) return;
    MUST(cai_domain_of(&grid, 1, "hgfedcba", extents, NULL) == CAI_OK);
    for (i = 0; i < 8; i++) MUST(extents[i] == domain.shape[7 - i]);
}

static void check_layout_plan(source *in)
{
    cai_layout given, made;
    cai_array field;
    cai_dtype dtype;
    cai_error err;
    cai_status status;
    choose_layout(in, &given);
    choose_dtype(in, &dtype);
    if (pick(in, 32) == 31 && !dtype.bits) dtype.itemsize = (int32_t)any_number(in);
    made = given;
    memset(&err, FILL, sizeof err);
    status = cai_layout_plan(&made, &dtype, &err);
    check_error(status, &err);
    if (given.ndim < 0 || given.ndim > 8) {
        MUST(status == CAI_ERR_ARGUMENT);
        return;
    }
    check_given(in, &given);
    if (status != CAI_OK) {
        MUST(memcmp(&made, &given, sizeof made) == 0);
        MUST(status == CAI_ERR_SHAPE ? !fits_shape(&given) || bytes_of(&given, dtype.itemsize) < 0
                                     : status == CAI_ERR_ARGUMENT && !fits_arguments(&given, dtype.itemsize));
        return;
    }
    MUST(fits_shape(&given) && fits_arguments(&given, dtype.itemsize) && bytes_of(&given, dtype.itemsize) >= 0);
    check_plan(&given, &made, dtype.itemsize);
    given = made;
    MUST(cai_layout_plan(&made, &dtype, NULL) == CAI_OK && memcmp(&made, &given, sizeof made) == 0);
    check_permuted(in, &made, &dtype);
    if (cai_dtype_values(&dtype) > 1) return;
    check_block(in, &made, &dtype, &field);
    if (field.size) check_domain(&made, &field);
}

/* ------------------------------------------------------------------------ >>dims */

/** A view with named axes has each of them, from where the array has it. */
static void check_dims(source *in)
{
    cai_array a, out;
    const char *dims, *wanted;
    cai_error err;
    cai_status status;
    int32_t i;
    if (!choose_array(in, &a)) return;
    dims = choose_dims(in, a.ndim);
    wanted = choose_dims(in, 1 + pick(in, 6));
    memset(&out, FILL, sizeof out);
    memset(&err, FILL, sizeof err);
    status = cai_view_dims(&a, dims, wanted, &out, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(is_untouched(&out, sizeof out));
    if (status != CAI_OK) return;
    check_facts(&out);
    MUST(out.ndim == (int32_t)strlen(wanted) && a.ndim == (int32_t)strlen(dims) && out.size == a.size);
    for (i = 0; i < out.ndim; i++) {
        const char *at = strchr(dims, wanted[i]);
        MUST(out.shape[i] == (at ? a.shape[at - dims] : 1));
        if (at) MUST(out.strides[i] == a.strides[at - dims]);
    }
}

/** The domain of fields is the smallest extent of each axis without its halo. */
static void check_domains(source *in)
{
    static cai_array arrays[3];
    cai_grid_field fields[3];
    int64_t halos[3][2][8], extents[8], before[8];
    const int32_t count = 1 + pick(in, 3);
    const char *dims = choose_dims(in, 1 + pick(in, 4));
    cai_error err;
    cai_status status;
    int32_t i, j;
    memset(fields, 0, sizeof fields);
    for (i = 0; i < count; i++) {
        if (!choose_array(in, &arrays[i])) return;
        fields[i].array = &arrays[i];
        fields[i].dims = choose_dims(in, arrays[i].ndim);
        for (j = 0; j < 8; j++) halos[i][0][j] = pick(in, 3);
        for (j = 0; j < 8; j++) halos[i][1][j] = pick(in, 32) < 31 ? 0 : any_number(in);
        if (pick(in, 2)) fields[i].halo_low = halos[i][0];
        if (pick(in, 2)) fields[i].halo_high = halos[i][1];
    }
    memset(extents, FILL, sizeof extents);
    memcpy(before, extents, sizeof before);
    memset(&err, FILL, sizeof err);
    status = cai_domain_of(fields, count, dims, extents, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(memcmp(extents, before, sizeof before) == 0);
    if (status != CAI_OK) return;
    for (j = 0; dims[j]; j++) {
        int64_t least = INT64_MAX;
        for (i = 0; i < count; i++) {
            const char *at = strchr(fields[i].dims, dims[j]);
            const int64_t axis = at ? at - fields[i].dims : 0;
            int64_t halo = fields[i].halo_low ? halos[i][0][axis] : 0;
            if (fields[i].halo_high) halo += at ? halos[i][1][axis] : 0;
            if (at && arrays[i].shape[axis] - halo < least) least = arrays[i].shape[axis] - halo;
        }
        MUST(extents[j] == least && least >= 0);
    }
}

/* --------------------------------------------------------------- >>tensor maps */

static void choose_tile(source *in, const cai_array *a, cai_tensor_tile *tile)
{
    static const int32_t boxes[] = {16, 32, 64, 128, 256, 8, 4, 1, 2, 257, 0, 127};
    const uint32_t choice = take(in);
    int32_t i;
    memset(tile, 0, sizeof *tile);
    for (i = 0; i < 5 && i < a->ndim; i++) tile->box[i] = boxes[pick(in, 12)];
    if (choice & 1) tile->swizzle = pick(in, 7);
    if (choice & 2) tile->steps[pick(in, 5)] = pick(in, 10);
    if (choice & 4) tile->interleave = pick(in, 3);
    if (choice & 8) tile->type = pick(in, 18);
    if (choice & 16) tile->l2_promotion = pick(in, 5);
    if (choice & 32) tile->fill = pick(in, 3);
    if (choice >= 192 && cai_dtype_values(&a->dtype) > 1) tile->type = 13 + pick(in, 3);
    if (choice < 248) return;
    i = (int32_t)any_number(in);
    switch (choice & 7) {
    case 0: tile->box[pick(in, 5)] = i; break;
    case 1: tile->steps[pick(in, 5)] = i; break;
    case 2: tile->type = i; break;
    case 3: tile->interleave = i; break;
    case 4: tile->swizzle = i; break;
    case 5: tile->l2_promotion = i; break;
    default: tile->fill = i; break;
    }
}

/** The plan has the arguments that the document's words have. */
JUDGE static void check_map(const cai_tensor_map_plan *plan, const world_call *call)
{
    uint64_t elements = 1;
    uint32_t i;
    MUST(plan->rank == call->rank && plan->address == call->address && plan->type == call->type);
    MUST(plan->interleave == call->interleave && plan->swizzle == call->swizzle);
    MUST(plan->l2_promotion == call->l2_promotion && plan->fill == call->oob_fill);
    for (i = 0; i < 5; i++) {
        MUST(plan->dims[i] == (i < plan->rank ? call->dim[i] : 0));
        MUST(plan->box[i] == (i < plan->rank ? call->box[i] : 0));
        MUST(plan->steps[i] == (i < plan->rank ? call->element_strides[i] : 0));
        if (i < 4) MUST(plan->strides[i] == (i + 1 < plan->rank ? call->strides[i] : 0));
        if (i && i < plan->rank) elements *= (plan->box[i] + plan->steps[i] - 1) / plan->steps[i];
    }
    if (plan->interleave) MUST(plan->box_bytes == 0);
    else if (world_wide(call)) MUST(plan->box_bytes == elements * plan->box[0]);
    else MUST(plan->box_bytes == elements * plan->box[0] * world_bits(call->type) / 8);
}

/** A column of the modes of a tile. Corners are near the bounds of the document, or of the box. */
static void choose_column(source *in, const cai_array *a, const cai_tensor_tile *same, cai_im2col_tile *tile)
{
    static const int32_t corners[] = {0, -1, 1, -16, 15, -17, 16, -128, 127, -129, 128, -32768, 32767, -32769, 32768};
    static const int32_t pixels[] = {64, 1, 1024, 1025, 0, 256, -1};
    const uint32_t choice = take(in);
    int32_t at, last = a->ndim - 2;
    memset(tile, 0, sizeof *tile);
    column_take(tile, same, a->ndim);
    tile->pixels = pixels[pick(in, 7)];
    for (at = 0; at < 3 && (at < last || choice >= 240); at++) {
        if (choice & 1) tile->lower[at] = corners[pick(in, 15)];
        if (choice & 2) tile->upper[at] = corners[pick(in, 15)];
        if (choice & 4) tile->steps[at] = pick(in, 10);
        if (choice & 8 && at < last) tile->upper[at] = tile->lower[at] - (int32_t)(a->shape[at + 1] & 255) + pick(in, 3);
    }
    if (choice < 248) return;
    if (choice & 1) tile->lower[pick(in, 3)] = (int32_t)any_number(in);
    else if (choice & 2) tile->upper[pick(in, 3)] = (int32_t)any_number(in);
    else if (choice & 4) tile->steps[pick(in, 3)] = (int32_t)any_number(in);
    else tile->channels = (int32_t)any_number(in), tile->pixels = (int32_t)any_number(in);
}

static void check_im2col_map(source *in, const cai_array *a, const cai_tensor_tile *same)
{
    cai_im2col_tile tile;
    cai_im2col_map_plan plan;
    column_call call;
    cai_error err;
    cai_status status;
    const char *why = "not 3 to 5 dimensions";
    memset(&tile, 0, sizeof tile);
    if (a->ndim >= 3 && a->ndim <= 5) {
        choose_column(in, a, same, &tile);
        why = column_call_of(a, &tile, &call);
        if (!why && column_broken(&call) != -1) why = "a sentence of the document";
    }
    memset(&plan, FILL, sizeof plan);
    memset(&err, FILL, sizeof err);
    status = cai_im2col_map_of(a, &tile, &plan, &err);
    check_error(status, &err);
    MUST((status == CAI_OK) == !why);
    if (status == CAI_OK) MUST(!column_difference(&plan, &call));
    else MUST(is_untouched(&plan, sizeof plan) && (status == CAI_ERR_EXPECT || status == CAI_ERR_ARGUMENT));
}

static void check_tensor_map(source *in)
{
    cai_array a;
    cai_tensor_tile tile;
    cai_tensor_map_plan plan;
    world_call call;
    cai_error err;
    cai_status status;
    const char *why;
    size_t i;
    if (!choose_array(in, &a)) return;
    choose_tile(in, &a, &tile);
    why = world_call_of(&a, &tile, &call);
    for (i = 0; i < sizeof world_document / sizeof *world_document && !why; i++)
        if (!world_document[i].holds(&call)) why = world_document[i].text;
    memset(&plan, FILL, sizeof plan);
    memset(&err, FILL, sizeof err);
    status = cai_tensor_map_of(&a, &tile, &plan, &err);
    check_error(status, &err);
    MUST((status == CAI_OK) == !why);
    if (status == CAI_OK) check_map(&plan, &call);
    else MUST(is_untouched(&plan, sizeof plan) && (status == CAI_ERR_EXPECT || status == CAI_ERR_ARGUMENT));
    check_im2col_map(in, &a, &tile);
}

/* -------------------------------------------------------------------- >>scales */

static void choose_scaled(source *in, const cai_array *data, cai_scaled *x)
{
    static const int32_t blocks[] = {1, 2, 3, 16, 32, 128};
    const uint32_t choice = take(in);
    memset(x, 0, sizeof *x);
    x->data = data;
    x->axis = data->ndim ? pick(in, (uint32_t)data->ndim) - (choice & 1 ? data->ndim : 0) : 0;
    if (choice & 2) x->axis = -1;
    x->block = blocks[pick(in, 6)];
    x->rows = choice & 4 ? blocks[pick(in, 6)] : 1;
    x->layout = choice >> 3 & 1;
    if (choice < 244) return;
    if (choice & 1) x->axis = (int32_t)any_number(in);
    if (choice & 2) x->block = (int32_t)any_number(in);
    if (choice & 4) x->rows = (int32_t)any_number(in);
    if (choice & 8) x->layout = (int32_t)any_number(in);
}

/** The shape of the scales, in 128 bits; 0 if the fields do not fit, -1 if there are too many. */
JUDGE static int scales_of(const cai_scaled *x, wide *shape)
{
    const cai_array *a = x->data;
    const int32_t axis = x->axis < 0 ? x->axis + a->ndim : x->axis;
    const int matrix = x->layout == 1 || x->rows > 1;
    const int32_t row = a->ndim < 2 ? -1 : axis == a->ndim - 1 ? a->ndim - 2 : a->ndim - 1;
    wide all = 1;
    int32_t i;
    if (x->layout < 0 || x->layout > 1 || x->block < 1 || x->rows < 1 || (x->layout == 1 && x->rows > 1)) return 0;
    if (axis < 0 || axis >= a->ndim || (matrix && (a->ndim < 2 || axis < a->ndim - 2))) return 0;
    for (i = 0; i < a->ndim; i++) {
        const wide extent = value_extent(a, i), per = i == axis ? x->block : i == row ? x->rows : 1;
        shape[i] = (extent + per - 1) / per;
    }
    if (x->layout == 1) {
        const wide rows = (shape[row] + 127) / 128 * 128, blocks = (shape[axis] + 3) / 4 * 4;
        shape[a->ndim - 2] = rows;
        shape[a->ndim - 1] = blocks;
        if (rows > INT64_MAX || blocks > INT64_MAX) return -1;
    }
    for (i = 0; i < a->ndim; i++) all = product(all, shape[i] ? shape[i] : 1);
    return all > INT64_MAX ? -1 : 1;
}

/** Scale (i, j) of the matrix, after cuBLAS: tiles of 128 x 4, in a tile 32 x 4 x 4. */
JUDGE static int64_t tiled(int64_t row, int64_t block, int64_t blocks)
{
    const int64_t tile = row / 128 * ((blocks + 3) / 4) + block / 4;
    return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

JUDGE static void check_scale_map(const cai_scaled *x, const cai_scale_map *map)
{
    const cai_array *a = x->data, *s = x->scales;
    const int32_t axis = x->axis < 0 ? x->axis + a->ndim : x->axis;
    const int32_t other = a->ndim < 2 ? -1 : axis == a->ndim - 1 ? a->ndim - 2 : a->ndim - 1;
    const int64_t rows = other < 0 ? 1 : value_extent(a, other), columns = value_extent(a, axis);
    const int64_t batches = a->ndim == 3 ? a->shape[0] : 1, blocks = (columns - 1) / x->block + 1;
    int64_t i, k, n;
    if (a->size == 0 || rows > 64 || columns > 64 || batches > 4) return;
    for (n = 0; n < batches; n++) for (i = 0; i < rows; i++) for (k = 0; k < columns; k++) {
        const int64_t at = n * map->batch_stride + cai_scale_offset(map, i, k);
        const int64_t tiles = (rows + 127) / 128 * ((blocks + 3) / 4);
        if (x->layout == 1) MUST(at == n * tiles * 512 + tiled(i, k / x->block, blocks));
        else MUST(at == (a->ndim == 3 ? n * s->strides[0] : 0) + k / x->block * s->strides[axis] +
                            (other < 0 ? 0 : i / x->rows * s->strides[other]));
        MUST(at >= s->lo && at + s->dtype.itemsize <= s->hi);
    }
}

static void check_scaled(source *in)
{
    static const int32_t kinds[] = {CAI_FLOAT8_E8M0FNU, CAI_FLOAT8_E4M3FN, CAI_FLOAT32, CAI_UINT8};
    cai_array data, scales;
    cai_scaled x;
    cai_scale_map map;
    cai_dtype dtype;
    cai_error err;
    cai_status status;
    wide shape[CAI_MAX_NDIM];
    int64_t made[8], changed[8];
    int32_t i, verdict;
    if (!choose_array(in, &data)) return;
    choose_scaled(in, &data, &x);
    verdict = scales_of(&x, shape);
    memset(made, FILL, sizeof made);
    memset(&err, FILL, sizeof err);
    status = cai_scales_shape(&x, made, &err);
    check_error(status, &err);
    MUST(status == CAI_OK ? verdict == 1 : verdict == -1 ? status == CAI_ERR_SHAPE : verdict == 0);
    if (status != CAI_OK) MUST(is_untouched(made, sizeof made));
    if (status != CAI_OK) return;
    for (i = 0; i < data.ndim; i++) MUST(made[i] == shape[i]);
    memcpy(changed, made, sizeof changed);
    if (data.ndim && pick(in, 8) == 7) changed[pick(in, (uint32_t)data.ndim)] = choose_extent(in);
    MUST(cai_dtype_of(kinds[pick(in, 4)], &dtype, NULL) == CAI_OK);
    if (cai_array_init_dtype(&scales, &dtype, data.ndim, changed, NULL, UINT64_C(0x7e0000000000), NULL)) return;
    if (pick(in, 8) == 7) (void)!cai_view_permute(&scales, NULL, &scales, NULL);
    if (pick(in, 32) == 31) (void)!choose_array(in, &scales);
    if (scales.abi != CAI_ABI) return;
    x.scales = &scales;
    memset(&err, FILL, sizeof err);
    status = cai_expect_scaled(&x, "x", pick(in, 8) < 7 ? pick(in, 5) : (int32_t)any_number(in), pick(in, 4) - 1,
                               pick(in, 4) ? CAI_ANY_AXIS : (int32_t)any_number(in),
                               (uint32_t)CAI_ALLOW_UNALIGNED, &err);
    check_error(status, &err);
    memset(&map, FILL, sizeof map);
    memset(&err, FILL, sizeof err);
    status = cai_scale_map_of(&x, &map, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(is_untouched(&map, sizeof map));
    else check_scale_map(&x, &map);
}

/* ----------------------------------------------------------------- >>transfers */

/** Gives a small array memory of its exact extent; returns whether it did. */
static int make_memory(source *in, cai_array *a, int fill)
{
    const wide bytes = (wide)a->hi - a->lo;
    uint8_t *block;
    int64_t i;
    if (bytes > MOST_BYTES || a->size > MAX_NAIVE) return 0;
    block = (uint8_t *)keep(in, NULL, (size_t)bytes);
    for (i = 0; i < bytes; i++) block[i] = (uint8_t)(fill ? FILL : i * 7 + 3);
    a->data = a->size ? (uint64_t)(uintptr_t)block - (uint64_t)a->lo : 0;
    return 1;
}

static void check_alignment(const cai_transfer *plan, uint64_t bits)
{
    MUST(bits % (uint64_t)plan->alignment == 0);
}

/** Copies by pieces, as CUDA's copies of 1, 2 and 3 dimensions do. */
static void copy_pieces(const cai_transfer *plan)
{
    cai_piece p;
    int64_t i, z, y, bytes = 0;
    for (i = 0; cai_transfer_piece(plan, i, &p); i++) {
        MUST(p.width > 0 && p.height > 0 && p.depth > 0);
        if (p.height > 1) MUST(p.to_pitch >= p.width && p.from_pitch >= p.width);
        if (p.height > 1) MUST(p.to_pitch <= INT32_MAX && p.from_pitch <= INT32_MAX);
        if (p.depth > 1) MUST(p.to_slice % p.to_pitch == 0 && p.to_slice / p.to_pitch >= p.height);
        if (p.depth > 1) MUST(p.from_slice % p.from_pitch == 0 && p.from_slice / p.from_pitch >= p.height);
        check_alignment(plan, p.to | p.from | (uint64_t)p.width);
        for (z = 0; z < p.depth; z++)
            for (y = 0; y < p.height; y++)
                memcpy((void *)(uintptr_t)(p.to + (uint64_t)(z * p.to_slice + y * p.to_pitch)),
                       (void *)(uintptr_t)(p.from + (uint64_t)(z * p.from_slice + y * p.from_pitch)),
                       (size_t)p.width);
        bytes += p.width * p.height * p.depth;
    }
    MUST(i == plan->pieces && bytes == plan->nbytes);
}

/** Each element of `to` has the bytes of that of `from`, and gaps are as they were. */
JUDGE static void check_copied(const cai_array *to, const cai_array *from)
{
    int64_t there[MAX_NAIVE], here[MAX_NAIVE];
    static uint8_t want[MOST_BYTES];
    const int32_t count = element_offsets(to, there);
    const uint8_t *const begin = (const uint8_t *)(uintptr_t)(to->data + (uint64_t)to->lo);
    int32_t i;
    MUST(count == element_offsets(from, here));
    memset(want, FILL, (size_t)(to->hi - to->lo));
    for (i = 0; i < count; i++)
        memcpy(want + (there[i] - to->lo), (const uint8_t *)(uintptr_t)(from->data + (uint64_t)here[i]),
               (size_t)to->dtype.itemsize);
    if (count > 0) MUST(memcmp(want, begin, (size_t)(to->hi - to->lo)) == 0);
}

/** A plan of small arrays copies them by runs, by pieces and at once. */
static void check_copies(source *in, const cai_transfer *plan, const cai_array *to, const cai_array *from)
{
    const size_t bytes = (size_t)(to->hi - to->lo);
    void *const begin = (void *)(uintptr_t)(to->data + (uint64_t)to->lo);
    cai_run *list;
    int64_t first = 0;
    int32_t i, count, room = 1 + pick(in, 4);
    if (to->size == 0) MUST(plan->runs == 0 && plan->pieces == 0);
    copy_pieces(plan);
    check_copied(to, from);
    if (bytes) memset(begin, FILL, bytes);
    cai_transfer_on_host(plan);
    check_copied(to, from);
    if (bytes) memset(begin, FILL, bytes);
    list = (cai_run *)keep(in, NULL, (size_t)room * sizeof *list);
    while ((count = cai_transfer_runs(plan, first, list, room)) > 0) {
        for (i = 0; i < count; i++)
            memcpy((void *)(uintptr_t)list[i].to, (void *)(uintptr_t)list[i].from, (size_t)list[i].nbytes);
        first += count;
    }
    MUST(first == plan->runs && plan->run * plan->runs == plan->nbytes);
    check_copied(to, from);
}

/** Numbers outside of a plan get nothing, however large the arrays are. */
static void check_edges(source *in, const cai_transfer *plan)
{
    const int64_t index = any_number(in);
    cai_run run;
    cai_piece piece;
    memset(&run, FILL, sizeof run);
    memset(&piece, FILL, sizeof piece);
    MUST(cai_transfer_runs(plan, index, &run, 1) == (index >= 0 && index < plan->runs));
    MUST(cai_transfer_piece(plan, index, &piece) == (index >= 0 && index < plan->pieces));
    MUST(plan->ndim >= 0 && plan->ndim <= CAI_MAX_NDIM && plan->pieces <= plan->runs);
    MUST((plan->alignment & (plan->alignment - 1)) == 0 && plan->alignment >= 1 && plan->alignment <= 256);
    if (plan->runs) MUST((wide)plan->run * plan->runs == plan->nbytes);
}

/** The same elements in other strides, in other memory. */
static int choose_twin(source *in, const cai_array *a, cai_array *twin)
{
    int64_t strides[CAI_MAX_NDIM];
    choose_strides(in, a->ndim, a->shape, a->dtype.itemsize, strides);
    return !cai_array_init_dtype(twin, &a->dtype, a->ndim, a->shape, strides, UINT64_C(0x7d0000000000), NULL);
}

static void check_transfer_plan(source *in)
{
    cai_array from, to;
    cai_transfer plan;
    cai_error err;
    cai_status status;
    int small, undecided;
    if (!choose_array(in, &from)) return;
    if (!choose_twin(in, &from, &to)) return;
    if (pick(in, 8) == 7) (void)!choose_array(in, &to);
    if (to.abi != CAI_ABI) return;
    small = make_memory(in, &from, 0) && make_memory(in, &to, 1);
    undecided = !(to.flags & CAI_NO_SELF_OVERLAP) || cai_overlap(&to, &from) != CAI_OVERLAP_NO;
    memset(&plan, FILL, sizeof plan);
    memset(&err, FILL, sizeof err);
    status = cai_transfer_plan(&plan, &to, &from, &err);
    check_error(status, &err);
    if (status != CAI_OK) MUST(status == CAI_ERR_EXPECT && is_untouched(&plan, sizeof plan));
    if (status != CAI_OK) MUST(undecided || !(to.flags & CAI_WRITABLE) || !same_values(&to, &from) ||
                               to.dtype.itemsize != from.dtype.itemsize);
    if (status != CAI_OK) return;
    MUST(same_shape(&to, &from) && !undecided);
    check_edges(in, &plan);
    if (small) check_copies(in, &plan, &to, &from);
}

static void check_transfer_buffer(source *in)
{
    const int unpacks = pick(in, 2);
    cai_array a, line;
    cai_transfer plan;
    cai_error err;
    cai_status status;
    int small;
    if (!choose_array(in, &a)) return;
    if (cai_array_init_dtype(&line, &a.dtype, a.ndim, a.shape, NULL, 4096, NULL) != CAI_OK) return;
    small = make_memory(in, &a, unpacks) && make_memory(in, &line, !unpacks);
    if (!small && pick(in, 2)) line.data = (uint64_t)any_number(in);
    memset(&plan, FILL, sizeof plan);
    memset(&err, FILL, sizeof err);
    status = unpacks ? cai_transfer_unpack(&plan, &a, line.data, &err)
                     : cai_transfer_pack(&plan, &a, line.data, &err);
    check_error(status, &err);
    if (status != CAI_OK) {
        MUST(is_untouched(&plan, sizeof plan));
        if (small) MUST(unpacks && (!(a.flags & CAI_WRITABLE) || !(a.flags & CAI_NO_SELF_OVERLAP)));
        return;
    }
    check_edges(in, &plan);
    if (small) check_copies(in, &plan, unpacks ? &a : &line, unpacks ? &line : &a);
}

/* ------------------------------------------------------------------------------ */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(source *in) = {
        check_layout_plan, check_tensor_map, check_scaled, check_transfer_plan, check_transfer_buffer,
        check_init_packed, check_small_view, check_dims, check_domains};
    static source in;
    if (size > 4096) return 0;
    in.bytes = data;
    in.left = size;
    in.block_count = 0;
    checks[take(&in) % (sizeof checks / sizeof checks[0])](&in);
    free_blocks(&in);
    return 0;
}
