/* cai_array_struct.h - NumPy's C struct __array_struct__ (PyArrayInterface) <-> cai_array - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No Python.h, no allocation, no stdio. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_ARRAY_STRUCT_IMPLEMENTATION)
#define CAI_ARRAY_STRUCT_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                     \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                    \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                    \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_array_struct.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_ARRAY_STRUCT_H_INCLUDED) && CAI_ARRAY_STRUCT_H_INCLUDED != 200
#error "cai_array_struct.h: another version of it was included first"
#endif

#ifndef CAI_ARRAY_STRUCT_H_INCLUDED
#define CAI_ARRAY_STRUCT_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    Write this in one .c, .cpp or .cu file. CAI_ARRAY_STRUCT_IMPLEMENTATION is for this header alone. All
    other configuration is that of cai.h. The compiler finds cai.h by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_array_struct.h"

WHAT IT IS
    x.__array_struct__ is a capsule with a PyArrayInterface. That struct is NumPy's array interface in C. It
    describes host memory without pending work. This header judges such a struct by the rules of cai_import,
    or makes one.

        const cai_array_struct *s = PyCapsule_GetPointer(capsule, NULL);
        CAI_TRY(cai_array_struct_import(s, NULL, NULL, 0, &x, err));

    An import is borrowed, and the capsule keeps its elements. Shape and strides are copied. Names of fields
    point to the text of the tokens. An export points to the caller's storage.

WHAT NUMPY DOES WRONG (2.4 and before)
    Structured arrays have flags 0, as if swapped, read-only and without descr. (NumPy computes `flags &=
    NPY_ARR_HAS_DESCR`, and |= was meant.) Kind V has no byte order, and cai computes contiguity and
    alignment. The import stays read-only and has no fields. If you know that the array is writable, pass a
    copy with CAI_ARRAY_STRUCT_WRITABLE set, and the tokens of __array_interface__['descr']. NumPy leaves out
    the units of datetimes, so M8[ns] arrives as M8. When NumPy imports kind U, it confuses the bytes of
    itemsize with characters and reads beyond the end.
*/

#if defined(CAI_NAMESPACE)
#define cai_array_struct_export CAI_PRIV_RENAMED(cai_array_struct_export)
#define cai_array_struct_import CAI_PRIV_RENAMED(cai_array_struct_import)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- >>struct */
/** PyArrayInterface without Python.h. intptr_t stands for Py_ssize_t, and descr is a PyObject *. */
typedef struct cai_array_struct {
    int two;           /* 2; any other number: not a PyArrayInterface */
    int nd;            /* 0 to 64 */
    char typekind;     /* of the typestr */
    int itemsize;      /* bytes, for every kind */
    int flags;         /* CAI_ARRAY_STRUCT_... */
    intptr_t *shape;   /* nd extents; may be NULL where nd is 0 */
    intptr_t *strides; /* nd strides in bytes; may be NULL where nd is 0 */
    void *data;        /* the first element */
    void *descr;       /* a list as in the dictionary, if CAI_ARRAY_STRUCT_HAS_DESCR; else unset */
} cai_array_struct;

/** Bits of cai_array_struct.flags. The import ignores other bits. */
enum {
    CAI_ARRAY_STRUCT_C_CONTIGUOUS = 0x1,
    CAI_ARRAY_STRUCT_F_CONTIGUOUS = 0x2,
    CAI_ARRAY_STRUCT_ALIGNED = 0x100,
    CAI_ARRAY_STRUCT_NATIVE = 0x200, /* NumPy's NOTSWAPPED: in the byte order of this machine */
    CAI_ARRAY_STRUCT_WRITABLE = 0x400,
    CAI_ARRAY_STRUCT_HAS_DESCR = 0x800
};

/* ---------------------------------------------------------------- >>importing */
/** Judges a struct. If it is right, describes it in `out` as a borrowed array on the host, with version 3,
 *  CAI_SYNC_NONE and unknown device. Of the flags only NATIVE, WRITABLE and HAS_DESCR count. The import
 *  computes contiguity and alignment. `descr` is the token run of in->descr as the caller's reader tagged it,
 *  or NULL. It is required with HAS_DESCR and allowed without. If you have no tokens, clear the flag in a
 *  copy. `fields` is storage for `capacity` rows. If `fields` is NULL, `descr` is checked and not kept. On
 *  failure nothing is stored. Errors: CAI_ERR_ARGUMENT, CAI_ERR_INTERFACE (two), CAI_ERR_MISSING (descr),
 *  CAI_ERR_TYPE, CAI_ERR_CAPACITY, and of cai_import CAI_ERR_SHAPE, _TYPESTR, _DATA, _STRIDES and _DESCR. */
