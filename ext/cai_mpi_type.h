/* cai_mpi_type.h - the MPI datatype of an array - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11. No CUDA. MPI 3.0 or later, of your <mpi.h>. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_MPI_TYPE_IMPLEMENTATION)
#define CAI_MPI_TYPE_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_TRANSFER_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                      \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_transfer.h"
#endif
#include <mpi.h>

#if CAI_TRANSFER_H_INCLUDED / 100 != 2
#error "cai_mpi_type.h: this is version 0.2, which needs cai_transfer.h 0.2"
#endif
#if defined(CAI_MPI_TYPE_H_INCLUDED) && CAI_MPI_TYPE_H_INCLUDED != 200
#error "cai_mpi_type.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_MPI_TYPE_H_INCLUDED
#define CAI_MPI_TYPE_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c or .cpp file (CAI_MPI_TYPE_IMPLEMENTATION for this header alone). All other configuration is
    that of the headers below it.

        #define CAI_IMPLEMENTATION
        #include "cai_mpi_type.h"

WHAT IT IS
    An array with strides is one element of a datatype that MPI can build. The two ends of a message may have
    different strides. MPI packs and unpacks with the datatypes:

        CAI_TRY(cai_mpi_type(&halo, &type, err));
        code = MPI_Send((const void *)(uintptr_t)halo.data, 1, type, peer, tag, comm);
        MPI_Type_free(&type);

    MPI reads and writes when the host calls it. It knows no streams. ext/cai_mpi.h does the waiting.

ERRORS
    As in cai.h. If an MPI function fails, the status is CAI_ERR_MPI, and cai_error.native is MPI's number.
    First call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), else MPI ends the program.

THREADS
    The functions keep no state. MPI's own rules (MPI_Init_thread) are valid for threads.
*/

#if defined(CAI_NAMESPACE)
#define cai_mpi_dtype CAI_PRIV_RENAMED(cai_mpi_dtype)
#define cai_mpi_status CAI_PRIV_RENAMED(cai_mpi_status)
#define cai_mpi_type CAI_PRIV_RENAMED(cai_mpi_type)
#define cai_mpi_type_packed CAI_PRIV_RENAMED(cai_mpi_type_packed)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- >>errors */
/** Returns the status of your own MPI call: CAI_OK for MPI_SUCCESS, else CAI_ERR_MPI with MPI's text. `what`
 *  names the call. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_status(int code, const char *what, cai_error *err);

/* ---------------------------------------------------------------- >>datatypes */
enum { CAI_MPI_FIELDS = 64 }; /* of one record, nested records not counted */

/** Stores MPI's own datatype, such as MPI_FLOAT for float32, for reductions and the like. Do not free it.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_EXPORT (MPI has none: float16, bfloat16, float8 and below, complex32,
 *  records, bytes in the other order). */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_dtype(const cai_dtype *dtype, MPI_Datatype *out, cai_error *err);

