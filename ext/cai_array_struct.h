/* cai_array_struct.h - NumPy's C struct __array_struct__ (PyArrayInterface) <-> cai_array - v0.1.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No Python.h, no allocation, no stdio. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_ARRAY_STRUCT_IMPLEMENTATION)
#define CAI_ARRAY_STRUCT_IMPLEMENTATION
#endif

/* Included again, cai.h adds what is wanted of it and refuses late configuration. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                     \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                    \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                    \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 1
#error "cai_array_struct.h: this is version 0.1, which needs cai.h 0.1"
#endif
#if defined(CAI_ARRAY_STRUCT_H_INCLUDED) && CAI_ARRAY_STRUCT_H_INCLUDED != 100
#error "cai_array_struct.h: another version of it was included first"
#endif

#ifndef CAI_ARRAY_STRUCT_H_INCLUDED
#define CAI_ARRAY_STRUCT_H_INCLUDED 100 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_ARRAY_STRUCT_IMPLEMENTATION for this header alone; all other
    configuration is that of cai.h, which is found by -I or beside this file):

        #define CAI_IMPLEMENTATION
        #include "cai_array_struct.h"

WHAT IT IS
    x.__array_struct__ is a capsule with a PyArrayInterface: NumPy's array interface as a C
    struct, of host memory without pending work. This header judges one by the rules of
    cai_import, or makes one:

        const cai_array_struct *s = PyCapsule_GetPointer(capsule, NULL);
        CAI_TRY(cai_array_struct_import(s, NULL, NULL, 0, &x, err));

    An import is borrowed: the capsule keeps its elements. Shape and strides are copied; names of
    fields point to the text of the tokens. An export points to the caller's storage.

WHAT NUMPY DOES WRONG (2.4 and before)
    Structured arrays have flags 0 (`flags &= NPY_ARR_HAS_DESCR`, where |= was meant): as if
    swapped, read-only and without descr. Kind V has no byte order, and contiguity and alignment
    are computed here; read-only they stay, without fields. A caller who knows better passes a copy
    with CAI_ARRAY_STRUCT_WRITABLE set, and the tokens of __array_interface__['descr'].
    Units of datetimes are left out: M8[ns] comes as M8. Importing kind U, NumPy takes the bytes
    of itemsize for characters and reads beyond the end.
*/

#if defined(CAI_NAMESPACE)
#define cai_array_struct_export CAI_PRIV_RENAMED(cai_array_struct_export)
#define cai_array_struct_import CAI_PRIV_RENAMED(cai_array_struct_import)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** PyArrayInterface without Python.h: intptr_t is Py_ssize_t, descr is a PyObject *. */
typedef struct cai_array_struct {
    int two;           /* 2, or it is something else */
    int nd;            /* 0 to 64 */
    char typekind;     /* of the typestr */
    int itemsize;      /* bytes, for every kind */
    int flags;         /* CAI_ARRAY_STRUCT_... */
    intptr_t *shape;   /* nd extents; may be NULL where nd is 0 */
    intptr_t *strides; /* nd strides in bytes; likewise */
    void *data;        /* the first element */
    void *descr;       /* a list as in the dictionary, if CAI_ARRAY_STRUCT_HAS_DESCR; else unset */
} cai_array_struct;

/** Bits of cai_array_struct.flags; others are ignored by the import. */
enum {
    CAI_ARRAY_STRUCT_C_CONTIGUOUS = 0x1,
    CAI_ARRAY_STRUCT_F_CONTIGUOUS = 0x2,
    CAI_ARRAY_STRUCT_ALIGNED = 0x100,
    CAI_ARRAY_STRUCT_NATIVE = 0x200, /* NumPy's NOTSWAPPED: in the byte order of this machine */
    CAI_ARRAY_STRUCT_WRITABLE = 0x400,
    CAI_ARRAY_STRUCT_HAS_DESCR = 0x800
};

/** Judges a struct and, if it is right, describes it in `out` as a borrowed array on the host,
 *  version 3, CAI_SYNC_NONE, device unknown. Of the flags, only NATIVE, WRITABLE and HAS_DESCR
 *  count; what can be computed is computed.
 *  descr: the token run of in->descr as the caller's reader tagged it. Required with HAS_DESCR
 *  (clear the flag in a copy to do without), welcome without; NULL: none. fields, capacity:
 *  storage for its rows; NULL: it is checked, not kept. On failure nothing is stored.
 *  Errors: CAI_ERR_ARGUMENT; CAI_ERR_INTERFACE (two); CAI_ERR_MISSING (descr); CAI_ERR_SHAPE,
 *  _TYPESTR, _DATA, _STRIDES and _DESCR as of cai_import; CAI_ERR_TYPE; CAI_ERR_CAPACITY. */
CAI_API CAI_MUST_CHECK cai_status cai_array_struct_import(const cai_array_struct *in,
                                                          const cai_token *descr,
                                                          cai_field *fields, int64_t capacity,
                                                          cai_array *out, cai_error *err);

