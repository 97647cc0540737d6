/* fuzz_dlpack.c - libFuzzer target: whatever a tensor contains, ext/cai_dlpack.h judges it without harm.
 *
 *     clang -g -O2 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_dlpack.c -o fuzz_dlpack
 *
 * Imports tensors of any members, in each form of the struct. What may be accepted is decided here from
 * DLPack's comments and in 128 bits: element i lies at the sum of index * stride, times bits * lanes. What
 * was accepted is exported and imported again. Struct, shape and strides lie in blocks of their exact sizes. */

#define CAI_IMPLEMENTATION
#include "ext/cai_dlpack.h"

#include "fuzz.h"
#include "fuzz_naive.h"
#include "fuzz_source.h"

enum { MAX_AXES = 80 }; /* more than an array may have */

/* ------------------------------------------------------------------- >>tensors */

static uint32_t deleted; /* calls of the deleter of the tensor */
static void *deleted_self;
static uint32_t done;    /* calls of storage.done */

static void delete_plain(struct DLManagedTensor *self)
{
    deleted++;
    deleted_self = self;
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    deleted++;
    deleted_self = self;
}

static void count_done(cai_dlpack_storage *self)
{
    (void)self;
    done++;
}

/** Code, bits and lanes of DLPack 1.3, and the bytes of an element. */
static const struct {
    uint8_t code, bits, lanes, bytes;
} dtypes[] = {{0, 8, 1, 1},   {0, 16, 1, 2},  {0, 32, 1, 4},  {0, 64, 1, 8},  {1, 8, 1, 1},  {1, 16, 1, 2},
              {1, 32, 1, 4},  {1, 64, 1, 8},  {2, 16, 1, 2},  {2, 32, 1, 4},  {2, 64, 1, 8}, {4, 16, 1, 2},
              {5, 32, 1, 4},  {5, 64, 1, 8},  {5, 128, 1, 16}, {6, 8, 1, 1},  {7, 8, 1, 1},  {8, 8, 1, 1},
              {9, 8, 1, 1},   {10, 8, 1, 1},  {11, 8, 1, 1},  {12, 8, 1, 1},  {13, 8, 1, 1}, {14, 8, 1, 1},
              {0, 1, 8, 1},   {0, 2, 4, 1},   {0, 4, 2, 1},   {1, 1, 8, 1},   {1, 2, 4, 1},  {1, 4, 2, 1},
              {15, 6, 4, 3},  {16, 6, 4, 3},  {17, 4, 2, 1}};

enum { DTYPES = (int)(sizeof dtypes / sizeof dtypes[0]) };

static cai_dl_dtype choose_dtype(source *in)
{
    const int32_t row = (int32_t)(take(in) % DTYPES);
    cai_dl_dtype made;
    made.code = dtypes[row].code;
    made.bits = dtypes[row].bits;
    made.lanes = pick(in, 2) ? 1 : dtypes[row].lanes;
    switch (pick(in, 32)) {
    case 29: made.code = (uint8_t)take(in); break;
    case 30: made.bits = (uint8_t)take(in); break;
    case 31: made.lanes = (uint16_t)(take(in) << (pick(in, 9))); break;
    default: break;
    }
    return made;
}

static int64_t choose_extent(source *in)
{
    const uint32_t byte = take(in);
    if (byte < 224) return 1 + byte % 6;
    if (byte < 240) return byte % 2 ? 0 : take(in);
    return any_number(in);
}

/** Strides: of C order, perhaps with gaps, of an order that is turned, or any. */
static void choose_strides(source *in, int32_t ndim, const int64_t *shape, int64_t *strides)
{
    const int32_t kind = pick(in, 8);
    uint64_t run = kind == 7 ? 1 + take(in) : 1;
    int32_t i;
    for (i = ndim - 1; i >= 0; i--) {
        const int32_t axis = kind == 6 ? ndim - 1 - i : i;
        strides[axis] = (int64_t)run;
        run *= (uint64_t)shape[axis];
        if (kind == 5) run += (uint64_t)pick(in, 4);
        if (kind == 4) run = (run + 7) / 8 * 8;
    }
    if (kind != 2 && kind != 3) return;
    for (i = 0; i < ndim; i++) {
        const uint32_t choice = take(in);
        if (choice >= 240) strides[i] = any_number(in);
        else if (choice >= 96 || kind == 3) strides[i] = (int8_t)choice % 17;
    }
}

static int32_t choose_ndim(source *in)
{
    const int32_t choice = pick(in, 32);
    if (choice < 26) return choice % 5;
    if (choice < 29) return choice - 20;
    return choice == 29 ? pick(in, MAX_AXES) - 5 : choice == 30 ? 64 + pick(in, 3) : (int32_t)take_u64(in);
}