/** Makes the datatype of all elements of an array, in C order. Send or receive one of it at the address
 *  array->data, or none if the array is empty. It has the fewest constructors: contiguous, hvector, subarray.
 *  A record with fields is a struct, which leaves out its padding. If MPI has no datatype for an element, it
 *  is sent as bytes. The datatype is committed. Free it with MPI_Type_free. To receive, elements must share
 *  no bytes. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPECT (a mask, bit fields), CAI_ERR_CAPACITY
 *  (more than 64 fields in a record), CAI_ERR_MPI. On failure nothing is stored. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_type(const cai_array *array, MPI_Datatype *out, cai_error *err);

/** Does the same for the buffer that cai_transfer_pack fills and cai_transfer_unpack reads. */
CAI_API CAI_MUST_CHECK cai_status cai_mpi_type_packed(const cai_array *array, MPI_Datatype *out,
                                                      cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MPI_TYPE_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>datatypes */

#if defined(CAI_MPI_TYPE_IMPLEMENTATION) && !defined(CAI_MPI_TYPE_IMPLEMENTED)
#define CAI_MPI_TYPE_IMPLEMENTED

#include <limits.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

CAI_API cai_status cai_mpi_status(int code, const char *what, cai_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    cai_status status;
    if (code == MPI_SUCCESS) return CAI_OK;
    (void)MPI_Error_string(code, text, &length);
    status = cai_priv_error(err, CAI_ERR_MPI, "%s: MPI error %d (%.*s)", what ? what : "MPI", code, 120,
                            text);
    if (err) err->native = code;
    return status;
}

/* ------------------------------------------------------------------ >>datatypes */
#if !defined(CAI_MPI_MAX_COUNT)
#define CAI_MPI_MAX_COUNT INT_MAX /* of MPI's counts; smaller in tests */
#endif

/* The parts of a datatype. */
typedef struct cai_priv_mpi_unit {
    MPI_Datatype type;
    int64_t size; /* bytes from one to the next */
    int made;     /* to be freed */
} cai_priv_mpi_unit;

static void cai_priv_mpi_drop(cai_priv_mpi_unit *unit)
{
    if (unit->made) (void)MPI_Type_free(&unit->type);
    unit->made = 0;
}

/* Returns MPI's datatype, or MPI_DATATYPE_NULL if MPI has none. */
static MPI_Datatype cai_priv_mpi_named(const cai_dtype *dtype)
{
    /* not in the switch: where long double is double, it is the same number */
    if (dtype->code == CAI_LONG_DOUBLE && dtype->itemsize > 8) return MPI_LONG_DOUBLE;
    if (dtype->code == CAI_CODE('c', 2 * sizeof(long double), 0) && dtype->itemsize > 16)
        return MPI_C_LONG_DOUBLE_COMPLEX;
    switch (dtype->code) {
    case CAI_BOOL: return MPI_C_BOOL;
    case CAI_INT8: return MPI_INT8_T;
    case CAI_INT16: return MPI_INT16_T;
    case CAI_INT32: return MPI_INT32_T;
    case CAI_INT64: case CAI_TIMEDELTA64: case CAI_DATETIME64: return MPI_INT64_T;
    case CAI_UINT8: return MPI_UINT8_T;
    case CAI_UINT16: return MPI_UINT16_T;
    case CAI_UINT32: return MPI_UINT32_T;
    case CAI_UINT64: return MPI_UINT64_T;
    case CAI_FLOAT32: return MPI_FLOAT;
    case CAI_FLOAT64: return MPI_DOUBLE;
    case CAI_COMPLEX64: return MPI_C_FLOAT_COMPLEX;
    case CAI_COMPLEX128: return MPI_C_DOUBLE_COMPLEX;
    default: return MPI_DATATYPE_NULL;
    }
}

CAI_API cai_status cai_mpi_dtype(const cai_dtype *dtype, MPI_Datatype *out, cai_error *err)
{
    MPI_Datatype type;
    if (!dtype || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "dtype or out is NULL");
    type = cai_priv_mpi_named(dtype);
    if (type != MPI_DATATYPE_NULL) {
        *out = type;
        return CAI_OK;
    }
    return cai_priv_error(err, CAI_ERR_EXPORT, "MPI has no datatype for %s%s", cai_dtype_name(dtype->code),
                          dtype->code == CAI_SWAPPED(dtype->code) ? " in the other byte order" : "");
}

/* Replaces a datatype with one that was made of it. */
static int cai_priv_mpi_become(cai_priv_mpi_unit *unit, int code, MPI_Datatype type)
{
    if (code != MPI_SUCCESS) return code;
    cai_priv_mpi_drop(unit);
    unit->type = type;
    unit->made = 1;
    return code;
}

static int cai_priv_mpi_hvector(int64_t count, int block, int64_t stride, MPI_Datatype type,
                                MPI_Datatype *out)
{
    MPI_Datatype line = MPI_DATATYPE_NULL, back = MPI_DATATYPE_NULL;
    int code;
    if (stride != -1) return MPI_Type_create_hvector((int)count, block, (MPI_Aint)stride, type, out);
    /* Open MPI 4.1 takes -1 as "no stride was given" */
    code = MPI_Type_contiguous(block, type, &line);
    if (!code) code = MPI_Type_create_resized(line, 0, -1, &back);
    if (!code) code = MPI_Type_contiguous((int)count, back, out);
    if (back != MPI_DATATYPE_NULL) (void)MPI_Type_free(&back);
    if (line != MPI_DATATYPE_NULL) (void)MPI_Type_free(&line);
    return code;
}

/* Makes `count` blocks of `block` units, `stride` bytes apart. MPI counts by int. */
static int cai_priv_mpi_repeat(cai_priv_mpi_unit *unit, int64_t count, int block, int64_t stride)
{
    const int64_t most = CAI_MPI_MAX_COUNT;
    MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}, whole = MPI_DATATYPE_NULL;
    cai_priv_mpi_unit many = {unit->type, unit->size, 0}, rest = many;
    MPI_Aint at[2] = {0, 0};
    int lengths[2] = {1, 1}, code;
    if (count <= most) {
        code = cai_priv_mpi_hvector(count, block, stride, unit->type, &whole);
        return cai_priv_mpi_become(unit, code, whole);
    }
    code = cai_priv_mpi_repeat(&many, most, block, stride);
    if (!code) code = cai_priv_mpi_repeat(&many, count / most, 1, stride * most);
    if (!code) code = cai_priv_mpi_repeat(&rest, count % most, block, stride);
    parts[0] = many.type;
    parts[1] = rest.type;
    at[1] = (MPI_Aint)(stride * (count - count % most));
    if (!code) code = MPI_Type_create_struct(count % most ? 2 : 1, lengths, at, parts, &whole);
    cai_priv_mpi_drop(&many);
    cai_priv_mpi_drop(&rest);
    return cai_priv_mpi_become(unit, code, whole);
}

