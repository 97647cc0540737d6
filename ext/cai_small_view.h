/* cai_small_view.h - a view of at most 4 axes for kernels with many arguments - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_SMALL_VIEW_IMPLEMENTATION)
#define CAI_SMALL_VIEW_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_small_view.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_SMALL_VIEW_H_INCLUDED) && CAI_SMALL_VIEW_H_INCLUDED != 200
#error "cai_small_view.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_SMALL_VIEW_H_INCLUDED
#define CAI_SMALL_VIEW_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_SMALL_VIEW_IMPLEMENTATION for this header alone). All other configuration
    is that of cai.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_small_view.h"

WHAT IT IS
    The arguments of a kernel have 4,096 bytes, or 32,764 from CUDA 12.1 and compute capability 7.0. 28 views
    of cai.h fill 4,096 bytes, as each has 144. Small views have 80, so 51 of them fit. They are for authors
    of fused kernels and of lists of arrays in one launch. With few arguments, take cai_kernel_view.

        CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, 2, CAI_ON_DEVICE, err));
        CAI_TRY(cai_small_view_of(x, &view, err));

THREADS
    The function keeps no state. Any number of threads may call it.
*/

#if defined(CAI_NAMESPACE)
#define cai_small_view_of CAI_PRIV_RENAMED(cai_small_view_of)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------- >>views */
enum {
    CAI_MAX_SMALL_NDIM = 4 /* dimensions of a cai_small_view */
};

/** The part of an array that a kernel needs, as in cai_kernel_view. Pass it by value. */
typedef struct cai_small_view {
    char *data;         /* the first element; NULL if the array is empty */
    int32_t ndim;       /* 0 to 4 */
    int32_t itemsize;   /* bytes */
    int64_t shape[4];   /* elements; 1 past ndim */
    int64_t strides[4]; /* bytes; 0 past ndim */
} cai_small_view;

/** Fills a small view. What cai_kernel_view_of says holds for it, too. If the array has more than 4 axes, try
 *  cai_view_coalesce. Errors: CAI_ERR_VIEW (too many axes; index is the first without a place), and those of
 *  cai_kernel_view_of. On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_small_view_of(const cai_array *array, cai_small_view *out,
                                                    cai_error *err);

/** Returns the address of element (i), (i, j) or (i, j, k) of a view of 1, 2 or 3 axes, unchecked. */
CAI_HOST_DEVICE static inline void *cai_small_at1(const cai_small_view *view, int64_t i)
{
    return view->data + i * view->strides[0];
}

CAI_HOST_DEVICE static inline void *cai_small_at2(const cai_small_view *view, int64_t i, int64_t j)
{
    return view->data + i * view->strides[0] + j * view->strides[1];
}

CAI_HOST_DEVICE static inline void *cai_small_at3(const cai_small_view *view, int64_t i, int64_t j,
                                                  int64_t k)
{
    return view->data + i * view->strides[0] + j * view->strides[1] + k * view->strides[2];
}

/** Returns the address of element number `n` in C order, for any number of axes, unchecked. */
CAI_HOST_DEVICE static inline void *cai_small_element(const cai_small_view *view, int64_t n)
{
    char *at = view->data;
    int32_t axis = view->ndim;
    while (--axis > 0) {
        at += n % view->shape[axis] * view->strides[axis];
        n /= view->shape[axis];
    }
    return axis < 0 ? at : at + n * view->strides[0];
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SMALL_VIEW_H_INCLUDED */

/* ============================================================ >>implementation */

#if defined(CAI_SMALL_VIEW_IMPLEMENTATION) && !defined(CAI_SMALL_VIEW_IMPLEMENTED)
#define CAI_SMALL_VIEW_IMPLEMENTED
#include <string.h>
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

/* 80 bytes, so that the promise of the comment holds. The pointer of a 32-bit target is padded or shorter. */
typedef char cai_priv_assert_small_view[sizeof(cai_small_view) <= 80 ? 1 : -1];

CAI_API cai_status cai_small_view_of(const cai_array *array, cai_small_view *out, cai_error *err)
{
    cai_kernel_view view;
    cai_status status;
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_small_view_of: out is NULL");
    if (array->ndim > CAI_MAX_SMALL_NDIM) {
        status = cai_priv_error(err, CAI_ERR_VIEW,
                                "the array has %d dimensions, a small view at most 4: cai_view_coalesce may "
                                "merge some", array->ndim);
        if (err) err->entry = CAI_ENTRY_SHAPE;
        if (err) err->index = CAI_MAX_SMALL_NDIM;
        return status;
    }
    memset(&view, 0, sizeof view); /* gcc does not see that it is filled, where all is inlined */
    CAI_TRY(cai_kernel_view_of(array, &view, err));
    out->data = view.data;
    out->ndim = view.ndim;
    out->itemsize = view.itemsize;
    memcpy(out->shape, view.shape, sizeof out->shape);
    memcpy(out->strides, view.strides, sizeof out->strides);
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_SMALL_VIEW_IMPLEMENTATION */

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