static void choose_device(source *in, cai_dl_device *out)
{
    static const int32_t types[] = {CAI_DL_CUDA, CAI_DL_CPU, CAI_DL_CUDA_HOST, CAI_DL_CUDA_MANAGED};
    const uint32_t choice = take(in);
    out->device_type = types[choice % 4];
    out->device_id = choice < 224 ? choice / 4 % 3 : (int32_t)any_number(in);
    if (choice >= 248) out->device_type = (int32_t)(choice < 252 ? take_u64(in) : take(in));
}

/** A tensor whose shape and strides have as many numbers as ndim says, if a tensor may have so many axes. */
static void choose_tensor(source *in, cai_dl_tensor *t)
{
    int64_t shape[MAX_AXES], strides[MAX_AXES];
    const uint32_t choice = take(in);
    int32_t i, count;
    memset(t, 0, sizeof *t);
    choose_device(in, &t->device);
    t->dtype = choose_dtype(in);
    t->ndim = choose_ndim(in);
    count = t->ndim < 0 || t->ndim > CAI_MAX_NDIM ? 0 : t->ndim;
    for (i = 0; i < count; i++) shape[i] = choose_extent(in);
    if (choice & 1) choose_strides(in, count, shape, strides);
    t->shape = choice >= 248 ? NULL : (int64_t *)keep(in, shape, (size_t)count * sizeof *shape);
    if (choice & 1) t->strides = (int64_t *)keep(in, strides, (size_t)count * sizeof *strides);
    t->data = (void *)(uintptr_t)(UINT64_C(0x7f0000000000) + (choice >> 1 & 15));
    if (choice >> 5 == 6) t->byte_offset = take(in);
    if (choice >> 5 != 5) return;
    t->data = (void *)(uintptr_t)(pick(in, 2) ? take(in) : (uint64_t)any_number(in));
    t->byte_offset = (uint64_t)any_number(in);
}

/* ------------------------------------------------------------------- >>verdicts */

/** What DLPack says about a tensor. */
typedef struct verdict {
    uint32_t wrong;   /* bit s: it may be refused with status s; 0: it must be accepted */
    uint32_t unsure;  /* the same, but it need not be refused */
    int32_t row;      /* of dtypes */
    int32_t packed;   /* 1: one lane holds a value below 8 bits; 2: an element has several values; 0: neither */
    int64_t bits;     /* from element to element of the tensor */
    int64_t values;   /* of an element of the array */
    int empty;
} verdict;

JUDGE static void judge_device(const cai_dl_tensor *t, verdict *v)
{
    const int32_t type = t->device.device_type;
    const int known = type == 1 || type == 2 || type == 3 || type == 13;
    if (!known || (type == 2 && t->device.device_id < 0)) v->wrong |= 1u << CAI_ERR_MEMORY;
}

JUDGE static void judge_dtype(const cai_dl_tensor *t, int padded, verdict *v)
{
    const cai_dl_dtype d = t->dtype;
    v->row = DTYPES;
    while (--v->row >= 0) {
        if (d.code == dtypes[v->row].code && d.bits == dtypes[v->row].bits) break;
    }
    if (v->row < 0 || (d.lanes != 1 && d.lanes != dtypes[v->row].lanes) || (padded && d.lanes > 1)) {
        v->wrong |= 1u << CAI_ERR_TYPESTR;
        return;
    }
    v->bits = d.bits * d.lanes;
    v->values = 1;
    if (d.bits >= 8) return;
    if (padded) v->bits = 8;
    else v->packed = d.lanes > 1 ? 2 : 1;
    if (!padded) v->values = dtypes[v->row].lanes;
}

/** The strides of a tensor, also where they are NULL. Where they exceed 64 bits, the shape is refused. */
JUDGE static void strides_of(const cai_dl_tensor *t, int64_t *strides)
{
    wide run = 1;
    for (int32_t i = t->ndim; i-- > 0;) {
        strides[i] = t->strides ? t->strides[i] : (int64_t)run;
        run = product(run, t->shape[i] > 1 ? t->shape[i] : 1);
        if (run > INT64_MAX) run = INT64_MAX;
    }
}

/** The axis along which the values of an element lie, -1 if there is none. */
JUDGE static int32_t values_axis(const cai_dl_tensor *t, const verdict *v, const int64_t *strides)
{
    int32_t i, alone = -1;
    if (v->packed == 2) {
        for (i = t->strides ? t->ndim : 0; i-- > 0;) if (strides[i] == 1) return i;
        return t->ndim - 1;
    }
    for (i = t->ndim; i-- > 0;) {
        if (t->shape[i] > 1 && (strides[i] == 1 || !t->strides)) return i;
        if (t->shape[i] <= 1 && alone < 0) alone = i;
    }
    return alone;
}