static int cai_priv_mpi_line(cai_priv_mpi_unit *unit, int64_t count)
{
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    int code;
    if (count > CAI_MPI_MAX_COUNT) return cai_priv_mpi_repeat(unit, count, 1, unit->size);
    code = MPI_Type_contiguous((int)count, unit->type, &whole);
    return cai_priv_mpi_become(unit, code, whole);
}

/* Returns the first of the last axes that nest as those of a C array do. */
static int32_t cai_priv_mpi_nested(const cai_transfer *plan, int64_t size)
{
    int64_t step = size, length = plan->run / size;
    int32_t i;
    for (i = plan->ndim; i > 0; --i) {
        const cai_transfer_axis *axis = &plan->axes[i - 1];
        if (axis->from <= 0 || axis->from % step || axis->from / step < length ||
            axis->from / step > CAI_MPI_MAX_COUNT || axis->extent > CAI_MPI_MAX_COUNT)
            break;
        step = axis->from;
        length = axis->extent;
    }
    return i;
}

static int cai_priv_mpi_subarray(cai_priv_mpi_unit *unit, const cai_transfer *plan, int32_t first)
{
    int sizes[CAI_MAX_NDIM + 1], lengths[CAI_MAX_NDIM + 1], starts[CAI_MAX_NDIM + 1], code;
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    int32_t i, n = 0;
    sizes[0] = (int)plan->axes[first].extent;
    for (i = first; i <= plan->ndim; ++i, ++n) {
        const int64_t step = i < plan->ndim ? plan->axes[i].from : unit->size;
        if (n) sizes[n] = (int)(plan->axes[i - 1].from / step);
        lengths[n] = (int)(i < plan->ndim ? plan->axes[i].extent : plan->run / unit->size);
        starts[n] = 0;
    }
    code = MPI_Type_create_subarray(n, sizes, lengths, starts, MPI_ORDER_C, unit->type, &whole);
    return cai_priv_mpi_become(unit, code, whole);
}

/* Makes all of `plan` out of units. */
static cai_status cai_priv_mpi_build(cai_priv_mpi_unit *unit, const cai_transfer *plan, cai_error *err)
{
    const int64_t run = plan->runs ? plan->run / unit->size : 0;
    const int32_t first = cai_priv_mpi_nested(plan, unit->size);
    int32_t i = plan->ndim;
    int code = MPI_SUCCESS, block = (int)run;
    if (plan->ndim - first >= 2) {
        code = cai_priv_mpi_subarray(unit, plan, first);
        i = first;
        block = 1;
    } else if (!i || run > CAI_MPI_MAX_COUNT) {
        code = cai_priv_mpi_line(unit, run);
        block = 1;
    }
    for (; !code && i > 0; --i, block = 1)
        code = cai_priv_mpi_repeat(unit, plan->axes[i - 1].extent, block, plan->axes[i - 1].from);
    if (!code) code = MPI_Type_commit(&unit->type);
    if (code) cai_priv_mpi_drop(unit);
    return cai_mpi_status(code, "making a datatype", err);
}

