/* cai_layout.h - how the axes of a field lie in memory: order, alignment, halo - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA, no allocation. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_LAYOUT_IMPLEMENTATION)
#define CAI_LAYOUT_IMPLEMENTATION
#endif

/* A second inclusion of cai.h adds its implementation, or refuses configuration that comes too late. */
#if !defined(CAI_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                               \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai.h"
#endif

#if CAI_H_INCLUDED / 100 != 2
#error "cai_layout.h: this is version 0.2, which needs cai.h 0.2"
#endif
#if defined(CAI_LAYOUT_H_INCLUDED) && CAI_LAYOUT_H_INCLUDED != 200
#error "cai_layout.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_LAYOUT_H_INCLUDED
#define CAI_LAYOUT_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_LAYOUT_IMPLEMENTATION for this header alone). All other configuration is
    that of cai.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_layout.h"

WHAT IT IS
    A field of a simulation is an array with named axes, such as "IJK". A layout has the order of the axes by
    stride, the element that is aligned, and the width of the halo around the domain. The plan gives the
    strides and the bytes to allocate. The formulas are those of GT4Py (GDP-3).

        cai_layout layout = {0};
        CAI_TRY(cai_layout_preset(&layout, "gtcuda", "IJK", err)); // order and alignment: a beginning
        layout.shape[0] = nx + 6; layout.shape[1] = ny + 6; layout.shape[2] = nz;
        layout.halo_low[0] = layout.halo_high[0] = layout.halo_low[1] = layout.halo_high[1] = 3;
        CAI_TRY(cai_layout_plan(&layout, &dtype, err));
        block = (uint64_t)(uintptr_t)malloc((size_t)layout.nbytes);     // any allocator, at any address
        CAI_TRY(cai_array_init_dtype(&field, &dtype, 3, layout.shape, layout.strides,
                                     block + (uint64_t)cai_layout_offset(&layout, block), err));
        CAI_TRY(cai_view_domain(&field, layout.halo_low, layout.halo_high, &domain, err)); // without halo

THREADS
    The functions keep no state. Any number of threads may call them.
*/

#if defined(CAI_NAMESPACE)
#define cai_domain_of CAI_PRIV_RENAMED(cai_domain_of)
#define cai_layout_check CAI_PRIV_RENAMED(cai_layout_check)
#define cai_layout_of CAI_PRIV_RENAMED(cai_layout_of)
#define cai_layout_offset CAI_PRIV_RENAMED(cai_layout_offset)
#define cai_layout_permute CAI_PRIV_RENAMED(cai_layout_permute)
#define cai_layout_plan CAI_PRIV_RENAMED(cai_layout_plan)
#define cai_layout_preset CAI_PRIV_RENAMED(cai_layout_preset)
#define cai_view_dims CAI_PRIV_RENAMED(cai_view_dims)
#define cai_view_domain CAI_PRIV_RENAMED(cai_view_domain)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------- >>layouts */
enum { CAI_LAYOUT_MAX_NDIM = 8 };

/** Flags of a layout. */
enum {
    CAI_LAYOUT_ALIGN_INDEX = 1 << 0, /* `aligned` is given; else it is the lower halo of each axis */
    CAI_LAYOUT_ALIGN_ITEMS = 1 << 1  /* `alignment` counts elements, not bytes */
};

/** A layout. Zero it, then set what differs. Zeros mean C order, no alignment, no halo. */
typedef struct cai_layout {
    uint32_t flags;     /* CAI_LAYOUT_... */
    int32_t ndim;       /* 0 to CAI_LAYOUT_MAX_NDIM */
    int32_t alignment;  /* bytes, or elements (CAI_LAYOUT_ALIGN_ITEMS), of the element `aligned` and of each
                           row at its index; 0: none */
    int32_t map[8];     /* of each axis: 0 has the largest stride, ndim - 1 the smallest; all 0: C order */
    int64_t shape[8];   /* elements */
    int64_t aligned[8]; /* an index; without CAI_LAYOUT_ALIGN_INDEX cai_layout_plan stores the lower halo */
    int64_t halo_low[8], halo_high[8]; /* elements below and above the domain */
    int64_t strides[8]; /* by cai_layout_plan: bytes */
    int64_t nbytes;     /* by cai_layout_plan: to allocate, at any address */
    int64_t offset;     /* by cai_layout_plan: bytes before element 0 in a block at an aligned address */
    int64_t boundary;   /* by cai_layout_plan: the alignment in bytes, 1 or more */
} cai_layout;