CAI_API CAI_MUST_CHECK cai_status cai_array_struct_import(const cai_array_struct *in,
                                                          const cai_token *descr,
                                                          cai_field *fields, int64_t capacity,
                                                          cai_array *out, cai_error *err);

/* ---------------------------------------------------------------- >>exporting */
/** Makes a struct for an array. `shape_and_strides` is storage of the caller for 2 * ndim numbers, and may be
 *  NULL if ndim is 0. `descr` is NULL or a PyObject *, the list of the fields. It is stored and not read. The
 *  export refuses an array that the struct cannot describe: with fields but no `descr`, a unit, bit fields,
 *  bfloat16, float8, or a mask. It also refuses a non-empty array whose memory is not known to be HOST,
 *  PINNED or MANAGED, or whose sync is not CAI_SYNC_NONE. On failure nothing is stored. Errors:
 *  CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
CAI_API CAI_MUST_CHECK cai_status cai_array_struct_export(const cai_array *array, void *descr,
                                                          intptr_t *shape_and_strides,
                                                          cai_array_struct *out, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_ARRAY_STRUCT_H_INCLUDED */

/* ============================================================ >>implementation */

#if defined(CAI_ARRAY_STRUCT_IMPLEMENTATION) && !defined(CAI_ARRAY_STRUCT_IMPLEMENTED)
#define CAI_ARRAY_STRUCT_IMPLEMENTED

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* this is C that is also C++: it has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL, for that reason */
#endif

/* The layout of NumPy's struct: 56 bytes with pointers of 8 bytes, 36 with those of 4. */
typedef char cai_priv_npy_layout
    [((offsetof(cai_array_struct, nd) == 4) & (offsetof(cai_array_struct, typekind) == 8) &
             (offsetof(cai_array_struct, itemsize) == 12) &
             (offsetof(cai_array_struct, flags) == 16) &
             (offsetof(cai_array_struct, shape) == 16 + sizeof(void *)) &
             (offsetof(cai_array_struct, strides) == 16 + 2 * sizeof(void *)) &
             (offsetof(cai_array_struct, data) == 16 + 3 * sizeof(void *)) &
             (offsetof(cai_array_struct, descr) == 16 + 4 * sizeof(void *)) &
             (sizeof(cai_array_struct) == 16 + 5 * sizeof(void *))) ? 1 : -1];

/* Writes a number in decimal, at most 20 bytes. Returns the end of the text. */
static char *cai_priv_npy_digits(char *to, uint64_t value)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n) *to++ = digits[--n];
    return to;
}

/* Fails with a sentence. `status` may have a rule (CAI_PRIV_RULE). %i is the index, %d the value, %u the
 * value without sign, %s the dtype whose code the value is. No sentence with its values is longer than 150
 * bytes. A message has 240. */
static cai_status cai_priv_npy_fail(cai_error *err, cai_status status, int32_t entry,
                                    int32_t index, const char *sentence, int64_t value)
{
    const char *name = cai_dtype_name((int32_t)value);
    char *to;
    if (!err) return CAI_PRIV_STATUS(status);
    err->code = CAI_PRIV_STATUS(status);
    err->rule = status >> 8;
    err->native = 0;
    err->entry = entry;
    err->index = index;
    for (to = err->message; *sentence; ++sentence) {
        const int minus = sentence[0] == '%' && sentence[1] == 'd' && value < 0;
        const uint64_t number = minus ? 0 - (uint64_t)value : (uint64_t)value;
        if (minus) *to++ = '-';
        if (*sentence != '%') *to++ = *sentence;
        else if (*++sentence == 'i') to = cai_priv_npy_digits(to, (uint64_t)index);
        else if (*sentence != 's') to = cai_priv_npy_digits(to, number);
        else while (*name) *to++ = *name++;
    }
    *to = 0;
    return err->code;
}

static cai_status cai_priv_npy_no(cai_error *err, int32_t entry, const char *why, int64_t value)
{
    return cai_priv_npy_fail(err, CAI_ERR_EXPORT, entry, -1, why, value);
}

