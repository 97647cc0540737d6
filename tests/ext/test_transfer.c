/* test_transfer.c - ext/cai_transfer.h: random pairs against a loop over elements, halos, limits, the simulation
 * SPDX-License-Identifier: MIT
 *
 *     test_transfer [pairs [seed]]    how many random pairs: 100,000 */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"
#include "cai_transfer.h"
#if defined(CAI_SIM_LINKED)
#include "sim/cai_sim.h"
#else
#include "sim/cai_sim.c"
#endif
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 5, MOST_BYTES = 1 << 13 };

static cai_error err;
static unsigned char to_block[MOST_BYTES], from_block[MOST_BYTES], expected[MOST_BYTES], spoilt[MOST_BYTES];

/* ------------------------------------------------------------------ random pairs */
typedef struct side {
    int64_t strides[MOST_AXES], first, bytes; /* of the first element in the block; of the block */
    int regular; /* from the inside outward each stride goes forward, over all that is inside */
} side;

/* Axes in a random order, with padding at random. `loose`: some strides are anything, so elements may share
 * bytes. Some axes are reversed. */
static side random_side(int32_t ndim, const int64_t *shape, int32_t itemsize, int loose)
{
    int32_t order[MOST_AXES], i;
    int64_t step = itemsize;
    side made;
    memset(&made, 0, sizeof made);
    made.regular = 1;
    made.bytes = itemsize;
    for (i = 0; i < ndim; ++i) order[i] = i;
    for (i = ndim - 1; i > 0; --i) {
        const int32_t with = (int32_t)help_between(0, i), kept = order[i];
        if (help_between(0, 1)) continue; /* mostly in C order */
        order[i] = order[with];
        order[with] = kept;
    }
    for (i = ndim - 1; i >= 0; --i) {
        const int32_t axis = order[i];
        int64_t stride = step + (help_between(0, 2) ? 0 : help_between(0, 9));
        if (loose && !help_between(0, 2)) {
            stride = help_between(0, 3 * itemsize);
            made.regular = 0;
        }
        step = stride * (shape[axis] ? shape[axis] : 1);
        if (!made.regular && step < itemsize) step = itemsize;
        if (shape[axis]) made.bytes += (shape[axis] - 1) * stride;
        if (help_between(0, 4) == 0 && shape[axis]) {
            made.first += (shape[axis] - 1) * stride;
            stride = -stride;
            made.regular = 0;
        }
        made.strides[axis] = stride;
    }
    return made;
}

