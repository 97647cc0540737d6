/* test_dlpack.c - ext/cai_dlpack.h: dtypes, devices, layouts, owners, and tensors of random bytes.
 * SPDX-License-Identifier: MIT
 *
 * All structs are those of dlpack.h, from 0.6 on. */
#if defined(CAI_TESTS_LINKED)
#define CAI_DLPACK_IMPLEMENTATION
#else
#define CAI_IMPLEMENTATION
#endif
#include <dlpack/dlpack.h>

#include "cai_dlpack.h"
#include "cai_test.h"
#include "cai_test_help.h"

#if defined(DLPACK_MAJOR_VERSION)
#define MINOR DLPACK_MINOR_VERSION
#else
#define MINOR (-1)
#endif

static cai_error err;
static float values[64];

#include "calls_of_cai.h" /* GOOD, REFUSED */

/* ------------------------------------------------------------------ dtypes */

/* What DLPack and cai call the same. */
static const struct { int32_t code, bits, cai; } types[] = {
    {0, 8, CAI_INT8}, {0, 16, CAI_INT16}, {0, 32, CAI_INT32}, {0, 64, CAI_INT64},
    {1, 8, CAI_UINT8}, {1, 16, CAI_UINT16}, {1, 32, CAI_UINT32}, {1, 64, CAI_UINT64},
    {2, 16, CAI_FLOAT16}, {2, 32, CAI_FLOAT32}, {2, 64, CAI_FLOAT64}, {4, 16, CAI_BFLOAT16},
    {5, 32, CAI_COMPLEX32}, {5, 64, CAI_COMPLEX64}, {5, 128, CAI_COMPLEX128}, {6, 8, CAI_BOOL},
    {7, 8, CAI_FLOAT8_E3M4}, {8, 8, CAI_FLOAT8_E4M3}, {9, 8, CAI_FLOAT8_E4M3B11FNUZ},
    {10, 8, CAI_FLOAT8_E4M3FN}, {11, 8, CAI_FLOAT8_E4M3FNUZ}, {12, 8, CAI_FLOAT8_E5M2},
    {13, 8, CAI_FLOAT8_E5M2FNUZ}, {14, 8, CAI_FLOAT8_E8M0FNU}};
enum { TYPES = sizeof types / sizeof *types };

static DLDataType dl_type(int32_t code, int32_t bits, int32_t lanes)
{
    DLDataType made;
    made.code = (uint8_t)code;
    made.bits = (uint8_t)bits;
    made.lanes = (uint16_t)lanes;
    return made;
}

/* What a unit with dlpack.h writes for the header's functions: one cast. */
#define TENSOR(tensor) ((cai_dl_tensor *)(tensor))
#define DTYPE(dtype) ((cai_dl_dtype *)(dtype))

static cai_status dtype_from(DLDataType in, cai_dtype *out, cai_error *to)
{
    return cai_dlpack_dtype_from(*DTYPE(&in), out, to);
}

/* The numbers above are those of the dlpack.h at hand. */
static void check_codes(void)
{
    CHECK_INT(kDLInt, 0);
    CHECK_INT(kDLUInt, 1);
    CHECK_INT(kDLFloat, 2);
    CHECK_INT(kDLBfloat, 4);
    CHECK_INT(kDLComplex, 5);
    CHECK_INT(kDLCPU, 1);
    CHECK_INT(kDLCUDA, 2);
    CHECK_INT(kDLCUDAHost, 3);
    CHECK_INT(kDLROCM, 10);
    CHECK_INT(kDLCUDAManaged, 13);
#if MINOR >= 0
    CHECK_INT(kDLBool, 6);
    CHECK_UINT(DLPACK_FLAG_BITMASK_READ_ONLY, 1);
    CHECK_UINT(DLPACK_FLAG_BITMASK_IS_COPIED, 2);
#endif
#if MINOR >= 1
    CHECK_INT(kDLFloat8_e3m4, 7);
    CHECK_INT(kDLFloat8_e4m3, 8);
    CHECK_INT(kDLFloat8_e4m3b11fnuz, 9);
    CHECK_INT(kDLFloat8_e4m3fn, 10);
    CHECK_INT(kDLFloat8_e4m3fnuz, 11);
    CHECK_INT(kDLFloat8_e5m2, 12);
    CHECK_INT(kDLFloat8_e5m2fnuz, 13);
    CHECK_INT(kDLFloat8_e8m0fnu, 14);
    CHECK_INT(kDLFloat6_e2m3fn, 15);
    CHECK_INT(kDLFloat6_e3m2fn, 16);
    CHECK_INT(kDLFloat4_e2m1fn, 17);
#endif
}

/* Below 8 bits: test_dlpack_packed.c. */
static int is_narrow(int32_t code, int32_t bits)
{
    return code < 2 ? bits == 1 || bits == 2 || bits == 4 : code == 17 ? bits == 4 : bits == 6 && (code == 15 || code == 16);
}

