/* cai_lint.h - what consumers commonly lose of a correct dictionary, and what the producer can do
 * SPDX-License-Identifier: MIT
 * Include after cai.h. Static tables and functions; needs nothing else.
 *
 *     for (i = 0; i < CAI_LINT_RULES; i++) {
 *         if (cai_lint_rules[i].applies(&array, &in)) puts(cai_lint_rules[i].loses);
 *     }
 *
 * Two remarks need words of their own and are no rules: cai_lint_in_elements (strides that count
 * elements) and cai_lint_is_unknown, cai_lint_near_entry (keys that are no entries).
 *
 * `in` are the entries that cai_import made the array of, with storage for the rows of a descr.
 * Every rule is about something that real consumers get wrong; docs/rules.md has what is right. */

#ifndef CAI_LINT_H_INCLUDED
#define CAI_LINT_H_INCLUDED

#include <string.h>

/* ------------------------------------------------------------------------- conditions */

static int cai_lint_is_bits(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->dtype.code == CAI_BITFIELD;
}

/* Does an axis that matters have such a stride? Those of a bit field are not given. */
static int cai_lint_any_stride(const cai_array *array, int (*is)(int64_t stride, int32_t itemsize))
{
    int32_t axis;
    if (array->size == 0 || array->dtype.code == CAI_BITFIELD) return 0;
    for (axis = 0; axis < array->ndim; axis++) {
        if (array->shape[axis] > 1 && is(array->strides[axis], array->dtype.itemsize)) return 1;
    }
    return 0;
}

static int cai_lint_negative(int64_t stride, int32_t itemsize)
{
    (void)itemsize;
    return stride < 0;
}

static int cai_lint_zero(int64_t stride, int32_t itemsize)
{
    (void)itemsize;
    return stride == 0;
}

static int cai_lint_odd(int64_t stride, int32_t itemsize)
{
    return stride % itemsize != 0;
}

static int cai_lint_is_negative(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return cai_lint_any_stride(array, cai_lint_negative);
}

static int cai_lint_is_broadcast(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return cai_lint_any_stride(array, cai_lint_zero);
}

static int cai_lint_has_odd_stride(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return cai_lint_any_stride(array, cai_lint_odd);
}

static int cai_lint_spells_c_order(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return (array->flags & CAI_HAD_STRIDES) && (array->flags & CAI_C_CONTIGUOUS);
}

/* Is an axis wider than one before it? Axes of extent 1 and strides of 0 do not count. */
static int cai_lint_is_turned(const cai_array *array, const cai_interface *in)
{
    int32_t axis;
    int64_t last = INT64_MAX;
    (void)in;
    if (array->size == 0 || array->dtype.code == CAI_BITFIELD) return 0;
    for (axis = 0; axis < array->ndim; axis++) {
        const int64_t stride = array->strides[axis], size = stride < 0 ? 0 - stride : stride;
        if (array->shape[axis] < 2 || stride == 0) continue;
        if (size > last) return 1;
        last = size;
    }
    return 0;
}

static int cai_lint_has_gaps(const cai_array *array, const cai_interface *in)
{
    (void)in;
    if (array->size == 0 || array->dtype.code == CAI_BITFIELD) return 0;
    return !(array->flags & CAI_DENSE) && (array->flags & CAI_NO_SELF_OVERLAP);
}

static int cai_lint_is_time(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->dtype.code == CAI_DATETIME64 || array->dtype.code == CAI_TIMEDELTA64;
}

static int cai_lint_is_text(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->dtype.code == CAI_BYTES || array->dtype.code == CAI_UNICODE;
}

static int cai_lint_is_scalar(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->ndim == 0;
}

static int cai_lint_is_swapped(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return (array->flags & CAI_BYTE_SWAPPED) != 0;
}

/* A descr that says more than the typestr: not just [('', typestr)]. */
static int cai_lint_has_fields(const cai_array *array, const cai_interface *in)
{
    (void)in;
    if (array->fields == NULL || array->field_count == 0) return 0;
    return array->field_count > 1 || array->fields->name_length > 0 || array->fields->ndim > 0;
}

static int cai_lint_is_opaque_pair(const cai_array *array, const cai_interface *in)
{
    return array->dtype.code == CAI_VOID && array->dtype.itemsize == 2 &&
           !cai_lint_has_fields(array, in);
}

