/* test_views.c - every view against the addresses of its elements.
 * SPDX-License-Identifier: MIT
 *
 * For many small arrays, each view is compared element by element with what an index formula
 * says of the array's elements, its facts with a count of its bytes, and a refusal with a search
 * that shows that no such view exists. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

static cai_array a;   /* the array under test */
static cai_array out; /* its view */
static cai_error err;
static uint64_t elements[HELP_ELEMENTS]; /* of a, in C order */
static uint64_t expected[HELP_ELEMENTS]; /* of the view, in C order */
static int64_t seen_views, seen_refusals;

/* ------------------------------------------------------------------ arrays */

static void describe(const cai_array *array, const char *what)
{
    char text[300];
    int32_t i, at = sprintf(text, "%s of %d bytes:", what, (int)array->dtype.itemsize);
    for (i = 0; i < array->ndim; i++) {
        at += sprintf(text + at, " %lldx%lld", (long long)array->shape[i],
                      (long long)array->strides[i]);
    }
    cai_test_note(text);
}

/* What no view has: the event and the free stay with the owner. */
static const uint32_t owners_flags = CAI_OWN_EVENT | CAI_ORDERED_FREE;

static void set_array(int32_t code, int32_t ndim, const int64_t *shape, const int64_t *strides,
                      uint64_t data)
{
    cai_dtype dtype;
    CHECK_INT(cai_dtype_of(code, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&a, &dtype, ndim, shape, strides, data, NULL), CAI_OK);
    a.sync = CAI_SYNC_STREAM;
    a.stream = 7;
    a.thread = 9;
    a.device = 3;
    a.memory = CAI_MEMORY_MANAGED;
    a.version = 2;
    a.flags |= CAI_NO_BACK_EDGE | owners_flags;
    help_addresses(&a, elements);
}

/* Address of the element with an index. */
static uint64_t at_index(const int64_t *index)
{
    int64_t number = 0;
    int32_t i;
    for (i = 0; i < a.ndim; i++) number = number * a.shape[i] + index[i];
    return elements[number];
}

static int64_t product(const int64_t *shape, int32_t ndim)
{
    int64_t result = 1;
    int32_t i;
    for (i = 0; i < ndim; i++) result *= shape[i];
    return result;
}

/* ------------------------------------------------------------------ verdicts */

/* The same layout described anew has the same facts. */
static void check_described_anew(void)
{
    const uint32_t inherited = CAI_WRITABLE | CAI_HAD_STRIDES | CAI_FUTURE_VERSION | CAI_NO_BACK_EDGE;
    cai_array again;
    CHECK_INT(cai_array_init_dtype(&again, &out.dtype, out.ndim, out.shape, out.strides, out.data,
                                   NULL), CAI_OK);
    CHECK_UINT(out.flags & ~inherited, again.flags & ~inherited);
    CHECK_INT(out.size, again.size);
    CHECK_INT(out.nbytes, again.nbytes);
    CHECK_INT(out.lo, again.lo);
    CHECK_INT(out.hi, again.hi);
}

static void check_inherited(uint32_t writable)
{
    CHECK_UINT(out.abi, CAI_ABI);
    CHECK(out.release == NULL && out.owner == NULL && out.mask == NULL && out.fields == NULL);
    CHECK_INT(out.sync, a.sync);
    CHECK_UINT(out.stream, a.stream);
    CHECK_UINT(out.thread, a.thread);
    CHECK_INT(out.device, a.device);
    CHECK_INT(out.memory, a.memory);
    CHECK_INT(out.version, a.version);
    CHECK_UINT(out.flags & CAI_WRITABLE, writable);
    CHECK_UINT(out.flags & CAI_NO_BACK_EDGE, a.flags & CAI_NO_BACK_EDGE);
}

/* A view was made: shape, addresses, facts. `expected` has count addresses. */
static void check_view(cai_status status, int32_t ndim, const int64_t *shape, int64_t count,
                       uint32_t writable)
{
    static uint64_t found[HELP_ELEMENTS];
    seen_views++;
    if (!CHECK_INT(status, CAI_OK)) return;
    if (!CHECK_INT(out.ndim, ndim)) return;
    CHECK_BYTES(out.shape, shape, (size_t)ndim * 8);
    CHECK_INT(help_addresses(&out, found), count);
    if (count > 0 && memcmp(found, expected, (size_t)count * 8) != 0) {
        CHECK_BYTES(found, expected, (size_t)count * 8);
    }
    check_inherited(writable);
    check_described_anew();
    if (seen_views % 7 == 0) help_check_facts(&out);
    help_fill(&out, sizeof out);
}