/** Sets ndim, map, alignment and flags of `layout` to those of a backend. The other fields stay. What you set
 *  after the call has priority. `preset` is "C" or "F", a preset of GDP-3 ("gtx86", "gtmc", "gtcuda"), or a
 *  backend of GT4Py ("debug", "numpy", "gt:cpu_ifirst", "gt:cpu_kfirst", "gt:gpu", "dace:cpu",
 *  "dace:cpu_kfirst", "dace:cpu_KJI", "dace:gpu", "dace:gpu_IJK"). Those of GDP-3 take the axes in the order
 *  of `dims`. Those of GT4Py count the alignment in elements, and take I, J and K in this order.
 *  `dims` has one character for each axis, each once: I, J, K, and digits for axes of data. "C" and "F" take
 *  any. Errors: CAI_ERR_ARGUMENT. On failure `layout` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_layout_preset(cai_layout *layout, const char *preset, const char *dims,
                                                    cai_error *err);

/** Computes strides, nbytes and offset. The innermost axis is padded, so that the element `aligned` and each
 *  row at its innermost index are aligned. An extent of 0 gives 0 bytes. `dtype` has a fixed size, which the
 *  alignment divides, or which divides the alignment. A planned layout can be planned again, also for another
 *  dtype. Errors, with the axis as index: CAI_ERR_ARGUMENT (map, alignment, flags, dtype), CAI_ERR_SHAPE
 *  (extents, halo, aligned, or more than 2^63 - 1 bytes). On failure `layout` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_layout_plan(cai_layout *layout, const cai_dtype *dtype, cai_error *err);

/** Returns the bytes from `address`, where a block of layout->nbytes begins, to element 0. `layout` is
 *  planned. All blocks with aligned addresses have layout->offset. 0 for NULL. */
CAI_API int64_t cai_layout_offset(const cai_layout *layout, uint64_t address);

/** Reads shape, strides and map from an array. The map orders axes by the magnitude of the stride, then by
 *  extent, then by axis, as cuda.core does. Alignment and halo are 0. nbytes is that of the elements. Errors:
 *  CAI_ERR_SHAPE (more than CAI_LAYOUT_MAX_NDIM axes), CAI_ERR_ARGUMENT, CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_layout_of(const cai_array *array, cai_layout *out, cai_error *err);

/** Checks that memory of others has this layout: shape, order of the axes, no axis inside another, alignment.
 *  Axes of extent 1 fit any order, and an empty array fits. Padding may differ. `layout` need not be planned.
 *  Errors: CAI_ERR_EXPECT with the axis as index, CAI_ERR_ARGUMENT, CAI_ERR_SHAPE, CAI_ERR_ABI. */
CAI_API CAI_MUST_CHECK cai_status cai_layout_check(const cai_layout *layout, const cai_array *array,
                                                   cai_error *err);

/** Permutes the axes of a layout. Axis i of `out` is axis axes[i] of `layout`. NULL reverses the axes. `out`
 *  may be `layout`. Errors: CAI_ERR_ARGUMENT. On failure `out` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_layout_permute(const cai_layout *layout, const int32_t *axes,
                                                     cai_layout *out, cai_error *err);

/* -------------------------------------------------------------------- >>domains */
/** A field of a computation. */
typedef struct cai_grid_field {
    const cai_array *array;
    const char *dims;         /* one character for each axis, as of presets; any characters */
    const int64_t *halo_low, *halo_high; /* of each axis; NULL: none */
} cai_grid_field;

