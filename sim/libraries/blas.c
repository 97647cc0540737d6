/* blas.c - cuBLAS
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

enum { BLAS_OK = 0, BLAS_NOT_INITIALIZED = 1, BLAS_INVALID = 7, BLAS_FAILED = 13 };

#define BLAS_HANDLE(handle)                                                                                  \
    do {                                                                                                     \
        if (!lib_handle_is(handle)) return BLAS_NOT_INITIALIZED;                                             \
    } while (0)

/* ------------------------------------------------------------------------ >>handles */
LIB_EXPORT int cai_lib_cublasCreate_v2(lib_handle **handle)
{
    if (!handle) return BLAS_INVALID;
    *handle = lib_handle_make();
    return *handle ? BLAS_OK : BLAS_NOT_INITIALIZED;
}

LIB_EXPORT int cai_lib_cublasDestroy_v2(lib_handle *handle)
{
    BLAS_HANDLE(handle);
    lib_handle_free(handle);
    return cuCtxSynchronize() == CUDA_SUCCESS ? BLAS_OK
                                              : BLAS_FAILED; /* documented, as of cudaDeviceSynchronize */
}

/* "cublasSetStream() unconditionally resets the cuBLAS library workspace back to the default workspace pool." */
LIB_EXPORT int cai_lib_cublasSetStream_v2(lib_handle *handle, const void *stream)
{
    BLAS_HANDLE(handle);
    handle->stream = stream;
    handle->workspace = NULL;
    handle->workspace_bytes = 0;
    return BLAS_OK;
}

LIB_EXPORT int cai_lib_cublasGetStream_v2(const lib_handle *handle, const void **stream)
{
    BLAS_HANDLE(handle);
    *stream = handle->stream;
    return BLAS_OK;
}

LIB_EXPORT int cai_lib_cublasSetWorkspace_v2(lib_handle *handle, void *workspace, size_t bytes)
{
    BLAS_HANDLE(handle);
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return BLAS_OK;
}

#define BLAS_SETTING(NAME, FIELD)                                                                            \
    LIB_EXPORT int cai_lib_cublasSet##NAME(lib_handle *handle, int value)                                    \
    {                                                                                                        \
        BLAS_HANDLE(handle);                                                                                 \
        handle->FIELD = value;                                                                               \
        return BLAS_OK;                                                                                      \
    }                                                                                                        \
    LIB_EXPORT int cai_lib_cublasGet##NAME(const lib_handle *handle, int *value)                             \
    {                                                                                                        \
        BLAS_HANDLE(handle);                                                                                 \
        *value = handle->FIELD;                                                                              \
        return BLAS_OK;                                                                                      \
    }
BLAS_SETTING(PointerMode_v2, pointer_mode)
BLAS_SETTING(MathMode, math_mode)
BLAS_SETTING(AtomicsMode, atomics_mode)
BLAS_SETTING(SmCountTarget, sm_target)

static int blas_part(int part)
{
    const int version = lib_version(LIB_CUBLAS, 13000000);
    return part == 0 ? version / 1000000 : part == 1 ? version / 1000 % 1000 : version % 1000;
}

LIB_EXPORT int cai_lib_cublasGetProperty(int part, int *value)
{
    if (part < 0 || part > 2 || !value) return BLAS_INVALID;
    *value = blas_part(part);
    return BLAS_OK;
}

LIB_EXPORT int cai_lib_cublasGetVersion_v2(const lib_handle *handle, int *value)
{
    (void)handle;
    *value = blas_part(0) * 10000 + blas_part(1) * 100 + blas_part(2);
    return BLAS_OK;
}

LIB_EXPORT size_t cai_lib_cublasLtGetVersion(void)
{
    return (size_t)(blas_part(0) * 10000 + blas_part(1) * 100 + blas_part(2));
}

LIB_EXPORT const char *cai_lib_cublasGetStatusString(int status)
{
    return status == BLAS_OK ? "success" : status == 15 ? "not supported by cai_sim" : "an error of cuBLAS";
}

LIB_EXPORT const char *cai_lib_cublasGetStatusName(int status)
{
    return status == BLAS_OK ? "CUBLAS_STATUS_SUCCESS"
           : status == 15    ? "CUBLAS_STATUS_NOT_SUPPORTED"
                             : "CUBLAS_STATUS";
}