/** Makes a struct for an array. shape_and_strides: storage of the caller for 2 * ndim numbers;
 *  may be NULL where ndim is 0. descr: a PyObject *, the list that says the fields, or NULL;
 *  stored, not looked at. What the struct cannot say is refused, not dropped: fields without
 *  `descr`, units, bit fields, bfloat16 and float8, a mask; and, of an array that is not empty,
 *  memory not known to be HOST, PINNED or MANAGED, and any sync but CAI_SYNC_NONE. Nothing is
 *  stored on failure. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI, CAI_ERR_EXPORT. */
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

/* Writes a number in decimal, at most 20 bytes; returns its end. */
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

/* Fails with a sentence: %i the index, %d the value, %u that without sign, %s the dtype whose code
 * it is. With them none is longer than 150 bytes, of the 240 that a message has. */
static cai_status cai_priv_npy_fail(cai_error *err, cai_status status, int32_t entry,
                                    int32_t index, const char *sentence, int64_t value)
{
    const char *name = cai_dtype_name((int32_t)value);
    char *to;
    if (!err) return status;
    err->code = status;
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
    return status;
}

static cai_status cai_priv_npy_no(cai_error *err, int32_t entry, const char *why, int64_t value)
{
    return cai_priv_npy_fail(err, CAI_ERR_EXPORT, entry, -1, why, value);
}

/* What cai.h cannot judge; NumPy looks at `two` alone (R90, R91). */
static cai_status cai_priv_npy_check(const cai_array_struct *in, const cai_token *descr,
                                     cai_error *err)
{
    const char *wrong = NULL;
    if (in->two != 2)
        return cai_priv_npy_fail(err, CAI_ERR_INTERFACE, CAI_ENTRY_NONE, -1,
                                 "two = %d is not 2: this is no PyArrayInterface", in->two);
    if (in->nd < 0 || in->nd > CAI_MAX_NDIM) wrong = "shape: nd = %d is not in 0..64";
    else if (in->nd && !in->shape) wrong = "shape is NULL, nd = %d";
    if (wrong) return cai_priv_npy_fail(err, CAI_ERR_SHAPE, CAI_ENTRY_SHAPE, -1, wrong, in->nd);
    if (in->itemsize < 1) wrong = "typestr: itemsize = %d is not positive";
    else if (in->typekind == 't') wrong = "typestr: kind t counts bits, itemsize = %d counts bytes";
    else if (in->typekind == 'U' && in->itemsize % 4)
        wrong = "typestr: itemsize = %d of kind U is not a multiple of 4";
    if (wrong)
        return cai_priv_npy_fail(err, CAI_ERR_TYPESTR, CAI_ENTRY_TYPESTR, -1, wrong, in->itemsize);
    if (in->nd && !in->strides)
        return cai_priv_npy_fail(err, CAI_ERR_STRIDES, CAI_ENTRY_STRIDES, -1,
                                 "strides is NULL, nd = %d", in->nd);
    if (!(in->flags & CAI_ARRAY_STRUCT_HAS_DESCR) || descr) return CAI_OK;
    return cai_priv_npy_fail(err, CAI_ERR_MISSING, CAI_ENTRY_DESCR, -1,
                             "descr: flags = %d announce it, no tokens were given", in->flags);
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

/* What of an array the struct has no place for. */
static cai_status cai_priv_npy_sayable(const cai_array *x, const void *descr, cai_error *err)
{
    if (x->dtype.code >> 16 & 0xff || x->dtype.itemsize < 1)
        return cai_priv_npy_no(err, CAI_ENTRY_TYPESTR,
                               "typestr: typekind and itemsize cannot say %s", x->dtype.code);
    if (x->dtype.unit)
        return cai_priv_npy_no(err, CAI_ENTRY_TYPESTR,
                               "typestr: typekind cannot say the unit of %s", x->dtype.code);
    if (x->size && (x->memory < CAI_MEMORY_HOST || x->memory > CAI_MEMORY_MANAGED))
        return cai_priv_npy_no(err, CAI_ENTRY_DATA,
                               "data: memory = %d is not HOST, PINNED, MANAGED (1..3)", x->memory);
    if (x->size && x->sync != CAI_SYNC_NONE)
        return cai_priv_npy_no(err, CAI_ENTRY_STREAM,
                               "stream: sync = %d is not NONE (1): work may be pending", x->sync);
    if (x->field_count && !descr)
        return cai_priv_npy_no(err, CAI_ENTRY_DESCR,
                               "descr: %d rows of fields, and no list of them", x->field_count);
    return x->mask ? cai_priv_npy_no(err, CAI_ENTRY_MASK, "mask: the struct has none", 0) : CAI_OK;
}

/* The numbers that this machine's pointers may be too narrow for. */
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