/** Makes a view of an array without its halo. Index 0 is the first point of the domain. `halo_low` and
 *  `halo_high` have an item for each axis, as in a layout. The rules are those of views in cai.h. Errors:
 *  CAI_ERR_SHAPE (a halo that does not fit), CAI_ERR_ARGUMENT, and those of cai_view_slice. */
CAI_API CAI_MUST_CHECK cai_status cai_view_domain(const cai_array *array, const int64_t *halo_low,
                                                  const int64_t *halo_high, cai_array *out, cai_error *err);

/** Makes a view with the axes `wanted`, in their order, of an array with the axes `dims`. A missing axis gets
 *  extent 1 and stride 0. If an axis that is not wanted has extent 1, it is dropped. Errors: CAI_ERR_VIEW (an
 *  axis that is not wanted is larger), CAI_ERR_ARGUMENT, and those of views. */
CAI_API CAI_MUST_CHECK cai_status cai_view_dims(const cai_array *array, const char *dims, const char *wanted,
                                                cai_array *out, cai_error *err);

/** Finds the largest domain that all fields have. It has the smallest extent without halo of each axis in
 *  `dims`. A field without that axis does not limit it. `extents` has one item for each axis in `dims`.
 *  Errors: CAI_ERR_SHAPE (a halo does not fit, or no field has an axis), CAI_ERR_ARGUMENT, CAI_ERR_ABI. The
 *  index is that of the field. On failure `extents` is unchanged. */