/* ------------------------------------------------------------------------ >>matrices */
/* One of several matrices of the same shape, `stride` elements apart. */
typedef struct blas_matrix {
    const void *data;
    int type;
    int64_t ld, stride;
} blas_matrix;

/* The three matrices of a product. */
typedef struct blas_product {
    int transa, transb, scale;
    int64_t m, n, k, batch;
    const void *alpha, *beta;
    blas_matrix a, b, c;
} blas_product;

static void blas_access(lib_work *work, const blas_matrix *of, int64_t rows, int64_t columns, int64_t batch,
                        int write)
{
    const int bits = lib_bits(of->type);
    int64_t i;
    if (batch > 1 && of->ld == rows && of->stride == rows * columns) {
        lib_range(work, of->data, rows * columns * batch * bits / 8, write);
        return;
    }
    if (batch > 1 && !of->stride) batch = 1;
    for (i = 0; i < batch; ++i)
        lib_matrix(work, (const uint8_t *)of->data + i * of->stride * bits / 8, rows, columns, of->ld, bits,
                   write);
}

static void blas_workspace(lib_work *work, const lib_handle *handle)
{
    lib_range(work, handle->workspace, (int64_t)handle->workspace_bytes, LIB_MAY_WRITE);
}

static int blas_end(const lib_work *work)
{
    return lib_end(work) == 0 ? BLAS_OK : BLAS_FAILED;
}

static int blas_multiply(const char *name, const void *caller, const lib_handle *handle,
                         const blas_product *what)
{
    lib_work work;
    BLAS_HANDLE(handle);
    if (what->m < 0 || what->n < 0 || what->k < 0 || what->batch < 0) return BLAS_INVALID;
    if (!what->m || !what->n || !what->batch) return BLAS_OK;
    lib_begin(&work, name, caller, handle->stream);
    blas_access(&work, &what->a, what->transa ? what->k : what->m, what->transa ? what->m : what->k,
                what->batch, LIB_READ);
    blas_access(&work, &what->b, what->transb ? what->n : what->k, what->transb ? what->k : what->n,
                what->batch, LIB_READ);
    blas_access(&work, &what->c, what->m, what->n, what->batch, LIB_WRITE);
    lib_scalar(&work, handle, what->alpha, what->scale);
    lib_scalar(&work, handle, what->beta, what->scale);
    blas_workspace(&work, handle);
    return blas_end(&work);
}

/* The type of alpha and beta of a cublasComputeType_t, for matrices of a type. */
static int blas_scale_type(int compute, int type)
{
    const int complex_ones = type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F;
    if (compute == 64 || compute == 65) return CUDA_R_16F;
    if (compute == 72 || compute == 73) return CUDA_R_32I;
    if (compute == 70 || compute == 71 || compute == 79) return complex_ones ? CUDA_C_64F : CUDA_R_64F;
    return complex_ones ? CUDA_C_32F : CUDA_R_32F;
}

#define BLAS_GEMM(NAME, FULL, TYPE, INT)                                                                     \
    LIB_EXPORT int cai_lib_##FULL(lib_handle *handle, int transa, int transb, INT m, INT n, INT k,           \
                                  const void *alpha, const void *a, INT lda, const void *b, INT ldb,         \
                                  const void *beta, void *c, INT ldc)                                        \
    {                                                                                                        \
        const blas_product what = {transa, transb, TYPE, m, n, k,                                            \
                                   1, alpha, beta, {a, TYPE, lda, 0},                                        \
                                   {b, TYPE, ldb, 0}, {c, TYPE, ldc, 0}};                                    \
        return blas_multiply(NAME, LIB_CALLER, handle, &what);                                               \
    }
#define BLAS_GEMM_BATCH(NAME, FULL, TYPE, INT)                                                               \
    LIB_EXPORT int cai_lib_##FULL(lib_handle *handle, int transa, int transb, INT m, INT n, INT k,           \
                                  const void *alpha, const void *a, INT lda, long long stridea,              \
                                  const void *b, INT ldb, long long strideb, const void *beta, void *c,      \
                                  INT ldc, long long stridec, INT batch)                                     \
    {                                                                                                        \
        const blas_product what = {transa, transb, TYPE, m, n, k,                                            \
                                   batch, alpha, beta, {a, TYPE, lda, stridea},                              \
                                   {b, TYPE, ldb, strideb}, {c, TYPE, ldc, stridec}};                        \
        return blas_multiply(NAME, LIB_CALLER, handle, &what);                                               \
    }
