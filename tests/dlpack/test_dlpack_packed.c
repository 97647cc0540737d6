/* test_dlpack_packed.c - values below 8 bits by DLPack: three forms, both ways.
 * SPDX-License-Identifier: MIT
 *
 * The oracle is DLPack's own sentence: "for a packed data set D ((D >> (i * bits)) && bit_mask) stores the i-th
 * element". So value i of a tensor with one lane begins at bit i * bits, where i is the sum of index * stride. */
#if defined(CAI_TESTS_LINKED)
#define CAI_DLPACK_IMPLEMENTATION
#else
#define CAI_IMPLEMENTATION
#endif
#include "cai_dlpack.h"
#include "cai_test.h"
#include "cai_test_help.h"

typedef struct row {
    int32_t packed, single;
    uint8_t code, bits, values, bytes;
} row;

/* Codes and bits from DLPack 1.3. */
static const row rows[] = {
    {CAI_INT1_X8, CAI_INT1, 0, 1, 8, 1},   {CAI_INT2_X4, CAI_INT2, 0, 2, 4, 1},   {CAI_INT4_X2, CAI_INT4, 0, 4, 2, 1},
    {CAI_UINT1_X8, CAI_UINT1, 1, 1, 8, 1}, {CAI_UINT2_X4, CAI_UINT2, 1, 2, 4, 1}, {CAI_UINT4_X2, CAI_UINT4, 1, 4, 2, 1},
    {CAI_FLOAT6_E2M3FN_X4, CAI_FLOAT6_E2M3FN, 15, 6, 4, 3}, {CAI_FLOAT6_E3M2FN_X4, CAI_FLOAT6_E3M2FN, 16, 6, 4, 3},
    {CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN, 17, 4, 2, 1}};

enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

static unsigned char memory[1 << 16];

static cai_dl_dtype dtype_of(uint8_t code, uint8_t bits, uint16_t lanes)
{
    cai_dl_dtype made;
    made.code = code;
    made.bits = bits;
    made.lanes = lanes;
    return made;
}

static cai_dl_tensor tensor_of(cai_dl_dtype dtype, int32_t ndim, int64_t *shape, int64_t *strides)
{
    cai_dl_tensor t;
    memset(&t, 0, sizeof t);
    t.data = memory + 4096;
    t.device.device_type = CAI_DL_CPU;
    t.ndim = ndim;
    t.dtype = dtype;
    t.shape = shape;
    t.strides = strides;
    return t;
}

/* ------------------------------------------------------------------ dtypes */

static void check_dtypes(void)
{
    for (int32_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        cai_dl_dtype made;
        cai_dtype dtype;
        cai_test_note(cai_dtype_name(r->packed));
        for (uint16_t lanes = 0; lanes < 10; lanes++) {
            const int right = lanes == 1 || lanes == r->values;
            CHECK_INT(cai_dlpack_dtype_from(dtype_of(r->code, r->bits, lanes), &dtype, NULL),
                      right ? CAI_OK : CAI_ERR_TYPESTR);
            if (right) CHECK_INT(dtype.code, r->packed);
        }
        CHECK_INT(cai_dtype_of(r->packed, &dtype, NULL), CAI_OK);
        CHECK_INT(cai_dlpack_is_padded(&dtype), 0);
        CHECK_INT(cai_dlpack_dtype_to(&dtype, &made, NULL), CAI_OK);
        CHECK(made.code == r->code && made.bits == r->bits && made.lanes == r->values);
        CHECK_INT(cai_dtype_of(r->single, &dtype, NULL), CAI_OK);
        CHECK_INT(cai_dlpack_is_padded(&dtype), 1);
        CHECK_INT(cai_dlpack_dtype_to(&dtype, &made, NULL), CAI_OK);
        CHECK(made.code == r->code && made.bits == r->bits && made.lanes == 1);
        dtype.itemsize = 2; /* a struct from elsewhere, whose code and size differ */
        CHECK_INT(cai_dlpack_dtype_to(&dtype, &made, NULL), CAI_ERR_EXPORT);
    }
    cai_test_note("");
}