static void check_refused(cai_status status, cai_status wanted, int32_t index)
{
    seen_refusals++;
    CHECK_INT(status, wanted);
    CHECK_INT(err.code, wanted);
    CHECK_INT(err.index, index);
    if (!CHECK(help_filled(&out, sizeof out))) help_fill(&out, sizeof out);
}

/* ------------------------------------------------------------------ permute */

static void check_permutation(const int32_t *axes, const int32_t *given)
{
    int64_t shape[4], index[4] = {0}, source[4], count = 0;
    int32_t i;
    for (i = 0; i < a.ndim; i++) shape[i] = a.shape[axes[i]];
    if (a.size > 0) {
        do {
            for (i = 0; i < a.ndim; i++) source[axes[i]] = index[i];
            expected[count++] = at_index(source);
        } while (help_next(index, shape, a.ndim));
    }
    check_view(cai_view_permute(&a, given, &out, &err), a.ndim, shape, count, CAI_WRITABLE);
}

static void check_permute(void)
{
    int32_t axes[4], negative[4], i, k, number, total = 1;
    for (i = 0; i < a.ndim; i++) total *= a.ndim;
    for (number = 0; number < total; number++) {
        int32_t rest = number, twice = 0;
        for (i = 0; i < a.ndim; i++, rest /= a.ndim) axes[i] = rest % a.ndim;
        for (i = 0; i < a.ndim; i++) {
            negative[i] = i % 2 ? axes[i] : axes[i] - a.ndim;
            for (k = 0; k < i; k++) twice = axes[i] == axes[k] && !twice ? i : twice;
        }
        if (twice) {
            check_refused(cai_view_permute(&a, axes, &out, &err), CAI_ERR_VIEW, twice);
        } else {
            check_permutation(axes, axes);
            check_permutation(axes, negative);
        }
    }
    for (i = 0; i < a.ndim; i++) axes[i] = a.ndim - 1 - i;
    check_permutation(axes, NULL);
    for (i = 0; i < a.ndim; i++) {
        axes[i] = a.ndim;
        CHECK_INT(cai_view_permute(&a, axes, &out, &err), CAI_ERR_VIEW);
        axes[i] = -a.ndim - 1;
        CHECK_INT(cai_view_permute(&a, axes, &out, &err), CAI_ERR_VIEW);
        CHECK(help_filled(&out, sizeof out));
        axes[i] = a.ndim - 1 - i;
    }
}

/* ------------------------------------------------------------------ slice, index */

static void check_slice_of(int32_t axis, int64_t start, int64_t count, int64_t step)
{
    int64_t shape[4], index[4] = {0}, source[4], number = 0, last = start + (count - 1) * step;
    int32_t i, given = start % 2 ? axis : axis - a.ndim;
    int exists = count == 0 || (start >= 0 && start < a.shape[axis] && last >= 0 &&
                                last < a.shape[axis]);
    cai_status status = cai_view_slice(&a, given, start, count, step, &out, &err);
    if (count == 0 && (start < 0 || start > a.shape[axis])) { /* either is right */
        help_fill(&out, sizeof out);
        return;
    }
    if (!exists || step == 0 || count < 0) {
        check_refused(status, CAI_ERR_VIEW, axis);
        return;
    }
    memcpy(shape, a.shape, sizeof shape);
    shape[axis] = count;
    if (product(shape, a.ndim) > 0) {
        do {
            for (i = 0; i < a.ndim; i++) source[i] = index[i];
            source[axis] = start + index[axis] * step;
            expected[number++] = at_index(source);
        } while (help_next(index, shape, a.ndim));
    }
    check_view(status, a.ndim, shape, number, CAI_WRITABLE);
}