#define BLAS_GEMMS(T, TYPE)                                                                                  \
    BLAS_GEMM("cublas" #T "gemm", cublas##T##gemm_v2, TYPE, int)                                             \
    BLAS_GEMM("cublas" #T "gemm", cublas##T##gemm_v2_64, TYPE, int64_t)                                      \
    BLAS_GEMM_BATCH("cublas" #T "gemmStridedBatched", cublas##T##gemmStridedBatched, TYPE, int)              \
    BLAS_GEMM_BATCH("cublas" #T "gemmStridedBatched", cublas##T##gemmStridedBatched_64, TYPE, int64_t)
BLAS_GEMMS(S, CUDA_R_32F)
BLAS_GEMMS(D, CUDA_R_64F)
BLAS_GEMMS(C, CUDA_C_32F)
BLAS_GEMMS(Z, CUDA_C_64F)
BLAS_GEMM("cublasHgemm", cublasHgemm, CUDA_R_16F, int)
BLAS_GEMM("cublasHgemm", cublasHgemm_64, CUDA_R_16F, int64_t)
BLAS_GEMM_BATCH("cublasHgemmStridedBatched", cublasHgemmStridedBatched, CUDA_R_16F, int)
BLAS_GEMM_BATCH("cublasHgemmStridedBatched", cublasHgemmStridedBatched_64, CUDA_R_16F, int64_t)

#define BLAS_GEMM_EX(SUFFIX, INT)                                                                            \
    LIB_EXPORT int cai_lib_cublasGemmEx##SUFFIX(lib_handle *handle, int transa, int transb, INT m, INT n,    \
                                                INT k, const void *alpha, const void *a, int atype, INT lda, \
                                                const void *b, int btype, INT ldb, const void *beta,         \
                                                void *c, int ctype, INT ldc, int compute, int algorithm)     \
    {                                                                                                        \
        const blas_product what = {transa, transb, blas_scale_type(compute, atype), m, n, k,                 \
                                   1, alpha, beta, {a, atype, lda, 0},                                       \
                                   {b, btype, ldb, 0}, {c, ctype, ldc, 0}};                                  \
        (void)algorithm;                                                                                     \
        return blas_multiply("cublasGemmEx", LIB_CALLER, handle, &what);                                     \
    }                                                                                                        \
    LIB_EXPORT int cai_lib_cublasGemmStridedBatchedEx##SUFFIX(                                               \
        lib_handle *handle, int transa, int transb, INT m, INT n, INT k, const void *alpha, const void *a,   \
        int atype, INT lda, long long stridea, const void *b, int btype, INT ldb, long long strideb,         \
        const void *beta, void *c, int ctype, INT ldc, long long stridec, INT batch, int compute,            \
        int algorithm)                                                                                       \
    {                                                                                                        \
        const blas_product what = {transa, transb, blas_scale_type(compute, atype), m, n, k,                 \
                                   batch, alpha, beta, {a, atype, lda, stridea},                             \
                                   {b, btype, ldb, strideb}, {c, ctype, ldc, stridec}};                      \
        (void)algorithm;                                                                                     \
        return blas_multiply("cublasGemmStridedBatchedEx", LIB_CALLER, handle, &what);                       \
    }
BLAS_GEMM_EX(, int)
BLAS_GEMM_EX(_64, int64_t)

#define BLAS_OLD_GEMM_EX(T, TYPE)                                                                            \
    LIB_EXPORT int cai_lib_cublas##T##gemmEx(lib_handle *handle, int transa, int transb, int m, int n,       \
                                             int k, const void *alpha, const void *a, int atype, int lda,    \
                                             const void *b, int btype, int ldb, const void *beta, void *c,   \
                                             int ctype, int ldc)                                             \
    {                                                                                                        \
        const blas_product what = {transa, transb, TYPE, m, n, k,                                            \
                                   1, alpha, beta, {a, atype, lda, 0},                                       \
                                   {b, btype, ldb, 0}, {c, ctype, ldc, 0}};                                  \
        return blas_multiply("cublas" #T "gemmEx", LIB_CALLER, handle, &what);                               \
    }
BLAS_OLD_GEMM_EX(S, CUDA_R_32F)
BLAS_OLD_GEMM_EX(C, CUDA_C_32F)

/* ------------------------------------------------------------- >>matrices and vectors */
static void blas_vector(lib_work *work, const void *data, int64_t count, int64_t step, int type, int write)
{
    lib_matrix(work, data, 1, count, step < 0 ? -step : step, lib_bits(type), write);
}

typedef struct blas_vectors {
    int64_t m, n;
    const void *alpha, *beta;
    blas_matrix a, x, y; /* of a vector `ld` is the step */
    int write_a, write_x, write_y;
} blas_vectors;

static int blas_level2(const char *name, const void *caller, const lib_handle *handle, int64_t nx, int64_t ny,
                       const blas_vectors *what)
{
    lib_work work;
    BLAS_HANDLE(handle);
    lib_begin(&work, name, caller, handle->stream);
    if (what->a.data)
        lib_matrix(&work, what->a.data, what->m, what->n, what->a.ld, lib_bits(what->a.type), what->write_a);
    if (what->x.data) blas_vector(&work, what->x.data, nx, what->x.ld, what->x.type, what->write_x);
    if (what->y.data) blas_vector(&work, what->y.data, ny, what->y.ld, what->y.type, what->write_y);
    lib_scalar(&work, handle, what->alpha, what->x.type);
    lib_scalar(&work, handle, what->beta, what->x.type);
    return blas_end(&work);
}

/* A function with one number as its result: on the host it waits. */
static int blas_number(const char *name, const void *caller, const lib_handle *handle, int64_t n,
                       const blas_vectors *what, void *result, size_t bytes)
{
    lib_work work;
    int status;
    BLAS_HANDLE(handle);
    lib_begin(&work, name, caller, handle->stream);
    blas_vector(&work, what->x.data, n, what->x.ld, what->x.type, LIB_READ);
    if (what->y.data) blas_vector(&work, what->y.data, n, what->y.ld, what->y.type, LIB_READ);
    if (handle->pointer_mode == LIB_DEVICE) lib_range(&work, result, (int64_t)bytes, LIB_WRITE);
    status = blas_end(&work);
    if (handle->pointer_mode == LIB_DEVICE || status != BLAS_OK) return status;
    memset(result, 0, bytes);
    return cuStreamSynchronize((CUstream)(uintptr_t)handle->stream) == CUDA_SUCCESS ? BLAS_OK : BLAS_FAILED;
}

#define BLAS_DECLARED(HEAD)                                                                                  \
    LIB_EXPORT int HEAD;                                                                                     \
    LIB_EXPORT int HEAD
#define BLAS_LEVEL12(T, TYPE, SUFFIX, INT)                                                                   \
    BLAS_DECLARED(cai_lib_cublas##T##gemv##SUFFIX(lib_handle *handle, int trans, INT m, INT n,               \
                                                  const void *alpha, const void *a, INT lda, const void *x,  \
                                                  INT incx, const void *beta, void *y, INT incy))            \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            m,        n,        alpha,    beta, {a, TYPE, lda, 0}, {x, TYPE, incx, 0}, {y, TYPE, incy, 0},   \
            LIB_READ, LIB_READ, LIB_WRITE};                                                                  \
        return blas_level2("cublas" #T "gemv", LIB_CALLER, handle, trans ? m : n, trans ? n : m, &what);     \
    }                                                                                                        \
    BLAS_DECLARED(cai_lib_cublas##T##axpy##SUFFIX(lib_handle *handle, INT n, const void *alpha,              \
                                                  const void *x, INT incx, void *y, INT incy))               \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            0,        0,        alpha,    NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {y, TYPE, incy, 0},     \
            LIB_READ, LIB_READ, LIB_WRITE};                                                                  \
        return blas_level2("cublas" #T "axpy", LIB_CALLER, handle, n, n, &what);                             \
    }                                                                                                        \
    BLAS_DECLARED(                                                                                           \
        cai_lib_cublas##T##scal##SUFFIX(lib_handle *handle, INT n, const void *alpha, void *x, INT incx))    \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            0,        0,         alpha,   NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {NULL, 0, 0, 0},        \
            LIB_READ, LIB_WRITE, LIB_READ};                                                                  \
        return blas_level2("cublas" #T "scal", LIB_CALLER, handle, n, n, &what);                             \
    }                                                                                                        \
    BLAS_DECLARED(cai_lib_cublas##T##copy##SUFFIX(lib_handle *handle, INT n, const void *x, INT incx,        \
                                                  void *y, INT incy))                                        \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            0,        0,        NULL,     NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {y, TYPE, incy, 0},     \
            LIB_READ, LIB_READ, LIB_WRITE};                                                                  \
        return blas_level2("cublas" #T "copy", LIB_CALLER, handle, n, n, &what);                             \
    }                                                                                                        \
    BLAS_DECLARED(                                                                                           \
        cai_lib_cublas##T##swap##SUFFIX(lib_handle *handle, INT n, void *x, INT incx, void *y, INT incy))    \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            0,        0,         NULL,     NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {y, TYPE, incy, 0},    \
            LIB_READ, LIB_WRITE, LIB_WRITE};                                                                 \
        return blas_level2("cublas" #T "swap", LIB_CALLER, handle, n, n, &what);                             \
    }