CAI_API CAI_MUST_CHECK cai_status cai_domain_of(const cai_grid_field *fields, int32_t count, const char *dims,
                                                int64_t *extents, cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_LAYOUT_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>presets  >>plans  >>given memory  >>domains */

#if defined(CAI_LAYOUT_IMPLEMENTATION) && !defined(CAI_LAYOUT_IMPLEMENTED)
#define CAI_LAYOUT_IMPLEMENTED
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

/* "halo_low[1] = 7: the extent is 5" */
CAI_PRIV_COLD cai_status cai_priv_item(cai_error *err, cai_status status, int32_t axis, const char *name,
                                       int64_t value, const char *limit_name, int64_t limit)
{
    status = cai_priv_error(err, status, "%s[%ld] = %lld: %s %lld", name, (long)axis, (long long)value,
                            limit_name, (long long)limit);
    if (err) err->index = axis;
    return status;
}

/* ------------------------------------------------------------------- >>presets */
/* `order` has I, J and K, the largest stride first. "C" and "F" take any axes in their order. Axes of data have
 * larger strides. If `data` is '-', the last one is first. `head` is for the present GT4Py. */
static const struct {
    const char *name, *order;
    char data, head;
    int32_t alignment;
} cai_priv_presets[] = {
    {"C", "C", '+', 0, 0},              {"F", "F", '+', 0, 0},
    {"gtx86", "IJK", '+', 0, 0},        {"gtmc", "JKI", '-', 0, 8},
    {"gtcuda", "KJI", '-', 0, 32},      {"debug", "IJK", '+', 1, 1},
    {"numpy", "IJK", '+', 1, 1},        {"gt:gpu", "KJI", '+', 1, 32},
    {"gt:cpu_ifirst", "KJI", '+', 1, 1}, {"gt:cpu_kfirst", "IJK", '+', 1, 1},
    {"dace:cpu", "KIJ", '+', 1, 1},     {"dace:cpu_kfirst", "IJK", '+', 1, 1},
    {"dace:cpu_KJI", "KJI", '+', 1, 1}, {"dace:gpu_IJK", "IJK", '+', 1, 1},
    {"dace:gpu", "KJI", '+', 1, 1},
};

/* Counts the axes, which are all different. `name` is the argument. */
static cai_status cai_priv_dims(const char *dims, const char *name, int32_t *ndim, cai_error *err)
{
    *ndim = 0;
    if (!dims) return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s is NULL", name);
    for (; dims[*ndim]; ++*ndim) {
        if (*ndim == CAI_LAYOUT_MAX_NDIM)
            return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s has more than %d axes", name, (int)*ndim);
        if (memchr(dims, dims[*ndim], (size_t)*ndim))
            return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s has the axis '%c' twice", name, dims[*ndim]);
    }
    return CAI_OK;
}

static int cai_priv_is_data_axis(char name)
{
    return name >= '0' && name <= '9';
}

/* Returns the axis that a preset takes for a letter I, J or K of `dims`. GT4Py takes the letters in this order:
 * the first axis that is not of data is I, or J if there is no I. */
static int32_t cai_priv_preset_axis(const char *dims, char name, int head)
{
    int32_t before = 0, axis = 0;
    char other;
    if (!head) return (int32_t)(strchr(dims, name) - dims);
    for (other = 'I'; other < name; ++other) before += strchr(dims, other) != NULL;
    while (cai_priv_is_data_axis(dims[axis]) || before-- > 0) ++axis;
    return axis;
}

/* Sets the map of the preset in a row of the table, which knows the characters of `dims`. */
static void cai_priv_preset_map(size_t row, const char *dims, int32_t ndim, int32_t *map)
{
    const char *name = cai_priv_presets[row].order;
    int32_t place = 0, i;
    for (i = 0; !name[1] && i < ndim; ++i) map[i] = *name == 'C' ? i : ndim - 1 - i;
    if (!name[1]) return;
    for (i = 0; i < ndim; ++i) {
        const int32_t axis = cai_priv_presets[row].data == '+' ? i : ndim - 1 - i;
        if (cai_priv_is_data_axis(dims[axis])) map[axis] = place++;
    }
    for (; *name; ++name)
        if (strchr(dims, *name)) map[cai_priv_preset_axis(dims, *name, cai_priv_presets[row].head)] = place++;
}

CAI_API cai_status cai_layout_preset(cai_layout *layout, const char *preset, const char *dims, cai_error *err)
{
    const size_t count = sizeof cai_priv_presets / sizeof *cai_priv_presets;
    int32_t ndim, i;
    size_t row = 0;
    if (!layout || !preset) return cai_priv_error(err, CAI_ERR_ARGUMENT, "layout or preset is NULL");
    CAI_TRY(cai_priv_dims(dims, "dims", &ndim, err));
    while (row < count && strcmp(cai_priv_presets[row].name, preset) != 0) ++row;
    if (row == count) return cai_priv_error(err, CAI_ERR_ARGUMENT, "there is no preset \"%.*s\"", 40, preset);
    for (i = 0; cai_priv_presets[row].order[1] && i < ndim; ++i)
        if (!cai_priv_is_data_axis(dims[i]) && !strchr("IJK", dims[i]))
            return cai_priv_error(err, CAI_ERR_ARGUMENT, "dims has '%c': the preset knows I, J, K and digits",
                                  dims[i]);
    layout->ndim = ndim;
    layout->alignment = cai_priv_presets[row].alignment;
    layout->flags = cai_priv_presets[row].head ? (uint32_t)CAI_LAYOUT_ALIGN_ITEMS : 0;
    cai_priv_preset_map(row, dims, ndim, layout->map);
    return CAI_OK;
}

/* ---------------------------------------------------------------------- >>plans */
/* A layout that was checked, with its defaults. */
typedef struct cai_priv_layout_plan {
    cai_layout at;
    int32_t order[CAI_LAYOUT_MAX_NDIM]; /* the axes from the largest stride to the smallest */
    int64_t bytes;                      /* the alignment, 1 or more */
} cai_priv_layout_plan;

static cai_status cai_priv_halo(int64_t low, int64_t high, int64_t extent, int32_t axis, cai_error *err)
{
    if (low < 0 || low > extent)
        return cai_priv_item(err, CAI_ERR_SHAPE, axis, "halo_low", low, "the extent is", extent);
    if (high >= 0 && high <= extent - low) return CAI_OK;
    return cai_priv_item(err, CAI_ERR_SHAPE, axis, "halo_high", high, "what is left is", extent - low);
}

/* Stores in `order` the axes at each place of a permutation. Returns CAI_OK, or the error of an item. */
static cai_status cai_priv_permutation(const int32_t *places, int32_t ndim, const char *name, int32_t *order,
                                       cai_error *err)
{
    int32_t i, seen = 0;
    for (i = 0; i < ndim; ++i) {
        if (places[i] < 0 || places[i] >= ndim || (seen >> places[i] & 1))
            return cai_priv_item(err, CAI_ERR_ARGUMENT, i, name, places[i], "no permutation; ndim is", ndim);
        seen |= 1 << places[i];
        order[places[i]] = i;
    }
    return CAI_OK;
}

/* Finds the order of the axes. A map of zeros is C order. */
static cai_status cai_priv_layout_order(cai_priv_layout_plan *plan, cai_error *err)
{
    int32_t i, any = 0;
    if (plan->at.ndim < 0 || plan->at.ndim > CAI_LAYOUT_MAX_NDIM)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "ndim = %ld", (long)plan->at.ndim);
    for (i = 0; i < plan->at.ndim; ++i) any |= plan->at.map[i];
    for (i = 0; i < plan->at.ndim && !any; ++i) plan->at.map[i] = i;
    return cai_priv_permutation(plan->at.map, plan->at.ndim, "map", plan->order, err);
}