JUDGE static void judge_size(const cai_dl_tensor *t, verdict *v, const int64_t *strides)
{
    const int32_t axis = v->packed ? values_axis(t, v, strides) : -1;
    wide bytes = dtypes[v->row].bytes, values = 1;
    int32_t i;
    if (v->bits == 8) bytes = 1;
    for (i = 0; i < t->ndim; i++) {
        const int64_t extent = t->shape[i];
        if (extent < 0) v->wrong |= 1u << CAI_ERR_SHAPE;
        v->empty |= extent == 0;
        if (extent > 1) values = product(values, extent);
        if (extent > 1) bytes = product(bytes, v->packed == 1 && i == axis ? (extent - 1) / v->values + 1 : extent);
    }
    if (bytes > INT64_MAX) v->wrong |= 1u << CAI_ERR_SHAPE;
    if (v->packed == 1 && !t->strides && values > INT64_MAX) v->wrong |= 1u << CAI_ERR_SHAPE;
    if (v->packed == 2 && axis >= 0 && product(t->shape[axis], v->values) > INT64_MAX)
        v->wrong |= 1u << CAI_ERR_SHAPE;
}

/** One lane: every row begins at a whole element. Where nothing is, nobody needs to look. */
JUDGE static void judge_rows(const cai_dl_tensor *t, verdict *v, const int64_t *strides)
{
    const int32_t axis = values_axis(t, v, strides);
    uint32_t *const to = v->empty ? &v->unsure : &v->wrong;
    if (axis < 0) v->wrong |= 1u << CAI_ERR_STRIDES;
    for (int32_t i = 0; i < t->ndim; i++)
        if (i != axis && t->shape[i] > 1 && strides[i] % v->values) *to |= 1u << CAI_ERR_STRIDES;
}

/** Where the elements begin and end, in bytes from the address. */
JUDGE static void judge_reach(const cai_dl_tensor *t, verdict *v, const int64_t *strides)
{
    const wide size = v->bits == 8 ? 1 : dtypes[v->row].bytes, top = (wide)1 << 64;
    const int32_t axis = v->packed == 1 ? values_axis(t, v, strides) : -1;
    const wide data = (wide)(uintptr_t)t->data + (wide)t->byte_offset;
    wide lo = 0, hi = size;
    for (int32_t i = 0; i < t->ndim; i++) {
        wide span = product(t->shape[i] - 1, strides[i] / (v->packed == 1 ? v->values : 1));
        if (i == axis) span = (t->shape[i] - 1) / v->values;
        span = product(span, size);
        if (span < 0) lo += span;
        else hi += span;
    }
    if (lo < INT64_MIN || hi > INT64_MAX) v->wrong |= 1u << CAI_ERR_STRIDES, v->unsure |= 1u << CAI_ERR_DATA;
    if (!t->data || data >= top || data + lo < 0 || data + hi > top) v->wrong |= 1u << CAI_ERR_DATA;
}

JUDGE static void judge(const cai_dl_tensor *t, int padded, verdict *v)
{
    int64_t strides[CAI_MAX_NDIM];
    memset(v, 0, sizeof *v);
    judge_device(t, v);
    judge_dtype(t, padded, v);
    if (t->ndim < 0 || t->ndim > CAI_MAX_NDIM || (t->ndim && !t->shape)) {
        v->wrong |= 1u << CAI_ERR_SHAPE;
        return;
    }
    if (v->row < 0 || v->wrong & 1u << CAI_ERR_TYPESTR) { /* its sizes mean nothing, but may be looked at */
        v->wrong |= 1u << CAI_ERR_TYPESTR;
        v->unsure = 1u << CAI_ERR_SHAPE | 1u << CAI_ERR_STRIDES | 1u << CAI_ERR_DATA;
        return;
    }
    strides_of(t, strides);
    judge_size(t, v, strides);
    if (v->packed == 1) judge_rows(t, v, strides);
    if (v->wrong & 1u << CAI_ERR_SHAPE) v->unsure |= 1u << CAI_ERR_STRIDES | 1u << CAI_ERR_DATA;
    else if (!v->empty) judge_reach(t, v, strides);
}

/** The status is one of those that the verdict allows. */
JUDGE static void check_status(cai_status status, const verdict *v, const cai_error *err)
{
    if (err) check_error(status, err);
    if (status == CAI_OK) MUST(v->wrong == 0);
    else MUST(status < 32 && (v->wrong | v->unsure) >> status & 1);
}

/* ---------------------------------------------------------------------- >>arrays */

/** Places of the tensor's elements in C order, in bits; their number, -1 if there are too many. */
JUDGE static int32_t tensor_bits(const cai_dl_tensor *t, int64_t bits, int64_t *places)
{
    int64_t at[CAI_MAX_NDIM] = {0}, strides[CAI_MAX_NDIM], size = 1;
    int32_t count = 0, i;
    for (i = 0; i < t->ndim; i++) {
        if (t->shape[i] > MAX_NAIVE) return -1;
        size = size > MAX_NAIVE && t->shape[i] ? size : size * t->shape[i];
    }
    if (size > MAX_NAIVE) return -1;
    strides_of(t, strides);
    while (count < size) {
        uint64_t place = 0;
        for (i = 0; i < t->ndim; i++) place += (uint64_t)at[i] * (uint64_t)strides[i];
        places[count++] = (int64_t)(place * (uint64_t)bits);
        for (i = t->ndim - 1; i >= 0 && ++at[i] == t->shape[i]; i--) at[i] = 0;
    }
    return count;
}