static int cai_lint_is_read_only(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return !(array->flags & CAI_WRITABLE);
}

static int cai_lint_writes_overlap(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return (array->flags & CAI_WRITABLE) && (array->flags & CAI_SELF_OVERLAP);
}

static int cai_lint_is_unaligned(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return !(array->flags & CAI_ALIGNED);
}

/* The array itself does not have the address any more. */
static int cai_lint_empty_has_address(const cai_array *array, const cai_interface *in)
{
    return array->size == 0 && in->data[1].kind != CAI_TOKEN_NONE && in->data[1].number != 0;
}

static int cai_lint_is_old(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->version < 3;
}

static int cai_lint_is_new(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return (array->flags & CAI_FUTURE_VERSION) != 0;
}

static int cai_lint_sync_is_unknown(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->sync == CAI_SYNC_UNKNOWN && array->size > 0;
}

static int cai_lint_is_per_thread(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->sync == CAI_SYNC_STREAM && array->stream == CAI_STREAM_PER_THREAD;
}

static int cai_lint_has_mask(const cai_array *array, const cai_interface *in)
{
    (void)in;
    return array->mask != NULL;
}

/* ------------------------------------------------------------------------------ rules */

typedef struct cai_lint_rule {
    int (*applies)(const cai_array *array, const cai_interface *in);
    int32_t entry;      /* CAI_ENTRY_...: which one it is about */
    const char *loses;  /* what a consumer commonly loses: "the read-only flag" */
    const char *advice; /* how that happens, and how the producer avoids it */
} cai_lint_rule;

/* In the order in which the entries are judged. */
static const cai_lint_rule cai_lint_rules[] = {
    {cai_lint_is_scalar, CAI_ENTRY_SHAPE, "an array without dimensions",
     "Some ask for the first extent or the last stride. Export the shape (1,)."},
    {cai_lint_is_swapped, CAI_ENTRY_TYPESTR, "the byte order",
     "Some read the bytes as they are. Convert to the byte order of the machine, then export."},
    {cai_lint_is_opaque_pair, CAI_ENTRY_TYPESTR, "the type, if it is bfloat16",
     "V2 for bfloat16 is a convention, others see two opaque bytes. Offer DLPack too: it has it."},
    {cai_lint_is_bits, CAI_ENTRY_TYPESTR, "the whole array",
     "Most do not know bit fields. Export bytes, |b1 or |u1."},
    {cai_lint_is_time, CAI_ENTRY_TYPESTR, "times",
     "PyTorch refuses them, and DLPack has no dtype for them. Export the numbers as i8."},
    {cai_lint_is_text, CAI_ENTRY_TYPESTR, "text",
     "PyTorch refuses it, mpi4py counts 4 bytes for U4, and DLPack has no dtype for it. Export "
     "bytes or numbers."},
    {cai_lint_is_read_only, CAI_ENTRY_DATA, "the read-only flag",
     "Many write all the same, some refuse the array. Export a copy where the memory must not "
     "change."},
    {cai_lint_writes_overlap, CAI_ENTRY_DATA, "that elements share memory",
     "Who writes one element changes others with it. Export it read-only, or a copy."},
    {cai_lint_is_unaligned, CAI_ENTRY_DATA, "elements that are not aligned",
     "Kernels load an element at once, which faults. Align the elements, or export a copy."},
    {cai_lint_empty_has_address, CAI_ENTRY_DATA, "an empty array that has an address",
     "Some look the address up and refuse it. Export 0, as the interface says since version 2."},
    {cai_lint_is_old, CAI_ENTRY_VERSION, "the whole array",
     "Some refuse versions below 2, others those below 3. Export version 3."},
    {cai_lint_is_new, CAI_ENTRY_VERSION, "the whole array",
     "Some refuse versions that they do not know. Export version 3."},
    {cai_lint_is_turned, CAI_ENTRY_STRIDES, "an array whose axes are not in C order",
     "RMM and pylibcudf refuse all but C order. Export a copy in C order, or tell users to make one."},
    {cai_lint_has_gaps, CAI_ENTRY_STRIDES, "an array with gaps",
     "RMM and pylibcudf refuse all but C order, JAX refuses gaps in any order. Export a copy without "
     "them."},
    {cai_lint_is_negative, CAI_ENTRY_STRIDES, "negative strides",
     "Some refuse them, some take the array for contiguous and read past its end. Export a copy "
     "in C order."},
    {cai_lint_is_broadcast, CAI_ENTRY_STRIDES, "strides of 0",
     "Some refuse them, some get the size of the memory wrong. Export the array from before the "
     "broadcast, or a copy."},
    {cai_lint_has_odd_stride, CAI_ENTRY_STRIDES, "strides that the itemsize does not divide",
     "Some count in elements and read other bytes, some refuse them. Export a copy."},
    {cai_lint_spells_c_order, CAI_ENTRY_STRIDES, "that it is C-contiguous",
     "Some take written strides for strided, or look at those of axes of extent 1. Export None."},
    {cai_lint_sync_is_unknown, CAI_ENTRY_STREAM, "that work may be pending",
     "Most do not wait for anything then. Export version 3 with the stream, or with None once "
     "nothing is pending."},
    {cai_lint_is_per_thread, CAI_ENTRY_STREAM, "whose stream 2 is",
     "It is another stream on every host thread. Export the handle of a stream, or use the array "
     "on the same thread."},
    {cai_lint_has_fields, CAI_ENTRY_DESCR, "the fields",
     "Most do not read descr and see opaque bytes. Export each field as an array of its own."},
    {cai_lint_has_mask, CAI_ENTRY_MASK, "the mask",
     "Some take invalid elements for valid, others refuse the array. Fill them in, or export "
     "values and mask as two arrays."},
};