static cai_status cai_priv_layout_open(const cai_layout *given, int64_t itemsize, cai_priv_layout_plan *plan,
                                       cai_error *err)
{
    int64_t *aligned = plan->at.aligned;
    int32_t i;
    plan->at = *given;
    CAI_TRY(cai_priv_layout_order(plan, err));
    for (i = 0; i < given->ndim; ++i) {
        const int64_t extent = given->shape[i], last = extent > 0 ? extent - 1 : 0;
        if (extent < 0) return cai_priv_item(err, CAI_ERR_SHAPE, i, "shape", extent, "the least is", 0);
        CAI_TRY(cai_priv_halo(given->halo_low[i], given->halo_high[i], extent, i, err));
        if (!(given->flags & CAI_LAYOUT_ALIGN_INDEX))
            aligned[i] = given->halo_low[i] < last ? given->halo_low[i] : last;
        if (aligned[i] < 0 || aligned[i] > last)
            return cai_priv_item(err, CAI_ERR_SHAPE, i, "aligned", aligned[i], "the extent is", extent);
    }
    plan->bytes = given->alignment ? given->alignment : 1;
    if (given->alignment && (given->flags & CAI_LAYOUT_ALIGN_ITEMS)) plan->bytes *= itemsize;
    if (given->flags <= 3 && given->alignment >= 0 && itemsize > 0 && plan->bytes <= INT32_MAX &&
        (plan->bytes % itemsize == 0 || itemsize % plan->bytes == 0))
        return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT,
                          "alignment = %ld, itemsize = %ld, flags = 0x%lx: one must divide the other",
                          (long)given->alignment, (long)itemsize, (unsigned long)given->flags);
}

/* stride[k] = itemsize * product over j > k of extent[j], of places k and j. The innermost extent is rounded up
 * to a multiple of `unit`. Returns the bytes for any address of the block, or -1 if there are too many. */
static int64_t cai_priv_layout_strides(cai_priv_layout_plan *plan, int64_t itemsize, int64_t unit)
{
    int64_t stride = itemsize, empty = 0;
    int32_t place;
    for (place = plan->at.ndim - 1; place >= 0; --place) {
        const int32_t axis = plan->order[place];
        int64_t extent = plan->at.shape[axis] ? plan->at.shape[axis] : 1;
        empty |= !plan->at.shape[axis];
        if (place == plan->at.ndim - 1) {
            if (extent > INT64_MAX - (unit - 1)) return -1;
            extent = (extent + (unit - 1)) / unit * unit;
        }
        plan->at.strides[axis] = stride;
        if (extent > INT64_MAX / stride) return -1;
        stride *= extent;
    }
    if (stride > INT64_MAX - (plan->bytes - 1)) return -1;
    return empty ? 0 : stride + (plan->bytes - 1);
}