/** The elements of the array are where the tensor has them. */
JUDGE static void check_places(const cai_dl_tensor *t, int64_t bits, int one_lane, const cai_array *a)
{
    int64_t want[MAX_NAIVE], have[MAX_NAIVE];
    const int32_t count = tensor_bits(t, bits, want);
    const int32_t found = one_lane ? value_bits(a, have) : element_offsets(a, have);
    int32_t i;
    MUST(a->ndim == t->ndim);
    for (i = 0; i < t->ndim; i++) MUST(t->shape[i] == (one_lane ? value_extent(a, i) : a->shape[i]));
    if (count < 0 || found < 0) return;
    MUST(count == found);
    for (i = 0; i < count; i++) MUST((uint64_t)want[i] == (uint64_t)have[i] * (one_lane ? 1u : 8u));
}

JUDGE static void check_place(const cai_dl_tensor *t, const cai_array *a)
{
    const int32_t type = t->device.device_type;
    const int32_t memory = type == 1 ? CAI_MEMORY_HOST : type == 3 ? CAI_MEMORY_PINNED
                           : type == 2 ? CAI_MEMORY_DEVICE : CAI_MEMORY_MANAGED;
    MUST(a->memory == memory && a->backend == CAI_BACKEND_CUDA && a->must_understand == 0);
    MUST(a->device == (type == 2 ? t->device.device_id : CAI_DEVICE_UNKNOWN));
}

/** An array that was accepted is what the tensor says. */
JUDGE static void check_imported(const cai_dl_tensor *t, const verdict *v, const cai_dlpack_options *options,
                                 const cai_array *a)
{
    const int writes = !(options->flags & (uint32_t)CAI_DLPACK_READ_ONLY);
    int64_t strides[CAI_MAX_NDIM];
    check_facts(a);
    check_place(t, a);
    strides_of(t, strides);
    MUST(!(a->flags & CAI_WRITABLE) == !writes && !a->mask && !a->fields && a->event == 0);
    MUST(!(a->flags & CAI_HAD_STRIDES) == !t->strides);
    MUST(a->stream == options->stream);
    MUST(a->sync == (a->memory == CAI_MEMORY_HOST && !options->sync ? CAI_SYNC_NONE : options->sync));
    MUST(a->size == 0 ? v->empty : a->data == (uint64_t)(uintptr_t)t->data + t->byte_offset);
    MUST(a->dtype.itemsize == (v->bits == 8 ? 1 : dtypes[v->row].bytes));
    MUST(cai_dtype_values(&a->dtype) == v->values);
    MUST(cai_dlpack_is_padded(&a->dtype) == (t->dtype.bits < 8 && !v->packed));
    check_places(t, v->bits, v->packed == 1, a);
    if (v->packed) MUST(a->packed_axis == values_axis(t, v, strides));
    if (v->packed == 2 && t->ndim) MUST(a->packed_extent == t->shape[a->packed_axis] * v->values);
}

/* --------------------------------------------------------------------- >>imports */

/** A tensor with what its struct may not lose in an import. */
typedef struct given {
    cai_dl_tensor tensor;
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
} given;

static size_t axes_of(const cai_dl_tensor *t)
{
    return t->ndim < 0 || t->ndim > CAI_MAX_NDIM ? 0 : (size_t)t->ndim;
}

JUDGE static void remember(const cai_dl_tensor *t, given *g)
{
    g->tensor = *t;
    if (t->shape) memcpy(g->shape, t->shape, axes_of(t) * sizeof *g->shape);
    if (t->strides) memcpy(g->strides, t->strides, axes_of(t) * sizeof *g->strides);
}

JUDGE static void check_kept(const cai_dl_tensor *t, const given *g)
{
    MUST(memcmp(t, &g->tensor, sizeof *t) == 0);
    if (t->shape) MUST(memcmp(t->shape, g->shape, axes_of(t) * sizeof *g->shape) == 0);
    if (t->strides) MUST(memcmp(t->strides, g->strides, axes_of(t) * sizeof *g->strides) == 0);
}

static void choose_options(source *in, cai_dlpack_options *out)
{
    static const uint32_t flags[] = {0, CAI_LENIENT, CAI_DLPACK_READ_ONLY, CAI_LENIENT | CAI_DLPACK_READ_ONLY};
    const uint32_t choice = take(in);
    memset(out, 0, sizeof *out);
    out->flags = flags[choice % 4];
    out->sync = choice >> 2 & 1 ? CAI_SYNC_NONE : CAI_SYNC_UNKNOWN;
    if (choice >> 3 == 1) out->sync = CAI_SYNC_STREAM;
    if (choice >> 3 == 1) out->stream = 1 + take(in);
    if (choice < 248) return;
    out->flags = pick(in, 4) ? out->flags : (uint32_t)take_u64(in);
    out->sync = (int32_t)(pick(in, 2) ? take(in) % 5 : take_u64(in));
    out->stream = pick(in, 2) ? take(in) : UINT64_MAX - take(in);
}

