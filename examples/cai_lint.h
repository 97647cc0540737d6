/* cai_lint.h - what consumers commonly lose of a correct dictionary, and what the producer can do
 * SPDX-License-Identifier: MIT
 * Include after cai.h. Static tables and functions; needs nothing else.
 *
 *     for (i = 0; i < CAI_LINT_RULES; i++) {
 *         if (cai_lint_rules[i].applies(&array, &in)) puts(cai_lint_rules[i].loses);
 *     }
 *
 * `in` are the entries that cai_import made the array of, with storage for the rows of a descr.
 * Every rule is about something that real consumers get wrong; docs/rules.md has what is right. */

#ifndef CAI_LINT_H_INCLUDED
#define CAI_LINT_H_INCLUDED

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

#endif /* CAI_LINT_H_INCLUDED */