static int64_t offset_of(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t index)
{
    int64_t offset = 0;
    int32_t i;
    for (i = ndim - 1; i >= 0; --i) {
        offset += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return offset;
}

static void fill_blocks(void)
{
    int32_t i;
    for (i = 0; i < MOST_BYTES; ++i) {
        from_block[i] = (unsigned char)help_between(0, 255);
        spoilt[i] = to_block[i] = (unsigned char)(i * 7 + 3);
    }
    memcpy(expected, to_block, sizeof expected);
}

/* A piece, as the documentation of cudaMemcpy3D says what it copies. */
static void carry_out(const cai_piece *piece)
{
    int64_t z, y;
    CHECK(piece->width > 0 && piece->height > 0 && piece->depth > 0);
    CHECK(piece->height == 1 || (piece->to_pitch >= piece->width && piece->from_pitch >= piece->width));
    CHECK(piece->to_pitch <= INT32_MAX && piece->from_pitch <= INT32_MAX);
    CHECK(piece->depth == 1 || (piece->to_slice % piece->to_pitch == 0 && piece->from_slice % piece->from_pitch == 0 &&
                                piece->to_slice / piece->to_pitch >= piece->height &&
                                piece->from_slice / piece->from_pitch >= piece->height));
    for (z = 0; z < piece->depth; ++z)
        for (y = 0; y < piece->height; ++y)
            memcpy((char *)(uintptr_t)piece->to + z * piece->to_slice + y * piece->to_pitch,
                   (const char *)(uintptr_t)piece->from + z * piece->from_slice + y * piece->from_pitch,
                   (size_t)piece->width);
}

static int64_t by_pieces(const cai_transfer *plan)
{
    cai_piece piece;
    int64_t index;
    for (index = 0; cai_transfer_piece(plan, index, &piece); ++index) carry_out(&piece);
    CHECK(index == plan->pieces);
    return index;
}

/* Runs in lists of a random length; each begins where it is aligned. */
static void by_runs(const cai_transfer *plan)
{
    cai_run runs[7];
    int64_t first = 0, bytes = 0;
    int32_t i, count;
    while ((count = cai_transfer_runs(plan, first, runs, (int32_t)help_between(1, 7))) > 0) {
        for (i = 0; i < count; ++i) {
            memcpy((void *)(uintptr_t)runs[i].to, (const void *)(uintptr_t)runs[i].from, (size_t)runs[i].nbytes);
            CHECK((runs[i].to | runs[i].from | (uint64_t)runs[i].nbytes) % (uint64_t)plan->alignment == 0);
            bytes += runs[i].nbytes;
        }
        first += count;
    }
    CHECK(first == plan->runs && bytes == plan->nbytes);
}

/* The longest run that divides all bytes into runs of one length. Elements are looked at in the order of their
 * addresses in `to`. Where one does not follow the one before on both sides, a stretch ends. The answer is the
 * greatest common divisor of the stretches. (By chance the last run of a row can be followed by the first one of
 * the next row, so a stretch may be longer than a run.) */
static int64_t from_of[MOST_BYTES]; /* by the offset in `to`: that in `from`, plus 1; 0: no element begins here */

static int64_t divisor(int64_t a, int64_t b)
{
    return b ? divisor(b, a % b) : a;
}

static int64_t longest_run(int32_t ndim, const int64_t *shape, const side *to, const side *from, int32_t itemsize)
{
    int64_t size = 1, index, longest = 0, stretch = 0, last = -1;
    int32_t i;
    for (i = 0; i < ndim; ++i) size *= shape[i];
    memset(from_of, 0, sizeof from_of);
    for (index = 0; index < size; ++index)
        from_of[to->first + offset_of(ndim, shape, to->strides, index)] =
            from->first + offset_of(ndim, shape, from->strides, index) + 1;
    for (index = 0; index < MOST_BYTES; ++index) {
        if (!from_of[index]) continue;
        if (last < 0 || index != last + itemsize || from_of[index] != from_of[last] + itemsize) {
            longest = divisor(longest, stretch);
            stretch = 0;
        }
        stretch += itemsize;
        last = index;
    }
    return divisor(longest, stretch);
}

typedef struct totals {
    int64_t pairs, pieces, runs, elements, compared, refused;
} totals;

static int all_equal(const char *how)
{
    const int equal = !memcmp(to_block, expected, sizeof expected);
    CHECK(equal);
    if (!equal) printf("%s differs\n", how);
    memcpy(to_block, spoilt, sizeof spoilt);
    return equal;
}

static int one_pair(totals *all)
{
    static const int32_t sizes[] = {1, 2, 3, 4, 8, 12, 16};
    const int32_t ndim = (int32_t)help_between(0, MOST_AXES), itemsize = sizes[help_between(0, 6)];
    int64_t shape[MOST_AXES], size = 1, index;
    cai_dtype dtype = help_void(itemsize);
    cai_array to, from;
    cai_transfer plan;
    cai_status status;
    side a, b;
    int32_t i;
    for (i = 0; i < ndim; ++i) {
        shape[i] = help_between(0, 30) ? help_between(1, ndim > 3 ? 4 : 7) : 0;
        size *= shape[i];
    }
    a = random_side(ndim, shape, itemsize, !help_between(0, 9));
    b = random_side(ndim, shape, itemsize, !help_between(0, 2));
    if (a.bytes > MOST_BYTES || b.bytes > MOST_BYTES) return 1;
    fill_blocks();
    CHECK_INT(cai_array_init_dtype(&to, &dtype, ndim, shape, a.strides,
                                   (uint64_t)(uintptr_t)to_block + (uint64_t)a.first, &err), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&from, &dtype, ndim, shape, b.strides,
                                   (uint64_t)(uintptr_t)from_block + (uint64_t)b.first, &err), CAI_OK);
    status = cai_transfer_plan(&plan, &to, &from, &err);
    if (status) {
        CHECK(status == CAI_ERR_EXPECT && !(to.flags & CAI_NO_SELF_OVERLAP));
        ++all->refused;
        return 1;
    }
    for (index = 0; index < size; ++index)
        memcpy(expected + a.first + offset_of(ndim, shape, a.strides, index),
               from_block + b.first + offset_of(ndim, shape, b.strides, index), (size_t)itemsize);
    for (i = 1; i < plan.ndim; ++i) CHECK(plan.axes[i - 1].to >= plan.axes[i].to);
    ++all->pairs;
    all->pieces += by_pieces(&plan);
    all->runs += plan.runs;
    all->elements += size;
    if (size && a.regular && b.regular) {
        CHECK_INT(plan.run, longest_run(ndim, shape, &a, &b, itemsize));
        ++all->compared;
    }
    if (!all_equal("by pieces")) return 0;
    by_runs(&plan);
    if (!all_equal("by runs")) return 0;
    cai_transfer_on_host(&plan);
    return all_equal("on the host");
}

static void test_pairs(int64_t pairs)
{
    totals all;
    memset(&all, 0, sizeof all);
    while (all.pairs < pairs)
        if (!one_pair(&all)) break;
    printf("pairs: %lld with %lld elements are %lld runs in %lld pieces, %lld refused; longest run: %lld compared\n",
           (long long)all.pairs, (long long)all.elements, (long long)all.runs, (long long)all.pieces,
           (long long)all.refused, (long long)all.compared);
}

/* ---------------------------------------------------------------- packs, by element */
/* The runs of a pack follow each other in the buffer. */
static void in_order(const cai_transfer *pack)
{
    uint64_t next = pack->to;
    int64_t first;
    cai_run run;
    for (first = 0; cai_transfer_runs(pack, first, &run, 1); ++first) {
        CHECK(run.to == next);
        next += (uint64_t)run.nbytes;
    }
}

