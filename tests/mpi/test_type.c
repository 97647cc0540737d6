/* test_type.c - ext/cai_mpi_type.h: what MPI packs and unpacks against a loop over the elements
 * SPDX-License-Identifier: MIT
 *
 *     test_type [arrays [seed]]    how many random arrays: 20,000. With CAI_MPI_MAX_COUNT 3 the large counts. */
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_mpi_type.h"
#include "cai_test.h"
#include "cai_test_help.h"
#include "packed_model.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 5, MOST_BYTES = 1 << 16 };

static cai_error err;
static unsigned char block[MOST_BYTES], expected[MOST_BYTES], packed[MOST_BYTES], before[MOST_BYTES],
    dense[MOST_BYTES];

/* How many constructors a datatype has, but those of MPI itself. */
static int constructors_of(MPI_Datatype type)
{
    int ints[256], n_ints, n_addresses, n_types, combiner, i, sum = 1;
    MPI_Aint addresses[80];
    MPI_Datatype types[80];
    MPI_Type_get_envelope(type, &n_ints, &n_addresses, &n_types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return 0;
    CHECK(n_ints <= 256 && n_addresses <= 80 && n_types <= 80);
    MPI_Type_get_contents(type, n_ints, n_addresses, n_types, ints, addresses, types);
    for (i = 0; i < n_types; ++i) {
        const int inner = constructors_of(types[i]);
        sum += inner;
        if (inner) MPI_Type_free(&types[i]);
    }
    return sum;
}

/* The address of element `index` in C order. */
static unsigned char *element_at(const cai_array *array, int64_t index)
{
    unsigned char *at = (unsigned char *)(uintptr_t)array->data;
    int32_t i;
    for (i = array->ndim - 1; i >= 0; --i) {
        at += index % array->shape[i] * array->strides[i];
        index /= array->shape[i];
    }
    return at;
}

/* Packs the buffer of cai_transfer_pack by MPI: the `size` bytes that are expected of the array. */
static int compare_packed(const cai_array *array, int64_t size)
{
    MPI_Datatype type;
    cai_transfer plan;
    int position = 0, good;
    if (!CHECK_INT(cai_mpi_type_packed(array, &type, &err), CAI_OK)) return 0;
    CHECK_INT(cai_transfer_pack(&plan, array, (uint64_t)(uintptr_t)dense, &err), CAI_OK);
    cai_transfer_on_host(&plan);
    MPI_Pack(dense, array->size ? 1 : 0, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    good = CHECK_INT(position, size) & CHECK_BYTES(packed, expected, (size_t)size);
    MPI_Type_free(&type);
    return good;
}

/* Packs and unpacks by MPI. `bytes`: which bytes of an element belong to it. Returns 0 at a difference. */
static int compare(const cai_array *array, MPI_Datatype type, const unsigned char *bytes)
{
    const int64_t itemsize = array->dtype.itemsize;
    MPI_Aint low, extent;
    int64_t n, b, size = 0;
    const int one = array->size ? 1 : 0;
    int position = 0, type_size, good;
    for (n = 0; n < array->size; ++n) {
        for (b = 0; b < itemsize; ++b)
            if (!bytes || bytes[b]) expected[size++] = element_at(array, n)[b];
    }
    MPI_Type_size(type, &type_size);
    MPI_Type_get_true_extent(type, &low, &extent);
    good = CHECK_INT(type_size, size);
    if (array->size && !bytes) good &= CHECK_INT(low, array->lo) & CHECK_INT(low + extent, array->hi);
    MPI_Pack((const void *)(uintptr_t)array->data, one, type, packed, sizeof packed, &position,
             MPI_COMM_SELF);
    good &= CHECK_INT(position, size) & CHECK_BYTES(packed, expected, (size_t)size);
    good &= compare_packed(array, size);
    if (!(array->flags & CAI_NO_SELF_OVERLAP)) return good;
    memcpy(before, block, sizeof block);
    for (n = 0; n < size; ++n) packed[n] = (unsigned char)(packed[n] ^ 0xff);
    position = 0;
    MPI_Unpack(packed, (int)size, &position, (void *)(uintptr_t)array->data, one, type, MPI_COMM_SELF);
    for (n = 0; n < array->size; ++n) { /* turned back, all is as it was */
        for (b = 0; b < itemsize; ++b)
            if (!bytes || bytes[b]) element_at(array, n)[b] ^= 0xff;
    }
    return good & CHECK_BYTES(block, before, sizeof block);
}

static const char *const typestrs[] = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1",   "<u2",
                                       "<u4", "<u8", "<f2", "<f4", "<f8", "<c8",   "<c16",
                                       ">f4", ">i8", "|S3", "<U2", "|V5", "<M8[s]"};

static int random_array(cai_array *out)
{
    const char *const typestr = typestrs[help_between(0, sizeof typestrs / sizeof typestrs[0] - 1)];
    const packed_kind *const narrow = help_between(0, 3) ? NULL : random_kind();
    const int32_t ndim = (int32_t)help_between(0, MOST_AXES);
    int64_t shape[MOST_AXES], strides[MOST_AXES], first = 0, step;
    int32_t order[MOST_AXES], i;
    cai_dtype dtype;
    CHECK_INT(narrow ? cai_dtype_of(help_between(0, 1) ? narrow->packed : narrow->single, &dtype, &err)
                     : cai_dtype_parse(typestr, (int64_t)strlen(typestr), 0, &dtype, &err), CAI_OK);
    step = dtype.itemsize;
    for (i = 0; i < ndim; ++i) {
        order[i] = i;
        shape[i] = help_between(0, 40) ? help_between(1, 5) : 0;
    }
    for (i = ndim - 1; i > 0; --i) {
        const int32_t with = help_between(0, 2) ? i : (int32_t)help_between(0, i), kept = order[i];
        order[i] = order[with];
        order[with] = kept;
    }
    for (i = ndim - 1; i >= 0; --i) {
        const int64_t pad = help_between(0, 2)   ? 0
                            : help_between(0, 2) ? dtype.itemsize * help_between(0, 2)
                                                 : help_between(0, 5);
        int64_t *const stride = &strides[order[i]];
        *stride = help_between(0, 12) ? step + pad : help_between(0, 4);
        if (*stride < dtype.itemsize && help_between(0, 3)) *stride = step;
        step = (shape[order[i]] ? shape[order[i]] : 1) * *stride + (help_between(0, 2) ? 0 : dtype.itemsize);
        if (step < dtype.itemsize) step = dtype.itemsize;
        if (!help_between(0, 5)) {
            first += shape[order[i]] ? (shape[order[i]] - 1) * *stride : 0;
            *stride = -*stride;
        }
    }
    if (step > MOST_BYTES / 2) return 0;
    return !cai_array_init_dtype(out, &dtype, ndim, shape, strides, (uint64_t)(uintptr_t)(block + 64 + first),
                                 &err);
}

static void test_random(int64_t count)
{
    static cai_array array;
    MPI_Datatype type;
    int64_t n = 0, tries, i;
    for (i = 0; i < MOST_BYTES; ++i) block[i] = (unsigned char)help_between(0, 255);
    for (tries = 0; n < count && tries < 4 * count; ++tries) {
        if (!random_array(&array)) continue;
        ++n;
        if (!CHECK_INT(cai_mpi_type(&array, &type, &err), CAI_OK)) break;
        if (!compare(&array, type, NULL)) {
            char text[600];
            puts(cai_array_text(&array, text, sizeof text) ? text : text);
            break;
        }
        MPI_Type_free(&type);
    }
    CHECK_INT(n, count);
    printf("%ld random arrays: MPI packs what a loop packs\n", (long)n);
}

/* A view of a field of doubles of shape 6 x 7 x 8, and how many constructors it needs. */
static void check_count(const cai_array *view, int constructors, const char *what)
{
    MPI_Datatype type;
    int found;
    if (!CHECK_INT(cai_mpi_type(view, &type, &err), CAI_OK)) return;
    found = constructors_of(type);
    CHECK(compare(view, type, NULL));
    MPI_Type_free(&type);
    printf("%-36s %d constructor%s\n", what, found, found == 1 ? "" : "s");
    if (CAI_MPI_MAX_COUNT == INT_MAX) CHECK_INT(found, constructors);
}

static void test_constructors(void)
{
    static cai_array field, view, other;
    const int64_t shape[3] = {6, 7, 8}, strides[3] = {8, 48, 336};
    const int32_t turned[3] = {2, 0, 1};
    CHECK_INT(cai_array_init(&field, CAI_FLOAT64, 3, shape, NULL, block, &err), CAI_OK);
    check_count(&field, 1, "a whole field: contiguous");
    CHECK_INT(cai_view_slice(&field, 0, 1, 2, 1, &view, &err), CAI_OK);
    check_count(&view, 1, "planes of the outer axis: contiguous");
    CHECK_INT(cai_view_slice(&field, 1, 1, 2, 1, &view, &err), CAI_OK);
    check_count(&view, 1, "planes of the middle axis: a vector");
    CHECK_INT(cai_view_slice(&field, 2, 0, 1, 1, &view, &err), CAI_OK);
    check_count(&view, 1, "planes of the inner axis: a vector");
    CHECK_INT(cai_view_slice(&view, 1, 1, 3, 1, &other, &err), CAI_OK);
    check_count(&other, 1, "an edge: a subarray");
    CHECK_INT(cai_view_slice(&field, 2, 1, 3, 1, &view, &err), CAI_OK);
    CHECK_INT(cai_view_slice(&view, 1, 1, 3, 1, &other, &err), CAI_OK);
    check_count(&other, 1, "a box: a subarray");
    CHECK_INT(cai_view_slice(&other, 0, 5, 6, -1, &view, &err), CAI_OK);
    check_count(&view, 2, "a box, one axis backward");
    CHECK_INT(cai_view_permute(&field, turned, &view, &err), CAI_OK);
    check_count(&view, 2, "axes in another order");
    CHECK_INT(cai_array_init(&view, CAI_FLOAT64, 3, shape, strides, block, &err), CAI_OK);
    check_count(&view, 3, "C order of a field in Fortran order");
}

static cai_field field_of(const char *name, int32_t code, int64_t offset, int64_t items, int32_t parent)
{
    cai_field field;
    memset(&field, 0, sizeof field);
    field.name = name;
    field.name_length = (uint32_t)strlen(name);
    CHECK_INT(cai_dtype_of(code, &field.dtype, &err), CAI_OK);
    field.offset = offset;
    field.nbytes = items * field.dtype.itemsize;
    field.parent = parent;
    if (items > 1) {
        field.ndim = 1;
        field.shape[0] = items;
    }
    return field;
}

/* {x: float32, 4 bytes of padding, 2 x {a: int8, b: float64 at 8}, z: 3 x bfloat16} in 48 bytes */
static void test_records(void)
{
    static const unsigned char bytes[48] = {1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    static cai_field rows[70];
    static cai_array array, view;
    const int64_t shape[2] = {5, 4};
    MPI_Datatype type;
    cai_dtype dtype;
    int i;
    CHECK_INT(cai_dtype_parse("|V48", 4, 0, &dtype, &err), CAI_OK);
    rows[0] = field_of("x", CAI_FLOAT32, 0, 1, -1);
    rows[1] = field_of("", CAI_INT32, 4, 1, -1); /* padding */
    rows[2] = field_of("y", CAI_INT8, 8, 1, -1);
    CHECK_INT(cai_dtype_parse("|V16", 4, 0, &rows[2].dtype, &err), CAI_OK);
    rows[2].nbytes = 32;
    rows[2].child_count = 2;
    rows[3] = field_of("a", CAI_INT8, 0, 1, 2);
    rows[4] = field_of("b", CAI_FLOAT64, 8, 1, 2);
    rows[5] = field_of("z", CAI_BFLOAT16, 40, 3, -1);
    CHECK_INT(cai_array_init_dtype(&array, &dtype, 2, shape, NULL, (uint64_t)(uintptr_t)block, &err), CAI_OK);
    array.fields = rows;
    array.field_count = 6;
    CHECK_INT(cai_view_slice(&array, 1, 1, 2, 1, &view, &err), CAI_OK);
    CHECK_INT(view.field_count, 6);
    if (CHECK_INT(cai_mpi_type(&view, &type, &err), CAI_OK)) {
        CHECK(compare(&view, type, bytes));
        MPI_Type_free(&type);
    }
    for (i = 0; i < 65; ++i) rows[i] = field_of("f", CAI_INT8, i % 48, 1, -1);
    array.field_count = 64;
    if (CHECK_INT(cai_mpi_type(&array, &type, &err), CAI_OK)) MPI_Type_free(&type);
    array.field_count = 65;
    CHECK_INT(cai_mpi_type(&array, &type, &err), CAI_ERR_CAPACITY);
    CHECK_STR(err.message, "a record has more than 64 fields");
}

static void test_dtypes(void)
{
    static const int32_t none[] = {CAI_FLOAT16,           CAI_BFLOAT16,  CAI_FLOAT8_E4M3FN,
                                   CAI_FLOAT8_E5M2,       CAI_COMPLEX32, CAI_SWAPPED(CAI_FLOAT32),
                                   CAI_SWAPPED(CAI_INT64)};
    static const int32_t some[] = {CAI_BOOL,       CAI_INT8,        CAI_INT16,      CAI_INT32,
                                   CAI_INT64,      CAI_UINT8,       CAI_UINT16,     CAI_UINT32,
                                   CAI_UINT64,     CAI_FLOAT32,     CAI_FLOAT64,    CAI_COMPLEX64,
                                   CAI_COMPLEX128, CAI_TIMEDELTA64, CAI_DATETIME64, CAI_LONG_DOUBLE};
    MPI_Datatype type = MPI_BYTE;
    cai_dtype dtype;
    size_t i;
    int size;
    float values[2] = {3, 4}, sums[2] = {0, 0};
    for (i = 0; i < sizeof none / sizeof none[0]; ++i) {
        CHECK_INT(cai_dtype_of(none[i], &dtype, &err), CAI_OK);
        CHECK_INT(cai_mpi_dtype(&dtype, &type, &err), CAI_ERR_EXPORT);
    }
    CHECK_STR(err.message, "MPI has no datatype for int64 in the other byte order");
    CHECK(type == MPI_BYTE);
    for (i = 0; i < sizeof some / sizeof some[0]; ++i) {
        CHECK_INT(cai_dtype_of(some[i], &dtype, &err), CAI_OK);
        CHECK_INT(cai_mpi_dtype(&dtype, &type, &err), CAI_OK);
        MPI_Type_size(type, &size);
        CHECK_INT(size, dtype.itemsize);
        CHECK_INT(constructors_of(type), 0);
    }
    CHECK_INT(cai_dtype_of(CAI_COMPLEX64, &dtype, &err), CAI_OK);
    CHECK_INT(cai_mpi_dtype(&dtype, &type, &err), CAI_OK);
    MPI_Reduce_local(values, sums, 1, type, MPI_SUM);
    CHECK(sums[0] == 3 && sums[1] == 4); /* a sum of a complex number: MPI knows it as one */
}

/* A message between two arrays of the same values that lie differently in memory: the values arrive. MPI has no
 * datatype below 8 bits. */
static void test_packed_dtypes(void)
{
    static model to, from;
    int32_t round;
    for (round = 0; round < 2000; ++round) {
        const packed_kind *k = random_kind();
        int64_t shape[3], turned[3] = {1, 1, 1};
        int32_t ndim, i;
        const int32_t axis = random_values(k, &ndim, shape);
        MPI_Datatype sent, received, none;
        cai_array x, y;
        for (i = 0; i < ndim; ++i) turned[i] = shape[ndim - 1 - i];
        for (i = 0; i < MOST_BYTES; ++i) block[i] = (unsigned char)help_between(0, 255);
        CHECK_INT(cai_array_init_packed(&x, k->packed, ndim, shape, axis, NULL, block, &err), CAI_OK);
        CHECK_INT(cai_array_init_packed(&y, k->packed, ndim, turned, ndim - 1 - axis, NULL, dense, &err), CAI_OK);
        CHECK_INT(cai_view_permute(&y, NULL, &y, &err), CAI_OK);
        CHECK_INT(cai_mpi_dtype(&x.dtype, &none, &err), CAI_ERR_EXPORT);
        if (!x.size) continue;
        if (!CHECK_INT(cai_mpi_type(&x, &sent, &err), CAI_OK)) continue;
        if (!CHECK_INT(cai_mpi_type(&y, &received, &err), CAI_OK)) continue;
        MPI_Sendrecv((const void *)(uintptr_t)x.data, 1, sent, 0, 7, (void *)(uintptr_t)y.data, 1, received, 0, 7,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE);
        model_of(&x, k, &from);
        model_of(&y, k, &to);
        CHECK_INT(values_differ(&to, &from, k->bits), 0);
        MPI_Type_free(&sent);
        MPI_Type_free(&received);
    }
}

static void test_refused(void)
{
    static cai_array array;
    const int64_t shape[1] = {8};
    MPI_Datatype type;
    cai_dtype dtype;
    CHECK_INT(cai_mpi_type(NULL, &type, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_type_packed(NULL, &type, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_array_init(&array, CAI_FLOAT32, 1, shape, NULL, block, &err), CAI_OK);
    CHECK_INT(cai_mpi_type(&array, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_STR(err.message, "out is NULL");
    CHECK_INT(cai_mpi_type_packed(&array, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_dtype(NULL, &type, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_mpi_dtype(&array.dtype, NULL, &err), CAI_ERR_ARGUMENT);
    CHECK_INT(cai_dtype_parse("|t8", 3, 0, &dtype, &err), CAI_OK);
    array.dtype = dtype;
    CHECK_INT(cai_mpi_type(&array, &type, &err), CAI_ERR_EXPECT);
    CHECK_INT(cai_mpi_status(MPI_SUCCESS, "MPI_Send", &err), CAI_OK);
    CHECK_INT(cai_mpi_status(MPI_ERR_TAG, "MPI_Send", &err), CAI_ERR_MPI);
    CHECK_INT(err.native, MPI_ERR_TAG);
    CHECK(strstr(err.message, "MPI_Send: MPI error") != NULL);
}

int main(int argc, char **argv)
{
    const int64_t arrays = argc > 1 ? strtoll(argv[1], NULL, 0) : 20000;
    if (argc > 2) help_random_state = strtoull(argv[2], NULL, 0);
    MPI_Init(NULL, NULL);
    test_random(arrays);
    test_constructors();
    test_records();
    test_dtypes();
    test_packed_dtypes();
    test_refused();
    MPI_Finalize();
    return cai_test_end();
}