CAI_API cai_status cai_layout_plan(cai_layout *layout, const cai_dtype *dtype, cai_error *err)
{
    cai_priv_layout_plan plan;
    int64_t unit, inner;
    if (!layout || !dtype) return cai_priv_error(err, CAI_ERR_ARGUMENT, "layout or dtype is NULL");
    CAI_TRY(cai_priv_layout_open(layout, dtype->itemsize, &plan, err));
    unit = plan.bytes > dtype->itemsize ? plan.bytes / dtype->itemsize : 1;
    plan.at.nbytes = cai_priv_layout_strides(&plan, dtype->itemsize, unit);
    if (plan.at.nbytes < 0) return cai_priv_error(err, CAI_ERR_SHAPE, "more than 2^63 - 1 bytes");
    inner = plan.at.ndim ? plan.at.aligned[plan.order[plan.at.ndim - 1]] : 0;
    plan.at.offset = plan.at.nbytes ? (unit - inner % unit) % unit * dtype->itemsize : 0;
    plan.at.boundary = plan.bytes;
    *layout = plan.at;
    return CAI_OK;
}

CAI_API int64_t cai_layout_offset(const cai_layout *layout, uint64_t address)
{
    const uint64_t boundary = layout && layout->nbytes ? (uint64_t)layout->boundary : 1;
    if (boundary <= 1) return 0;
    return (int64_t)(((uint64_t)layout->offset + boundary - address % boundary) % boundary);
}

CAI_API cai_status cai_layout_permute(const cai_layout *layout, const int32_t *axes, cai_layout *out,
                                      cai_error *err)
{
    cai_priv_layout_plan given;
    cai_layout made;
    int32_t i, order[CAI_LAYOUT_MAX_NDIM];
    if (!layout || !out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "layout or out is NULL");
    given.at = made = *layout;
    CAI_TRY(cai_priv_layout_order(&given, err));
    if (axes) CAI_TRY(cai_priv_permutation(axes, made.ndim, "axes", order, err));
    for (i = 0; i < made.ndim; ++i) {
        const int32_t axis = axes ? axes[i] : made.ndim - 1 - i;
        made.map[i] = given.at.map[axis];
        made.shape[i] = given.at.shape[axis];
        made.aligned[i] = given.at.aligned[axis];
        made.strides[i] = given.at.strides[axis];
        made.halo_low[i] = given.at.halo_low[axis];
        made.halo_high[i] = given.at.halo_high[axis];
    }
    *out = made;
    return CAI_OK;
}