static void test_pack(int64_t count)
{
    while (count-- > 0) {
        const int32_t ndim = (int32_t)help_between(0, 4), itemsize = (int32_t)help_between(1, 8);
        int64_t shape[MOST_AXES], size = 1, index;
        const cai_dtype dtype = help_void(itemsize);
        cai_transfer pack, unpack;
        cai_array array;
        side at;
        int32_t i;
        for (i = 0; i < ndim; ++i) size *= shape[i] = help_between(1, 5);
        at = random_side(ndim, shape, itemsize, 0);
        if (at.bytes > MOST_BYTES) continue;
        fill_blocks();
        CHECK_INT(cai_array_init_dtype(&array, &dtype, ndim, shape, at.strides,
                                       (uint64_t)(uintptr_t)from_block + (uint64_t)at.first, &err), CAI_OK);
        CHECK_INT(cai_transfer_pack(&pack, &array, (uint64_t)(uintptr_t)to_block, &err), CAI_OK);
        for (index = 0; index < size; ++index)
            memcpy(expected + index * itemsize, from_block + at.first + offset_of(ndim, shape, at.strides, index),
                   (size_t)itemsize);
        CHECK(pack.nbytes == size * itemsize);
        in_order(&pack);
        (void)by_pieces(&pack);
        CHECK(!memcmp(to_block, expected, sizeof expected));
        memcpy(expected, from_block, sizeof expected); /* and back */
        for (index = 0; index < size; ++index)
            memset(from_block + at.first + offset_of(ndim, shape, at.strides, index), 0xee, (size_t)itemsize);
        CHECK_INT(cai_transfer_unpack(&unpack, &array, (uint64_t)(uintptr_t)to_block, &err), CAI_OK);
        CHECK(unpack.pieces == pack.pieces && unpack.runs == pack.runs);
        cai_transfer_on_host(&unpack);
        CHECK(!memcmp(from_block, expected, sizeof expected));
    }
}

/* -------------------------------------------------------------------- figures */
typedef struct halo {
    const char *name;
    int64_t shape[4], low[4], high[4]; /* of the field; of the part that is sent */
    int32_t ndim, itemsize;
    int64_t pieces, runs, run; /* of a pack */
    int32_t axes;
} halo;

/* Parts of fields of float64 in C order. */
static const halo halos[] = {
    {"1-D, one end", {1000}, {0}, {3}, 1, 8, 1, 1, 24, 0},
    {"2-D, rows", {100, 200}, {0, 0}, {2, 200}, 2, 8, 1, 1, 3200, 0},
    {"2-D, columns", {100, 200}, {0, 0}, {100, 2}, 2, 8, 1, 100, 16, 1},
    {"2-D, a corner", {100, 200}, {0, 198}, {2, 200}, 2, 8, 1, 2, 16, 1},
    {"3-D, the outer axis", {64, 64, 64}, {0, 0, 0}, {2, 64, 64}, 3, 8, 1, 1, 65536, 0},
    {"3-D, the middle axis", {64, 64, 64}, {0, 0, 0}, {64, 2, 64}, 3, 8, 1, 64, 1024, 1},
    {"3-D, the inner axis", {64, 64, 64}, {0, 0, 0}, {64, 64, 2}, 3, 8, 1, 4096, 16, 1},
    {"3-D, an edge", {64, 64, 64}, {0, 0, 2}, {2, 2, 62}, 3, 8, 1, 4, 480, 2},
    {"4-D, the third axis", {8, 32, 32, 32}, {0, 0, 0, 0}, {8, 32, 2, 32}, 4, 8, 1, 256, 512, 1},
    {"4-D, an edge of components", {8, 32, 32, 32}, {0, 0, 0, 0}, {8, 2, 2, 2}, 4, 8, 2, 32, 16, 3},
};

static void test_halos(void)
{
    size_t k;
    for (k = 0; k < sizeof halos / sizeof halos[0]; ++k) {
        const halo *h = &halos[k];
        const cai_dtype dtype = help_void(h->itemsize);
        cai_array field, part, next;
        cai_transfer plan;
        int32_t i;
        CHECK_INT(cai_array_init_dtype(&field, &dtype, h->ndim, h->shape, NULL, 4096, &err), CAI_OK);
        part = field;
        for (i = 0; i < h->ndim; ++i) {
            CHECK_INT(cai_view_slice(&part, i, h->low[i], h->high[i] - h->low[i], 1, &next, &err), CAI_OK);
            part = next;
        }
        CHECK_INT(cai_transfer_pack(&plan, &part, 0, &err), CAI_OK);
        CHECK_INT(plan.runs, h->runs);
        CHECK_INT(plan.run, h->run);
        CHECK_INT(plan.pieces, h->pieces);
        CHECK_INT(plan.ndim, h->axes);
        printf("%-28s %6lld elements, %4lld runs, %lld pieces\n", h->name, (long long)part.size, (long long)plan.runs,
               (long long)plan.pieces);
    }
}

/* --------------------------------------------------------------------- limits */
static int64_t pieces_of(int32_t ndim, const int64_t *shape, const int64_t *to, const int64_t *from)
{
    const cai_dtype dtype = help_void(4);
    cai_array a, b;
    cai_transfer plan;
    CHECK_INT(cai_array_init_dtype(&a, &dtype, ndim, shape, to, (uint64_t)1 << 40, &err), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&b, &dtype, ndim, shape, from, (uint64_t)1 << 50, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &a, &b, &err), CAI_OK);
    return plan.pieces;
}