/* A bit field has bits, but no byte for each of them. */
static void check_bit_field(void)
{
    cai_dtype dtype;
    CHECK_INT(cai_dtype_parse("|t4", 3, 0, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_dlpack_is_padded(&dtype), 0);
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, NULL), CAI_OK);
    dtype.bits = 4; /* its code says otherwise */
    CHECK_INT(cai_dlpack_is_padded(&dtype), 0);
    CHECK_INT(cai_dtype_of(CAI_FLOAT8_E8M0FNU, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_dlpack_is_padded(&dtype), 0);
}

/* A maker that writes the code alone: its bytes are not taken for packed values. */
static void check_code_alone(void)
{
    const int64_t shape[1] = {8};
    cai_dl_device device;
    cai_array a;
    cai_error e;
    CHECK_INT(cai_array_init(&a, CAI_INT4, 1, shape, NULL, memory, &e), CAI_OK);
    a.memory = CAI_MEMORY_HOST;
    CHECK_INT(cai_dlpack_device(&a, &device, &e), CAI_OK);
    a.dtype.bits = 0;
    CHECK_INT(cai_dlpack_is_padded(&a.dtype), 1);
    CHECK_INT(cai_dlpack_device(&a, &device, &e), CAI_ERR_ABI);
    CHECK_STR(e.message, "dtype.bits = 0, itemsize = 1: dtype.code = 0xc6901 has 4 bits");
}

/* ------------------------------------------------------------------ one lane */

/* Compares the bit of each value with DLPack's sentence. */
static void check_bits(const cai_dl_tensor *t, const int64_t *strides, const row *r, const cai_array *a)
{
    int64_t index[3] = {0}, count = 1;
    for (int32_t i = 0; i < t->ndim; i++) {
        CHECK_INT(i == a->packed_axis ? a->packed_extent : a->shape[i], t->shape[i]);
        count *= t->shape[i];
    }
    for (int64_t n = 0; n < count; n++) {
        int64_t place = 0, byte = 0, bit = 0;
        for (int32_t i = 0; i < t->ndim; i++) place += index[i] * strides[i];
        for (int32_t i = 0; i < t->ndim; i++)
            byte += (i == a->packed_axis ? index[i] / r->values : index[i]) * a->strides[i];
        if (a->packed_axis >= 0) bit = index[a->packed_axis] % r->values * r->bits;
        CHECK_INT((int64_t)(a->data - (uint64_t)(uintptr_t)t->data) * 8 + byte * 8 + bit, place * r->bits);
        for (int32_t i = t->ndim - 1; i >= 0 && ++index[i] == t->shape[i]; i--) index[i] = 0;
    }
}

/* An export with one lane has the tensor's shape, and its strides where they are used. */
static void check_back(const cai_dl_tensor *t, const int64_t *strides, cai_array *a)
{
    static cai_dlpack_storage storage;
    cai_dl_tensor *made = &storage.versioned.dl_tensor;
    struct DLManagedTensorVersioned *out;
    a->sync = CAI_SYNC_NONE;
    storage.done = NULL;
    CHECK_INT(cai_dlpack_export_versioned(a, CAI_DLPACK_ONE_LANE, &storage, &out, NULL), CAI_OK);
    CHECK(made->dtype.code == t->dtype.code && made->dtype.bits == t->dtype.bits && made->dtype.lanes == 1);
    CHECK_UINT(storage.versioned.flags, 0);
    for (int32_t i = 0; i < t->ndim; i++) {
        CHECK_INT(made->shape[i], t->shape[i]);
        if (a->size && t->shape[i] > 1) CHECK_INT(made->strides[i], strides[i]);
    }
}

/* Counts the axes along which a row would begin within an element. One axis of stride 1 may. */
static int64_t torn(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t values)
{
    int64_t bad = 0, ones = 0, single = 0;
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] > 1) bad += strides[i] % values != 0;
        if (shape[i] > 1) ones += strides[i] == 1;
        else single++;
    }
    if (ones) return bad - 1;
    return bad || single ? bad : 1; /* no axis can be the packed one */
}

