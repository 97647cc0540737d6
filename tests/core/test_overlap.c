/* test_overlap.c - self-overlap and overlap of pairs against marking bytes.
 * SPDX-License-Identifier: MIT */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "cai_test.h"
#include "cai_test_help.h"

enum { SPAN = 4096, BASE = 1 << 20 };

static cai_dtype types[9]; /* |V1 to |V8 */
static int64_t decided, undecided;

static void make_types(void)
{
    char typestr[4] = "|V0";
    int k;
    for (k = 1; k <= 8; k++) {
        typestr[2] = (char)('0' + k);
        types[k] = help_dtype(typestr);
    }
}

static void describe(char *text, const cai_array *a)
{
    int32_t i;
    text += sprintf(text, "at %lld, %d bytes:", (long long)a->data - BASE, (int)a->dtype.itemsize);
    for (i = 0; i < a->ndim; i++) {
        text += sprintf(text, " %lldx%lld", (long long)a->shape[i], (long long)a->strides[i]);
    }
}

static cai_array make(int32_t ndim, const int64_t *shape, const int64_t *strides, int itemsize,
                      int64_t at)
{
    cai_array a;
    cai_status status = cai_array_init_dtype(&a, &types[itemsize], ndim, shape, strides,
                                             (uint64_t)(BASE + at), NULL);
    if (status != CAI_OK) CHECK_INT(status, CAI_OK);
    return a;
}

/* Marks the bytes of an array; 1 if one is marked twice or already had the mark `other`. */
static int mark(const cai_array *a, unsigned char *bytes, unsigned char own, unsigned char other)
{
    static uint64_t at[HELP_ELEMENTS];
    int64_t count = help_addresses(a, at), i, k;
    int hit = 0;
    for (i = 0; i < count; i++) {
        for (k = 0; k < a->dtype.itemsize; k++) {
            unsigned char *byte = &bytes[at[i] - BASE + SPAN / 2 + (uint64_t)k];
            hit |= (*byte & other) != 0;
            *byte |= own;
        }
    }
    return hit;
}

static void count_verdict(int said, int is, const cai_array *a, const cai_array *b)
{
    char text[400];
    cai_test_checks++;
    if (said == CAI_OVERLAP_UNDECIDED) undecided++;
    else decided++;
    if (said == CAI_OVERLAP_UNDECIDED || (said == CAI_OVERLAP_YES) == is) return;
    describe(text, a);
    if (b) strcat(text, " | ");
    if (b) describe(text + strlen(text), b);
    cai_test_note(text);
    CHECK_INT(said, is);
    cai_test_note("");
}

/* ------------------------------------------------------------------ one array */

static int32_t self_verdict(const cai_array *a)
{
    uint32_t both = a->flags & (CAI_SELF_OVERLAP | CAI_NO_SELF_OVERLAP);
    CHECK(both != (CAI_SELF_OVERLAP | CAI_NO_SELF_OVERLAP));
    if (both == 0) return CAI_OVERLAP_UNDECIDED;
    return both == CAI_SELF_OVERLAP ? CAI_OVERLAP_YES : CAI_OVERLAP_NO;
}

static void check_self(const cai_array *a)
{
    static unsigned char bytes[SPAN];
    memset(bytes, 0, sizeof bytes);
    count_verdict(self_verdict(a), mark(a, bytes, 1, 1), a, NULL);
}

/* All layouts of up to 3 axes with small extents and strides. */
static void check_self_exhaustive(void)
{
    int64_t s0, s1, s2, e;
    int itemsize;
    for (itemsize = 1; itemsize <= 4; itemsize++) {
        for (e = 0; e < 27; e++) {
            const int64_t shape[3] = {1 + e % 3, 1 + e / 3 % 3, 1 + e / 9};
            for (s0 = -5; s0 <= 5; s0++) {
                for (s1 = -5; s1 <= 5; s1++) {
                    for (s2 = 0; s2 <= 6; s2++) {
                        const int64_t strides[3] = {s0, s1, s2};
                        cai_array a = make(3, shape, strides, itemsize, 0);
                        check_self(&a);
                    }
                }
            }
        }
    }
}