static void test_limits(void)
{
    static const int64_t two[] = {3, 5}, three[] = {4, 3, 5};
    const int64_t most = INT32_MAX, over = most + 1, many = (int64_t)1 << 33, apart = 8;
    int64_t a[3] = {0, 0, 4}, b[3] = {0, 0, 4};
    a[0] = most, a[1] = 4, b[0] = 64, b[1] = 4; /* pitches up to 2^31 - 1 */
    CHECK_INT(pieces_of(2, two, a, b), 1);
    CHECK_INT(pieces_of(2, two, b, a), 1);
    a[0] = over;
    CHECK_INT(pieces_of(2, two, a, b), 3);
    CHECK_INT(pieces_of(2, two, b, a), 3);
    a[0] = 64, b[0] = 16; /* rows of the source that share bytes */
    CHECK_INT(pieces_of(2, two, a, b), 3);
    b[0] = 0;
    CHECK_INT(pieces_of(2, two, a, b), 3);
    b[0] = -64; /* the other way round on one side; on both */
    CHECK_INT(pieces_of(2, two, a, b), 3);
    a[0] = -64;
    CHECK_INT(pieces_of(2, two, a, b), 1);
    a[2] = b[2] = 4, a[1] = b[1] = 24, a[0] = b[0] = 120; /* planes of whole rows */
    CHECK_INT(pieces_of(3, three, a, b), 1);
    b[0] = 112;
    CHECK_INT(pieces_of(3, three, a, b), 3); /* not of whole ones: four rows in one piece, three times */
    b[0] = 72; /* exactly the rows */
    CHECK_INT(pieces_of(3, three, a, b), 1);
    b[0] = 48; /* fewer: planes that share rows */
    CHECK_INT(pieces_of(3, three, a, b), 3);
    CHECK_INT(pieces_of(1, &many, &apart, &apart), 1); /* so many rows that their square exceeds 64 bits */
}

#define REFUSED(call, status, words)                                                                                   \
    do {                                                                                                               \
        memset(&kept, 0x5a, sizeof kept);                                                                              \
        memset(&plan, 0x5a, sizeof plan);                                                                              \
        CHECK_INT(call, status);                                                                                       \
        CHECK(strstr(err.message, words) != NULL);                                                                     \
        CHECK(!memcmp(&plan, &kept, sizeof plan));                                                                     \
    } while (0)