static void check_one_lane(void)
{
    int64_t taken = 0, refused = 0;
    for (int32_t round = 0; round < 20000; round++) {
        const row *r = &rows[help_between(0, ROWS - 1)];
        const int32_t ndim = (int32_t)help_between(1, 3), unit = (int32_t)help_between(0, ndim - 1);
        const int compact = help_between(0, 2) == 0;
        int64_t shape[3], strides[3], run = 1, left;
        cai_dl_tensor t;
        cai_array a;
        cai_error err;
        cai_status status;
        for (int32_t i = 0; i < ndim; i++) {
            shape[i] = help_between(help_between(0, 9) > 0, i == unit && !compact ? 4 * r->values : 5);
        }
        for (int32_t k = 0; k < ndim; k++) { /* the axis `unit` first, then the others from the last */
            const int32_t i = compact ? ndim - 1 - k : k == 0 ? unit : ndim - k - (ndim - k <= unit);
            strides[i] = run;
            if (i == unit && !compact) run = (shape[i] / r->values + help_between(1, 2)) * r->values;
            else run *= shape[i] > 0 ? shape[i] : 1;
            if (!compact && help_between(0, 19) == 0) run++;
        }
        t = tensor_of(dtype_of(r->code, r->bits, 1), ndim, shape, compact && help_between(0, 1) ? NULL : strides);
        left = torn(ndim, shape, strides, r->values);
        memset(&err, 0, sizeof err);
        status = cai_dlpack_borrow(&t, NULL, &a, &err);
        cai_test_note(err.message);
        CHECK_INT(status, left ? CAI_ERR_STRIDES : CAI_OK);
        if (status) {
            refused++;
            continue;
        }
        taken++;
        CHECK_INT(cai_array_check(&a, NULL), CAI_OK);
        CHECK_INT(a.dtype.code, r->packed);
        CHECK_INT((a.flags & CAI_HAD_STRIDES) != 0, t.strides != NULL);
        check_bits(&t, strides, r, &a);
        check_back(&t, strides, &a);
    }
    cai_test_note("");
    printf("%lld tensors of one lane, %lld refused\n", (long long)taken, (long long)refused);
    CHECK(taken > 5000 && refused > 1000);
}

/* ------------------------------------------------------------------ the other forms, and errors */

static void refuses(cai_status status, cai_status want, const cai_error *err, const char *message)
{
    CHECK_INT(status, want);
    CHECK_STR(err->message, message);
}

static void check_lanes(void)
{
    int64_t shape[2] = {4, 3}, strides[2] = {3, 1};
    cai_dl_tensor t = tensor_of(dtype_of(17, 4, 2), 2, shape, strides), out;
    int64_t numbers[4];
    cai_array a;
    cai_error e;
    CHECK_INT(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_OK);
    CHECK_INT(a.dtype.code, CAI_FLOAT4_E2M1FN_X2);
    CHECK(a.packed_axis == 1 && a.packed_extent == 6 && a.strides[0] == 3);
    CHECK_INT(cai_dlpack_lend(&a, 0, numbers, &out, &e), CAI_OK);
    CHECK(out.dtype.lanes == 2 && out.shape[1] == 3 && out.strides[0] == 3);
    t.strides = NULL;
    CHECK_INT(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_OK);
    CHECK_INT(a.strides[0], 3);
    t.ndim = 0;
    CHECK_INT(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_OK);
    CHECK_INT(a.packed_axis, -1);
    refuses(cai_dlpack_lend(&a, CAI_DLPACK_ONE_LANE, NULL, &out, &e), CAI_ERR_EXPORT, &e,
            "shape: the values of an element lie along no axis, as one lane needs");
    t.dtype.lanes = 1;
    refuses(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_ERR_STRIDES, &e,
            "strides: no axis of stride 1 holds the 2 values of an element");
    t.dtype.lanes = 4;
    refuses(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_ERR_TYPESTR, &e,
            "dtype: code = 17 (float4_e2m1fn), bits = 4, lanes = 4 must have 1 lane, or below 8 bits as many as "
            "fill whole bytes");
}

