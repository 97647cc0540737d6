/* fuzz_naive.h - the geometry of small arrays by enumeration of their elements, and comparisons.
 *
 * What cai.h computes from strides is computed here from sorted lists of offsets. */

#ifndef CAI_FUZZ_NAIVE_H_INCLUDED
#define CAI_FUZZ_NAIVE_H_INCLUDED

#include "fuzz.h"

enum { MAX_NAIVE = 512 }; /* elements of an array that is enumerated */

/* ------------------------------------------------------------ >>naive geometry */

JUDGE static int compare_offsets(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/** Offsets of all elements in C order; returns their number, -1 if there are too many or if the
 *  elements are bits. */
JUDGE static int32_t element_offsets(const cai_array *a, int64_t *offsets)
{
    int64_t at[CAI_MAX_NDIM] = {0}, offset = 0;
    int32_t count = 0, axis;
    if (a->size > MAX_NAIVE || a->dtype.itemsize == 0) return -1;
    if (a->size == 0) return 0;
    do {
        offsets[count++] = offset;
        for (axis = a->ndim - 1; axis >= 0; axis--) {
            if (at[axis] + 1 < a->shape[axis]) {
                at[axis]++;
                offset += a->strides[axis];
                break;
            }
            if (at[axis] > 0) offset -= a->strides[axis] * at[axis];
            at[axis] = 0;
        }
    } while (axis >= 0);
    MUST(count == a->size);
    return count;
}

/** The values along an axis. */
JUDGE static int64_t value_extent(const cai_array *a, int32_t axis)
{
    return axis == a->packed_axis ? a->packed_extent : a->shape[axis];
}

/** Bits from data to each value of a packed array, in C order of the values. Value i of an element begins at
 *  bit i * bits, as DLPack says. Returns their number, -1 if there are too many or the array is not packed. */
JUDGE static int32_t value_bits(const cai_array *a, int64_t *bits)
{
    int64_t at[CAI_MAX_NDIM] = {0}, size = 1;
    uint64_t byte, inside;
    const int32_t values = cai_dtype_values(&a->dtype), packed = a->packed_axis;
    int32_t count = 0, axis;
    if (packed < 0 || values < 2) return -1;
    for (axis = 0; axis < a->ndim; axis++) {
        const int64_t extent = value_extent(a, axis);
        if (extent > MAX_NAIVE) return -1;
        size = size > MAX_NAIVE && extent ? size : size * extent;
    }
    if (size > MAX_NAIVE) return -1;
    while (count < size) {
        for (axis = 0, byte = inside = 0; axis < a->ndim; axis++) {
            if (axis == packed) inside = (uint64_t)(at[axis] % values * a->dtype.bits);
            byte += (uint64_t)(axis == packed ? at[axis] / values : at[axis]) * (uint64_t)a->strides[axis];
        }
        bits[count++] = (int64_t)(byte * 8 + inside);
        for (axis = a->ndim - 1; axis >= 0 && ++at[axis] == value_extent(a, axis); axis--) at[axis] = 0;
    }
    return count;
}

JUDGE static int32_t sorted_offsets(const cai_array *a, int64_t *offsets)
{
    int32_t count = element_offsets(a, offsets);
    if (count > 1) qsort(offsets, (size_t)count, sizeof offsets[0], compare_offsets);
    return count;
}

JUDGE static int is_contiguous(const cai_array *a, int c_order)
{
    int64_t expected = a->dtype.itemsize;
    int32_t i, axis;
    if (a->size == 0) return 1;
    for (i = 0; i < a->ndim; i++) {
        axis = c_order ? a->ndim - 1 - i : i;
        if (a->shape[axis] == 1) continue;
        if (a->strides[axis] != expected) return 0;
        expected *= a->shape[axis];
    }
    return 1;
}

JUDGE static int is_aligned(const cai_array *a)
{
    uint64_t low_bits = a->data;
    int32_t i;
    for (i = 0; i < a->ndim; i++)
        if (a->shape[i] > 1) low_bits |= (uint64_t)a->strides[i];
    return low_bits % (uint64_t)a->dtype.alignment == 0;
}

JUDGE static void check_layout(const cai_array *a, const int64_t *sorted, int32_t count)
{
    uint64_t itemsize = (uint64_t)a->dtype.itemsize;
    int overlaps = 0, gaps = 0;
    int32_t i;
    for (i = 1; i < count; i++) {
        uint64_t distance = (uint64_t)sorted[i] - (uint64_t)sorted[i - 1];
        overlaps |= distance < itemsize;
        gaps |= distance > itemsize;
    }
    if (a->flags & CAI_SELF_OVERLAP) MUST(overlaps);
    if (a->flags & CAI_NO_SELF_OVERLAP) MUST(!overlaps);
    if (a->flags & CAI_DENSE) MUST(!gaps);
    if (!gaps && !overlaps) MUST(a->flags & CAI_DENSE);
    MUST(a->lo == (count ? sorted[0] : 0));
    MUST(a->hi == (count ? sorted[count - 1] + a->dtype.itemsize : 0));
}

JUDGE static void check_packed(const cai_array *a)
{
    const int64_t values = cai_dtype_values(&a->dtype), elements = a->shape[a->packed_axis];
    MUST(a->packed_axis < a->ndim && values > 1 && values * a->dtype.bits == 8 * a->dtype.itemsize);
    MUST(a->packed_extent >= 0 && (elements == 0) == (a->packed_extent == 0));
    if (elements) MUST((a->packed_extent - 1) / values == elements - 1);
}

/** Everything that follows from shape, strides, dtype and data. */
JUDGE static void check_facts(const cai_array *a)
{
    int64_t offsets[MAX_NAIVE];
    uint32_t both = CAI_SELF_OVERLAP | CAI_NO_SELF_OVERLAP;
    int32_t count;
    MUST(a->abi == CAI_ABI && a->struct_size == sizeof *a && cai_array_check(a, NULL) == CAI_OK);
    if (a->packed_axis < 0) MUST(a->packed_axis == -1 && a->packed_extent == 0);
    else check_packed(a);
    MUST(a->size >= 0 && a->lo <= 0 && a->hi >= 0 && (a->size == 0) == (a->lo == a->hi));
    MUST((a->data == 0) <= (a->size == 0 || a->lo >= 0));
    MUST((a->flags & both) != both);
    if (a->nbytes < INT64_MAX / 4 && (a->flags & (CAI_C_CONTIGUOUS | CAI_F_CONTIGUOUS)))
        MUST((a->flags & (CAI_DENSE | CAI_NO_SELF_OVERLAP)) == (CAI_DENSE | CAI_NO_SELF_OVERLAP));
    MUST(a->data + (uint64_t)a->lo <= a->data);
    MUST(a->data + (uint64_t)a->hi >= a->data || a->data + (uint64_t)a->hi == 0);
    if (a->dtype.itemsize == 0) return;
    MUST(a->nbytes == a->size * a->dtype.itemsize);
    MUST(is_contiguous(a, 1) == !!(a->flags & CAI_C_CONTIGUOUS));
    MUST(is_contiguous(a, 0) == !!(a->flags & CAI_F_CONTIGUOUS));
    if (a->size > 0) MUST(is_aligned(a) == !!(a->flags & CAI_ALIGNED));
    count = sorted_offsets(a, offsets);
    if (count >= 0) check_layout(a, offsets, count);
}

/** Whether two arrays share a byte: 0, 1, or -1 if there are too many elements to tell. */
JUDGE static int naive_overlap(const cai_array *a, const cai_array *b)
{
    int64_t in_a[MAX_NAIVE], in_b[MAX_NAIVE];
    int32_t m = sorted_offsets(a, in_a), n = sorted_offsets(b, in_b), i = 0, j = 0;
    if (m < 0 || n < 0) return -1;
    while (i < m && j < n) {
        uint64_t x = a->data + (uint64_t)in_a[i], y = b->data + (uint64_t)in_b[j];
        if (x <= y ? y - x < (uint64_t)a->dtype.itemsize : x - y < (uint64_t)b->dtype.itemsize)
            return 1;
        if (x < y) i++;
        else j++;
    }
    return 0;
}

/* --------------------------------------------------------- >>exact verdicts */

typedef __int128 wide;

/** A product that is cut where it is out of range anyway. */
JUDGE static wide product(wide a, wide b)
{
    const wide most = ((wide)1 << 63) + 1;
    wide p = a * b;
    return p > most ? most : p < -most ? -most : p;
}

/** What is wrong with an array: bit s for each status s with which it may be refused. `strides` in bytes. */
JUDGE static uint32_t faults_of(int64_t itemsize, int32_t ndim, const int64_t *shape, const int64_t *strides,
                                uint64_t data)
{
    const uint32_t later = 1u << CAI_ERR_STRIDES | 1u << CAI_ERR_DATA;
    wide bytes = itemsize ? itemsize : 1, lo = 0, hi = itemsize;
    int32_t i, bad = 0, empty = 0;
    if (ndim < 0 || ndim > CAI_MAX_NDIM) return 1u << CAI_ERR_SHAPE;
    for (i = 0; i < ndim; i++) {
        bad |= shape[i] < 0;
        empty |= shape[i] == 0;
        if (shape[i] > 1) bytes = product(bytes, shape[i]);
    }
    if (bad || bytes > INT64_MAX) return 1u << CAI_ERR_SHAPE | later;
    if (empty) return 0;
    if (!strides) hi = bytes;
    for (i = 0; strides && i < ndim; i++) {
        const wide span = product(shape[i] - 1, strides[i]);
        if (span < 0) lo += span;
        else hi += span;
    }
    if (lo < INT64_MIN || hi > INT64_MAX) return later;
    return !data || data + lo < 0 || data + hi > (wide)1 << 64 ? 1u << CAI_ERR_DATA : 0;
}

/* ------------------------------------------------------------------- >>comparisons */

JUDGE static int same_dtype(const cai_dtype *a, const cai_dtype *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

JUDGE static int same_shape(const cai_array *a, const cai_array *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

/** What cai_expect_same_shape demands: also the same values, if both arrays are packed. */
JUDGE static int same_values(const cai_array *a, const cai_array *b)
{
    if (!same_shape(a, b)) return 0;
    if (a->packed_axis < 0 || b->packed_axis < 0) return 1;
    return a->packed_axis == b->packed_axis && a->packed_extent == b->packed_extent;
}

/** Strides of an axis of extent 1 and of an empty array lead nowhere; an export may drop them. */
JUDGE static int same_strides(const cai_array *a, const cai_array *b, int exported)
{
    int32_t i;
    for (i = 0; i < a->ndim; i++)
        if (a->strides[i] != b->strides[i])
            if (!exported || (a->size > 0 && a->shape[i] > 1)) return 0;
    return 1;
}

/** The flags that must survive an export. */
JUDGE static uint32_t lasting_flags(const cai_array *a)
{
    uint32_t lost = CAI_HAD_STRIDES | CAI_FUTURE_VERSION;
    return ~(a->size == 0 ? lost | CAI_ALIGNED : lost);
}

/** The same array but for where its mask and its fields lie, and for what an export may drop. */
JUDGE static int same_array(const cai_array *a, const cai_array *b, int exported)
{
    uint32_t flags = exported ? lasting_flags(a) : UINT32_MAX;
    if (!same_shape(a, b) || a->size != b->size || a->nbytes != b->nbytes) return 0;
    if (!same_values(a, b) || (a->packed_axis < 0) != (b->packed_axis < 0)) return 0;
    if (a->lo != b->lo || a->hi != b->hi || a->data != b->data || a->event != b->event) return 0;
    if (((a->flags ^ b->flags) & flags) != 0 || !same_dtype(&a->dtype, &b->dtype)) return 0;
    if (a->device != b->device || a->memory != b->memory) return 0;
    if (a->stream != b->stream && (!exported || a->size > 0)) return 0;
    if (a->mask ? !b->mask || !same_array(a->mask, b->mask, exported) : b->mask != NULL) return 0;
    return same_strides(a, b, exported);
}

/** What must be waited for; versions below 3 cannot say that it is nothing. */
JUDGE static int same_sync(const cai_array *a, const cai_array *exported, int32_t version)
{
    if (a->size == 0 || exported->sync == a->sync) return 1;
    return exported->sync == CAI_SYNC_UNKNOWN && a->sync == CAI_SYNC_NONE && version < 3;
}

JUDGE static int same_bytes(const char *a, const char *b, size_t length)
{
    return (a != NULL) == (b != NULL) && (!a || memcmp(a, b, length) == 0);
}

JUDGE static int same_field(const cai_field *a, const cai_field *b)
{
    return a->name_length == b->name_length && a->title_length == b->title_length &&
           same_bytes(a->name, b->name, a->name_length) &&
           same_bytes(a->title, b->title, a->title_length) &&
           same_dtype(&a->dtype, &b->dtype) && a->offset == b->offset &&
           a->nbytes == b->nbytes && a->parent == b->parent &&
           a->child_count == b->child_count && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

/** [('', typestr, ())] is kept as a row, [('', typestr)] is no descr, and the first is exported
 *  as the second. */
JUDGE static int is_default_descr(const cai_array *a)
{
    return a->fields && a->field_count == 1 && a->fields[0].name_length == 0 &&
           a->fields[0].ndim == 0 && same_dtype(&a->fields[0].dtype, &a->dtype);
}

JUDGE static int same_fields(const cai_array *a, const cai_array *b)
{
    int64_t i;
    if ((a->fields != NULL) != (b->fields != NULL) || a->field_count != b->field_count) return 0;
    for (i = 0; a->fields && i < a->field_count; i++)
        if (!same_field(&a->fields[i], &b->fields[i])) return 0;
    return 1;
}

#endif /* CAI_FUZZ_NAIVE_H_INCLUDED */