/* Every code with every number of bits: right, or refused with nothing stored. */
static void check_dtypes_in(void)
{
    int32_t code, bits, i, found = 0;
    cai_dtype made, same;
    for (code = 0; code < 256; code++)
        for (bits = 0; bits < 256; bits++) {
            if (is_narrow(code, bits)) continue;
            for (i = 0; i < TYPES && (types[i].code != code || types[i].bits != bits);) i++;
            help_fill(&made, sizeof made);
            if (i == TYPES) {
                CHECK_INT(dtype_from(dl_type(code, bits, 1), &made, &err), CAI_ERR_TYPESTR);
                CHECK(help_filled(&made, sizeof made));
                CHECK_INT(err.entry, CAI_ENTRY_TYPESTR);
                continue;
            }
            GOOD(dtype_from(dl_type(code, bits, 1), &made, &err));
            CHECK_INT(made.code, types[i].cai);
            CHECK_INT(made.itemsize, bits / 8);
            GOOD(cai_dtype_of(made.code, &same, &err));
            CHECK(!memcmp(&made, &same, sizeof made));
            found++;
        }
    CHECK_INT(found, TYPES);
    for (i = 0; i < 65536; i++)
        CHECK_INT(dtype_from(dl_type(2, 32, i), &made, NULL), i == 1 ? CAI_OK : CAI_ERR_TYPESTR);
    REFUSED(dtype_from(dl_type(17, 6, 1), &made, &err), CAI_ERR_TYPESTR,
            "code = 17 (float4_e2m1fn), bits = 6, lanes = 1 is not a whole number of bytes");
    REFUSED(dtype_from(dl_type(15, 4, 1), &made, &err), CAI_ERR_TYPESTR, "(float6_e2m3fn)");
    REFUSED(dtype_from(dl_type(16, 8, 1), &made, &err), CAI_ERR_TYPESTR,
            "(float6_e3m2fn), bits = 8, lanes = 1 is not supported");
    REFUSED(dtype_from(dl_type(2, 32, 4), &made, &err), CAI_ERR_TYPESTR,
            "code = 2 (float), bits = 32, lanes = 4 must have 1 lane");
    REFUSED(dtype_from(dl_type(1, 3, 1), &made, &err), CAI_ERR_TYPESTR, "(uint), bits = 3, lanes");
    REFUSED(dtype_from(dl_type(2, 128, 1), &made, &err), CAI_ERR_TYPESTR,
            "has a size that is not supported");
    REFUSED(dtype_from(dl_type(3, 64, 1), &made, &err), CAI_ERR_TYPESTR, "(opaque handle)");
    REFUSED(dtype_from(dl_type(18, 8, 1), &made, &err), CAI_ERR_TYPESTR, "(unknown)");
    REFUSED(dtype_from(dl_type(2, 32, 1), NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
}

static void dtype_out(int32_t code)
{
    DLDataType made;
    cai_dtype dtype;
    int32_t i;
    GOOD(cai_dtype_of(code, &dtype, &err));
    for (i = 0; i < TYPES && types[i].cai != code;) i++;
    help_fill(&made, sizeof made);
    if (i == TYPES) {
        CHECK_INT(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT);
        CHECK_INT(err.entry, CAI_ENTRY_TYPESTR);
        CHECK(help_filled(&made, sizeof made));
    } else {
        GOOD(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err));
        CHECK_INT(made.code, types[i].code);
        CHECK_INT(made.bits, types[i].bits);
        CHECK_INT(made.lanes, 1);
    }
    dtype.itemsize *= 2; /* does not go with the code */
    CHECK_INT(cai_dlpack_dtype_to(&dtype, DTYPE(&made), NULL), CAI_ERR_EXPORT);
}

static void check_dtypes_out(void)
{
    static const char *const others[] = {"|S8", "@U2", "|V4", "|t8", "|t1", "@M8[ns]", "@m8", "`c8"};
    DLDataType made;
    cai_dtype dtype;
    size_t i;
#define CAI_EACH(name, kind, bytes, format, text)                                                            \
    if (bytes && format < 10) dtype_out(name);                                                               \
    if (bytes > 1 && !format) dtype_out(CAI_SWAPPED(name));
    CAI_DTYPE_LIST(CAI_EACH)
#undef CAI_EACH
    for (i = 0; i < sizeof others / sizeof *others; i++) {
        dtype = help_dtype(others[i]);
        CHECK_INT(cai_dlpack_dtype_to(&dtype, DTYPE(&made), NULL), CAI_ERR_EXPORT);
    }
    dtype = help_dtype("`f4");
    REFUSED(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT,
            "float32 of 4 bytes: the bytes are swapped");
    dtype = help_dtype("@f16");
    REFUSED(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT,
            "float128 of 16 bytes: DLPack has IEEE floats without padding");
    dtype = help_dtype("|V12");
    REFUSED(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT, "void of 12 bytes: DLPack has no such");
    dtype = help_dtype("@c16");
    dtype.itemsize = 8;
    REFUSED(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT,
            "complex128 of 8 bytes: DLPack has no such");
    memset(&dtype, 0, sizeof dtype);
    REFUSED(cai_dlpack_dtype_to(&dtype, DTYPE(&made), &err), CAI_ERR_EXPORT,
            "unknown of 0 bytes: DLPack has no such");
    REFUSED(cai_dlpack_dtype_to(NULL, DTYPE(&made), &err), CAI_ERR_ARGUMENT, "in is NULL");
    REFUSED(cai_dlpack_dtype_to(&dtype, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
}

/* ------------------------------------------------------------------ imports */

static DLTensor tensor_of(int32_t device_type, int32_t ndim, int64_t *shape, int64_t *strides)
{
    DLTensor made;
    memset(&made, 0, sizeof made);
    made.data = values;
    memcpy(&made.device.device_type, &device_type, sizeof device_type);
    made.ndim = ndim;
    made.dtype = dl_type(2, 32, 1);
    made.shape = shape;
    made.strides = strides;
    return made;
}

static void check_devices_in(void)
{
    int64_t shape[1] = {5};
    DLTensor t;
    cai_array x;
    int32_t type;
    for (type = -3; type < 40; type++) {
        const int32_t memory = type == 1 ? CAI_MEMORY_HOST : type == 2 ? CAI_MEMORY_DEVICE
                             : type == 3 ? CAI_MEMORY_PINNED : type == 13 ? CAI_MEMORY_MANAGED : -1;
        t = tensor_of(type, 1, shape, NULL);
        t.device.device_id = 3;
        if (memory < 0) {
            REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_MEMORY, "is not CPU, CUDA, CUDAHost");
            continue;
        }
        GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
        CHECK_INT(x.memory, memory);
        CHECK_INT(x.device, type == 2 ? 3 : CAI_DEVICE_UNKNOWN);
        CHECK_INT(x.sync, type == 1 ? CAI_SYNC_NONE : CAI_SYNC_UNKNOWN);
    }
    t = tensor_of(10, 1, shape, NULL);
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_MEMORY, "type 10 (ROCm) is not");
    t = tensor_of(2, 1, shape, NULL);
    t.device.device_id = -1;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_MEMORY, "id = -1 is negative");
    t = tensor_of(1, 1, shape, NULL);
    t.device.device_id = -1;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
}

static void check_layouts_in(void)
{
    int64_t shape[3] = {2, 3, 4}, strides[3] = {-12, 1, 3}, huge = (int64_t)1 << 62;
    DLTensor t = tensor_of(1, 3, shape, NULL);
    cai_array x;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_INT(x.strides[0], 48);
    CHECK_INT(x.strides[1], 16);
    CHECK_INT(x.strides[2], 4);
    CHECK_INT(x.nbytes, 96);
    CHECK((x.flags & CAI_WRITABLE) && (x.flags & CAI_C_CONTIGUOUS) && !(x.flags & CAI_HAD_STRIDES));
    CHECK(x.release == NULL);
    CHECK_INT(x.version, 3);
    t.strides = strides;
    t.byte_offset = 48;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_UINT(x.data, (uintptr_t)values + 48);
    CHECK_INT(x.strides[0], -48);
    CHECK_INT(x.strides[1], 4);
    CHECK_INT(x.strides[2], 12);
    CHECK_INT(x.lo, -48);
    CHECK_INT(x.hi, 48);
    CHECK(x.flags & CAI_HAD_STRIDES);
    t.byte_offset = 3; /* need not be aligned */
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK(!(x.flags & CAI_ALIGNED));
    strides[1] = huge;
    memset(&err, 0, sizeof err);
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_STRIDES,
            "strides[1] = 4611686018427387904 elements of 4 bytes exceed 64 bits");
    strides[1] = INT64_MIN;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_STRIDES, "strides[1] = -9223372036854775808");
    shape[1] = 1; /* nothing moves along it */
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_INT(x.strides[1], 0);
    strides[1] = INT64_MAX / 4;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_INT(x.strides[1], INT64_MAX / 4 * 4);
    shape[1] = 3;
    strides[1] = INT64_MIN;
    shape[2] = 0; /* nor in an empty array */
    t.data = NULL;
    t.byte_offset = UINT64_MAX;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_UINT(x.data, 0);
    CHECK_INT(x.size, 0);
    t.data = values;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_UINT(x.data, 0);
    t = tensor_of(1, 0, NULL, NULL);
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_INT(x.size, 1);
    t.shape = t.strides = shape;
    GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err));
    CHECK_INT(x.nbytes, 4);
}