/* The values of lanes lie along the last axis of stride 1, else the last. PyTorch gives transposed views so. */
static void check_lanes_axis(void)
{
    static const struct {
        int64_t shape[2], strides[2];
        int32_t axis;
    } cases[] = {{{32, 128}, {1, 32}, 0}, {{128, 32}, {32, 1}, 1}, {{4, 1}, {1, 1}, 1}, {{1, 4}, {1, 2}, 0},
                 {{4, 1}, {1, 4}, 0},     {{4, 4}, {8, 2}, 1},     {{0, 4}, {1, 4}, 0}};
    for (int32_t i = 0; i < (int32_t)(sizeof cases / sizeof cases[0]); i++) {
        int64_t shape[2], strides[2], numbers[4], values[2];
        cai_dl_tensor t = tensor_of(dtype_of(17, 4, 2), 2, shape, strides), out;
        cai_array a, back;
        cai_error e;
        memcpy(shape, cases[i].shape, sizeof shape);
        memcpy(strides, cases[i].strides, sizeof strides);
        CHECK_INT(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_OK);
        CHECK_INT(a.packed_axis, cases[i].axis);
        CHECK_INT(a.packed_extent, 2 * shape[cases[i].axis]);
        CHECK_INT(cai_dlpack_lend(&a, 0, numbers, &out, &e), CAI_OK);
        CHECK_INT(cai_dlpack_borrow(&out, NULL, &back, &e), CAI_OK);
        CHECK(back.packed_axis == a.packed_axis && back.packed_extent == a.packed_extent);
        for (int32_t axis = 0; axis < 2; axis++) { /* the same elements, packed along either axis */
            cai_status status;
            for (int32_t n = 0; n < 2; n++) values[n] = n == axis ? 2 * shape[n] : shape[n];
            CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, values, axis, strides, memory, &e), CAI_OK);
            a.sync = CAI_SYNC_NONE;
            a.memory = CAI_MEMORY_HOST;
            status = cai_dlpack_lend(&a, 0, numbers, &out, &e);
            CHECK_INT(status, axis == cases[i].axis ? CAI_OK : CAI_ERR_EXPORT);
            if (status) CHECK(strstr(e.message, "(CAI_DLPACK_ONE_LANE)") != NULL);
        }
    }
}

/* Strides in C order that 64 bits do not hold, although the elements are few enough. */
static void check_too_many(void)
{
    int64_t shape[5] = {2, 2, 2, 2, INT64_C(1) << 61};
    cai_dl_tensor t = tensor_of(dtype_of(1, 1, 1), 5, shape, NULL);
    cai_array a;
    cai_error e;
    CHECK_INT(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_ERR_SHAPE);
    CHECK_INT(e.index, 2);
    CHECK_STR(e.message, "shape[2] = 2 makes more than 9223372036854775807 values");
}

