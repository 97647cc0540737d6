/* packed_model.h - the values of packed arrays, as a list of the addresses of their bits.
 * SPDX-License-Identifier: MIT
 *
 * Include after cai.h, cai_test.h and cai_test_help.h. Whatever makes, views or copies packed arrays is right if the
 * lists agree. */
#ifndef PACKED_MODEL_H
#define PACKED_MODEL_H

enum { MAX_VALUES = 4096, MAX_ELEMENTS = 4 };

typedef struct model {
    int32_t ndim;
    int64_t shape[8], count;
    uint64_t bit[MAX_VALUES]; /* the address of the lowest bit of each value, in C order */
} model;

typedef struct packed_kind {
    int32_t packed, single, bits, values, bytes;
} packed_kind;

/* From the definitions: DLPack 1.3 (bits, little-endian bits), OCP MX 1.0 (widths of FP4 and FP6). */
static const packed_kind kinds[] = {
    {CAI_INT1_X8, CAI_INT1, 1, 8, 1},   {CAI_INT2_X4, CAI_INT2, 2, 4, 1},   {CAI_INT4_X2, CAI_INT4, 4, 2, 1},
    {CAI_UINT1_X8, CAI_UINT1, 1, 8, 1}, {CAI_UINT2_X4, CAI_UINT2, 2, 4, 1}, {CAI_UINT4_X2, CAI_UINT4, 4, 2, 1},
    {CAI_FLOAT6_E2M3FN_X4, CAI_FLOAT6_E2M3FN, 6, 4, 3}, {CAI_FLOAT6_E3M2FN_X4, CAI_FLOAT6_E3M2FN, 6, 4, 3},
    {CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN, 4, 2, 1}};

enum { KINDS = (int)(sizeof kinds / sizeof kinds[0]) };

static inline const packed_kind *random_kind(void)
{
    return &kinds[help_between(0, KINDS - 1)];
}

/* Takes the next index in C order. */
static inline void next_index(int32_t ndim, const int64_t *shape, int64_t *index)
{
    int32_t axis;
    for (axis = ndim - 1; axis >= 0 && ++index[axis] == shape[axis]; axis--) index[axis] = 0;
}

/* Opens the model of the values of an array, without their bits. */
static inline void model_open(const cai_array *a, model *m)
{
    int32_t axis;
    m->ndim = a->ndim;
    m->count = 1;
    for (axis = 0; axis < a->ndim; axis++) {
        m->shape[axis] = axis == a->packed_axis ? a->packed_extent : a->shape[axis];
        m->count *= m->shape[axis];
    }
    if (m->count > MAX_VALUES) exit(4);
}

/* Reads the values of an array, by its fields alone. */
static inline void model_of(const cai_array *a, const packed_kind *k, model *m)
{
    int64_t index[8] = {0};
    int64_t n;
    int32_t axis;
    model_open(a, m);
    for (n = 0; n < m->count; n++) {
        uint64_t byte = a->data, bit = 0;
        for (axis = 0; axis < a->ndim; axis++) {
            int64_t at = index[axis];
            if (axis == a->packed_axis) {
                bit = (uint64_t)(at % k->values * k->bits);
                at /= k->values;
            }
            byte += (uint64_t)(at * a->strides[axis]);
        }
        m->bit[n] = 8 * byte + bit;
        next_index(a->ndim, m->shape, index);
    }
}

/* Returns where the value at an index is in the list. */
static inline int64_t model_place(const model *m, const int64_t *index)
{
    int64_t place = 0;
    int32_t axis;
    for (axis = 0; axis < m->ndim; axis++) place = place * m->shape[axis] + index[axis];
    return place;
}

/* Takes `count` values of an axis from `start` on. */
static inline void model_take(const model *m, int32_t axis, int64_t start, int64_t count, model *to)
{
    int64_t index[8] = {0}, n;
    *to = *m;
    to->shape[axis] = count;
    to->count = m->shape[axis] ? m->count / m->shape[axis] * count : 0;
    for (n = 0; n < to->count; n++) {
        int64_t from[8];
        memcpy(from, index, sizeof from);
        from[axis] += start;
        to->bit[n] = m->bit[model_place(m, from)];
        next_index(m->ndim, to->shape, index);
    }
}

/* Returns the value at an address of bits. */
static inline int32_t value_at(uint64_t bit, int32_t bits)
{
    int32_t value = 0, i;
    for (i = 0; i < bits; i++, bit++) {
        const unsigned char byte = *(const unsigned char *)(uintptr_t)(bit / 8);
        value |= (byte >> bit % 8 & 1) << i;
    }
    return value;
}

/* Returns how many values differ between two models. */
static inline int64_t values_differ(const model *a, const model *b, int32_t bits)
{
    int64_t n, differ = a->count > b->count ? a->count - b->count : b->count - a->count;
    for (n = 0; n < a->count && n < b->count; n++)
        differ += value_at(a->bit[n], bits) != value_at(b->bit[n], bits);
    return differ;
}

/* Makes the extents of 1 to 3 axes, in values. Returns the packed one. */
static inline int32_t random_values(const packed_kind *k, int32_t *ndim, int64_t *shape)
{
    int32_t i, axis;
    *ndim = (int32_t)help_between(1, 3);
    axis = (int32_t)help_between(0, *ndim - 1);
    for (i = 0; i < *ndim; i++)
        shape[i] = help_between(help_between(0, 9) > 0, i == axis ? MAX_ELEMENTS * k->values : MAX_ELEMENTS);
    return axis;
}

#endif