static int64_t random_stride(int64_t limit)
{
    int64_t stride = help_between(-limit, limit);
    if (help_between(0, 3) == 0) stride *= 2;
    if (help_between(0, 5) == 0) stride = 8 * help_between(-4, 4);
    return stride;
}

static cai_array random_array(int32_t max_ndim, int64_t max_extent, int64_t limit, int64_t shift)
{
    int64_t shape[6], strides[6];
    int32_t ndim = (int32_t)help_between(0, max_ndim), i;
    for (i = 0; i < ndim; i++) {
        shape[i] = help_between(help_between(0, 19) == 0 ? 0 : 1, max_extent);
        strides[i] = random_stride(limit);
    }
    return make(ndim, shape, strides, (int)help_between(1, 8), help_between(-shift, shift));
}

static void check_self_random(void)
{
    int i;
    for (i = 0; i < 60000; i++) {
        cai_array a = random_array(4, 5, 40, 0);
        check_self(&a);
        a = random_array(5, 3, 60, 0);
        check_self(&a);
    }
}

/* ------------------------------------------------------------------ two arrays */

static void check_pair(const cai_array *a, const cai_array *b)
{
    static unsigned char bytes[SPAN];
    int said = cai_overlap(a, b);
    int is;
    memset(bytes, 0, sizeof bytes);
    mark(a, bytes, 1, 0);
    is = mark(b, bytes, 2, 1);
    count_verdict(said, is, a, b);
    if (cai_overlap(b, a) != said) CHECK_INT(cai_overlap(b, a), said);
}

/* All pairs of one or two axes in a small world. */
static void check_pairs_exhaustive(void)
{
    int64_t s0, s1, t0, shift, n, m;
    int itemsize;
    for (itemsize = 1; itemsize <= 3; itemsize++) {
        for (n = 1; n <= 4; n++) {
            for (m = 1; m <= 4; m++) {
                for (s0 = -6; s0 <= 6; s0 += 3) {
                    for (s1 = -4; s1 <= 5; s1++) {
                        for (t0 = -5; t0 <= 6; t0++) {
                            for (shift = -9; shift <= 9; shift++) {
                                const int64_t shape[2] = {m, n}, strides[2] = {s0, s1};
                                cai_array a = make(2, shape, strides, itemsize, 0);
                                cai_array b = make(1, &shape[0], &t0, 2, shift);
                                check_pair(&a, &b);
                            }
                        }
                    }
                }
            }
        }
    }
}

static void check_pairs_random(void)
{
    int i;
    for (i = 0; i < 100000; i++) {
        cai_array a = random_array(3, 5, 30, 0);
        cai_array b = random_array(3, 5, 30, 60);
        check_pair(&a, &b);
        a = random_array(4, 3, 24, 0);
        b = random_array(4, 3, 24, 150);
        check_pair(&a, &b);
    }
}

/* Slices of one buffer, as users take them. */
static void check_slices(void)
{
    const int64_t shape[2] = {12, 10};
    cai_array whole = make(2, shape, NULL, 4, 0), a, b;
    int i;
    for (i = 0; i < 20000; i++) {
        int64_t step = help_between(1, 3), start = help_between(0, 3);
        CHECK_INT(cai_view_slice(&whole, 1, start, (9 - start) / step + 1, step, &a, NULL), CAI_OK);
        start = help_between(0, 3);
        step = help_between(1, 3);
        CHECK_INT(cai_view_slice(&whole, 1, start, (9 - start) / step + 1, step, &b, NULL), CAI_OK);
        start = help_between(0, 3);
        CHECK_INT(cai_view_slice(&b, 0, start, 4, 2, &b, NULL), CAI_OK);
        check_pair(&a, &b);
    }
    CHECK_INT(cai_view_slice(&whole, 1, 0, 5, 2, &a, NULL), CAI_OK);
    CHECK_INT(cai_view_slice(&whole, 1, 1, 5, 2, &b, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&a, &a), CAI_OVERLAP_YES);
    CHECK_INT(cai_overlap(&whole, &b), CAI_OVERLAP_YES);
}