#define BLAS_NUMBER1(NAME, FULL, TYPE, BYTES, INT)                                                           \
    BLAS_DECLARED(cai_lib_##FULL(lib_handle *handle, INT n, const void *x, INT incx, void *result))          \
    {                                                                                                        \
        const blas_vectors what = {0, 0, NULL, NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {NULL, 0, 0, 0},   \
                                   0, 0, 0};                                                                 \
        return blas_number(NAME, LIB_CALLER, handle, n, &what, result, BYTES);                               \
    }
#define BLAS_NUMBER2(NAME, FULL, TYPE, INT)                                                                  \
    BLAS_DECLARED(cai_lib_##FULL(lib_handle *handle, INT n, const void *x, INT incx, const void *y,          \
                                 INT incy, void *result))                                                    \
    {                                                                                                        \
        const blas_vectors what = {                                                                          \
            0, 0, NULL, NULL, {NULL, 0, 0, 0}, {x, TYPE, incx, 0}, {y, TYPE, incy, 0}, 0, 0, 0};             \
        return blas_number(NAME, LIB_CALLER, handle, n, &what, result, (size_t)lib_bits(TYPE) / 8);          \
    }
#define BLAS_ALL(T, TYPE)                                                                                    \
    BLAS_LEVEL12(T, TYPE, _v2, int)                                                                          \
    BLAS_LEVEL12(T, TYPE, _v2_64, int64_t)