/* Values along different axes, or another number of them, would be mixed up. Bytes of elements are not values. */
static void test_packed(void)
{
    static const int64_t seven[2] = {7, 4}, eight[2] = {8, 4}, wide[2] = {4, 8}, bytes[2] = {4, 4};
    cai_array x, y;
    cai_transfer plan, kept;
    CHECK_INT(cai_array_init_packed(&x, CAI_INT4_X2, 2, seven, 0, NULL, to_block, &err), CAI_OK);
    CHECK_INT(cai_array_init_packed(&y, CAI_INT4_X2, 2, seven, 0, NULL, from_block, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(plan.runs * plan.run, 16);
    CHECK_INT(cai_array_init_packed(&y, CAI_INT4_X2, 2, eight, 0, NULL, from_block, &err), CAI_OK);
    REFUSED(cai_transfer_plan(&plan, &x, &y, &err), CAI_ERR_EXPECT, "axis 0 has 7 values in to, axis 0 has 8 in from");
    CHECK_INT(cai_array_init_packed(&y, CAI_INT4_X2, 2, wide, 1, NULL, from_block, &err), CAI_OK);
    REFUSED(cai_transfer_plan(&plan, &x, &y, &err), CAI_ERR_EXPECT, "axis 0 has 7 values in to, axis 1 has 8 in from");
    CHECK_INT(cai_array_init(&y, CAI_UINT8, 2, bytes, NULL, from_block, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(cai_transfer_pack(&plan, &x, 4096, &err), CAI_OK);
}

/* Makes an array of `shape` in values somewhere in a block, with gaps and reversed axes at random. */
static int init_packed(cai_array *out, const packed_kind *k, int32_t ndim, const int64_t *shape, int32_t axis,
                       unsigned char *block)
{
    int64_t elements[3];
    side made;
    memcpy(elements, shape, sizeof elements);
    elements[axis] = (shape[axis] + k->values - 1) / k->values;
    made = random_side(ndim, elements, k->bytes, 0);
    if (made.bytes > MOST_BYTES) return 0;
    return CHECK_INT(cai_array_init_packed(out, k->packed, ndim, shape, axis, made.strides, block + made.first, &err),
                     CAI_OK);
}

/* Returns whether some byte is another one. */
static int has_other(const unsigned char *bytes, unsigned char byte, size_t count)
{
    return count && (bytes[0] != byte || memcmp(bytes, bytes + 1, count - 1));
}

/* The values arrive, each at its place, and no bytes of the block change but those of elements. */
static void test_packed_values(int64_t count)
{
    static model to, from, line;
    static unsigned char buffer[MOST_BYTES];
    for (; count > 0; --count) {
        const packed_kind *k = random_kind();
        int64_t shape[3], n;
        int32_t ndim;
        const int32_t axis = random_values(k, &ndim, shape);
        cai_array x, y, dense;
        cai_transfer plan;
        if (!init_packed(&x, k, ndim, shape, axis, to_block)) continue;
        if (!init_packed(&y, k, ndim, shape, axis, from_block)) continue;
        cai_test_note(cai_dtype_name(k->packed));
        fill_blocks();
        model_of(&x, k, &to);
        model_of(&y, k, &from);
        CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
        cai_transfer_on_host(&plan);
        CHECK_INT(values_differ(&to, &from, k->bits), 0);
        CHECK_INT(cai_array_init_packed(&dense, k->packed, ndim, shape, axis, NULL, buffer, &err), CAI_OK);
        CHECK_INT(dense.nbytes, y.nbytes);
        model_of(&dense, k, &line);
        memset(buffer, 0x5a, sizeof buffer);
        CHECK_INT(cai_transfer_pack(&plan, &y, (uint64_t)(uintptr_t)buffer, &err), CAI_OK);
        cai_transfer_on_host(&plan);
        CHECK_INT(values_differ(&line, &from, k->bits), 0);
        CHECK(!has_other(buffer + dense.nbytes, 0x5a, (size_t)(MOST_BYTES - dense.nbytes)));
        memcpy(to_block, spoilt, sizeof spoilt);
        CHECK_INT(cai_transfer_unpack(&plan, &x, (uint64_t)(uintptr_t)buffer, &err), CAI_OK);
        cai_transfer_on_host(&plan);
        CHECK_INT(values_differ(&to, &from, k->bits), 0);
        for (n = 0; n < x.size; ++n) {
            const int64_t first = (int64_t)(x.data - (uint64_t)(uintptr_t)to_block);
            const int64_t at = first + offset_of(ndim, x.shape, x.strides, n);
            memcpy(to_block + at, spoilt + at, (size_t)k->bytes);
        }
        CHECK_BYTES(to_block, spoilt, sizeof spoilt);
    }
    cai_test_note("");
}

static void test_refused(void)
{
    static const int64_t shape[] = {3, 4}, other[] = {3, 5}, zeros[] = {0, 4}, none[] = {0, 4};
    cai_array x, y, z;
    cai_transfer plan, kept;
    cai_piece piece;
    cai_run run;
    cai_dtype bits;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 2, shape, NULL, to_block, &err), CAI_OK);
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 2, shape, NULL, from_block, &err), CAI_OK);
    CHECK_INT(cai_array_init(&z, CAI_FLOAT32, 2, other, NULL, from_block, &err), CAI_OK);
    REFUSED(cai_transfer_plan(&plan, &x, &z, &err), CAI_ERR_EXPECT, "shape");
    REFUSED(cai_transfer_plan(&plan, NULL, &y, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_transfer_plan(&plan, &x, NULL, &err), CAI_ERR_ARGUMENT, "NULL");
    REFUSED(cai_transfer_plan(NULL, &x, &y, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_transfer_pack(NULL, &x, 0, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_transfer_unpack(NULL, &x, 0, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_transfer_plan(&plan, &x, &x, &err), CAI_ERR_EXPECT, "to and from share bytes");
    CHECK_INT(cai_array_init(&z, CAI_FLOAT64, 2, shape, NULL, from_block, &err), CAI_OK);
    REFUSED(cai_transfer_plan(&plan, &x, &z, &err), CAI_ERR_EXPECT, "an element of to has 4 bytes, one of from has 8");
    cai_array_borrow(&z, &x);
    z.flags &= ~(uint32_t)CAI_WRITABLE;
    REFUSED(cai_transfer_plan(&plan, &z, &y, &err), CAI_ERR_EXPECT, "to is read-only");
    REFUSED(cai_transfer_unpack(&plan, &z, 4096, &err), CAI_ERR_EXPECT, "the array is read-only");
    CHECK_INT(cai_transfer_plan(&plan, &y, &z, &err), CAI_OK);
    CHECK_INT(cai_transfer_pack(&plan, &z, 4096, &err), CAI_OK);
    CHECK_INT(cai_array_init(&z, CAI_FLOAT32, 2, shape, zeros, to_block, &err), CAI_OK);
    REFUSED(cai_transfer_plan(&plan, &z, &y, &err), CAI_ERR_EXPECT, "to has elements that share bytes");
    CHECK_INT(cai_transfer_plan(&plan, &y, &z, &err), CAI_OK);
    REFUSED(cai_transfer_pack(&plan, &x, x.data + 44, &err), CAI_ERR_EXPECT, "the buffer and the array share");
    REFUSED(cai_transfer_unpack(&plan, &x, x.data - 44, &err), CAI_ERR_EXPECT, "the buffer and the array share");
    REFUSED(cai_transfer_pack(&plan, &x, UINT64_MAX - 8, &err), CAI_ERR_DATA, "");
    CHECK_INT(cai_transfer_pack(&plan, &x, x.data + 48, &err), CAI_OK);
    CHECK_INT(cai_array_init(&z, CAI_FLOAT32, 2, none, NULL, NULL, &err), CAI_OK);
    CHECK_INT(cai_transfer_pack(&plan, &z, 4096, &err), CAI_OK);
    CHECK_INT(plan.pieces, 0);
    CHECK_INT(cai_transfer_unpack(&plan, &x, x.data - 48, &err), CAI_OK);
    CHECK_INT(cai_dtype_parse("|t3", 3, 0, &bits, &err), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&z, &bits, 2, shape, NULL, (uint64_t)(uintptr_t)to_block, &err), CAI_OK);
    REFUSED(cai_transfer_pack(&plan, &z, 4096, &err), CAI_ERR_EXPECT, "the array is of bit fields");
    REFUSED(cai_transfer_unpack(&plan, &z, 4096, &err), CAI_ERR_EXPECT, "the array is of bit fields");
    REFUSED(cai_transfer_plan(&plan, &x, &z, &err), CAI_ERR_EXPECT, "from is of bit fields");
    cai_array_borrow(&z, &x);
    z.mask = &y;
    REFUSED(cai_transfer_plan(&plan, &y, &z, &err), CAI_ERR_EXPECT, "from has a mask");
    REFUSED(cai_transfer_pack(&plan, &z, 0, &err), CAI_ERR_EXPECT, "the array has a mask");
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK(!cai_transfer_piece(&plan, -1, &piece) && !cai_transfer_piece(&plan, 1, &piece));
    CHECK(!cai_transfer_piece(NULL, 0, &piece) && !cai_transfer_piece(&plan, 0, NULL));
    CHECK(!cai_transfer_runs(NULL, 0, &run, 1) && !cai_transfer_runs(&plan, 0, NULL, 1));
    CHECK(!cai_transfer_runs(&plan, -1, &run, 1) && !cai_transfer_runs(&plan, 0, &run, 0));
}

static void test_alignment(void)
{
    static const int64_t shape[] = {4, 4}, strides[] = {64, 4};
    cai_array x, y;
    cai_transfer plan;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 2, shape, strides, (void *)(uintptr_t)4096, &err), CAI_OK);
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 2, shape, NULL, (void *)(uintptr_t)8192, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(plan.alignment, 16);
    CHECK_INT(cai_transfer_plan(&plan, &y, &x, &err), CAI_OK);
    CHECK_INT(plan.alignment, 16);
    x.data += 8;
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(plan.alignment, 8);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, strides, NULL, (void *)(uintptr_t)4096, &err), CAI_OK);
    CHECK_INT(cai_transfer_pack(&plan, &x, 1 << 20, &err), CAI_OK); /* 64 elements, 256 bytes: the most */
    CHECK_INT(plan.alignment, 256);
}