/* ------------------------------------------------------------------ huge spans */

static cai_array huge(int32_t ndim, const int64_t *shape, const int64_t *strides, uint64_t data)
{
    cai_array a;
    CHECK_INT(cai_array_init_dtype(&a, &types[8], ndim, shape, strides, data, NULL), CAI_OK);
    return a;
}

/* Never the wrong answer; undecided only where it need not be exact. */
#define CHECK_VERDICT(said, is, exact) \
    CHECK((said) == (is) || (!(exact) && (said) == CAI_OVERLAP_UNDECIDED))

/* Spans up to 2^61 bytes are searched; above, only the obvious is known, and nothing wrong. */
static void check_huge_self(void)
{
    const uint64_t middle = (uint64_t)1 << 63;
    const int64_t two[3] = {2, 2, 2};
    int64_t scale;
    for (scale = (int64_t)1 << 40; scale <= (int64_t)1 << 61; scale *= 2) {
        int exact = scale <= (int64_t)1 << 59;
        int64_t strides[3] = {0, 0, 8};
        cai_array a;
        strides[0] = scale;
        strides[1] = scale / 2;
        a = huge(3, two, strides, middle);
        CHECK_VERDICT(self_verdict(&a), CAI_OVERLAP_NO, exact);
        strides[1] = -scale;
        a = huge(3, two, strides, middle);
        CHECK_VERDICT(self_verdict(&a), CAI_OVERLAP_YES, exact);
        strides[0] = scale - 32;
        strides[1] = 40 - scale;
        a = huge(3, two, strides, middle);
        CHECK_VERDICT(self_verdict(&a), CAI_OVERLAP_YES, exact); /* 8 apart, as the last axis is */
        strides[2] = 16;
        a = huge(3, two, strides, middle);
        CHECK_VERDICT(self_verdict(&a), CAI_OVERLAP_NO, exact);
    }
}

static void check_huge_rows(void)
{
    const int64_t big[1] = {(int64_t)1 << 59}, two[1] = {2};
    int64_t stride = 8;
    cai_array a = huge(1, big, &stride, 8);
    CHECK_INT(self_verdict(&a), CAI_OVERLAP_NO); /* contiguous: no search */
    stride = 7;
    a = huge(1, big, &stride, 8);
    CHECK_INT(self_verdict(&a), CAI_OVERLAP_YES);
    stride = 0;
    a = huge(1, big, &stride, 8);
    CHECK_INT(self_verdict(&a), CAI_OVERLAP_YES);
    stride = INT64_MIN;
    a = huge(1, two, &stride, (uint64_t)1 << 63);
    CHECK(self_verdict(&a) != CAI_OVERLAP_YES);
    stride = INT64_MAX - 8;
    a = huge(1, two, &stride, 64);
    CHECK(self_verdict(&a) != CAI_OVERLAP_YES);
}

static void check_huge_pairs(void)
{
    const int64_t one[1] = {1}, two[1] = {2};
    int64_t scale;
    for (scale = (int64_t)1 << 34; scale <= (int64_t)1 << 61; scale *= 2) {
        int exact = scale <= (int64_t)1 << 60;
        int64_t stride = scale - 16;
        cai_array a = huge(1, two, &stride, 16), b = huge(1, one, NULL, UINT64_MAX - 7);
        CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
        b = huge(1, one, NULL, (uint64_t)scale);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        b = huge(1, one, NULL, (uint64_t)scale + 7);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        b = huge(1, one, NULL, (uint64_t)scale + 8);
        CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
        b = huge(1, one, NULL, (uint64_t)scale - 8);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_NO, exact);
        b = huge(1, one, NULL, 24);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_NO, exact);
        b = huge(1, one, NULL, 8);
        CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
    }
}