JUDGE static void judge_options(const cai_dlpack_options *o, verdict *v)
{
    const int stream = o->sync == CAI_SYNC_STREAM;
    if (o->flags > 3 || o->sync < 0 || o->sync > CAI_SYNC_STREAM || stream != (o->stream != 0) ||
        o->stream == UINT64_MAX)
        v->wrong |= 1u << CAI_ERR_ARGUMENT;
}

static void check_borrow(const cai_dl_tensor *t, const cai_dlpack_options *options, cai_array *out)
{
    verdict v;
    cai_error err;
    cai_status status;
    judge(t, 0, &v);
    judge_options(options, &v);
    memset(&err, FILL, sizeof err);
    memset(out, FILL, sizeof *out);
    status = cai_dlpack_borrow(t, options, out, &err);
    check_status(status, &v, &err);
    if (status != CAI_OK) MUST(is_untouched(out, sizeof *out));
    else MUST(!out->release && !(out->flags & CAI_NO_BACK_EDGE));
    if (status == CAI_OK) check_imported(t, &v, options, out);
}

/** The deleter is called once by the release, not before, and with the tensor. */
JUDGE static void check_owned(cai_array *a, int has_deleter, void *managed)
{
    MUST(deleted == 0 && !a->release == !has_deleter && (a->flags & CAI_NO_BACK_EDGE));
    cai_array_release(a);
    MUST(deleted == (uint32_t)has_deleter && !a->release && (!has_deleter || deleted_self == managed));
    cai_array_release(a);
    MUST(deleted == (uint32_t)has_deleter);
}

static void check_plain(source *in, const cai_dl_tensor *t, const cai_dlpack_options *options)
{
    cai_dl_managed made, *managed;
    const int has_deleter = pick(in, 4) != 3;
    cai_array a;
    cai_error err;
    cai_status status;
    verdict v;
    memset(&made, FILL, sizeof made);
    made.dl_tensor = *t;
    made.deleter = has_deleter ? delete_plain : NULL;
    managed = (cai_dl_managed *)keep(in, &made, sizeof made);
    judge(t, 0, &v);
    judge_options(options, &v);
    memset(&err, FILL, sizeof err);
    memset(&a, FILL, sizeof a);
    deleted = 0;
    status = cai_dlpack_import((struct DLManagedTensor *)(void *)managed, options, &a, &err);
    check_status(status, &v, &err);
    MUST(deleted == 0 && memcmp(managed, &made, sizeof made) == 0);
    if (status != CAI_OK) MUST(is_untouched(&a, sizeof a));
    if (status != CAI_OK) return;
    check_imported(t, &v, options, &a);
    check_owned(&a, has_deleter, managed);
}

/** Another major version: only version and deleter are there, and the deleter is called. */
static void check_major(source *in, uint32_t major)
{
    cai_dl_managed_versioned made;
    struct DLManagedTensorVersioned *managed;
    const int has_deleter = pick(in, 4) != 3;
    cai_array a;
    cai_error err;
    memset(&made, FILL, sizeof made);
    made.version.major = major;
    made.deleter = has_deleter ? delete_versioned : NULL;
    managed = (struct DLManagedTensorVersioned *)keep(in, &made, offsetof(cai_dl_managed_versioned, flags));
    memset(&err, FILL, sizeof err);
    memset(&a, FILL, sizeof a);
    deleted = 0;
    MUST(cai_dlpack_import_versioned(managed, NULL, &a, &err) == CAI_ERR_VERSION);
    check_error(CAI_ERR_VERSION, &err);
    MUST(deleted == (uint32_t)has_deleter && is_untouched(&a, sizeof a));
}

static void judge_versioned(const cai_dl_managed_versioned *m, const cai_dlpack_options *options, verdict *v)
{
    const cai_dl_tensor *t = &m->dl_tensor;
    judge(t, m->flags & CAI_DL_IS_PADDED ? 1 : 0, v);
    judge_options(options, v);
    if (options->flags & CAI_LENIENT) return;
    if (m->flags > 7) v->wrong |= 1u << CAI_ERR_ABI;
    if (m->version.minor > 1 && !t->strides && t->ndim > 0) v->wrong |= 1u << CAI_ERR_STRIDES;
}