/* -------------------------------------------------------------- the simulation */
static void test_copies(void)
{
    static const int64_t shape[] = {6, 5, 4};
    cai_sim *sim = cai_sim_create(1);
    const cai_cuda *cuda = cai_sim_cuda(sim);
    const uint64_t memory = (CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0),
                             cai_sim_alloc(sim, CAI_SIM_MEM_DEVICE, 6 * 5 * 4 * 4)),
                   pinned = cai_sim_alloc(sim, CAI_SIM_MEM_PINNED, 6 * 64 * 4), s = cai_sim_stream_create(sim, 1);
    static const int64_t strides[] = {256, 32, 4}, few[] = {3, 5, 4}, back[] = {-256, 16, 4};
    cai_array x, y;
    cai_transfer plan;
    cai_cuda table;
    float *host = (float *)cai_sim_bytes(sim, pinned), *device = (float *)cai_sim_bytes(sim, memory);
    int32_t i, calls;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 3, shape, NULL, device, &err), CAI_OK);
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 3, shape, strides, host, &err), CAI_OK);
    for (i = 0; i < 6 * 64; ++i) host[i] = (float)i;
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(plan.pieces, 1);
    CHECK_INT(cai_transfer_copy(&plan, cuda, s, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "copy_3d_async"), 1);
    CHECK_INT(cuda->stream_synchronize(cuda->self, s), 0);
    for (i = 0; i < 6 * 5; ++i) CHECK(!memcmp(&device[4 * i], &host[i / 5 * 64 + i % 5 * 8], 16));
    y.backend = CAI_BACKEND_HIP;
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(cai_transfer_copy(&plan, cuda, s, &err), CAI_ERR_STREAM);
    CHECK_STR(err.message, "backend = 1, but the table is of backend 0");
    y.backend = CAI_BACKEND_CUDA;
    CHECK_INT(cai_transfer_pack(&plan, &x, (uint64_t)(uintptr_t)host, &err), CAI_OK);
    CHECK_INT(cai_transfer_copy(&plan, cuda, s, &err), CAI_OK);
    CHECK_INT(cai_sim_calls_of(sim, "copy_async"), 1);
    CHECK_INT(cai_transfer_copy(NULL, cuda, s, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_transfer_copy(&plan, NULL, s, &err), CAI_ERR_ARGUMENT);
    table = *cuda;
    table.copy_async = NULL;
    CHECK_INT(cai_transfer_copy(&plan, &table, s, &err), CAI_ERR_UNAVAILABLE);
    table = *cuda;
    table.copy_3d_async = NULL;
    CHECK_INT(cai_transfer_copy(&plan, &table, s, &err), CAI_ERR_UNAVAILABLE);
    table = *cuda;
    table.struct_size = (uint32_t)offsetof(cai_cuda, set_async);
    CHECK_INT(cai_transfer_copy(&plan, &table, s, &err), CAI_OK);
    table.struct_size--;
    CHECK_INT(cai_transfer_copy(&plan, &table, s, &err), CAI_ERR_UNAVAILABLE);
    /* the second of three pieces fails: the third is not tried */
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 3, few, back, host + 5 * 64, &err), CAI_OK);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 3, few, NULL, device, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(plan.pieces, 3);
    calls = cai_sim_calls_of(sim, "copy_async");
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 2, 700), 1);
    CHECK_INT(cai_transfer_copy(&plan, cuda, s, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_calls_of(sim, "copy_async"), calls + 2);
    CHECK(!strncmp(err.message, "copying piece 2 of 3: CUDA error 700 (", 38));
    CHECK_INT(err.native, 700);
    cai_sim_destroy(sim);
}