static void check_huge_interleaved(void)
{
    int64_t n;
    for (n = (int64_t)1 << 30; n <= (int64_t)1 << 58; n *= 2) {
        int exact = n <= (int64_t)1 << 55;
        int64_t stride = 16;
        cai_array a = huge(1, &n, &stride, 16), b = huge(1, &n, &stride, 24);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_NO, exact);
        b = huge(1, &n, &stride, 23);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        stride = 24;
        b = huge(1, &n, &stride, 24);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        a = huge(1, &n, NULL, 8);
        b = huge(1, &n, NULL, (uint64_t)n * 8 + 8);
        CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
        b = huge(1, &n, NULL, (uint64_t)n * 8 + 7);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        b = huge(1, &n, NULL, 16);
        CHECK_VERDICT(cai_overlap(&a, &b), CAI_OVERLAP_YES, exact);
        CHECK_VERDICT(cai_overlap(&b, &b), CAI_OVERLAP_YES, exact);
    }
}

/* Rows and columns of an image of 100,000 x 100,000 floats. */
static void check_images(void)
{
    const int64_t n = 100000, shape[2] = {100000, 100000};
    cai_array whole = make(2, shape, NULL, 4, 0), left, right, tile;
    CHECK_INT(self_verdict(&whole), CAI_OVERLAP_NO);
    CHECK_INT(cai_view_slice(&whole, 1, 0, n / 2, 1, &left, NULL), CAI_OK);
    CHECK_INT(cai_view_slice(&whole, 1, n / 2, n / 2, 1, &right, NULL), CAI_OK);
    CHECK_INT(self_verdict(&left), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&left, &right), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&left, &whole), CAI_OVERLAP_YES);
    CHECK_INT(cai_view_slice(&whole, 1, n / 2 - 1, 10, 1, &tile, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&left, &tile), CAI_OVERLAP_YES);
    CHECK_INT(cai_overlap(&right, &tile), CAI_OVERLAP_YES);
    CHECK_INT(cai_view_slice(&whole, 1, n - 1, n / 2, -2, &left, NULL), CAI_OK);
    CHECK_INT(cai_view_slice(&whole, 1, n - 2, n / 2, -2, &right, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&left, &right), CAI_OVERLAP_NO);
    CHECK_INT(cai_view_permute(&right, NULL, &right, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&left, &right), CAI_OVERLAP_NO);
    CHECK_INT(cai_view_slice(&whole, 0, 7, n / 10, 10, &left, NULL), CAI_OK);
    CHECK_INT(cai_view_slice(&whole, 0, 6, n / 15, 15, &right, NULL), CAI_OK);
    CHECK(cai_overlap(&left, &right) != CAI_OVERLAP_YES);
    CHECK_INT(cai_view_slice(&whole, 0, 2, n / 15, 15, &right, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&left, &right), CAI_OVERLAP_YES);
}

/* ------------------------------------------------------------------ the rest */