/* Strides of C order are read by a way of their own. The array is the one that cai_array_init_dtype makes of them. */
static void check_c_order(void)
{
    static const int64_t shapes[][3] = {{2, 3, 4}, {1, 3, 1}, {5, 1, 1}, {3, 0, 2}, {0, 3, 2}, {2, 2, 0},
                                        {2, -1, 3}, {3, 1 << 20, 1 << 20}, {2, INT32_MAX, 1 << 27},
                                        {2, (int64_t)1 << 40, 4}, {(int64_t)1 << 40, 1 << 13, 1 << 20}};
    size_t i;
    for (i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
        const int64_t *const given = shapes[i];
        int64_t shape[3], strides[3], bytes[3];
        DLTensor t = tensor_of(1, 3, shape, strides);
        cai_array x, y;
        cai_dtype dtype;
        cai_error other;
        cai_status status;
        int axis;
        memcpy(shape, given, sizeof shape);
        strides[2] = 1;
        strides[1] = given[2];
        strides[0] = given[1] * given[2];
        for (axis = 0; axis < 3; ++axis) bytes[axis] = strides[axis] * 4;
        GOOD(dtype_from(t.dtype, &dtype, &err));
        status = cai_array_init_dtype(&y, &dtype, 3, shape, bytes, (uintptr_t)t.data, &other);
        CHECK_INT(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), status);
        if (status) CHECK(!strcmp(err.message, other.message));
        if (status) continue;
        CHECK_INT(x.flags, y.flags);
        CHECK_INT(x.size, y.size);
        CHECK_INT(x.nbytes, y.nbytes);
        CHECK_INT(x.hi, y.hi);
        CHECK(!memcmp(x.shape, y.shape, sizeof shape) && !memcmp(x.strides, y.strides, sizeof strides));
    }
}

static void check_refusals_in(void)
{
    int64_t shape[65] = {2, 3};
    DLTensor t = tensor_of(1, 2, shape, NULL);
    cai_array x;
    help_fill(&x, sizeof x);
    REFUSED(cai_dlpack_borrow(NULL, NULL, &x, &err), CAI_ERR_ARGUMENT, "tensor is NULL");
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    t.ndim = 65;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_SHAPE, "ndim = 65 is not in 0..64");
    t.ndim = -1;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_SHAPE, "ndim = -1 is not in 0..64");
    t.ndim = 2;
    t.shape = NULL;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_SHAPE, "shape is NULL, but ndim = 2");
    t.shape = shape;
    shape[1] = -3;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_SHAPE, "shape[1] = -3 is negative");
    shape[1] = INT64_MAX;
    CHECK_INT(cai_dlpack_borrow(TENSOR(&t), NULL, &x, NULL), CAI_ERR_SHAPE);
    shape[1] = 3;
    t.data = NULL;
    CHECK_INT(cai_dlpack_borrow(TENSOR(&t), NULL, &x, NULL), CAI_ERR_DATA);
    t.byte_offset = 64; /* does not make it a pointer */
    CHECK_INT(cai_dlpack_borrow(TENSOR(&t), NULL, &x, NULL), CAI_ERR_DATA);
    t.data = values;
    t.byte_offset = UINT64_MAX - 100;
    REFUSED(cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err), CAI_ERR_DATA, "byte_offset = 18446744073709551515 exceed");
    t.byte_offset = UINTPTR_MAX - (uintptr_t)values; /* the first element fits, no more */
    CHECK_INT(cai_dlpack_borrow(TENSOR(&t), NULL, &x, NULL), sizeof(void *) == 8 ? CAI_ERR_DATA : CAI_OK);
    if (sizeof(void *) == 8) CHECK(help_filled(&x, sizeof x));
}

static void check_options(void)
{
    static const struct { uint32_t flags; int32_t sync; uint64_t stream; cai_status status; } rows[] = {
        {0, 0, 0, 0}, {0, CAI_SYNC_NONE, 0, 0}, {0, CAI_SYNC_STREAM, 1, 0}, {0, CAI_SYNC_STREAM, 77, 0},
        {CAI_LENIENT, 0, 0, 0}, {CAI_DLPACK_READ_ONLY, 0, 0, 0}, {CAI_DLPACK_ORDERED, 0, 0, CAI_ERR_ARGUMENT},
        {1u << 31, 0, 0, CAI_ERR_ARGUMENT}, {0, CAI_SYNC_STREAM, 0, CAI_ERR_ARGUMENT},
        {0, CAI_SYNC_STREAM, UINT64_MAX, CAI_ERR_ARGUMENT}, {0, CAI_SYNC_NONE, 1, CAI_ERR_ARGUMENT},
        {0, CAI_SYNC_UNKNOWN, 1, CAI_ERR_ARGUMENT}, {0, CAI_SYNC_EVENT, 1, CAI_ERR_ARGUMENT},
        {0, CAI_SYNC_EVENT, 0, CAI_ERR_ARGUMENT}, {0, -1, 0, CAI_ERR_ARGUMENT}, {0, 4, 0, CAI_ERR_ARGUMENT}};
    int64_t shape[1] = {4};
    DLTensor t = tensor_of(2, 1, shape, NULL);
    cai_dlpack_options options;
    cai_array x;
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        options.flags = rows[i].flags;
        options.sync = rows[i].sync;
        options.stream = rows[i].stream;
        memset(&x, 0, sizeof x);
        CHECK_INT(cai_dlpack_borrow(TENSOR(&t), &options, &x, &err), rows[i].status);
        if (rows[i].status) continue;
        CHECK_INT(x.sync, rows[i].sync);
        CHECK_UINT(x.stream, rows[i].stream);
        CHECK_INT((x.flags & CAI_WRITABLE) != 0, !(rows[i].flags & CAI_DLPACK_READ_ONLY));
    }
    options.flags = 0;
    options.sync = CAI_SYNC_STREAM;
    options.stream = 0;
    memset(&err, 0, sizeof err);
    REFUSED(cai_dlpack_borrow(TENSOR(&t), &options, &x, &err), CAI_ERR_ARGUMENT,
            "stream = 0 does not fit sync = 2");
    t = tensor_of(1, 1, shape, NULL); /* on the host, and yet the caller knows of a copy that comes */
    options.stream = 5;
    GOOD(cai_dlpack_borrow(TENSOR(&t), &options, &x, &err));
    CHECK_INT(x.sync, CAI_SYNC_STREAM);
}