/* Judges what cai.h cannot judge. NumPy only checks `two` (R90, R91). */
static cai_status cai_priv_npy_check(const cai_array_struct *in, const cai_token *descr,
                                     cai_error *err)
{
    const char *wrong = NULL;
    if (in->two != 2)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_INTERFACE, 90), CAI_ENTRY_NONE, -1,
                                 "two = %d is not 2: this is no PyArrayInterface", in->two);
    if (in->nd < 0 || in->nd > CAI_MAX_NDIM)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 29), CAI_ENTRY_SHAPE, -1,
                                 "shape: nd = %d is not in 0..64", in->nd);
    if (in->nd && !in->shape)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 91), CAI_ENTRY_SHAPE, -1,
                                 "shape is NULL, but nd = %d", in->nd);
    if (in->itemsize < 1) wrong = "typestr: itemsize = %d is not positive";
    else if (in->typekind == 't') wrong = "typestr: kind t counts bits, but itemsize = %d counts bytes";
    else if (in->typekind == 'U' && in->itemsize % 4)
        wrong = "typestr: itemsize = %d of kind U is not a multiple of 4";
    if (wrong)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_TYPESTR, in->itemsize < 1 ? 38 : 32),
                                 CAI_ENTRY_TYPESTR, -1, wrong, in->itemsize);
    if (in->nd && !in->strides)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_STRIDES, 91), CAI_ENTRY_STRIDES, -1,
                                 "strides is NULL, but nd = %d", in->nd);
    if (!(in->flags & CAI_ARRAY_STRUCT_HAS_DESCR) || descr) return CAI_OK;
    return cai_priv_npy_fail(err, CAI_ERR_MISSING, CAI_ENTRY_DESCR, -1,
                             "descr: flags = %d require it, but no tokens were given", in->flags);
}

static cai_status cai_priv_npy_dtype(const cai_array_struct *in, cai_dtype *out, cai_error *err)
{
    const uint16_t one = 1;
    const int little = *(const unsigned char *)&one, native = in->flags & CAI_ARRAY_STRUCT_NATIVE;
    const uint32_t number = (uint32_t)in->itemsize / (in->typekind == 'U' ? 4 : 1);
    char text[24];
    text[0] = !native == !little ? '<' : '>';
    text[1] = in->typekind;
    return cai_dtype_parse(text, cai_priv_npy_digits(text + 2, number) - text, 0, out, err);
}

CAI_API cai_status cai_array_struct_import(const cai_array_struct *in, const cai_token *descr,
                                           cai_field *fields, int64_t capacity, cai_array *out,
                                           cai_error *err)
{
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM], rows = 0;
    cai_array array;
    cai_dtype dtype;
    int i;
    if (!in || !out)
        return cai_priv_npy_fail(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1,
                                 in ? "cai_array_struct_import: out is NULL"
                                    : "cai_array_struct_import: in is NULL", 0);
    CAI_TRY(cai_priv_npy_check(in, descr, err));
    CAI_TRY(cai_priv_npy_dtype(in, &dtype, err));
    for (i = 0; i < in->nd; ++i) {
        shape[i] = in->shape[i];
        strides[i] = in->strides[i];
    }
    CAI_TRY(cai_array_init_dtype(&array, &dtype, in->nd, shape, strides, (uintptr_t)in->data, err));
    CAI_TRY(cai_fields_compile(descr, &dtype, 0, fields, capacity, &rows, err));
    array.fields = rows ? fields : NULL;
    array.field_count = fields ? rows : 0;
    array.memory = CAI_MEMORY_HOST;
    array.sync = CAI_SYNC_NONE;
    if (!(in->flags & CAI_ARRAY_STRUCT_WRITABLE)) array.flags &= ~(uint32_t)CAI_WRITABLE;
    cai_array_move(out, &array);
    return CAI_OK;
}