enum { CAI_LINT_RULES = sizeof cai_lint_rules / sizeof cai_lint_rules[0] };

/* ---------------------------------------------------------------- strides in elements */

/* Strides as they were written, and in bytes if they count elements. */
typedef struct cai_lint_strides {
    int32_t ndim;
    int64_t written[CAI_MAX_NDIM], bytes[CAI_MAX_NDIM];
} cai_lint_strides;

/* The ints of a tuple or a list. False: it is none, or an item is no int. */
static int cai_lint_ints(const cai_token *run, int64_t values[CAI_MAX_NDIM], int32_t *count)
{
    uint32_t i;
    if (run == NULL || (run->kind != CAI_TOKEN_TUPLE && run->kind != CAI_TOKEN_LIST)) return 0;
    if (run->length > CAI_MAX_NDIM) return 0;
    for (i = 0; i < run->length; i++) {
        const cai_token *item = run + 1 + i;
        if (item->kind != CAI_TOKEN_INT && item->kind != CAI_TOKEN_INDEX) return 0;
        values[i] = (int64_t)item->number;
    }
    *count = (int32_t)run->length;
    return 1;
}

static int64_t cai_lint_magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Is each axis wider than all narrower ones together, as in a C- or F-contiguous array and its plain
 * views? `unit`: what one element takes. No stride is INT64_MIN. Axes of stride 0 are left out. */
static int cai_lint_is_nested(const int64_t *shape, const int64_t *strides, int32_t ndim, int64_t unit)
{
    int64_t taken = unit, last = 0;
    for (;;) {
        int64_t next = INT64_MAX, steps = 0;
        int32_t axis, same = 0;
        for (axis = 0; axis < ndim; axis++) {
            const int64_t size = cai_lint_magnitude(strides[axis]);
            if (shape[axis] < 2 || size <= last || size > next) continue;
            same = size == next ? same + 1 : 1;
            next = size;
            steps = shape[axis] - 1;
        }
        if (next == INT64_MAX) return 1;
        if (same > 1 || next < taken || steps > (INT64_MAX - taken) / next) return 0;
        taken += next * steps;
        last = next;
    }
}

/* A stride of half a complex number steps through its parts: that is no count of elements. */
static int cai_lint_are_parts(const cai_token *typestr, int64_t stride, int64_t itemsize)
{
    return typestr->length > 1 && typestr->text[1] == 'c' && cai_lint_magnitude(stride) * 2 == itemsize;
}

/** Do the strides look like counts of elements? They do if in bytes the elements would share memory, and
 *  if times the itemsize they describe a contiguous array or a plain view of one. (Strides that are
 *  multiples of the itemsize never do both.) `array`: what was made of `in`, or NULL if it was refused. */