/* cai_error.rule. The status is the same without an error. */
static void check_rules(void)
{
    enum { NDIM, NO_SHAPE, EXTENT, DEVICE, ROCM, TYPE, FAR_STRIDE, FAR, ZERO, MINUS_ONE, NO_SYNC, COUNT };
    static const struct {
        cai_status status;
        int32_t rule;
    } rows[COUNT] = {{CAI_ERR_SHAPE, 29}, {CAI_ERR_SHAPE, 0}, {CAI_ERR_SHAPE, 17}, {CAI_ERR_MEMORY, 0},
                     {CAI_ERR_MEMORY, 106}, {CAI_ERR_TYPESTR, 0}, {CAI_ERR_STRIDES, 27}, {CAI_ERR_DATA, 28},
                     {CAI_ERR_ARGUMENT, 71}, {CAI_ERR_ARGUMENT, 74}, {CAI_ERR_ARGUMENT, 0}};
    int32_t i;
    for (i = 0; i < COUNT; i++) {
        int64_t shape[65] = {2, 3}, strides[65] = {3, 1};
        DLTensor t = tensor_of(i == ROCM ? 10 : i == DEVICE ? 7 : 2, 2, shape, strides);
        cai_dlpack_options options = {0, 0, 0};
        cai_array x;
        if (i == NDIM) t.ndim = 65;
        if (i == NO_SHAPE) t.shape = NULL;
        if (i == EXTENT) shape[0] = -1;
        if (i == TYPE) t.dtype.lanes = 4;
        if (i == FAR_STRIDE) strides[0] = INT64_MAX / 2;
        if (i == FAR) t.byte_offset = UINT64_MAX - 100;
        if (i == ZERO || i == MINUS_ONE) options.sync = CAI_SYNC_STREAM;
        if (i == MINUS_ONE) options.stream = UINT64_MAX;
        if (i == NO_SYNC) options.stream = 7;
        memset(&err, 0x5a, sizeof err);
        CHECK_INT(cai_dlpack_borrow(TENSOR(&t), &options, &x, &err), rows[i].status);
        CHECK_INT(err.code, rows[i].status);
        CHECK_INT(err.rule, rows[i].rule);
        CHECK_INT(cai_dlpack_borrow(TENSOR(&t), &options, &x, NULL), rows[i].status);
    }
}

/* ------------------------------------------------------------------ owners */

static int32_t deleted;
static void *deleted_last;

static void delete_plain(DLManagedTensor *self)
{
    deleted++;
    deleted_last = self;
}

static void check_owner(void)
{
    int64_t shape[1] = {4};
    DLManagedTensor m;
    cai_array x, y;
    memset(&m, 0, sizeof m);
    m.dl_tensor = tensor_of(2, 1, shape, NULL);
    m.deleter = delete_plain;
    deleted = 0;
    GOOD(cai_dlpack_import(&m, NULL, &x, &err));
    CHECK(x.release != NULL);
    CHECK(x.flags & CAI_WRITABLE);
    cai_array_move(&y, &x);
    cai_array_release(&x);
    CHECK_INT(deleted, 0);
    cai_array_release(&y);
    cai_array_release(&y);
    CHECK_INT(deleted, 1);
    CHECK(deleted_last == &m);
    GOOD(cai_dlpack_import(&m, NULL, &x, &err));
    x.release(&x); /* as another library does it */
    CHECK(x.release == NULL);
    CHECK_INT(deleted, 2);
    m.dl_tensor.dtype.lanes = 2; /* what fails leaves it to the caller */
    help_fill(&x, sizeof x);
    REFUSED(cai_dlpack_import(&m, NULL, &x, &err), CAI_ERR_TYPESTR, "lanes = 2");
    REFUSED(cai_dlpack_import(&m, NULL, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_dlpack_import(NULL, NULL, &x, &err), CAI_ERR_ARGUMENT, "managed is NULL");
    CHECK(help_filled(&x, sizeof x));
    CHECK_INT(deleted, 2);
    m.dl_tensor.dtype.lanes = 1;
    m.deleter = NULL;
    GOOD(cai_dlpack_import(&m, NULL, &x, &err));
    CHECK(x.release == NULL);
    cai_array_release(&x);
    CHECK_INT(deleted, 2);
}

#if MINOR >= 0
static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    deleted++;
    deleted_last = self;
}