static void test_streams_refused(void)
{
    static const int64_t shape[] = {4};
    static float values[4], buffer[4];
    cai_sim *sim = cai_sim_create(1);
    cai_cuda table = *cai_sim_cuda(sim);
    cai_array x;
    cai_transfer plan;
    CHECK_INT(cai_sim_set_context(sim, cai_sim_primary(sim, 0)), 0);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, values, &err), CAI_OK);
    CHECK_INT(cai_transfer_pack(&plan, &x, (uint64_t)(uintptr_t)buffer, &err), CAI_OK);
    CHECK_INT(cai_transfer_copy(&plan, &table, 0, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 71);
    CHECK_INT(err.entry, CAI_ENTRY_STREAM);
    CHECK_INT(cai_transfer_copy(&plan, &table, UINT64_MAX, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 74);
    CHECK_INT(cai_transfer_copy_peer(&plan, &table, 1, 1, 0, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 71);
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, &err), CAI_OK);
    table.flags |= CAI_CUDA_NO_DEFAULT_STREAMS;
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, &err), CAI_ERR_STREAM);
    CHECK_INT(err.rule, 106);
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 1, 899), 1);
    table.flags = 0;
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, &err), CAI_ERR_CUDA);
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 1, 908), 1);
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, &err), CAI_ERR_CAPTURE);
    CHECK_INT(err.code, CAI_ERR_CAPTURE);
    CHECK_INT(err.native, 908);
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 1, 900), 1);
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, NULL), CAI_ERR_CAPTURE);
    CHECK_INT(cai_sim_fail_op(sim, "copy_async", 1, 909), 1);
    CHECK_INT(cai_transfer_copy(&plan, &table, CAI_STREAM_LEGACY, NULL), CAI_ERR_CUDA);
    cai_sim_destroy(sim);
}

/* Two devices, and between them memory of a pool that is accessed from its own device alone. */
typedef struct peers {
    cai_sim *sim;
    const cai_cuda *cuda;
    uint64_t to_context, from_context, stream;
    float *to, *from;
} peers;

enum { PEER_BYTES = 6 * 64 * 4 };

static peers peers_open(void)
{
    peers p;
    uint64_t pool;
    int32_t i;
    p.sim = cai_sim_create(2);
    p.cuda = cai_sim_cuda(p.sim);
    cai_sim_set_options(p.sim, cai_sim_options(p.sim) | CAI_SIM_COPY_NEEDS_ACCESS);
    p.to_context = cai_sim_primary_retain(p.sim, 0);
    p.from_context = cai_sim_primary_retain(p.sim, 1);
    CHECK_INT(cai_sim_set_context(p.sim, p.from_context), 0);
    pool = cai_sim_pool_create(p.sim, 1);
    p.from = (float *)cai_sim_bytes(p.sim, cai_sim_pool_alloc(p.sim, pool, PEER_BYTES, CAI_STREAM_LEGACY));
    CHECK_INT(cai_sim_context_synchronize(p.sim), 0);
    CHECK_INT(cai_sim_set_context(p.sim, p.to_context), 0);
    p.to = (float *)cai_sim_bytes(p.sim, cai_sim_alloc(p.sim, CAI_SIM_MEM_DEVICE, PEER_BYTES));
    p.stream = cai_sim_stream_create(p.sim, 1);
    for (i = 0; i < PEER_BYTES / 4; ++i) p.from[i] = (float)i;
    return p;
}

static cai_status peers_copy(const peers *p, const cai_transfer *plan, const cai_cuda *table)
{
    return cai_transfer_copy_peer(plan, table, p->to_context, p->from_context, p->stream, &err);
}

static int32_t peer_calls(const peers *p)
{
    return 100 * cai_sim_calls_of(p->sim, "copy_3d_peer_async") + cai_sim_calls_of(p->sim, "copy_peer_async");
}

/* A line, planes of rows, and three lines. */
static void test_peers(void)
{
    static const int64_t shape[] = {6, 5, 4}, strides[] = {256, 32, 4};
    static const int64_t few[] = {3, 5, 4}, back[] = {-256, 16, 4};
    const peers p = peers_open();
    cai_array x, y;
    cai_transfer plan;
    int32_t i;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 3, shape, NULL, p.to, &err), CAI_OK);
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 3, shape, NULL, p.from, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(cai_transfer_copy(&plan, p.cuda, p.stream, &err), CAI_ERR_CUDA); /* no access to the pool */
    CHECK_INT(err.native, 1);
    CHECK_INT(peers_copy(&p, &plan, p.cuda), CAI_OK);
    CHECK_INT(peer_calls(&p), 1);
    CHECK_INT(p.cuda->stream_synchronize(p.sim, p.stream), 0);
    CHECK(!memcmp(p.to, p.from, 6 * 5 * 4 * 4));
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 3, shape, strides, p.from, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(peers_copy(&p, &plan, p.cuda), CAI_OK);
    CHECK_INT(peer_calls(&p), 101);
    CHECK_INT(p.cuda->stream_synchronize(p.sim, p.stream), 0);
    for (i = 0; i < 6 * 5; ++i) CHECK(!memcmp(&p.to[4 * i], &p.from[i / 5 * 64 + i % 5 * 8], 16));
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 3, few, back, p.from + 5 * 64, &err), CAI_OK);
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 3, few, NULL, p.to, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(peers_copy(&p, &plan, p.cuda), CAI_OK);
    CHECK_INT(peer_calls(&p), 104);
    CHECK_INT(p.cuda->stream_synchronize(p.sim, p.stream), 0);
    for (i = 0; i < 3; ++i) CHECK(!memcmp(&p.to[20 * i], &p.from[(5 - i) * 64], 80));
    CHECK_INT(cai_sim_fail_op(p.sim, "copy_peer_async", 3, 700), 1);
    CHECK_INT(peers_copy(&p, &plan, p.cuda), CAI_ERR_CUDA);
    CHECK(!strncmp(err.message, "copying piece 3 of 3: CUDA error 700 (", 38));
    CHECK_INT(cai_sim_fail_op(p.sim, "copy_peer_async", 1, 901), 1);
    CHECK_INT(peers_copy(&p, &plan, p.cuda), CAI_ERR_CAPTURE);
    cai_sim_destroy(p.sim);
}

