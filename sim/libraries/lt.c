/* lt.c - cuBLASLt
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <stdlib.h>

enum { LT_OK = 0, LT_NOT_INITIALIZED = 1, LT_NO_MEMORY = 3, LT_INVALID = 7, LT_FAILED = 13 };
/* Attributes of a layout and of a product, by their numbers in cublasLt.h. */
enum { LT_TYPE, LT_ORDER, LT_ROWS, LT_COLUMNS, LT_LD, LT_BATCH, LT_STRIDE, LT_LAYOUT_VALUES = 8 };
enum {
    LT_COMPUTE,
    LT_SCALE,
    LT_POINTER_MODE,
    LT_TRANSA,
    LT_TRANSB,
    LT_EPILOGUE = 7,
    LT_BIAS = 8,
    LT_AUX = 11,
    LT_AUX_LD = 12,
    LT_A_SCALE = 17,
    LT_AMAX = 21,
    LT_BIAS_TYPE = 26,
    LT_PRODUCT_VALUES = 32
};
enum {
    LT_WITH_BIAS = 4,
    LT_BACKWARD = 8 | 64,
    LT_GELU = 32 | 64,
    LT_WITH_AUX = 128,
    LT_BIAS_GRADIENT = 16 | 256 | 512
};

/* Each attribute in 8 bytes. They fit into the structs that a caller may give. */
typedef struct lt_layout {
    uint64_t value[LT_LAYOUT_VALUES];
} lt_layout;

typedef struct lt_product {
    uint64_t value[LT_PRODUCT_VALUES];
} lt_product;

/* cublasLtMatmulHeuristicResult_t */
typedef struct lt_result {
    uint64_t algorithm[8];
    size_t workspace;
    int32_t state;
    float waves;
    int32_t reserved[4];
} lt_result;

LIB_EXPORT int cai_lib_cublasLtCreate(lib_handle **handle)
{
    if (!handle) return LT_INVALID;
    *handle = lib_handle_make();
    return *handle ? LT_OK : LT_NOT_INITIALIZED;
}

LIB_EXPORT int cai_lib_cublasLtDestroy(lib_handle *handle)
{
    if (!lib_handle_is(handle)) return LT_NOT_INITIALIZED;
    lib_handle_free(handle);
    return LT_OK;
}

/* --------------------------------------------------------------------- >>attributes */
static int lt_set(uint64_t *values, int most, int attribute, const void *from, size_t bytes)
{
    if (!values || !from || attribute < 0 || bytes > sizeof *values) return LT_INVALID;
    if (attribute >= most) return LT_OK;
    values[attribute] = 0;
    memcpy(&values[attribute], from, bytes);
    return LT_OK;
}