static void check_owner_versioned(void)
{
    int64_t shape[1] = {4}, strides[1] = {1};
    struct DLManagedTensorVersioned m;
    cai_dlpack_options lenient = {CAI_LENIENT, 0, 0};
    cai_array x;
    memset(&m, 0, sizeof m);
    m.version.major = 1;
    m.dl_tensor = tensor_of(2, 1, shape, strides);
    m.deleter = delete_versioned;
    deleted = 0;
    for (m.version.minor = 0; m.version.minor < 5; m.version.minor++)
        for (m.flags = 0; m.flags < 16; m.flags++) {
            if (m.flags > 7) {
                REFUSED(cai_dlpack_import_versioned(&m, NULL, &x, &err), CAI_ERR_ABI,
                        "(accepted by CAI_LENIENT)");
                CHECK_INT(deleted, 0);
            }
            GOOD(cai_dlpack_import_versioned(&m, m.flags > 7 ? &lenient : NULL, &x, &err));
            CHECK_INT((x.flags & CAI_WRITABLE) != 0, (m.flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0);
            cai_array_release(&x);
            CHECK_INT(deleted, 1);
            CHECK(deleted_last == &m);
            deleted = 0;
        }
    m.flags = (uint64_t)1 << 40;
    REFUSED(cai_dlpack_import_versioned(&m, NULL, &x, &err), CAI_ERR_ABI,
            "flags = 0x10000000000: DLPack 1.3");
    m.flags = 0;
    m.dl_tensor.strides = NULL;
    for (m.version.minor = 0; m.version.minor < 4; m.version.minor++) {
        if (m.version.minor >= 2)
            REFUSED(cai_dlpack_import_versioned(&m, NULL, &x, &err), CAI_ERR_STRIDES,
                    "strides is NULL, but ndim = 1");
        CHECK_INT(cai_dlpack_import_versioned(&m, NULL, &x, NULL),
                  m.version.minor < 2 ? CAI_OK : CAI_ERR_STRIDES);
        GOOD(cai_dlpack_import_versioned(&m, &lenient, &x, &err));
        CHECK_INT(x.strides[0], 4);
    }
    m.dl_tensor.ndim = 0; /* has no strides */
    GOOD(cai_dlpack_import_versioned(&m, NULL, &x, &err));
    m.deleter = NULL;
    GOOD(cai_dlpack_import_versioned(&m, NULL, &x, &err));
    CHECK(x.release == NULL);
    help_fill(&x, sizeof x);
    REFUSED(cai_dlpack_import_versioned(NULL, NULL, &x, &err), CAI_ERR_ARGUMENT, "managed is NULL");
    REFUSED(cai_dlpack_import_versioned(&m, NULL, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    m.deleter = delete_versioned;
    m.dl_tensor.dtype.bits = 4;
    REFUSED(cai_dlpack_import_versioned(&m, NULL, &x, &err), CAI_ERR_TYPESTR, "bits = 4");
    CHECK(help_filled(&x, sizeof x));
    CHECK_INT(deleted, 0);
}

/* Of another major version only the first part is there to be read. */
static void check_major(void)
{
    const uint32_t majors[] = {0, 2, 3, UINT32_MAX};
    const size_t size = offsetof(struct DLManagedTensorVersioned, flags);
    struct DLManagedTensorVersioned head, *m = (struct DLManagedTensorVersioned *)malloc(size);
    cai_array x;
    size_t i;
    if (!m) exit(2);
    memset(&head, 0xA5, sizeof head);
    help_fill(&x, sizeof x);
    deleted = 0;
    for (i = 0; i < 4; i++) {
        head.version.major = majors[i];
        head.version.minor = 7;
        head.deleter = delete_versioned;
        memcpy((void *)m, &head, size);
        CHECK_INT(cai_dlpack_import_versioned(m, NULL, NULL, NULL), CAI_ERR_ARGUMENT);
        CHECK_INT(deleted, i);
        REFUSED(cai_dlpack_import_versioned(m, NULL, &x, &err), CAI_ERR_VERSION,
                ".7 is not 1.x: the deleter was called");
        CHECK_INT(deleted, i + 1);
        CHECK(deleted_last == m);
        CHECK(help_filled(&x, sizeof x));
    }
    head.deleter = NULL;
    memcpy((void *)m, &head, size);
    REFUSED(cai_dlpack_import_versioned(m, NULL, &x, &err), CAI_ERR_VERSION,
            "version 4294967295.7 is not 1.x");
    CHECK_INT(deleted, 4);
    free(m);
}
#endif

/* ------------------------------------------------------------------ exports */

static int32_t released, finished;
static char order[8]; /* of releases 'r' and ends 'd' */

static void release_counted(cai_array *self)
{
    self->release = NULL;
    CHECK(self->owner == values);
    order[released + finished] = 'r';
    released++;
}

static void storage_done(cai_dlpack_storage *self)
{
    order[released + finished] = 'd';
    finished++;
    CHECK(self->user == &finished);
    free(self);
}

static cai_dlpack_storage *new_storage(void)
{
    cai_dlpack_storage *made = (cai_dlpack_storage *)malloc(sizeof *made);
    if (!made) exit(2);
    help_fill(made, sizeof *made);
    made->done = storage_done;
    made->user = &finished;
    memset(order, 0, sizeof order);
    released = finished = 0;
    return made;
}

static cai_array array_of(int32_t code, int32_t ndim, const int64_t *shape, const int64_t *strides)
{
    cai_array x;
    GOOD(cai_array_init(&x, code, ndim, shape, strides, &values[32], &err));
    x.sync = CAI_SYNC_NONE;
    x.memory = CAI_MEMORY_DEVICE;
    x.device = 1;
    return x;
}

static void check_exports(void)
{
    const int64_t shape[2] = {3, 2}, strides[2] = {-16, 4};
    cai_dlpack_storage *storage = new_storage(), on_stack;
    DLManagedTensor *m = NULL;
    cai_array x = array_of(CAI_FLOAT32, 2, shape, strides), y;
    cai_array_own(&x, release_counted, values);
    GOOD(cai_dlpack_export(&x, 0, storage, &m, &err));
    CHECK((void *)m == &storage->managed);
    CHECK(x.release == NULL);
    CHECK(m->dl_tensor.data == &values[32]);
    CHECK_UINT(m->dl_tensor.byte_offset, 0);
    CHECK_INT(m->dl_tensor.ndim, 2);
    CHECK_INT(m->dl_tensor.device.device_type, kDLCUDA);
    CHECK_INT(m->dl_tensor.device.device_id, 1);
    CHECK_INT(m->dl_tensor.shape[0], 3);
    CHECK_INT(m->dl_tensor.shape[1], 2);
    CHECK_INT(m->dl_tensor.strides[0], -4);
    CHECK_INT(m->dl_tensor.strides[1], 1);
    GOOD(cai_dlpack_import(m, NULL, &y, &err)); /* and back */
    CHECK_INT(released, 0);
    cai_array_release(&y);
    CHECK_STR(order, "rd");
    storage = new_storage(); /* refused: it stays with the caller */
    x = array_of(CAI_FLOAT32, 2, shape, strides);
    cai_array_own(&x, release_counted, values);
    x.flags &= ~(uint32_t)CAI_WRITABLE;
    m = NULL;
    REFUSED(cai_dlpack_export(&x, 0, storage, &m, &err), CAI_ERR_EXPORT,
            "data is read-only, but a tensor without version");
    REFUSED(cai_dlpack_export(&x, 0, NULL, &m, &err), CAI_ERR_ARGUMENT, "storage is NULL");
    REFUSED(cai_dlpack_export(&x, 0, storage, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_dlpack_export(NULL, 0, storage, &m, &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_dlpack_export(&x, CAI_DLPACK_COPIED, storage, &m, &err), CAI_ERR_ARGUMENT, "unknown bits");
    CHECK(m == NULL);
    CHECK(x.release == release_counted);
    CHECK(storage->done == storage_done);
    GOOD(cai_dlpack_export(&x, CAI_DLPACK_DROP_READ_ONLY, storage, &m, &err));
    m->deleter(m);
    CHECK_STR(order, "rd");
    on_stack.done = NULL; /* borrowed, in storage that nobody frees */
    x = array_of(CAI_FLOAT32, 2, shape, strides);
    GOOD(cai_dlpack_export(&x, 0, &on_stack, &m, &err));
    m->deleter(m);
    CHECK_INT(released, 1);
}

#if MINOR >= 0
static void check_exports_versioned(void)
{
    const int64_t shape[2] = {3, 2};
    cai_dlpack_storage *storage;
    struct DLManagedTensorVersioned *m = NULL;
    cai_array x, y;
    uint32_t i;
    for (i = 0; i < 4; i++) {
        storage = new_storage();
        x = array_of(CAI_BFLOAT16, 2, shape, NULL);
        cai_array_own(&x, release_counted, values);
        if (i & 1) x.flags &= ~(uint32_t)CAI_WRITABLE;
        GOOD(cai_dlpack_export_versioned(&x, i & 2 ? CAI_DLPACK_COPIED : 0, storage, &m, &err));
        CHECK_UINT(m->flags, i); /* read-only 1, copied 2 */
        CHECK_INT(m->version.major, DLPACK_MAJOR_VERSION);
        CHECK_INT(m->version.minor, DLPACK_MINOR_VERSION);
        CHECK_INT(m->dl_tensor.dtype.code, 4);
        CHECK_INT(m->dl_tensor.strides[0], 2); /* never NULL */
        CHECK(x.release == NULL);
        GOOD(cai_dlpack_import_versioned(m, NULL, &y, &err));
        CHECK_UINT(y.flags | CAI_HAD_STRIDES, x.flags | CAI_HAD_STRIDES | CAI_NO_BACK_EDGE);
        cai_array_release(&y);
        CHECK_STR(order, "rd");
    }
    storage = new_storage();
    x = array_of(CAI_INT8, 2, shape, NULL);
    cai_array_own(&x, release_counted, values);
    x.sync = CAI_SYNC_UNKNOWN;
    m = NULL;
    REFUSED(cai_dlpack_export_versioned(&x, 0, storage, &m, &err), CAI_ERR_EXPORT,
            "sync = 0 is not NONE (1)");
    REFUSED(cai_dlpack_export_versioned(&x, CAI_DLPACK_DROP_READ_ONLY, storage, &m, &err), CAI_ERR_ARGUMENT,
            "flags = 0x4 has unknown bits");
    REFUSED(cai_dlpack_export_versioned(&x, 0, NULL, &m, &err), CAI_ERR_ARGUMENT, "storage is NULL");
    REFUSED(cai_dlpack_export_versioned(&x, 0, storage, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_dlpack_export_versioned(NULL, 0, storage, &m, &err), CAI_ERR_ARGUMENT, "array is NULL");
    CHECK(m == NULL);
    CHECK(x.release == release_counted);
    GOOD(cai_dlpack_export_versioned(&x, CAI_DLPACK_ORDERED, storage, &m, &err));
    m->deleter(m);
    CHECK_STR(order, "rd");
}
#endif

static void lend_refused(const cai_array *x, uint32_t flags, int32_t entry, const char *words)
{
    int64_t numbers[128];
    DLTensor t;
    help_fill(&t, sizeof t);
    help_fill(numbers, sizeof numbers);
    REFUSED(cai_dlpack_lend(x, flags, numbers, TENSOR(&t), &err), CAI_ERR_EXPORT, words);
    CHECK_INT(cai_dlpack_lend(x, flags, numbers, TENSOR(&t), &err), CAI_ERR_EXPORT);
    CHECK_INT(err.entry, entry);
    CHECK(help_filled(&t, sizeof t));
    CHECK(help_filled(numbers, sizeof numbers));
}

static void check_refusals_out(void)
{
    int64_t shape[2] = {3, 2}, strides[2] = {6, 4}, numbers[4];
    cai_array x = array_of(CAI_FLOAT32, 2, shape, NULL), y = x, mask = x;
    int32_t sync;
    DLTensor t;
    for (sync = 0; sync < 4; sync++) {
        y.sync = sync;
        if (sync != CAI_SYNC_NONE) lend_refused(&y, 0, CAI_ENTRY_STREAM, "order it and pass CAI_DLPACK_ORDERED");
        GOOD(cai_dlpack_lend(&y, CAI_DLPACK_ORDERED, numbers, TENSOR(&t), &err));
    }
    y = x;
    y.mask = &mask;
    lend_refused(&y, 0, CAI_ENTRY_MASK, "mask: DLPack has no masks");
    y = x;
    y.memory = CAI_MEMORY_UNKNOWN;
    lend_refused(&y, 0, CAI_ENTRY_DATA, "memory = 0 is not known: cai_locate");
    y = x;
    y.device = CAI_DEVICE_UNKNOWN;
    lend_refused(&y, 0, CAI_ENTRY_DATA, "device = -1 is not known: cai_locate");
    y = x;
    y.backend = CAI_BACKEND_HIP;
    lend_refused(&y, 0, CAI_ENTRY_DATA, "device: backend = 1 is not CUDA (0): in DLPack its streams have other numbers");
    CHECK_INT(err.rule, 106);
    y = x;
    y.flags &= ~(uint32_t)CAI_WRITABLE;
    CHECK_INT(cai_dlpack_lend(&y, 0, numbers, TENSOR(&t), &err), CAI_ERR_EXPORT);
    CHECK_INT(err.rule, 6);
    lend_refused(&y, 0, CAI_ENTRY_DATA, "data is read-only");
    GOOD(cai_dlpack_lend(&y, CAI_DLPACK_DROP_READ_ONLY, numbers, TENSOR(&t), &err));
    y = array_of(CAI_SWAPPED(CAI_INT16), 2, shape, NULL);
    lend_refused(&y, 0, CAI_ENTRY_TYPESTR, "int16 of 2 bytes: the bytes are swapped");
    y = array_of(CAI_FLOAT32, 2, shape, strides);
    lend_refused(&y, 0, CAI_ENTRY_STRIDES, "strides[0] = 6 bytes is no multiple of the itemsize, 4");
    CHECK_INT(err.index, 0);
    shape[0] = 1; /* nothing moves along it */
    y = array_of(CAI_FLOAT32, 2, shape, strides);
    GOOD(cai_dlpack_lend(&y, 0, numbers, TENSOR(&t), &err));
    shape[0] = 0;
    y = array_of(CAI_FLOAT32, 2, shape, strides);
    y.sync = CAI_SYNC_UNKNOWN; /* an empty array has nothing to wait for */
    y.data = 64;               /* as a careless producer may say */
    GOOD(cai_dlpack_lend(&y, 0, numbers, TENSOR(&t), &err));
    CHECK(t.data == NULL);
    if (sizeof(void *) < 8) {
        y = x;
        y.data = UINT64_C(0x100000000);
        lend_refused(&y, 0, CAI_ENTRY_DATA, "exceeds a pointer");
    }
    memset(&err, 0, sizeof err);
    REFUSED(cai_dlpack_lend(NULL, 0, numbers, TENSOR(&t), &err), CAI_ERR_ARGUMENT, "array is NULL");
    REFUSED(cai_dlpack_lend(&x, 0, NULL, TENSOR(&t), &err), CAI_ERR_ARGUMENT, "shape_and_strides is NULL");
    REFUSED(cai_dlpack_lend(&x, 0, numbers, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_dlpack_lend(&x, CAI_DLPACK_READ_ONLY, numbers, TENSOR(&t), &err), CAI_ERR_ARGUMENT, "flags = 0x2");
    y = x;
    y.abi = 0;
    REFUSED(cai_dlpack_lend(&y, 0, numbers, TENSOR(&t), &err), CAI_ERR_ABI, "abi = ");
    y = array_of(CAI_FLOAT32, 0, NULL, NULL);
    GOOD(cai_dlpack_lend(&y, 0, NULL, TENSOR(&t), &err));
    CHECK(t.shape == NULL && t.strides == NULL && t.ndim == 0 && t.data == &values[32]);
}

static void check_devices_out(void)
{
    static const int32_t kinds[] = {0, kDLCPU, kDLCUDAHost, kDLCUDAManaged, kDLCUDA};
    const int64_t shape[1] = {2};
    cai_array x = array_of(CAI_FLOAT32, 1, shape, NULL);
    DLDevice device;
    int32_t memory;
    x.device = 5;
    for (memory = 1; memory < 5; memory++) {
        x.memory = memory;
        GOOD(cai_dlpack_device(&x, (cai_dl_device *)&device, &err));
        CHECK_INT(device.device_type, kinds[memory]);
        CHECK_INT(device.device_id, memory == CAI_MEMORY_DEVICE ? 5 : 0);
    }
    REFUSED(cai_dlpack_device(&x, NULL, &err), CAI_ERR_ARGUMENT, "out is NULL");
    REFUSED(cai_dlpack_device(NULL, (cai_dl_device *)&device, &err), CAI_ERR_ARGUMENT, "array is NULL");
    x.memory = 5;
    REFUSED(cai_dlpack_device(&x, (cai_dl_device *)&device, &err), CAI_ERR_EXPORT, "memory = 5 is not known");
}

/* ------------------------------------------------------------------ at random */

static int64_t any_number(void)
{
    static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX / 2, INT64_MAX / 4 + 1,
                                    INT64_MAX / 8, INT64_MAX / 16 + 1, INT64_MIN / 8, INT64_MIN / 2,
                                    -1, 0, 1};
    const uint64_t kind = help_random() % 8;
    if (kind == 0) return edges[help_random() % (sizeof edges / sizeof *edges)];
    if (kind == 1) return (int64_t)help_random();
    return help_between(-3, 9);
}

/* cai -> DLPack -> cai is the same array. */
static void check_round_trips(int32_t count)
{
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM], numbers[2 * CAI_MAX_NDIM];
    int32_t i, k, ndim, most;
    cai_array x, y;
    DLTensor t;
    for (k = 0; k < count; k++) {
        const int32_t code = types[help_random() % TYPES].cai;
        most = k % 16 ? 4 : CAI_MAX_NDIM;
        ndim = (int32_t)help_between(0, most);
        for (i = 0; i < ndim; i++) {
            shape[i] = most > 4 ? 1 + (i % 21 == 0) : help_between(k % 7 == 0 ? 0 : 1, 5);
            strides[i] = help_between(-40, 40) * (code & 0xff);
        }
        memset(&x, 0, sizeof x); /* addresses are not looked at: any will do */
        if (cai_array_init(&x, code, ndim, shape, k % 3 ? strides : NULL,
                           (void *)(uintptr_t)0x7f001000, NULL))
            continue;
        x.memory = (int32_t)help_between(1, 4);
        x.device = x.memory == CAI_MEMORY_DEVICE ? 2 : CAI_DEVICE_UNKNOWN;
        x.sync = CAI_SYNC_NONE;
        GOOD(cai_dlpack_lend(&x, 0, numbers, TENSOR(&t), &err));
        memset(&y, 0, sizeof y);
        GOOD(cai_dlpack_borrow(TENSOR(&t), NULL, &y, &err));
        CHECK_UINT(y.flags | CAI_HAD_STRIDES, x.flags | CAI_HAD_STRIDES);
        CHECK_BYTES(&y.dtype, &x.dtype, sizeof x.dtype);
        CHECK_UINT(y.data, x.data);
        CHECK_INT(y.memory, x.memory);
        CHECK_INT(y.device, x.device);
        CHECK_INT(y.ndim, x.ndim);
        CHECK_INT(y.size, x.size);
        CHECK_INT(y.lo, x.lo);
        CHECK_INT(y.hi, x.hi);
        for (i = 0; i < ndim; i++) {
            CHECK_INT(y.shape[i], x.shape[i]);
            CHECK_INT(y.strides[i], x.strides[i]);
        }
    }
}

static int is_known(const DLDataType *type)
{
    int32_t i;
    for (i = 0; i < TYPES; i++)
        if (types[i].code == type->code && types[i].bits == type->bits) return type->lanes == 1;
    return 0;
}

static void fuzz_tensor(DLTensor *t, int64_t *shape, int64_t *strides)
{
    static const int32_t devices[] = {1, 2, 3, 13};
    int32_t i, row = (int32_t)(help_random() % TYPES), device = devices[help_random() % 4];
    memset(t, 0, sizeof *t);
    if (help_random() % 16 == 0) device = (int32_t)help_random();
    memcpy(&t->device.device_type, &device, sizeof device);
    t->device.device_id = help_random() % 8 ? (int)help_between(0, 3) : (int)any_number();
    t->dtype = dl_type(types[row].code, types[row].bits,
                       help_random() % 16 ? 1 : (int32_t)(help_random() % 3));
    if (help_random() % 16 == 0) t->dtype = dl_type((int32_t)help_random(), (int32_t)help_random(), 1);
    t->ndim = help_random() % 16 ? (int)help_between(0, 4) : (int)help_between(-2, 66);
    if (help_random() % 64 == 0) t->ndim = (int)help_random();
    for (i = 0; i < CAI_MAX_NDIM; i++) {
        shape[i] = any_number();
        strides[i] = any_number();
    }
    t->shape = help_random() % 32 ? shape : NULL;
    t->strides = help_random() % 4 ? strides : NULL;
    t->data = help_random() % 8 ? (void *)(uintptr_t)help_random() : NULL;
    t->byte_offset = help_random() % 4 ? help_random() % 64 : help_random();
}

/* What the header itself judges, in other words; -1: left to cai.h, which judges shape and extent. */
static cai_status predicted(const DLTensor *t)
{
    int32_t i, type, empty = 0;
    memcpy(&type, &t->device.device_type, sizeof type);
    if (type != 1 && type != 2 && type != 3 && type != 13) return CAI_ERR_MEMORY;
    if (type == 2 && t->device.device_id < 0) return CAI_ERR_MEMORY;
    if (!is_known(&t->dtype)) return CAI_ERR_TYPESTR;
    if (t->ndim < 0 || t->ndim > 64 || (t->ndim > 0 && !t->shape)) return CAI_ERR_SHAPE;
    for (i = 0; i < t->ndim; i++) if (t->shape[i] == 0) empty = 1;
    if (!empty && t->data && t->byte_offset > UINTPTR_MAX - (uintptr_t)t->data) return CAI_ERR_DATA;
    for (i = 0; t->strides && i < t->ndim && !empty; i++) {
        const int64_t stride = t->strides[i], item = t->dtype.bits / 8;
        if (t->shape[i] > 1 && (stride > INT64_MAX / item || stride < INT64_MIN / item))
            return CAI_ERR_STRIDES;
    }
    return -1;
}

/* A tensor in a managed one: released, or left to the caller, the deleter runs once. */
static void fuzz_owner(const DLTensor *t, const cai_dlpack_options *options, cai_status expected)
{
    DLManagedTensor m;
    cai_array x;
    m.dl_tensor = *t;
    m.manager_ctx = NULL;
    m.deleter = delete_plain;
    deleted = 0;
    CHECK_INT(cai_dlpack_import(&m, options, &x, NULL), expected);
    CHECK_INT(deleted, 0);
    if (!expected) cai_array_release(&x);
    CHECK_INT(deleted, !expected);
}

#if MINOR >= 0
static void fuzz_owner_versioned(const DLTensor *t, const cai_dlpack_options *options, cai_status expected)
{
    const int lenient = options->flags & CAI_LENIENT;
    struct DLManagedTensorVersioned m;
    cai_status status;
    cai_array x;
    m.version.major = help_random() % 8 ? 1 : (uint32_t)help_between(0, 3);
    m.version.minor = (uint32_t)help_between(0, 4);
    m.flags = help_random() % 4 ? help_random() % 8 : (uint64_t)1 << help_random() % 64;
    m.manager_ctx = NULL;
    m.deleter = delete_versioned;
    m.dl_tensor = *t;
    if (!lenient && m.version.minor > 1 && !t->strides && t->ndim > 0) expected = CAI_ERR_STRIDES;
    if (!lenient && m.flags > 7) expected = CAI_ERR_ABI;
    if (m.version.major != 1) expected = CAI_ERR_VERSION;
    deleted = 0;
    status = cai_dlpack_import_versioned(&m, options, &x, NULL);
    CHECK_INT(status, expected);
    CHECK_INT(deleted, status == CAI_ERR_VERSION);
    if (status) return;
    CHECK_INT((x.flags & CAI_WRITABLE) != 0, !(m.flags & 1) && !(options->flags & CAI_DLPACK_READ_ONLY));
    cai_array_release(&x);
    CHECK_INT(deleted, 1);
}
#endif

/* Structs that no function of cai.h has made: refused, or told as they are. */
static void check_fuzz_out(int32_t count)
{
    int64_t numbers[2 * CAI_MAX_NDIM];
    int32_t i, k, lent = 0;
    cai_status status;
    cai_array x;
    DLTensor t;
    for (k = 0; k < count; k++) {
        help_fill(&x, sizeof x);
        CHECK_INT(cai_dtype_of(types[help_random() % TYPES].cai, &x.dtype, NULL), CAI_OK);
        x.abi = CAI_ABI;
        x.struct_size = (uint32_t)sizeof x;
        x.ndim = (int32_t)help_between(0, 3);
        x.field_count = 0;
        x.mask = NULL;
        x.packed_axis = -1;
        x.must_understand = 0;
        x.size = help_between(0, 2);
        x.data = help_random() >> (help_random() % 64);
        x.memory = (int32_t)help_between(1, 4);
        x.device = (int32_t)help_between(-1, 3);
        x.sync = (int32_t)help_between(0, 3);
        for (i = 0; i < CAI_MAX_NDIM; i++) {
            x.shape[i] = any_number();
            x.strides[i] = help_random() % 2 ? any_number() : help_between(-9, 9) * (x.dtype.code & 0xff);
        }
        if (help_random() % 8 == 0) x.dtype.itemsize = (int32_t)any_number();
        if (help_random() % 8 == 0) x.dtype.code = (int32_t)help_random();
        if (help_random() % 8 == 0) x.memory = (int32_t)any_number();
        status = cai_dlpack_lend(&x, CAI_DLPACK_ORDERED | CAI_DLPACK_DROP_READ_ONLY, numbers, TENSOR(&t), NULL);
        if (status) {
            CHECK_INT(status, cai_array_check(&x, NULL) ? CAI_ERR_ABI : CAI_ERR_EXPORT); /* packed, without an axis */
            continue;
        }
        lent++;
        CHECK_UINT((uintptr_t)t.data, x.size ? x.data : 0);
        CHECK_INT(t.dtype.bits, x.dtype.itemsize * 8);
        for (i = 0; i < t.ndim; i++) {
            CHECK_INT(t.shape[i], x.shape[i]);
            if (x.size && x.shape[i] != 1) CHECK_INT(x.strides[i] % x.dtype.itemsize, 0);
            CHECK_INT(t.strides[i], x.strides[i] / x.dtype.itemsize);
        }
    }
    CHECK(lent > count / 20);
}

static void check_fuzz(int32_t count)
{
    static const uint32_t flags[] = {0, CAI_LENIENT, CAI_DLPACK_READ_ONLY,
                                     CAI_LENIENT | CAI_DLPACK_READ_ONLY};
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM], accepted = 0;
    cai_dlpack_options options = {0, 0, 0};
    cai_array x;
    DLTensor t, again;
    int32_t i, k;
    for (k = 0; k < count; k++) {
        cai_status status, expected;
        fuzz_tensor(&t, shape, strides);
        if (is_narrow(t.dtype.code, t.dtype.bits)) t.dtype.bits = 8;
        again = t;
        expected = predicted(&t);
        err.code = 0;
        status = cai_dlpack_borrow(TENSOR(&t), NULL, &x, &err);
        CHECK_BYTES(&t, &again, sizeof t);
        CHECK_INT(err.code, status);
        if (expected != -1) CHECK_INT(status, expected);
        else if (status)
            CHECK(status == CAI_ERR_SHAPE || status == CAI_ERR_STRIDES || status == CAI_ERR_DATA);
        options.flags = flags[k % 4];
        fuzz_owner(&t, &options, status);
#if MINOR >= 0
        fuzz_owner_versioned(&t, &options, status);
#endif
        if (status) continue;
        accepted++;
        CHECK_INT(x.ndim, t.ndim);
        CHECK_UINT(x.data, x.size ? (uintptr_t)t.data + t.byte_offset : 0);
        CHECK_INT(x.dtype.itemsize, t.dtype.bits / 8);
        for (i = 0; i < x.ndim; i++) {
            CHECK_INT(x.shape[i], shape[i]);
            if (!t.strides || x.size == 0 || shape[i] == 1) continue;
            CHECK_INT(x.strides[i] % x.dtype.itemsize, 0);
            CHECK_INT(x.strides[i] / x.dtype.itemsize, strides[i]);
        }
    }
    CHECK(accepted > count / 20);
    printf("%d random tensors, %lld of them arrays\n", (int)count, (long long)accepted);
}

static void run(void)
{
    check_codes();
    check_dtypes_in();
    check_dtypes_out();
    check_devices_in();
    check_layouts_in();
    check_c_order();
    check_refusals_in();
    check_options();
    check_rules();
    check_owner();
    check_exports();
#if MINOR >= 0
    check_owner_versioned();
    check_major();
    check_exports_versioned();
#endif
    check_refusals_out();
    check_devices_out();
    check_round_trips(20000);
    check_fuzz(200000);
    check_fuzz_out(200000);
}

CAI_TEST_MAIN(run)