static void cai_priv_mpi_plain(const cai_dtype *dtype, cai_priv_mpi_unit *unit)
{
    unit->made = 0;
    unit->size = dtype->itemsize;
    unit->type = cai_priv_mpi_named(dtype);
    if (unit->type != MPI_DATATYPE_NULL) return;
    unit->type = MPI_BYTE;
    unit->size = 1;
}

/* Makes the struct of the fields in record `row`, which has `size` bytes. Row -1 is the element itself. */
static cai_status cai_priv_mpi_record(const cai_array *array, int64_t row, int64_t size,
                                      cai_priv_mpi_unit *out, cai_error *err)
{
    cai_priv_mpi_unit units[CAI_MPI_FIELDS], whole = {MPI_DATATYPE_NULL, size, 0};
    MPI_Datatype types[CAI_MPI_FIELDS], made = MPI_DATATYPE_NULL;
    MPI_Aint at[CAI_MPI_FIELDS];
    int lengths[CAI_MPI_FIELDS], count = 0, code;
    cai_status status = CAI_OK;
    int64_t i;
    for (i = 0; !status && i < array->field_count; ++i) {
        const cai_field *field = &array->fields[i];
        if (field->parent != row || !field->name_length) continue;
        if (count == CAI_MPI_FIELDS) {
            status = cai_priv_error(err, CAI_ERR_CAPACITY, "a record has more than %d fields",
                                    CAI_MPI_FIELDS);
            break;
        }
        cai_priv_mpi_plain(&field->dtype, &units[count]);
        if (field->child_count)
            status = cai_priv_mpi_record(array, i, field->dtype.itemsize, &units[count], err);
        types[count] = units[count].type;
        lengths[count] = status || !field->nbytes ? 0 : (int)(field->nbytes / units[count].size);
        at[count++] = (MPI_Aint)field->offset;
    }
    if (!status) {
        code = MPI_Type_create_struct(count, lengths, at, types, &made);
        code = cai_priv_mpi_become(&whole, code, made);
        if (!code) code = MPI_Type_create_resized(whole.type, 0, (MPI_Aint)size, &made);
        code = cai_priv_mpi_become(&whole, code, made);
        if (code) cai_priv_mpi_drop(&whole);
        status = cai_mpi_status(code, "making a datatype", err);
    }
    while (count > 0) cai_priv_mpi_drop(&units[--count]);
    if (!status) *out = whole;
    return status;
}

/* Finds the parts of one element. */
static cai_status cai_priv_mpi_element(const cai_array *array, cai_priv_mpi_unit *out, cai_error *err)
{
    cai_priv_mpi_plain(&array->dtype, out);
    if (!array->fields || !array->field_count) return CAI_OK;
    return cai_priv_mpi_record(array, -1, array->dtype.itemsize, out, err);
}

CAI_API cai_status cai_mpi_type(const cai_array *array, MPI_Datatype *out, cai_error *err)
{
    cai_priv_mpi_unit unit;
    cai_transfer plan;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out is NULL");
    CAI_TRY(cai_transfer_pack(&plan, array, 0, err));
    CAI_TRY(cai_priv_mpi_element(array, &unit, err));
    CAI_TRY(cai_priv_mpi_build(&unit, &plan, err));
    *out = unit.type;
    return CAI_OK;
}

CAI_API cai_status cai_mpi_type_packed(const cai_array *array, MPI_Datatype *out, cai_error *err)
{
    cai_array line;
    CAI_TRY(cai_array_check(array, err));
    line = *array;
    line.ndim = 1;
    if (cai_dtype_values(&line.dtype) > 1) line.dtype.code = CAI_VOID; /* whole elements */
    line.packed_axis = -1;
    line.packed_extent = 0;
    line.shape[0] = line.size;
    line.strides[0] = line.dtype.itemsize;
    return cai_mpi_type(&line, out, err);
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_MPI_TYPE_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