/** Stores a borrow of the array, if the tensor was one, and returns whether. */
static int check_versioned(source *in, const cai_dl_tensor *t, const cai_dlpack_options *options,
                           cai_array *out)
{
    cai_dl_managed_versioned made, *managed;
    const uint32_t choice = take(in);
    const int has_deleter = pick(in, 4) != 3;
    cai_dlpack_options how = *options;
    cai_array a;
    cai_error err;
    cai_status status;
    verdict v;
    memset(&made, FILL, sizeof made);
    made.version.major = 1;
    made.version.minor = choice & 3;
    made.flags = choice >> 2 & 7;
    if (choice >= 240) made.flags = take_u64(in);
    made.deleter = has_deleter ? delete_versioned : NULL;
    made.dl_tensor = *t;
    managed = (cai_dl_managed_versioned *)keep(in, &made, sizeof made);
    judge_versioned(&made, options, &v);
    memset(&err, FILL, sizeof err);
    memset(&a, FILL, sizeof a);
    deleted = 0;
    status = cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)(void *)managed, options, &a, &err);
    check_status(status, &v, &err);
    MUST(deleted == 0 && memcmp(managed, &made, sizeof made) == 0);
    if (status != CAI_OK) MUST(is_untouched(&a, sizeof a));
    if (status != CAI_OK) return 0;
    if (made.flags & CAI_DL_READ_ONLY) how.flags |= (uint32_t)CAI_DLPACK_READ_ONLY;
    check_imported(t, &v, &how, &a);
    cai_array_borrow(out, &a);
    check_owned(&a, has_deleter, managed);
    return 1;
}

/* --------------------------------------------------------------------- >>exports */

/** Whether DLPack's structs can describe the array. For packed arrays it is not decided here: -1. */
JUDGE static int is_sayable(const cai_array *a, int versioned, uint32_t flags)
{
    int32_t i;
    if (a->memory < CAI_MEMORY_HOST || a->memory > CAI_MEMORY_DEVICE || a->mask) return 0;
    if (a->memory == CAI_MEMORY_DEVICE && a->device < 0) return 0;
    if (a->memory != CAI_MEMORY_HOST && a->backend != CAI_BACKEND_CUDA) return 0;
    if (a->size && a->sync != CAI_SYNC_NONE && !(flags & (uint32_t)CAI_DLPACK_ORDERED)) return 0;
    if (!versioned && !(a->flags & CAI_WRITABLE) && !(flags & (uint32_t)CAI_DLPACK_DROP_READ_ONLY)) return 0;
    if (!versioned && cai_dlpack_is_padded(&a->dtype) && !(flags & (uint32_t)CAI_DLPACK_PADDED)) return 0;
    for (i = 0; i < a->ndim && a->size; i++)
        if (a->shape[i] > 1 && a->strides[i] % a->dtype.itemsize) return 0;
    return cai_dtype_values(&a->dtype) > 1 ? -1 : 1;
}

/** The tensor of an export is the array, and is read as such again. */
JUDGE static void check_tensor(const cai_array *a, const cai_dl_tensor *t, uint32_t flags, int padded)
{
    const int several = cai_dtype_values(&a->dtype) > 1, one_lane = several && t->dtype.lanes == 1;
    cai_dlpack_options options = {0, CAI_SYNC_NONE, 0};
    cai_dl_device device;
    cai_array back;
    verdict v;
    MUST(cai_dlpack_device(a, &device, NULL) == CAI_OK && memcmp(&device, &t->device, sizeof device) == 0);
    MUST(t->ndim == a->ndim && t->byte_offset == 0 && (t->ndim == 0) == !t->strides);
    MUST((uint64_t)(uintptr_t)t->data == (a->size ? a->data : 0));
    MUST(one_lane == (several && (flags & (uint32_t)CAI_DLPACK_ONE_LANE)));
    judge(t, padded, &v);
    MUST(v.wrong == 0);
    check_places(t, v.bits, one_lane, a);
    if (padded) return;
    memset(&back, FILL, sizeof back);
    MUST(cai_dlpack_borrow(t, &options, &back, NULL) == CAI_OK);
    check_imported(t, &v, &options, &back);
    MUST(same_dtype(&back.dtype, &a->dtype) && back.size == a->size && same_shape(&back, a));
    if (!one_lane) MUST(same_values(&back, a));
}

/** Lends into storage of the exact size. On failure nothing is stored. */
static void check_lend(source *in, const cai_array *a, uint32_t flags)
{
    const size_t bytes = 2 * (size_t)a->ndim * sizeof(int64_t);
    int64_t *numbers = (int64_t *)keep(in, NULL, bytes);
    const int padded = cai_dlpack_is_padded(&a->dtype), sayable = is_sayable(a, 0, flags);
    cai_dl_tensor t;
    cai_error err;
    cai_status status;
    memset(numbers, FILL, bytes);
    memset(&t, FILL, sizeof t);
    memset(&err, FILL, sizeof err);
    status = cai_dlpack_lend(a, flags, numbers, &t, &err);
    check_error(status, &err);
    if (flags >> 9 || flags & 0x73u) MUST(status == CAI_ERR_ARGUMENT);
    else MUST(sayable < 0 ? status == CAI_OK || status == CAI_ERR_EXPORT
                          : status == (sayable ? CAI_OK : CAI_ERR_EXPORT));
    if (status == CAI_OK) check_tensor(a, &t, flags, padded);
    else MUST(is_untouched(&t, sizeof t) && is_untouched(numbers, bytes));
}