/* --------------------------------------------------------------- >>given memory */
static uint64_t cai_priv_step(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Returns whether (|stride|, extent, -axis) of axis a is larger than that of axis b, the first item first. */
static int cai_priv_axis_before(const cai_array *array, int32_t a, int32_t b)
{
    const uint64_t first = cai_priv_step(array->strides[a]), second = cai_priv_step(array->strides[b]);
    if (first != second) return first > second;
    return array->shape[a] != array->shape[b] ? array->shape[a] > array->shape[b] : a < b;
}

CAI_API cai_status cai_layout_of(const cai_array *array, cai_layout *out, cai_error *err)
{
    int32_t a, b;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out is NULL");
    CAI_TRY(cai_array_check(array, err));
    if (array->ndim > CAI_LAYOUT_MAX_NDIM)
        return cai_priv_error(err, CAI_ERR_SHAPE, "the array has %ld axes, at most 8 fit", (long)array->ndim);
    memset(out, 0, sizeof *out);
    out->ndim = array->ndim;
    out->nbytes = array->nbytes;
    for (a = 0; a < array->ndim; ++a) {
        out->shape[a] = array->shape[a];
        out->strides[a] = array->strides[a];
        for (b = 0; b < array->ndim; ++b) out->map[a] += b != a && cai_priv_axis_before(array, b, a);
    }
    return CAI_OK;
}

/* Checks alignment, and of places k: stride[k] >= itemsize + sum over j > k of (shape[j] - 1) * stride[j]. */
static cai_status cai_priv_layout_fits(const cai_priv_layout_plan *plan, const cai_array *array,
                                       cai_error *err)
{
    int64_t inside = array->dtype.itemsize;
    uint64_t address = array->data;
    int32_t place;
    for (place = array->ndim - 1; place >= 0; --place) {
        const int32_t axis = plan->order[place];
        const int64_t stride = array->strides[axis];
        if (array->shape[axis] == 1) continue;
        if (stride < inside)
            return cai_priv_item(err, CAI_ERR_EXPECT, axis, "strides", stride, "bytes inside:", inside);
        if (place < array->ndim - 1 && stride % plan->bytes)
            return cai_priv_item(err, CAI_ERR_EXPECT, axis, "strides", stride, "alignment:", plan->bytes);
        inside = (int64_t)((uint64_t)inside + (uint64_t)(array->shape[axis] - 1) * (uint64_t)stride);
        address += (uint64_t)plan->at.aligned[axis] * (uint64_t)stride;
    }
    if (address % (uint64_t)plan->bytes == 0) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPECT, "the element to align is at 0x%llx: the alignment is %lld",
                          (unsigned long long)address, (long long)plan->bytes);
}

CAI_API cai_status cai_layout_check(const cai_layout *layout, const cai_array *array, cai_error *err)
{
    cai_priv_layout_plan plan;
    int32_t i;
    if (!layout) return cai_priv_error(err, CAI_ERR_ARGUMENT, "layout is NULL");
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_layout_open(layout, array->dtype.itemsize, &plan, err));
    if (array->ndim != layout->ndim)
        return cai_priv_error(err, CAI_ERR_EXPECT, "the array has %ld axes, the layout %ld",
                              (long)array->ndim, (long)layout->ndim);
    for (i = 0; i < array->ndim; ++i)
        if (array->shape[i] != layout->shape[i])
            return cai_priv_item(err, CAI_ERR_EXPECT, i, "shape", array->shape[i], "the layout has",
                                 layout->shape[i]);
    return array->size ? cai_priv_layout_fits(&plan, array, err) : CAI_OK;
}

/* -------------------------------------------------------------------- >>domains */
/* Makes the array that a view begins with. A mask stays, so that the views of cai.h refuse it. */
static cai_status cai_priv_whole(const cai_array *array, const cai_array *out, cai_array *view,
                                 cai_error *err)
{
    CAI_TRY(cai_array_check(array, err));
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "out is NULL");
    if (out == array && array->release)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "an owned array cannot become a view of itself");
    cai_array_borrow(view, array);
    return CAI_OK;
}

CAI_API cai_status cai_view_domain(const cai_array *array, const int64_t *halo_low, const int64_t *halo_high,
                                   cai_array *out, cai_error *err)
{
    cai_array view;
    int32_t i;
    if (!halo_low || !halo_high)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "halo_low or halo_high is NULL");
    CAI_TRY(cai_priv_whole(array, out, &view, err));
    for (i = 0; i < array->ndim; ++i) {
        const int64_t extent = array->shape[i], low = halo_low[i], high = halo_high[i];
        CAI_TRY(cai_priv_halo(low, high, extent, i, err));
        if (i && !low && !high) continue;
        CAI_TRY(cai_view_slice(&view, i, low, extent - low - high, 1, &view, err));
    }
    if (!array->ndim) return cai_view_permute(&view, NULL, out, err);
    *out = view;
    return CAI_OK;
}