/* Refuses an array that the struct cannot describe. */
static cai_status cai_priv_npy_sayable(const cai_array *x, const void *descr, cai_error *err)
{
    if (x->dtype.code >> 16 & 0xff || x->dtype.itemsize < 1)
        return cai_priv_npy_fail(err, CAI_PRIV_RULE(CAI_ERR_EXPORT, x->dtype.itemsize < 1 ? 33 : 35),
                                 CAI_ENTRY_TYPESTR, -1,
                                 "typestr: typekind and itemsize cannot express %s", x->dtype.code);
    if (x->dtype.unit)
        return cai_priv_npy_no(err, CAI_ENTRY_TYPESTR,
                               "typestr: typekind cannot express the unit of %s", x->dtype.code);
    if (x->size && (x->memory < CAI_MEMORY_HOST || x->memory > CAI_MEMORY_MANAGED))
        return cai_priv_npy_no(err, CAI_ENTRY_DATA,
                               "data: memory = %d is not HOST, PINNED, MANAGED (1..3)", x->memory);
    if (x->size && x->sync != CAI_SYNC_NONE)
        return cai_priv_npy_no(err, CAI_ENTRY_STREAM,
                               "stream: sync = %d is not NONE (1): work may be pending", x->sync);
    if (x->field_count && !descr)
        return cai_priv_npy_no(err, CAI_ENTRY_DESCR,
                               "descr: the array has %d rows of fields, but descr is NULL", x->field_count);
    return x->mask ? cai_priv_npy_no(err, CAI_ENTRY_MASK, "mask: the struct cannot contain one", 0) : CAI_OK;
}

/* Refuses numbers that are too wide for this machine's pointers. */
static cai_status cai_priv_npy_fits(const cai_array *x, cai_error *err)
{
    int32_t i;
    for (i = 0; i < x->ndim; ++i) {
        if ((intptr_t)x->shape[i] != x->shape[i])
            return cai_priv_npy_fail(err, CAI_ERR_EXPORT, CAI_ENTRY_SHAPE, i,
                                     "shape[%i] = %d does not fit intptr_t", x->shape[i]);
        if ((intptr_t)x->strides[i] != x->strides[i])
            return cai_priv_npy_fail(err, CAI_ERR_EXPORT, CAI_ENTRY_STRIDES, i,
                                     "strides[%i] = %d does not fit intptr_t", x->strides[i]);
    }
    if ((uintptr_t)x->data == x->data) return CAI_OK;
    return cai_priv_npy_no(err, CAI_ENTRY_DATA, "data = %u exceeds a pointer", (int64_t)x->data);
}

CAI_API cai_status cai_array_struct_export(const cai_array *array, void *descr,
                                           intptr_t *shape_and_strides, cai_array_struct *out,
                                           cai_error *err)
{
    int32_t i, has;
    CAI_TRY(cai_array_check(array, err));
    if (!out || (array->ndim && !shape_and_strides))
        return cai_priv_npy_fail(err, CAI_ERR_ARGUMENT, CAI_ENTRY_NONE, -1,
                                 out ? "cai_array_struct_export: shape_and_strides is NULL"
                                     : "cai_array_struct_export: out is NULL", 0);
    CAI_TRY(cai_priv_npy_sayable(array, descr, err));
    CAI_TRY(cai_priv_npy_fits(array, err));
    has = (int32_t)array->flags;
    out->two = 2;
    out->nd = array->ndim;
    out->typekind = (char)(array->dtype.code >> 8 & 0xff);
    out->itemsize = array->dtype.itemsize;
    out->flags = (has & CAI_C_CONTIGUOUS ? CAI_ARRAY_STRUCT_C_CONTIGUOUS : 0) |
                 (has & CAI_F_CONTIGUOUS ? CAI_ARRAY_STRUCT_F_CONTIGUOUS : 0) |
                 (has & CAI_ALIGNED ? CAI_ARRAY_STRUCT_ALIGNED : 0) |
                 (has & CAI_BYTE_SWAPPED ? 0 : CAI_ARRAY_STRUCT_NATIVE) |
                 (has & CAI_WRITABLE ? CAI_ARRAY_STRUCT_WRITABLE : 0) |
                 (descr ? CAI_ARRAY_STRUCT_HAS_DESCR : 0);
    out->shape = array->ndim ? shape_and_strides : NULL;
    out->strides = array->ndim ? shape_and_strides + array->ndim : NULL;
    for (i = 0; i < array->ndim; ++i) {
        out->shape[i] = (intptr_t)array->shape[i];
        out->strides[i] = (intptr_t)array->strides[i];
    }
    out->data = (void *)(uintptr_t)array->data;
    out->descr = descr;
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_ARRAY_STRUCT_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/