#define BLAS_REAL(T, TYPE, BYTES)                                                                            \
    BLAS_NUMBER2("cublas" #T "dot", cublas##T##dot_v2, TYPE, int)                                            \
    BLAS_NUMBER2("cublas" #T "dot", cublas##T##dot_v2_64, TYPE, int64_t)                                     \
    BLAS_NUMBER1("cublas" #T "nrm2", cublas##T##nrm2_v2, TYPE, BYTES, int)                                   \
    BLAS_NUMBER1("cublas" #T "asum", cublas##T##asum_v2, TYPE, BYTES, int)                                   \
    BLAS_NUMBER1("cublas" #T "nrm2", cublas##T##nrm2_v2_64, TYPE, BYTES, int64_t)                            \
    BLAS_NUMBER1("cublas" #T "asum", cublas##T##asum_v2_64, TYPE, BYTES, int64_t)
#define BLAS_COMPLEX(T, TYPE)                                                                                \
    BLAS_NUMBER2("cublas" #T "dotu", cublas##T##dotu_v2, TYPE, int)                                          \
    BLAS_NUMBER2("cublas" #T "dotc", cublas##T##dotc_v2, TYPE, int)
BLAS_ALL(S, CUDA_R_32F)
BLAS_ALL(D, CUDA_R_64F)
BLAS_ALL(C, CUDA_C_32F)
BLAS_ALL(Z, CUDA_C_64F)
BLAS_REAL(S, CUDA_R_32F, 4)
BLAS_REAL(D, CUDA_R_64F, 8)
BLAS_COMPLEX(C, CUDA_C_32F)
BLAS_COMPLEX(Z, CUDA_C_64F)
BLAS_NUMBER1("cublasScnrm2", cublasScnrm2_v2, CUDA_C_32F, 4, int)
BLAS_NUMBER1("cublasDznrm2", cublasDznrm2_v2, CUDA_C_64F, 8, int)
BLAS_NUMBER1("cublasScasum", cublasScasum_v2, CUDA_C_32F, 4, int)
BLAS_NUMBER1("cublasDzasum", cublasDzasum_v2, CUDA_C_64F, 8, int)
BLAS_NUMBER1("cublasIsamax", cublasIsamax_v2, CUDA_R_32F, 4, int)
BLAS_NUMBER1("cublasIdamax", cublasIdamax_v2, CUDA_R_64F, 4, int)
BLAS_NUMBER1("cublasIcamax", cublasIcamax_v2, CUDA_C_32F, 4, int)
BLAS_NUMBER1("cublasIzamax", cublasIzamax_v2, CUDA_C_64F, 4, int)
BLAS_NUMBER1("cublasIsamin", cublasIsamin_v2, CUDA_R_32F, 4, int)
BLAS_NUMBER1("cublasIdamin", cublasIdamin_v2, CUDA_R_64F, 4, int)

LIB_EXPORT int cai_lib_cublasDotEx(lib_handle *handle, int n, const void *x, int xtype, int incx,
                                   const void *y, int ytype, int incy, void *result, int type, int execution)
{
    const blas_vectors what = {0, 0, NULL, NULL, {NULL, 0, 0, 0}, {x, xtype, incx, 0}, {y, ytype, incy, 0},
                               0, 0, 0};
    (void)execution;
    return blas_number("cublasDotEx", LIB_CALLER, handle, n, &what, result, (size_t)lib_bits(type) / 8);
}

/* ----------------------------------------------------------------------- >>others */
#define BLAS_OTHERS(T, TYPE)                                                                                 \
    BLAS_DECLARED(cai_lib_cublas##T##geam(lib_handle *handle, int transa, int transb, int m, int n,          \
                                          const void *alpha, const void *a, int lda, const void *beta,       \
                                          const void *b, int ldb, void *c, int ldc))                         \
    {                                                                                                        \
        lib_work work;                                                                                       \
        BLAS_HANDLE(handle);                                                                                 \
        lib_begin(&work, "cublas" #T "geam", LIB_CALLER, handle->stream);                                    \
        if (a) lib_matrix(&work, a, transa ? n : m, transa ? m : n, lda, lib_bits(TYPE), LIB_READ);          \
        if (b) lib_matrix(&work, b, transb ? n : m, transb ? m : n, ldb, lib_bits(TYPE), LIB_READ);          \
        lib_matrix(&work, c, m, n, ldc, lib_bits(TYPE), LIB_WRITE);                                          \
        lib_scalar(&work, handle, alpha, TYPE);                                                              \
        lib_scalar(&work, handle, beta, TYPE);                                                               \
        return blas_end(&work);                                                                              \
    }                                                                                                        \
    BLAS_DECLARED(cai_lib_cublas##T##dgmm(lib_handle *handle, int side, int m, int n, const void *a,         \
                                          int lda, const void *x, int incx, void *c, int ldc))               \
    {                                                                                                        \
        lib_work work;                                                                                       \
        BLAS_HANDLE(handle);                                                                                 \
        lib_begin(&work, "cublas" #T "dgmm", LIB_CALLER, handle->stream);                                    \
        lib_matrix(&work, a, m, n, lda, lib_bits(TYPE), LIB_READ);                                           \
        blas_vector(&work, x, side ? n : m, incx, TYPE, LIB_READ);                                           \
        lib_matrix(&work, c, m, n, ldc, lib_bits(TYPE), LIB_WRITE);                                          \
        return blas_end(&work);                                                                              \
    }
BLAS_OTHERS(S, CUDA_R_32F)
BLAS_OTHERS(D, CUDA_R_64F)
BLAS_OTHERS(C, CUDA_C_32F)
BLAS_OTHERS(Z, CUDA_C_64F)