/* Drops the axes that are not wanted, and appends those that are missing. `names` are those of the view. */
static cai_status cai_priv_dims_join(const char *wanted, char *names, cai_array *view, cai_error *err)
{
    size_t kept = strlen(names);
    int32_t i;
    for (i = view->ndim - 1; i >= 0; --i) {
        if (strchr(wanted, names[i])) continue;
        if (view->shape[i] != 1)
            return cai_priv_error(err, CAI_ERR_VIEW, "the axis '%c' of extent %lld is not in \"%s\"",
                                  names[i], (long long)view->shape[i], wanted);
        CAI_TRY(cai_view_index(view, i, 0, view, err));
        memmove(names + i, names + i + 1, kept-- - (size_t)i);
    }
    for (; *wanted; ++wanted) {
        if (strchr(names, *wanted)) continue;
        CAI_TRY(cai_view_expand(view, view->ndim, view, err));
        names[kept++] = *wanted;
        names[kept] = 0;
    }
    return CAI_OK;
}

CAI_API cai_status cai_view_dims(const cai_array *array, const char *dims, const char *wanted, cai_array *out,
                                 cai_error *err)
{
    int32_t axes[CAI_LAYOUT_MAX_NDIM], ndim, count, i;
    char names[CAI_LAYOUT_MAX_NDIM + 1];
    cai_array view;
    CAI_TRY(cai_priv_whole(array, out, &view, err));
    CAI_TRY(cai_priv_dims(dims, "dims", &ndim, err));
    CAI_TRY(cai_priv_dims(wanted, "wanted", &count, err));
    if (ndim != array->ndim)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "dims \"%s\" of %ld axes", dims, (long)array->ndim);
    memcpy(names, dims, (size_t)ndim + 1);
    CAI_TRY(cai_priv_dims_join(wanted, names, &view, err));
    for (i = 0; i < count; ++i) axes[i] = (int32_t)(strchr(names, wanted[i]) - names);
    return cai_view_permute(&view, axes, out, err);
}

/* Lowers the extents to those of one field. `dims` are those of the computation. */
static cai_status cai_priv_domain_add(const cai_grid_field *field, const char *dims, int64_t *extents,
                                      cai_error *err)
{
    int32_t ndim, i;
    CAI_TRY(cai_array_check(field->array, err));
    CAI_TRY(cai_priv_dims(field->dims, "dims of a field", &ndim, err));
    if (ndim != field->array->ndim)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "dims \"%s\" of %ld axes", field->dims,
                              (long)field->array->ndim);
    for (i = 0; i < ndim; ++i) {
        const char *at = strchr(dims, field->dims[i]);
        const int64_t low = field->halo_low ? field->halo_low[i] : 0;
        const int64_t high = field->halo_high ? field->halo_high[i] : 0;
        int64_t extent = field->array->shape[i];
        CAI_TRY(cai_priv_halo(low, high, extent, i, err));
        extent -= low + high;
        if (at && (extents[at - dims] < 0 || extent < extents[at - dims])) extents[at - dims] = extent;
    }
    return CAI_OK;
}

CAI_API cai_status cai_domain_of(const cai_grid_field *fields, int32_t count, const char *dims,
                                 int64_t *extents, cai_error *err)
{
    int64_t found[CAI_LAYOUT_MAX_NDIM];
    int32_t ndim, i;
    if (!fields || count <= 0 || !extents)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "fields or extents is NULL, count = %ld", (long)count);
    CAI_TRY(cai_priv_dims(dims, "dims", &ndim, err));
    for (i = 0; i < ndim; ++i) found[i] = -1;
    for (i = 0; i < count; ++i) {
        const cai_status status = cai_priv_domain_add(&fields[i], dims, found, err);
        if (status && err) err->index = i;
        if (status) return status;
    }
    for (i = 0; i < ndim; ++i)
        if (found[i] < 0) return cai_priv_error(err, CAI_ERR_SHAPE, "no field has the axis '%c'", dims[i]);
    memcpy(extents, found, (size_t)ndim * sizeof *extents);
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_LAYOUT_IMPLEMENTATION */

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