static int lt_get(const uint64_t *values, int most, int attribute, void *to, size_t bytes, size_t *written)
{
    if (!values || attribute < 0 || attribute >= most || bytes > sizeof *values || (bytes && !to))
        return LT_INVALID;
    if (bytes) memcpy(to, &values[attribute], bytes);
    if (written) *written = bytes;
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatrixLayoutInit_internal(lt_layout *layout, size_t bytes, int type,
                                                         uint64_t rows, uint64_t columns, int64_t ld)
{
    if (!layout || bytes < sizeof *layout) return LT_INVALID;
    memset(layout, 0, sizeof *layout);
    layout->value[LT_TYPE] = (uint64_t)type;
    layout->value[LT_ROWS] = rows;
    layout->value[LT_COLUMNS] = columns;
    layout->value[LT_LD] = (uint64_t)ld;
    layout->value[LT_BATCH] = 1;
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatrixLayoutCreate(lt_layout **layout, int type, uint64_t rows,
                                                  uint64_t columns, int64_t ld)
{
    *layout = (lt_layout *)malloc(sizeof **layout);
    return *layout
               ? cai_lib_cublasLtMatrixLayoutInit_internal(*layout, sizeof **layout, type, rows, columns, ld)
               : LT_NO_MEMORY;
}

LIB_EXPORT int cai_lib_cublasLtMatrixLayoutDestroy(lt_layout *layout)
{
    free(layout);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatrixLayoutSetAttribute(lt_layout *layout, int attribute, const void *from,
                                                        size_t bytes)
{
    return lt_set(layout ? layout->value : NULL, LT_LAYOUT_VALUES, attribute, from, bytes);
}

LIB_EXPORT int cai_lib_cublasLtMatrixLayoutGetAttribute(const lt_layout *layout, int attribute, void *to,
                                                        size_t bytes, size_t *written)
{
    return lt_get(layout ? layout->value : NULL, LT_LAYOUT_VALUES, attribute, to, bytes, written);
}

LIB_EXPORT int cai_lib_cublasLtMatmulDescInit_internal(lt_product *product, size_t bytes, int compute,
                                                       int scale)
{
    if (!product || bytes < sizeof *product) return LT_INVALID;
    memset(product, 0, sizeof *product);
    product->value[LT_COMPUTE] = (uint64_t)compute;
    product->value[LT_SCALE] = (uint64_t)scale;
    product->value[LT_EPILOGUE] = 1;
    product->value[LT_BIAS_TYPE] = UINT32_MAX;
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulDescCreate(lt_product **product, int compute, int scale)
{
    *product = (lt_product *)malloc(sizeof **product);
    return *product ? cai_lib_cublasLtMatmulDescInit_internal(*product, sizeof **product, compute, scale)
                    : LT_NO_MEMORY;
}

LIB_EXPORT int cai_lib_cublasLtMatmulDescDestroy(lt_product *product)
{
    free(product);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulDescSetAttribute(lt_product *product, int attribute, const void *from,
                                                      size_t bytes)
{
    return lt_set(product ? product->value : NULL, LT_PRODUCT_VALUES, attribute, from, bytes);
}

LIB_EXPORT int cai_lib_cublasLtMatmulDescGetAttribute(const lt_product *product, int attribute, void *to,
                                                      size_t bytes, size_t *written)
{
    return lt_get(product ? product->value : NULL, LT_PRODUCT_VALUES, attribute, to, bytes, written);
}

LIB_EXPORT int cai_lib_cublasLtMatmulPreferenceInit_internal(void *preference, size_t bytes)
{
    memset(preference, 0, bytes);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulPreferenceCreate(void **preference)
{
    *preference = calloc(8, 8);
    return *preference ? LT_OK : LT_NO_MEMORY;
}

LIB_EXPORT int cai_lib_cublasLtMatmulPreferenceDestroy(void *preference)
{
    free(preference);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *from,
                                                            size_t bytes)
{
    (void)preference, (void)attribute, (void)from, (void)bytes;
    return LT_OK;
}

/* --------------------------------------------------------------------- >>algorithms */
static void lt_one(lt_result *result)
{
    memset(result, 0, sizeof *result);
    result->waves = 1;
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoGetHeuristic(const lib_handle *handle, const void *product,
                                                      const void *a, const void *b, const void *c,
                                                      const void *d, const void *preference, int most,
                                                      lt_result *results, int *count)
{
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (most < 1 || !results || !count) return LT_INVALID;
    lt_one(results);
    *count = 1;
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoInit(const lib_handle *handle, int compute, int scale, int a, int b,
                                              int c, int d, int id, uint64_t *algorithm)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d, (void)id;
    memset(algorithm, 0, 8 * sizeof *algorithm);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoCheck(const lib_handle *handle, const void *product, const void *a,
                                               const void *b, const void *c, const void *d,
                                               const void *algorithm, lt_result *result)
{
    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)algorithm;
    lt_one(result);
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoGetIds(const lib_handle *handle, int compute, int scale, int a,
                                                int b, int c, int d, int most, int *ids, int *count)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (most < 1) return LT_INVALID;
    ids[0] = 0;
    *count = 1;
    return LT_OK;
}

static int lt_zeros(void *to, size_t bytes, size_t *written)
{
    if (bytes) memset(to, 0, bytes);
    if (written) *written = bytes;
    return LT_OK;
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *to,
                                                            size_t bytes, size_t *written)
{
    (void)algorithm, (void)attribute;
    return lt_zeros(to, bytes, written);
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoCapGetAttribute(const void *algorithm, int attribute, void *to,
                                                         size_t bytes, size_t *written)
{
    (void)algorithm, (void)attribute;
    return lt_zeros(to, bytes, written);
}

LIB_EXPORT int cai_lib_cublasLtMatmulAlgoConfigSetAttribute(void *algorithm, int attribute, const void *from,
                                                            size_t bytes)
{
    (void)algorithm, (void)attribute, (void)from, (void)bytes;
    return LT_OK;
}

/* ------------------------------------------------------------------------ >>products */
static void lt_matrix(lib_work *work, const void *data, const lt_layout *of, int write)
{
    const int row_major = of->value[LT_ORDER] == 1, bits = lib_bits((int32_t)of->value[LT_TYPE]);
    const int64_t rows = (int64_t)of->value[row_major ? LT_COLUMNS : LT_ROWS];
    const int64_t columns = (int64_t)of->value[row_major ? LT_ROWS : LT_COLUMNS];
    const int64_t batch = (int32_t)of->value[LT_BATCH], stride = (int64_t)of->value[LT_STRIDE];
    int64_t i;
    if (of->value[LT_ORDER] > 1) work->opaque = 1; /* tiles */
    for (i = 0; i < batch && of->value[LT_ORDER] <= 1; ++i)
        lib_matrix(work, (const uint8_t *)data + i * stride * bits / 8, rows, columns,
                   (int64_t)of->value[LT_LD], bits, write);
}

/* What is done to a product before it is written: a bias, or its gradient; what is kept for the way back. */
static void lt_epilogue(lib_work *work, const lt_product *product, const lt_layout *d)
{
    const uint64_t epilogue = product->value[LT_EPILOGUE],
                   kept = product->value[LT_AUX_LD] * d->value[LT_COLUMNS];
    const uint32_t given = (uint32_t)product->value[LT_BIAS_TYPE];
    const int64_t bits = lib_bits((int32_t)(given == UINT32_MAX ? d->value[LT_TYPE] : given));
    const void *bias = (const void *)(uintptr_t)product->value[LT_BIAS],
               *aux = (const void *)(uintptr_t)product->value[LT_AUX];
    if (epilogue & (LT_WITH_BIAS | LT_BIAS_GRADIENT))
        lib_range(work, bias, (int64_t)d->value[epilogue & 512 ? LT_COLUMNS : LT_ROWS] * bits / 8,
                  epilogue & LT_BIAS_GRADIENT ? LIB_WRITE : LIB_READ);
    if (epilogue & LT_WITH_AUX)
        lib_range(work, aux,
                  (int64_t)kept * (epilogue & LT_GELU ? lib_bits((int32_t)d->value[LT_TYPE]) : 1) / 8,
                  epilogue & LT_BACKWARD ? LIB_READ : LIB_WRITE);
}

LIB_EXPORT int cai_lib_cublasLtMatmul(const lib_handle *handle, const lt_product *product, const void *alpha,
                                      const void *a, const lt_layout *al, const void *b, const lt_layout *bl,
                                      const void *beta, const void *c, const lt_layout *cl, void *d,
                                      const lt_layout *dl, const void *algorithm, void *workspace,
                                      size_t workspace_bytes, const void *stream)
{
    lib_handle scalars = {0, NULL, NULL, 0, 0, 0, 0, 0};
    lib_work work;
    int scale;
    (void)algorithm;
    if (!handle || !product || !al || !bl || !dl) return LT_INVALID;
    lib_begin(&work, "cublasLtMatmul", LIB_CALLER, stream);
    lt_matrix(&work, a, al, LIB_READ);
    lt_matrix(&work, b, bl, LIB_READ);
    if (c && c != d && cl) lt_matrix(&work, c, cl, LIB_READ);
    lt_matrix(&work, d, dl, LIB_WRITE);
    lt_epilogue(&work, product, dl);
    for (scale = LT_A_SCALE; scale < LT_AMAX; ++scale)
        lib_range(&work, (const void *)(uintptr_t)product->value[scale], 4, LIB_READ);
    lib_range(&work, (const void *)(uintptr_t)product->value[LT_AMAX], 4, LIB_WRITE);
    scalars.pointer_mode = product->value[LT_POINTER_MODE] == 1;
    lib_scalar(&work, &scalars, alpha, (int32_t)product->value[LT_SCALE]);
    lib_scalar(&work, &scalars, beta, (int32_t)product->value[LT_SCALE]);
    lib_range(&work, workspace, (int64_t)workspace_bytes, LIB_MAY_WRITE);
    return lib_end(&work) == 0 ? LT_OK : LT_FAILED;
}