static int cai_lint_in_elements(const cai_array *array, const cai_interface *in, cai_lint_strides *out)
{
    int64_t shape[CAI_MAX_NDIM];
    int32_t ndim = 0, axis;
    cai_dtype dtype;
    if (array != NULL && (array->flags & CAI_NO_SELF_OVERLAP)) return 0;
    if (!cai_lint_ints(in->shape, shape, &ndim) || in->typestr == NULL) return 0;
    if (!cai_lint_ints(in->strides, out->written, &out->ndim) || out->ndim != ndim) return 0;
    if (in->typestr->kind != CAI_TOKEN_STR) return 0;
    if (cai_dtype_parse(in->typestr->text, (int64_t)in->typestr->length, 0, &dtype, NULL) != CAI_OK) return 0;
    if (dtype.code == CAI_BITFIELD || dtype.itemsize < 2) return 0;
    for (axis = 0; axis < ndim; axis++) {
        const int64_t stride = out->written[axis], most = INT64_MAX / dtype.itemsize;
        if (shape[axis] < 1 || stride > most || stride < -most) return 0;
        out->bytes[axis] = stride * dtype.itemsize;
        if (shape[axis] < 2) continue;
        if (cai_lint_are_parts(in->typestr, stride, dtype.itemsize)) return 0;
    }
    return cai_lint_is_nested(shape, out->written, ndim, 1) &&
           !cai_lint_is_nested(shape, out->written, ndim, dtype.itemsize);
}

/* ----------------------------------------------------------------------- unknown keys */

static int cai_lint_is_key(const char *key, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(key, name, length) == 0;
}

/** Is it a key that nobody reads? Private ones (_x) are not meant to be, and some belong to interfaces
 *  that are written into the same dictionary: `offset` to NumPy's, `syclobj` to that of SYCL. */
static int cai_lint_is_unknown(const char *key, size_t length)
{
    if (length > 0 && key[0] == '_') return 0;
    return !cai_lint_is_key(key, length, "offset") && !cai_lint_is_key(key, length, "syclobj");
}

static char cai_lint_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Letters to insert, remove, replace or swap with the next one; `length` at most 16. */
static int cai_lint_distance(const char *key, size_t length, const char *name)
{
    int rows[3][18]; /* of the letter before the last one, of the last one, of this one */
    const size_t columns = strlen(name);
    size_t i, j;
    for (j = 0; j <= columns; j++) rows[0][j] = rows[1][j] = (int)j;
    for (i = 1; i <= length; i++) {
        rows[2][0] = (int)i;
        for (j = 1; j <= columns; j++) {
            const char a = cai_lint_lower(key[i - 1]), b = name[j - 1];
            int best = rows[1][j - 1] + (a != b);
            if (rows[1][j] + 1 < best) best = rows[1][j] + 1;
            if (rows[2][j - 1] + 1 < best) best = rows[2][j - 1] + 1;
            if (i > 1 && j > 1 && a == name[j - 2] && cai_lint_lower(key[i - 2]) == b &&
                rows[0][j - 2] + 1 < best) {
                best = rows[0][j - 2] + 1;
            }
            rows[2][j] = best;
        }
        memcpy(rows[0], rows[1], sizeof rows[0]);
        memcpy(rows[1], rows[2], sizeof rows[1]);
    }
    return rows[1][columns];
}

/** The entry that an unknown key was probably meant to be, or CAI_ENTRY_NONE. */
static int32_t cai_lint_near_entry(const char *key, size_t length)
{
    int32_t entry, found = CAI_ENTRY_NONE;
    int best = 3;
    if (cai_lint_is_key(key, length, "dtype") || cai_lint_is_key(key, length, "type"))
        return CAI_ENTRY_TYPESTR;
    if (cai_lint_is_key(key, length, "ptr") || cai_lint_is_key(key, length, "pointer")) return CAI_ENTRY_DATA;
    if (length > 16) return CAI_ENTRY_NONE;
    for (entry = CAI_ENTRY_NONE + 1; entry < CAI_ENTRY_COUNT; entry++) {
        const char *name = cai_entry_name(entry);
        const int distance = cai_lint_distance(key, length, name);
        if (distance >= best || (distance > 1 && strlen(name) < 5)) continue;
        best = distance;
        found = entry;
    }
    return found;
}

#endif /* CAI_LINT_H_INCLUDED */