static void check_slice(void)
{
    int64_t start, count, step;
    int32_t axis;
    for (axis = 0; axis < a.ndim; axis++) {
        for (start = -1; start <= a.shape[axis]; start++) {
            for (count = -1; count <= a.shape[axis] + 1; count++) {
                for (step = -3; step <= 3; step++) check_slice_of(axis, start, count, step);
            }
        }
    }
    CHECK_INT(cai_view_slice(&a, a.ndim, 0, 0, 1, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, -a.ndim - 1, 0, 0, 1, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

static void check_index_of(int32_t axis, int64_t given)
{
    int64_t shape[4] = {0}, index[4] = {0}, source[4], number = 0, extent = a.shape[axis];
    int32_t i, signed_axis = given % 2 ? axis : axis - a.ndim;
    cai_status status = cai_view_index(&a, signed_axis, given, &out, &err);
    if (given < -extent || given >= extent) {
        check_refused(status, CAI_ERR_VIEW, axis);
        return;
    }
    for (i = 0; i < a.ndim - 1; i++) shape[i] = a.shape[i + (i >= axis)];
    if (product(shape, a.ndim - 1) > 0) {
        do {
            for (i = 0; i < a.ndim; i++) source[i] = i < axis ? index[i] : i ? index[i - 1] : 0;
            source[axis] = given < 0 ? given + extent : given;
            expected[number++] = at_index(source);
        } while (help_next(index, shape, a.ndim - 1));
    }
    check_view(status, a.ndim - 1, shape, number, CAI_WRITABLE);
}

static void check_index(void)
{
    int64_t index;
    int32_t axis;
    for (axis = 0; axis < a.ndim; axis++) {
        for (index = -6; index <= 6; index++) check_index_of(axis, index);
        check_index_of(axis, INT64_MIN);
        check_index_of(axis, INT64_MAX);
    }
    CHECK_INT(cai_view_index(&a, a.ndim, 0, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_index(&a, -a.ndim - 1, 0, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

/* ------------------------------------------------------------------ expand */

/* Neither changes the order of elements. */
static void check_same_elements(cai_status status, int32_t ndim, const int64_t *shape)
{
    memcpy(expected, elements, sizeof expected[0] * (size_t)a.size);
    check_view(status, ndim, shape, a.size, CAI_WRITABLE);
}

static void check_expand(void)
{
    int64_t shape[5];
    int32_t axis, i;
    for (axis = -a.ndim - 1; axis <= a.ndim; axis++) {
        int32_t at = axis < 0 ? axis + a.ndim + 1 : axis;
        for (i = 0; i <= a.ndim; i++) shape[i] = i == at ? 1 : a.shape[i - (i > at)];
        check_same_elements(cai_view_expand(&a, axis, &out, &err), a.ndim + 1, shape);
    }
    CHECK_INT(cai_view_expand(&a, a.ndim + 1, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_expand(&a, -a.ndim - 2, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

/* ------------------------------------------------------------------ broadcast */

static void check_broadcast_to(int32_t ndim, const int64_t *shape)
{
    int64_t index[6] = {0}, source[4], number = 0;
    int32_t i, lead = ndim - a.ndim, bad = -1, repeated = 0;
    cai_status status = cai_view_broadcast(&a, ndim, shape, &out, &err);
    for (i = 0; i < ndim; i++) {
        int64_t extent = i < lead ? 1 : lead >= 0 ? a.shape[i - lead] : 0;
        if (lead >= 0 && extent != shape[i] && extent != 1) bad = i;
        repeated |= extent == 1 && shape[i] > 1;
    }
    if (lead < 0 || bad >= 0) {
        seen_refusals++;
        CHECK_INT(status, CAI_ERR_VIEW);
        CHECK(lead < 0 || err.index >= 0);
        CHECK(help_filled(&out, sizeof out));
        return;
    }
    if (product(shape, ndim) > 0) {
        do {
            for (i = 0; i < a.ndim; i++) source[i] = a.shape[i] == 1 ? 0 : index[i + lead];
            expected[number++] = at_index(source);
        } while (help_next(index, shape, ndim));
    }
    if (status == CAI_OK && product(shape, ndim) == 0) repeated = !(out.flags & CAI_WRITABLE);
    check_view(status, ndim, shape, number, repeated ? 0 : CAI_WRITABLE);
}

/* The shape of a and of a second array, in either order, is the smallest one that both have a view of. */
static void check_broadcast_both(int32_t ndim, const int64_t *shape)
{
    const cai_array first = a;
    int64_t joint[2][CAI_MAX_NDIM], other[6] = {0};
    int32_t i, order, longest = ndim > a.ndim ? ndim : a.ndim, good = 1;
    cai_array second, view;
    for (i = 0; i < longest; i++) { /* the extents in the order of the axes from the last */
        const int64_t x = i < a.ndim ? a.shape[a.ndim - 1 - i] : 1, y = i < ndim ? shape[ndim - 1 - i] : 1;
        good &= x == y || x == 1 || y == 1;
        other[longest - 1 - i] = x == 1 ? y : x;
    }
    CHECK_INT(cai_array_init_dtype(&second, &a.dtype, ndim, shape, NULL, 4096, NULL), CAI_OK);
    for (order = 0; order < 2; order++) {
        int32_t found = 0;
        CHECK_INT(cai_broadcast_shape(order ? &second : &first, "x", &found, joint[order], &err), CAI_OK);
        CHECK_INT(cai_broadcast_shape(order ? &first : &second, "y", &found, joint[order], &err),
                  good ? CAI_OK : CAI_ERR_EXPECT);
        CHECK_INT(found, good ? longest : order ? ndim : a.ndim);
        if (!good) continue;
        CHECK(memcmp(joint[order], other, (size_t)longest * sizeof *other) == 0);
        CHECK_INT(cai_view_broadcast(&first, found, joint[order], &view, &err), CAI_OK);
        CHECK_INT(cai_view_broadcast(&second, found, joint[order], &view, &err), CAI_OK);
    }
}

static void check_broadcast(void)
{
    int64_t shape[6] = {0};
    int k;
    int32_t i, ndim;
    check_broadcast_to(a.ndim, a.shape);
    for (k = 0; k < 12; k++) {
        ndim = a.ndim + (int32_t)help_between(k % 4 == 0 && a.ndim > 0 ? -1 : 0, 2);
        for (i = 0; i < ndim; i++) {
            int64_t extent = i < ndim - a.ndim ? 1 : a.shape[i - (ndim - a.ndim)];
            shape[i] = extent == 1 ? help_between(0, 3) : extent;
            if (help_between(0, 9) == 0) shape[i] = help_between(0, 3);
        }
        check_broadcast_to(ndim, shape);
        check_broadcast_both(ndim, shape);
    }
    shape[0] = -1;
    CHECK_INT(cai_view_broadcast(&a, a.ndim + 1, shape, &out, &err),
              a.ndim == 0 ? CAI_ERR_SHAPE : cai_view_broadcast(&a, a.ndim + 1, shape, &out, NULL));
    CHECK(cai_view_broadcast(&a, 65, shape, &out, &err) != CAI_OK);
    CHECK(cai_view_broadcast(&a, -1, shape, &out, &err) != CAI_OK);
    CHECK(help_filled(&out, sizeof out));
}

/* ------------------------------------------------------------------ reshape */

/* Do the elements in C order have a constant stride along every axis of a shape? */
static int is_affine(const int64_t *shape, int32_t ndim)
{
    uint64_t step[8];
    int64_t index[8] = {0}, number = 0, unit = 1;
    int32_t i;
    for (i = ndim; i-- > 0; unit *= shape[i]) {
        step[i] = shape[i] > 1 ? elements[unit] - elements[0] : 0;
    }
    do {
        uint64_t at = elements[0];
        for (i = 0; i < ndim; i++) at += (uint64_t)index[i] * step[i];
        if (at != elements[number++]) return 0;
    } while (help_next(index, shape, ndim));
    return 1;
}

static void check_reshape_to(const int64_t *shape, int32_t ndim, const int64_t *given)
{
    cai_status status = cai_view_reshape(&a, ndim, given, &out, seen_refusals % 2 ? &err : NULL);
    if (a.size == 0 || is_affine(shape, ndim)) {
        check_same_elements(status, ndim, shape);
        return;
    }
    seen_refusals++;
    CHECK_INT(status, CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

/* All ways to write the rest of the size as axes of a shape, each axis also as -1. */
static void reshape_all(int64_t *shape, int32_t axis, int32_t ndim, int64_t rest)
{
    int64_t extent, given[6];
    int32_t i;
    if (axis == ndim) {
        if (rest != 1) return;
        check_reshape_to(shape, ndim, shape);
        for (i = 0; i < ndim; i++) {
            memcpy(given, shape, sizeof given);
            given[i] = -1;
            check_reshape_to(shape, ndim, given);
        }
        return;
    }
    for (extent = 1; extent <= rest; extent++) {
        if (rest % extent) continue;
        shape[axis] = extent;
        reshape_all(shape, axis + 1, ndim, rest / extent);
    }
}

static void check_reshape_empty(void)
{
    const int64_t good[][3] = {{0, 3, 2}, {2, 0, 1}, {0, 0, 0}, {1, 1, 0}};
    const int64_t bad[][3] = {{1, 2, 3}, {1, 1, 1}, {-1, 0, 2}, {0, -1, 0}};
    const int64_t inferred[3] = {-1, 2, 3}, empty[3] = {0, 2, 3};
    int i;
    for (i = 0; i < 4; i++) {
        check_reshape_to(good[i], 3, good[i]);
        CHECK_INT(cai_view_reshape(&a, 3, bad[i], &out, &err), CAI_ERR_VIEW);
        CHECK(help_filled(&out, sizeof out));
    }
    check_reshape_to(empty, 3, inferred);
    CHECK_INT(cai_view_reshape(&a, 0, NULL, &out, &err), CAI_ERR_VIEW);
}

static void check_reshape(void)
{
    int64_t shape[6] = {0}, wrong[2] = {1, 1};
    int32_t ndim, most = a.size > 60 ? 2 : a.size > 16 ? 3 : 4;
    check_reshape_to(a.shape, a.ndim, a.shape);
    if (a.size == 0) {
        check_reshape_empty();
        return;
    }
    for (ndim = 0; ndim <= most; ndim++) reshape_all(shape, 0, ndim, a.size);
    wrong[0] = a.size + 1;
    CHECK_INT(cai_view_reshape(&a, 2, wrong, &out, &err), CAI_ERR_VIEW);
    wrong[0] = 0;
    CHECK_INT(cai_view_reshape(&a, 2, wrong, &out, &err), CAI_ERR_VIEW);
    wrong[0] = wrong[1] = -1;
    CHECK(cai_view_reshape(&a, 2, wrong, &out, &err) != CAI_OK);
    wrong[0] = -2;
    wrong[1] = 1;
    CHECK_INT(cai_view_reshape(&a, 2, wrong, &out, &err), CAI_ERR_SHAPE);
    wrong[0] = (int64_t)1 << 62;
    wrong[1] = (int64_t)1 << 62;
    CHECK(cai_view_reshape(&a, 2, wrong, &out, &err) != CAI_OK);
    wrong[1] = -1;
    CHECK(cai_view_reshape(&a, 2, wrong, &out, NULL) != CAI_OK);
    wrong[0] = a.size + 1;
    CHECK_INT(cai_view_reshape(&a, 2, wrong, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

/* ------------------------------------------------------------------ coalesce */

/* The fewest axes that visit the elements: over all shapes of extents above 1. */
static int fits(int64_t *shape, int32_t axis, int32_t ndim, int64_t rest)
{
    int64_t extent;
    if (axis == ndim) return rest == 1 && is_affine(shape, ndim);
    for (extent = 2; extent <= rest; extent++) {
        if (rest % extent) continue;
        shape[axis] = extent;
        if (fits(shape, axis + 1, ndim, rest / extent)) return 1;
    }
    return 0;
}

static void check_coalesce(void)
{
    int64_t shape[8];
    int32_t fewest = 0;
    CHECK_INT(cai_view_coalesce(&a, &out, &err), CAI_OK);
    if (a.size == 0) {
        fewest = 1;
        shape[0] = 0;
    } else {
        while (!fits(shape, 0, fewest, a.size)) fewest++;
        memcpy(shape, out.shape, sizeof shape);
    }
    CHECK_INT(out.ndim, fewest);
    check_same_elements(cai_view_coalesce(&a, &out, &err), fewest, shape);
}

/* ------------------------------------------------------------------ reinterpret */

/* Bytes that the elements cover, in C order, as a list of addresses of pieces of `size`. */
static int64_t pieces(int64_t size, uint64_t *to)
{
    const int64_t item = a.dtype.itemsize;
    int64_t i, k, count = 0;
    for (i = 0; i < a.size; i++) {
        for (k = 0; k < item; k++) {
            if ((i * item + k) % size == 0) to[count++] = elements[i] + (uint64_t)k;
        }
    }
    return count;
}

static void check_reinterpret_as(const cai_dtype *dtype)
{
    const int64_t item = a.dtype.itemsize, size = dtype->itemsize;
    int64_t shape[4], count, row;
    cai_status status = cai_view_reinterpret(&a, dtype, &out, &err);
    int32_t last = a.ndim - 1;
    memcpy(shape, a.shape, sizeof shape);
    if (item != size) {
        int contiguous = a.ndim > 0 && (a.shape[last] == 1 || a.strides[last] == item ||
                                        a.size == 0);
        row = a.ndim > 0 ? a.shape[last] * item : 0;
        if (!contiguous || row % size != 0) {
            seen_refusals++;
            CHECK_INT(status, CAI_ERR_VIEW);
            CHECK(help_filled(&out, sizeof out));
            return;
        }
        shape[last] = row / size;
    }
    count = pieces(size, expected);
    if (status == CAI_OK) CHECK_BYTES(&out.dtype, dtype, sizeof *dtype);
    check_view(status, a.ndim, shape, count, CAI_WRITABLE);
}

static void check_reinterpret(void)
{
    const char *const typestrs[] = {"|u1", "@u2", "`i4", "@c8", "|V3", "@f4", "|V6", "`M8[3ns]",
                                    "@U2", "|S5", "@f8", "@c16"};
    cai_dtype dtype;
    size_t i;
    for (i = 0; i < sizeof typestrs / sizeof typestrs[0]; i++) {
        dtype = help_dtype(typestrs[i]);
        check_reinterpret_as(&dtype);
    }
    CHECK_INT(cai_dtype_of(CAI_BFLOAT16, &dtype, NULL), CAI_OK);
    check_reinterpret_as(&dtype);
    dtype = help_dtype("|t8");
    CHECK_INT(cai_view_reinterpret(&a, &dtype, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
}

/* ------------------------------------------------------------------ all of them */

static void check_all(int thorough)
{
    describe(&a, "permute");
    check_permute();
    describe(&a, "slice");
    if (thorough) check_slice();
    describe(&a, "index");
    check_index();
    describe(&a, "expand");
    check_expand();
    describe(&a, "broadcast");
    check_broadcast();
    describe(&a, "reshape");
    if (a.size <= 64) check_reshape();
    describe(&a, "coalesce");
    check_coalesce();
    describe(&a, "reinterpret");
    check_reinterpret();
    cai_test_note("");
}

static const int32_t codes[] = {CAI_UINT8, CAI_INT16, CAI_FLOAT32, CAI_COMPLEX64, CAI_FLOAT64};

static void random_array(int32_t ndim)
{
    int64_t shape[4], strides[4], unit = 1;
    int32_t i, code = codes[help_between(0, 4)], item = code & 0xff, axes[4];
    for (i = 0; i < ndim; i++) {
        shape[i] = help_between(help_between(0, 11) == 0 ? 0 : 1, 4);
        axes[i] = i;
    }
    for (i = 0; i < ndim; i++) { /* mostly packed, in some order of the axes */
        int32_t k = (int32_t)help_between(i, ndim - 1), axis = axes[k];
        axes[k] = axes[i];
        strides[axis] = unit * item;
        if (help_between(0, 7) == 0) strides[axis] = help_between(-40, 40);
        if (help_between(0, 9) == 0) strides[axis] = 0;
        if (help_between(0, 7) == 0) strides[axis] = -strides[axis];
        if (help_between(0, 7) == 0) unit += 1;
        unit *= shape[axis] > 0 ? shape[axis] : 1;
    }
    set_array(code, ndim, shape, help_between(0, 4) ? strides : NULL,
              (uint64_t)help_between(1 << 20, (1 << 20) + 8));
}

/* Every layout of up to two axes from a list of strides. */
static void check_small(void)
{
    const int64_t strides[] = {-16, -8, -4, -3, 0, 1, 2, 4, 8, 12, 16};
    int64_t n, m, s, t;
    set_array(CAI_FLOAT32, 0, NULL, NULL, 1 << 20);
    check_all(1);
    for (n = 0; n <= 4; n++) {
        for (s = 0; s < 11; s++) {
            set_array(CAI_FLOAT32, 1, &n, &strides[s], 1 << 20);
            check_all(1);
            for (m = 0; m <= 4; m++) {
                for (t = 0; t < 11; t++) {
                    const int64_t shape[2] = {n, m}, pair[2] = {strides[s], strides[t]};
                    set_array(CAI_FLOAT32, 2, shape, pair, 1 << 20);
                    check_all((n + m + s + t) % 4 == 0);
                }
            }
        }
    }
}

static void check_large(void)
{
    int i;
    for (i = 0; i < 900; i++) {
        random_array((int32_t)help_between(2, 4));
        check_all(i % 6 == 0);
    }
}

/* ------------------------------------------------------------------ limits */

static void check_extremes(void)
{
    const int64_t two[2] = {2, 2}, wide[2] = {INT64_MAX, 1}, one[1] = {1};
    int64_t strides[2] = {INT64_MAX / 2, 4}, huge[2] = {(int64_t)1 << 62, 3};
    const int64_t huger[3] = {(int64_t)1 << 62, 4, 3}, huger_open[3] = {-1, (int64_t)1 << 62, 4};
    set_array(CAI_FLOAT32, 2, two, strides, 4096);
    CHECK_INT(cai_view_slice(&a, 0, 0, 1, INT64_MAX, &out, &err), CAI_OK);
    CHECK_UINT(out.data, 4096);
    help_fill(&out, sizeof out);
    CHECK_INT(cai_view_slice(&a, 0, 1, 1, INT64_MIN, &out, &err), CAI_OK);
    CHECK_UINT(out.data, 4096 + INT64_MAX / 2);
    help_fill(&out, sizeof out);
    CHECK_INT(cai_view_slice(&a, 0, 0, 2, INT64_MAX, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, 1, 2, INT64_MIN, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, 1, 2, INT64_MAX, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, 1, 2, INT64_MAX, &out, NULL), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, 0, 3, INT64_MAX, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_reshape(&a, 3, huger, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_reshape(&a, 3, huger_open, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, INT64_MAX, INT64_MAX, INT64_MAX, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, 0, INT64_MIN, 1, 1, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, INT32_MIN, 0, 1, 1, &out, &err), CAI_ERR_VIEW);
    CHECK_INT(cai_view_slice(&a, INT32_MAX, 0, 1, 1, &out, &err), CAI_ERR_VIEW);
    CHECK(help_filled(&out, sizeof out));
    set_array(CAI_UINT8, 1, one, NULL, 4096);
    CHECK_INT(cai_view_broadcast(&a, 2, wide, &out, &err), CAI_OK);
    CHECK_INT(out.size, INT64_MAX);
    CHECK_INT(out.hi, 1);
    help_fill(&out, sizeof out);
    CHECK_INT(cai_view_broadcast(&a, 2, huge, &out, &err), CAI_ERR_SHAPE);
    CHECK(help_filled(&out, sizeof out));
    strides[0] = INT64_MIN; /* of one element: never used, never multiplied */
    set_array(CAI_UINT8, 1, one, strides, 4096);
    CHECK_INT(cai_view_slice(&a, 0, 0, 1, -1, &out, &err), CAI_OK);
    CHECK_UINT(out.data, 4096);
    CHECK_INT(cai_view_index(&a, 0, -1, &out, &err), CAI_OK);
    CHECK_UINT(out.data, 4096);
    CHECK_INT(cai_view_coalesce(&a, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 0);
    help_fill(&out, sizeof out);
}

static void check_dimensions(void)
{
    int64_t ones[65];
    int32_t i;
    for (i = 0; i < 65; i++) ones[i] = 1;
    set_array(CAI_FLOAT32, 64, ones, NULL, 4096);
    CHECK_INT(cai_view_expand(&a, 0, &out, &err), CAI_ERR_VIEW);
    CHECK(cai_view_broadcast(&a, 65, ones, &out, &err) != CAI_OK);
    CHECK(cai_view_reshape(&a, 65, ones, &out, &err) != CAI_OK);
    CHECK(help_filled(&out, sizeof out));
    CHECK_INT(cai_view_permute(&a, NULL, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 64);
    CHECK_INT(cai_view_index(&a, 63, 0, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 63);
    CHECK_INT(cai_view_expand(&out, 63, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 64);
    CHECK_INT(cai_view_coalesce(&a, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 0);
    CHECK_INT(cai_view_reshape(&out, 64, ones, &out, &err), CAI_OK);
    CHECK_INT(out.ndim, 64);
    help_fill(&out, sizeof out);
}

/* ------------------------------------------------------------------ masks, bits, in place */

typedef cai_status (*view_call)(cai_array *array, cai_array *to, cai_error *e);

static const int64_t six[1] = {6};

static cai_status call_permute(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_permute(x, NULL, to, e);
}
static cai_status call_slice(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_slice(x, 1, 2, 3, -1, to, e);
}
static cai_status call_index(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_index(x, 0, 1, to, e);
}
static cai_status call_expand(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_expand(x, 1, to, e);
}
static cai_status call_broadcast(cai_array *x, cai_array *to, cai_error *e)
{
    const int64_t shape[3] = {2, 2, 3};
    return cai_view_broadcast(x, 3, shape, to, e);
}
static cai_status call_reshape(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_reshape(x, 1, six, to, e);
}
static cai_status call_reinterpret(cai_array *x, cai_array *to, cai_error *e)
{
    cai_dtype dtype = help_dtype("@u2");
    return cai_view_reinterpret(x, &dtype, to, e);
}
static cai_status call_coalesce(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_coalesce(x, to, e);
}
static cai_status call_values(cai_array *x, cai_array *to, cai_error *e)
{
    return cai_view_values(x, to, e);
}

static const view_call calls[] = {call_permute,   call_slice,   call_index,       call_expand,  call_broadcast,
                                  call_reshape,   call_reinterpret, call_coalesce, call_values};
enum { CALLS = 9 };

static void no_release(cai_array *self)
{
    self->release = NULL;
}

static void check_in_place(void)
{
    const int64_t shape[2] = {2, 3};
    int k;
    for (k = 0; k < CALLS; k++) {
        cai_array copy, before;
        set_array(CAI_FLOAT32, 2, shape, NULL, 4096);
        a.flags &= ~owners_flags; /* cai_view_values leaves an array of its own as it is */
        CHECK_INT(calls[k](&a, &out, &err), CAI_OK);
        memcpy(&copy, &a, sizeof copy);
        CHECK_INT(calls[k](&copy, &copy, &err), CAI_OK);
        CHECK_BYTES(&copy, &out, offsetof(cai_array, shape));
        CHECK_BYTES(copy.shape, out.shape, (size_t)out.ndim * 8);
        CHECK_BYTES(copy.strides, out.strides, (size_t)out.ndim * 8);
        memcpy(&copy, &a, sizeof copy);
        cai_array_own(&copy, no_release, &out);
        CHECK_INT(calls[k](&copy, &out, &err), CAI_OK);
        CHECK(out.release == NULL && out.owner == NULL);
        memcpy(&before, &copy, sizeof copy);
        CHECK_INT(calls[k](&copy, &copy, &err), CAI_ERR_ARGUMENT);
        CHECK_BYTES(&copy, &before, sizeof copy);
        help_fill(&out, sizeof out);
    }
}

static void check_masked(void)
{
    const int64_t shape[2] = {2, 3};
    cai_array mask;
    int k;
    set_array(CAI_BOOL, 2, shape, NULL, 8192);
    mask = a;
    set_array(CAI_FLOAT32, 2, shape, NULL, 4096);
    a.mask = &mask;
    for (k = 0; k < CALLS - 1; k++) {
        CHECK_INT(calls[k](&a, &out, &err), CAI_ERR_MASK);
        CHECK_INT(err.entry, CAI_ENTRY_MASK);
        CHECK(help_filled(&out, sizeof out));
    }
    CHECK_INT(cai_view_values(&a, &out, &err), CAI_OK);
    CHECK(out.mask == NULL);
    CHECK(!(out.flags & owners_flags));
    a.flags &= ~owners_flags;
    a.mask = NULL;
    CHECK_BYTES(&out, &a, offsetof(cai_array, shape));
    help_fill(&out, sizeof out);
}

static void check_bits(void)
{
    const int64_t shape[2] = {2, 3};
    cai_dtype bit = help_dtype("|t3");
    int k;
    CHECK_INT(cai_array_init_dtype(&a, &bit, 2, shape, NULL, 4096, NULL), CAI_OK);
    for (k = 0; k < CALLS - 1; k++) {
        CHECK_INT(calls[k](&a, &out, &err), CAI_ERR_VIEW);
        CHECK(help_filled(&out, sizeof out));
    }
    CHECK_INT(cai_view_values(&a, &out, &err), CAI_OK);
    CHECK_INT(out.nbytes, 3);
    help_fill(&out, sizeof out);
}

static void check_abi(void)
{
    const int64_t shape[2] = {2, 3};
    int k;
    set_array(CAI_FLOAT32, 2, shape, NULL, 4096);
    a.abi = 0;
    for (k = 0; k < CALLS; k++) {
        CHECK_INT(calls[k](&a, &out, &err), CAI_ERR_ABI);
        CHECK(help_filled(&out, sizeof out));
    }
}

/* A read-only array has read-only views; its event and version go along. */
static void check_inheritance(void)
{
    cai_array read_only;
    int k;
    help_reset();
    CHECK_INT(cai_import(help_dict("data=(4096,True); version=9; stream=5; typestr='`f4'"), NULL,
                         &read_only, NULL), CAI_OK);
    read_only.event = 77;
    for (k = 0; k < CALLS; k++) {
        CHECK_INT(calls[k](&read_only, &out, &err), CAI_OK);
        CHECK_UINT(out.flags & CAI_WRITABLE, 0);
        CHECK_INT(out.version, 9);
        CHECK_UINT(out.event, 77);
        CHECK_UINT(out.stream, 5);
        CHECK_INT(out.sync, CAI_SYNC_STREAM);
        CHECK_INT((out.flags & CAI_BYTE_SWAPPED) != 0, calls[k] != call_reinterpret);
    }
    help_fill(&out, sizeof out);
}

/* The field table goes along, but not where the dtype changes. */
static void check_fields_inherited(void)
{
    cai_field rows[2];
    cai_import_options options;
    int k;
    memset(&options, 0, sizeof options);
    options.fields = rows;
    options.field_capacity = 2;
    help_reset();
    CHECK_INT(cai_import(help_dict("typestr='|V4'; descr=[('x','@i2'),('y','@i2')]; stream=5"),
                         &options, &a, NULL), CAI_OK);
    a.event = 11;
    a.thread = 12;
    a.device = 13;
    a.memory = CAI_MEMORY_PINNED;
    for (k = 0; k < CALLS; k++) {
        int kept = calls[k] != call_reinterpret;
        cai_array copy = a;
        CHECK_INT(calls[k](&a, &out, &err), CAI_OK);
        CHECK(out.fields == (kept ? rows : NULL));
        CHECK_INT(out.field_count, kept ? 2 : 0);
        CHECK_INT(calls[k](&copy, &copy, &err), CAI_OK);
        CHECK_BYTES(&copy, &out, offsetof(cai_array, shape));
        CHECK_UINT(copy.event * 100 + copy.thread, 1112);
        CHECK_INT(copy.device, 13);
        CHECK_INT(copy.memory, CAI_MEMORY_PINNED);
    }
    help_fill(&out, sizeof out);
}

static void run(void)
{
    help_fill(&out, sizeof out);
    check_small();
    check_large();
    printf("%lld views, %lld refusals\n", (long long)seen_views, (long long)seen_refusals);
    check_extremes();
    check_dimensions();
    check_in_place();
    check_masked();
    check_bits();
    check_abi();
    check_inheritance();
    check_fields_inherited();
}

CAI_TEST_MAIN(run)