/** The consumer of an export calls the deleter. It releases the array, then calls `done`. */
static void consume(const cai_array *a, cai_dl_managed *plain, cai_dl_managed_versioned *versioned)
{
    cai_array got;
    const cai_status status =
        plain ? cai_dlpack_import((struct DLManagedTensor *)(void *)plain, NULL, &got, NULL)
              : cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)(void *)versioned, NULL, &got,
                                          NULL);
    MUST(status == CAI_OK && deleted == 0 && done == 0);
    MUST(got.size == a->size && same_dtype(&got.dtype, &a->dtype) && same_shape(&got, a));
    if (versioned) MUST(!(got.flags & CAI_WRITABLE) == !(a->flags & CAI_WRITABLE));
    cai_array_release(&got);
    MUST(deleted == 1 && done == 1);
}

static void release_counted(cai_array *self)
{
    self->release = NULL;
    MUST(done == 0);
    deleted++;
}

/** An owned array goes out and comes back; after a failure the caller still has it. */
static void check_export(const cai_array *a, uint32_t flags, int versioned)
{
    static cai_dlpack_storage storage;
    const uint32_t other = versioned ? CAI_DLPACK_COPIED : CAI_DLPACK_DROP_READ_ONLY;
    const uint32_t known = (uint32_t)CAI_DLPACK_ORDERED | (uint32_t)CAI_DLPACK_ONE_LANE | other;
    const int sayable = is_sayable(a, versioned, flags);
    cai_dl_managed *plain = NULL;
    cai_dl_managed_versioned *made = NULL;
    struct DLManagedTensor **const to_plain = (struct DLManagedTensor **)(void *)&plain;
    struct DLManagedTensorVersioned **const to_made = (struct DLManagedTensorVersioned **)(void *)&made;
    cai_array owned = *a;
    cai_error err;
    cai_status status;
    memset(&err, FILL, sizeof err);
    storage.done = count_done;
    deleted = done = 0;
    cai_array_own(&owned, release_counted, NULL);
    status = versioned ? cai_dlpack_export_versioned(&owned, flags, &storage, to_made, &err)
                       : cai_dlpack_export(&owned, flags, &storage, to_plain, &err);
    check_error(status, &err);
    MUST(deleted == 0 && done == 0);
    if (flags & ~known) MUST(status == CAI_ERR_ARGUMENT);
    else MUST(sayable < 0 ? status == CAI_OK || status == CAI_ERR_EXPORT
                          : status == (sayable ? CAI_OK : CAI_ERR_EXPORT));
    if (status != CAI_OK) {
        MUST(!plain && !made && owned.release == release_counted && same_array(&owned, a, 0));
        return;
    }
    MUST(!owned.release && storage.array.release == release_counted);
    if (made) MUST(made->version.major == 1 && made->version.minor == 3 && made->flags < 8);
    check_tensor(a, made ? &made->dl_tensor : &plain->dl_tensor, flags,
                 made && made->flags & CAI_DL_IS_PADDED ? 1 : 0);
    consume(a, plain, made);
}

/** Another array of the same memory: reversed, permuted, cut, reinterpreted. */
static void choose_view(source *in, cai_array *a)
{
    static const int32_t codes[] = {CAI_UINT8, CAI_INT4_X2, CAI_FLOAT6_E2M3FN_X4, CAI_INT1_X8, CAI_INT4};
    const int32_t axis = a->ndim ? pick(in, (uint32_t)a->ndim) : 0;
    cai_status status = CAI_OK;
    cai_dtype dtype;
    switch (pick(in, 8)) {
    case 1: status = cai_view_permute(a, NULL, a, NULL); break;
    case 2: status = cai_view_slice(a, axis, pick(in, 4), pick(in, 4), 1 + pick(in, 3), a, NULL); break;
    case 3: status = cai_view_expand(a, axis, a, NULL); break;
    case 4: status = cai_view_coalesce(a, a, NULL); break;
    case 5:
        MUST(cai_dtype_of(codes[pick(in, 5)], &dtype, NULL) == CAI_OK);
        status = cai_view_reinterpret(a, &dtype, a, NULL);
        break;
    case 6: status = cai_view_index(a, axis, pick(in, 4), a, NULL); break;
    default: break;
    }
    if (status != CAI_OK) MUST(cai_array_check(a, NULL) == CAI_OK);
}