static void check_special(void)
{
    const int64_t empty[2] = {0, 4}, some[2] = {3, 4};
    cai_array a = make(2, empty, NULL, 4, 0), b = make(2, some, NULL, 4, 0), bits;
    cai_dtype bit = help_dtype("|t1");
    CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&a, &a), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&b, &b), CAI_OVERLAP_YES);
    CHECK_INT(cai_overlap(&b, NULL), CAI_OVERLAP_UNDECIDED);
    CHECK_INT(cai_overlap(NULL, &b), CAI_OVERLAP_UNDECIDED);
    CHECK_INT(cai_array_init_dtype(&bits, &bit, 1, &some[1], NULL, BASE + 47, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&bits, &b), CAI_OVERLAP_YES);
    CHECK_INT(cai_overlap(&b, &bits), CAI_OVERLAP_YES);
    CHECK_INT(cai_array_init_dtype(&bits, &bit, 1, &some[1], NULL, BASE + 48, NULL), CAI_OK);
    CHECK_INT(cai_overlap(&bits, &b), CAI_OVERLAP_NO);
    CHECK_INT(cai_overlap(&bits, &bits), CAI_OVERLAP_YES);
    b.mask = &bits; /* masks are not looked at */
    CHECK_INT(cai_overlap(&bits, &b), CAI_OVERLAP_NO);
    b.abi = 0;
    CHECK_INT(cai_overlap(&bits, &b), CAI_OVERLAP_UNDECIDED);
    CHECK_INT(cai_overlap(&b, &bits), CAI_OVERLAP_UNDECIDED);
}

/* Subset sums of large random numbers: no search that ends soon can know. */
static void check_hard(void)
{
    int64_t shape[64], strides[64];
    cai_array a, b;
    int k, found = 0;
    for (k = 0; k < 64; k++) {
        shape[k] = 2;
        strides[k] = (int64_t)(help_random() >> 10) | 1; /* all sums below 2^61 */
    }
    CHECK_INT(cai_array_init_dtype(&a, &types[1], 60, shape, strides, 4096, NULL), CAI_OK);
    found += self_verdict(&a) == CAI_OVERLAP_UNDECIDED;
    for (k = 0; k < 50; k++) {
        CHECK_INT(cai_array_init_dtype(&b, &types[1], 0, NULL, NULL,
                                       4096 + (help_random() >> 3) % (uint64_t)a.hi, NULL),
                  CAI_OK);
        found += cai_overlap(&a, &b) == CAI_OVERLAP_UNDECIDED;
    }
    printf("hard instances left undecided: %d of 51\n", found);
    CHECK(found > 0);
}

/* Strides that nobody makes on purpose: the search is given up, and neither fact is claimed. */
static void check_hard_self(void)
{
    const int64_t shape[3] = {1000, 100, 1001}, strides[3] = {-3903093, 373499, 3956669};
    cai_array a;
    CHECK_INT(cai_array_init_dtype(&a, &types[1], 3, shape, strides, (uint64_t)1 << 40, NULL), CAI_OK);
    CHECK_UINT(a.flags & (CAI_SELF_OVERLAP | CAI_NO_SELF_OVERLAP | CAI_DENSE), 0);
    CHECK_INT(cai_expect(&a, "a", CAI_ANY_DTYPE, 3, CAI_NO_SELF_OVERLAP | CAI_ALLOW_UNALIGNED, NULL),
              CAI_ERR_EXPECT);
}

/* A struct from elsewhere whose extent contradicts its shape: no verdict, and no division by 0. */
static void check_contradiction(void)
{
    cai_array a, b;
    CHECK_INT(cai_array_init_dtype(&a, &types[4], 0, NULL, NULL, 4096, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&b, &types[4], 0, NULL, NULL, 8192, NULL), CAI_OK);
    a.hi = 8192;
    CHECK_INT(cai_overlap(&a, &b), CAI_OVERLAP_UNDECIDED);
}

static void run(void)
{
    make_types();
    check_self_exhaustive();
    check_self_random();
    check_pairs_exhaustive();
    check_pairs_random();
    check_slices();
    printf("small instances: %lld decided, %lld undecided\n", (long long)decided,
           (long long)undecided);
    CHECK(undecided * 1000 <= decided);
    check_huge_self();
    check_huge_rows();
    check_huge_pairs();
    check_huge_interleaved();
    check_images();
    check_special();
    check_hard();
    check_hard_self();
    check_contradiction();
}

CAI_TEST_MAIN(run)