static void test_peers_refused(void)
{
    static const int64_t shape[] = {4};
    const peers p = peers_open();
    cai_cuda table = *p.cuda;
    cai_array x, y;
    cai_transfer plan;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT32, 1, shape, NULL, p.to, &err), CAI_OK);
    CHECK_INT(cai_array_init(&y, CAI_FLOAT32, 1, shape, NULL, p.from, &err), CAI_OK);
    CHECK_INT(cai_transfer_plan(&plan, &x, &y, &err), CAI_OK);
    CHECK_INT(peers_copy(&p, NULL, p.cuda), CAI_ERR_ARGUMENT);
    CHECK_INT(peers_copy(&p, &plan, NULL), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_transfer_copy_peer(&plan, p.cuda, 0, p.from_context, p.stream, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "to_context is 0, which is no context: device_context returns the primary one");
    CHECK_INT(cai_transfer_copy_peer(&plan, p.cuda, p.to_context, 0, p.stream, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "from_context is 0, which is no context: device_context returns the primary one");
    CHECK_INT(cai_transfer_copy_peer(&plan, p.cuda, p.from_context, p.to_context, p.stream, &err),
              CAI_ERR_CUDA);
    CHECK_INT(err.native, 1);
    table.copy_peer_async = NULL;
    CHECK_INT(peers_copy(&p, &plan, &table), CAI_ERR_UNAVAILABLE);
    table = *p.cuda;
    table.copy_3d_peer_async = NULL;
    CHECK_INT(peers_copy(&p, &plan, &table), CAI_ERR_UNAVAILABLE);
    table = *p.cuda;
    table.struct_size = (uint32_t)(offsetof(cai_cuda, copy_3d_peer_async) + sizeof table.copy_3d_peer_async);
    CHECK_INT(peers_copy(&p, &plan, &table), CAI_OK);
    table.struct_size--;
    CHECK_INT(peers_copy(&p, &plan, &table), CAI_ERR_UNAVAILABLE);
    CHECK_INT(cai_transfer_copy_peer(&plan, p.cuda, p.to_context, p.from_context, UINT64_MAX, &err),
              CAI_ERR_STREAM);
    CHECK_INT(err.rule, 74);
    cai_sim_destroy(p.sim);
}

/* The numbers themselves are compared with <nccl.h> in examples/nccl.cu. */
static void test_nccl(void)
{
    cai_dtype dtype;
    int32_t type = -1, count = -1;
    CHECK_INT(cai_dtype_of(CAI_COMPLEX64, &dtype, &err), CAI_OK);
    CHECK_INT(cai_nccl_dtype(&dtype, &type, &count, &err), CAI_OK);
    CHECK_INT(type, 7);
    CHECK_INT(count, 2);
    CHECK_INT(cai_nccl_dtype(NULL, &type, &count, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_nccl_dtype(&dtype, NULL, &count, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_nccl_dtype(&dtype, &type, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_of(CAI_BOOL, &dtype, &err), CAI_OK);
    CHECK_INT(cai_nccl_dtype(&dtype, &type, &count, &err), CAI_ERR_EXPORT);
    CHECK_STR(err.message, "NCCL has no datatype for bool");
    CHECK_INT(cai_dtype_of(CAI_SWAPPED(CAI_FLOAT32), &dtype, &err), CAI_OK);
    CHECK_INT(cai_nccl_dtype(&dtype, &type, &count, &err), CAI_ERR_EXPORT);
    CHECK_STR(err.message, "NCCL has no datatype for float32 in the other byte order");
    CHECK_INT(type, 7);
}

/* NCCL has nothing below 8 bits. Sent as bytes, the buffer of a pack is nbytes of ncclInt8. */
static void test_nccl_narrow(void)
{
    int32_t type = -1, count = -1, i;
    for (i = 0; i < 2 * KINDS; ++i) {
        const packed_kind *k = &kinds[i / 2];
        const int32_t code = i % 2 ? k->packed : k->single;
        char text[80];
        cai_dtype dtype;
        CHECK_INT(cai_dtype_of(code, &dtype, &err), CAI_OK);
        CHECK_INT(cai_nccl_dtype(&dtype, &type, &count, &err), CAI_ERR_EXPORT);
        (void)snprintf(text, sizeof text, "NCCL has no datatype for %s", cai_dtype_name(code));
        CHECK_STR(err.message, text);
        CHECK(type == -1 && count == -1);
    }
}

int main(int argc, char **argv)
{
    const int64_t pairs = argc > 1 ? strtoll(argv[1], NULL, 0) : 100000;
    if (argc > 2) help_random_state = strtoull(argv[2], NULL, 0);
    test_halos();
    test_limits();
    test_packed();
    test_packed_values(pairs / 50);
    test_refused();
    test_alignment();
    test_nccl();
    test_nccl_narrow();
    test_copies();
    test_streams_refused();
    test_peers();
    test_peers_refused();
    test_pack(pairs / 10);
    test_pairs(pairs);
    return cai_test_end();
}