/** A struct that no function of cai.h has made is refused, or told as it is. */
static void check_other_struct(source *in, const cai_array *a, uint32_t flags)
{
    int64_t numbers[2 * CAI_MAX_NDIM];
    const int32_t axis = a->ndim ? pick(in, (uint32_t)a->ndim) : 0;
    cai_array b = *a;
    cai_dl_tensor t;
    cai_status status;
    int32_t i;
    b.strides[axis] = any_number(in);
    switch (pick(in, 8)) {
    case 0: b.dtype.itemsize = (int32_t)any_number(in); break;
    case 1: b.dtype.bits = (int32_t)any_number(in); break;
    case 2: b.dtype.code = (int32_t)any_number(in); break;
    case 3: b.packed_axis = pick(in, 4) - 1; break;
    case 4: b.packed_extent = any_number(in); break;
    case 5: b.shape[axis] = any_number(in); break;
    case 6: b.size = any_number(in); break;
    default: b.data = take_u64(in); break;
    }
    status = cai_dlpack_lend(&b, flags & 0x18Cu, numbers, &t, NULL);
    MUST(status == CAI_OK || status == CAI_ERR_EXPORT || status == CAI_ERR_ABI);
    if (status != CAI_OK) return;
    MUST(t.ndim == b.ndim && (uint64_t)(uintptr_t)t.data == (b.size ? b.data : 0));
    if (cai_dtype_values(&b.dtype) > 1 && t.dtype.lanes == 1) return;
    for (i = 0; i < b.ndim; i++)
        MUST(t.shape[i] == b.shape[i] && t.strides[i] == b.strides[i] / b.dtype.itemsize);
}

/** Perhaps puts the array into other memory, or onto another backend. */
static void choose_place(source *in, cai_array *a)
{
    const uint32_t choice = take(in);
    if (choice < 200) return;
    if (choice & 1) a->memory = choice & 8 ? (int32_t)any_number(in) : pick(in, 8);
    if (choice & 2) a->device = choice & 8 ? (int32_t)any_number(in) : -1;
    if (choice & 4) a->backend = pick(in, 3);
}

static void check_exports(source *in, cai_array *a)
{
    const uint32_t choice = take(in);
    const uint32_t flags = pick(in, 8) < 7 ? take(in) % 16 << 2 & 0x1Cu : (uint32_t)take_u64(in);
    const uint32_t more = choice & 4 ? CAI_DLPACK_ONE_LANE : 0u;
    if (choice & 1) a->sync = CAI_SYNC_NONE;
    if (choice & 1) a->stream = 0;
    choose_view(in, a);
    choose_view(in, a);
    if (choice >= 224) check_other_struct(in, a, flags | more);
    choose_place(in, a);
    if (choice & 2) check_lend(in, a, flags | more | (choice & 8 ? CAI_DLPACK_PADDED : 0u));
    else check_export(a, (flags & ~(choice & 8 ? 4u : 16u)) | more, choice >> 3 & 1);
}

/* ----------------------------------------------------------------------- >>types */

/** A dtype from anywhere has a tensor's dtype that means it, or none. */
static void check_types(source *in)
{
    cai_dl_dtype there = choose_dtype(in), again;
    cai_dtype dtype, back;
    memset(&dtype, FILL, sizeof dtype);
    if (cai_dlpack_dtype_from(there, &dtype, NULL) == CAI_OK) {
        MUST(cai_dlpack_dtype_to(&dtype, &again, NULL) == CAI_OK);
        MUST(again.code == there.code && again.bits == there.bits);
    } else {
        MUST(is_untouched(&dtype, sizeof dtype));
        memset(&dtype, 0, sizeof dtype);
        dtype.code = (int32_t)any_number(in);
        dtype.itemsize = (int32_t)any_number(in);
        dtype.bits = (int32_t)take(in);
    }
    if (pick(in, 4) == 3) dtype.itemsize = (int32_t)any_number(in);
    if (pick(in, 4) == 3) dtype.code ^= (int32_t)(take(in) << 8 * pick(in, 4));
    memset(&again, FILL, sizeof again);
    if (cai_dlpack_dtype_to(&dtype, &again, NULL) != CAI_OK) {
        MUST(is_untouched(&again, sizeof again));
        return;
    }
    MUST(cai_dlpack_dtype_from(again, &back, NULL) == CAI_OK);
    MUST(back.code == dtype.code || (again.bits < 8 && again.lanes == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static source in;
    cai_dl_tensor *tensor, made;
    cai_dlpack_options options;
    cai_array borrowed, a;
    given before;
    if (size > 4096) return 0;
    in.bytes = data;
    in.left = size;
    in.block_count = 0;
    choose_tensor(&in, &made);
    tensor = (cai_dl_tensor *)keep(&in, &made, sizeof made);
    remember(tensor, &before);
    choose_options(&in, &options);
    check_borrow(tensor, &options, &borrowed);
    check_plain(&in, tensor, &options);
    if (check_versioned(&in, tensor, &options, &a)) {
        check_exports(&in, &a);
        check_exports(&in, &a);
    }
    check_kept(tensor, &before);
    if (pick(&in, 8) == 7) check_major(&in, take(&in) == 1 ? 0 : (uint32_t)take_u64(&in) | 2);
    check_types(&in);
    free_blocks(&in);
    return 0;
}