static void check_rows(void)
{
    int64_t shape[2] = {4, 5}, numbers[4], gap[2] = {8, 2}, huge[2] = {INT64_MAX - 1, 1}, most = INT64_MAX;
    cai_dl_tensor t = tensor_of(dtype_of(17, 4, 1), 2, shape, NULL), out;
    cai_array a;
    cai_error e;
    refuses(cai_dlpack_borrow(&t, NULL, &a, &e), CAI_ERR_STRIDES, &e,
            "strides[0] = 5 values is no multiple of the 2 in an element");
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, shape, 1, NULL, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    memset(numbers, 0x5a, sizeof numbers);
    refuses(cai_dlpack_lend(&a, 0, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "shape[1] = 5 values do not fill elements of 2 (CAI_DLPACK_ONE_LANE)");
    CHECK_INT(numbers[0], 0x5a5a5a5a5a5a5a5a); /* on failure nothing is stored */
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, shape, 0, NULL, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    refuses(cai_dlpack_lend(&a, 0, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "strides: the values of an element lie along axis 0, a reader of lanes takes axis 1 (CAI_DLPACK_ONE_LANE)");
    CHECK_INT(cai_array_init_packed(&a, CAI_INT1_X8, 1, &most, 0, NULL, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    refuses(cai_dlpack_lend(&a, 0, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "shape[0] = 9223372036854775807 values do not fill elements of 8 (CAI_DLPACK_ONE_LANE)");
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, shape, 1, gap, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    refuses(cai_dlpack_lend(&a, CAI_DLPACK_ONE_LANE, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "strides[1] = 2 bytes leaves gaps between elements of a packed axis");
    shape[0] = 1;
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, shape, 1, huge, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    refuses(cai_dlpack_lend(&a, CAI_DLPACK_ONE_LANE, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "strides[0] = 9223372036854775806 bytes exceeds 64 bits in values");
    huge[0] = -huge[0];
    CHECK_INT(cai_array_init_packed(&a, CAI_FLOAT4_E2M1FN_X2, 2, shape, 1, huge, memory, &e), CAI_OK);
    a.sync = CAI_SYNC_NONE;
    a.memory = CAI_MEMORY_HOST;
    memset(numbers, 0x5a, sizeof numbers);
    refuses(cai_dlpack_lend(&a, CAI_DLPACK_ONE_LANE, numbers, &out, &e), CAI_ERR_EXPORT, &e,
            "strides[0] = -9223372036854775806 bytes exceeds 64 bits in values");
    CHECK_INT(numbers[3], 0x5a5a5a5a5a5a5a5a);
}

/* A byte for each value: the mark of the versioned struct, both ways. */
static void check_padded(void)
{
    static cai_dlpack_storage storage;
    int64_t shape[2] = {4, 5}, numbers[4];
    cai_dl_managed_versioned m;
    struct DLManagedTensorVersioned *out;
    struct DLManagedTensor *plain;
    cai_dl_tensor lent;
    cai_array a;
    cai_error e;
    memset(&m, 0, sizeof m);
    m.version.major = 1;
    m.flags = CAI_DL_IS_PADDED;
    m.dl_tensor = tensor_of(dtype_of(0, 4, 1), 2, shape, NULL);
    CHECK_INT(cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)(void *)&m, NULL, &a, &e), CAI_OK);
    CHECK_INT(a.dtype.code, CAI_INT4);
    CHECK(a.packed_axis == -1 && a.strides[0] == 5 && a.nbytes == 20);
    CHECK_INT(cai_dlpack_export_versioned(&a, 0, &storage, &out, &e), CAI_OK);
    CHECK_UINT(storage.versioned.flags, CAI_DL_IS_PADDED);
    CHECK(storage.versioned.dl_tensor.dtype.lanes == 1 && storage.versioned.dl_tensor.strides[0] == 5);
    refuses(cai_dlpack_lend(&a, 0, numbers, &lent, &e), CAI_ERR_EXPORT, &e,
            "dtype: int4 has a byte for each value: only the versioned struct says so");
    CHECK_INT(cai_dlpack_lend(&a, CAI_DLPACK_PADDED, numbers, &lent, &e), CAI_OK);
    CHECK_INT(cai_dlpack_lend(&a, CAI_DLPACK_PADDED | CAI_DLPACK_ONE_LANE, numbers, &lent, &e), CAI_OK);
    CHECK(lent.shape[1] == 5 && lent.strides[0] == 5 && lent.dtype.lanes == 1); /* it has one lane anyway */
    CHECK_INT(cai_dlpack_export(&a, CAI_DLPACK_PADDED, &storage, &plain, &e), CAI_ERR_ARGUMENT);
    m.dl_tensor.dtype.lanes = 2;
    CHECK_INT(cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)(void *)&m, NULL, &a, &e), CAI_ERR_TYPESTR);
    m.dl_tensor.dtype = dtype_of(2, 32, 1); /* the mark says nothing of whole bytes */
    CHECK_INT(cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)(void *)&m, NULL, &a, &e), CAI_OK);
}

static void run(void)
{
    check_dtypes();
    check_bit_field();
    check_code_alone();
    check_one_lane();
    check_lanes();
    check_lanes_axis();
    check_too_many();
    check_rows();
    check_padded();
}

CAI_TEST_MAIN(run)
