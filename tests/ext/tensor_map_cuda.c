/* tensor_map_cuda.c - ext/cai_tensor_map.h beside cuda.h: the values of the enumerators, the arguments of the call
 * SPDX-License-Identifier: MIT
 *
 * No library of CUDA is linked. A stand-in takes the place of each function. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai_tensor_map.h"
#include "cai_test.h"

#include <cuda.h>

/* -------------------------------------------------------------------- values */
#define SAME(ours, theirs) {#ours, ours, (int)(theirs)}
#define TYPE(name) SAME(CAI_TENSOR_MAP_##name, CU_TENSOR_MAP_DATA_TYPE_##name)
#define NAMED(name) SAME(CAI_TENSOR_MAP_##name, CU_TENSOR_MAP_##name)

static const struct {
    const char *name;
    int ours, theirs;
} values[] = {
    SAME(CAI_TENSOR_MAP_BY_DTYPE, CU_TENSOR_MAP_DATA_TYPE_UINT8), TYPE(UINT16), TYPE(UINT32), TYPE(INT32), TYPE(UINT64), TYPE(INT64), TYPE(FLOAT16), TYPE(FLOAT32),
    TYPE(FLOAT64), TYPE(BFLOAT16), TYPE(FLOAT32_FTZ), TYPE(TFLOAT32), TYPE(TFLOAT32_FTZ), TYPE(16U4_ALIGN8B),
    TYPE(16U4_ALIGN16B), TYPE(16U6_ALIGN16B),
    NAMED(INTERLEAVE_NONE), NAMED(INTERLEAVE_16B), NAMED(INTERLEAVE_32B),
    NAMED(SWIZZLE_NONE), NAMED(SWIZZLE_32B), NAMED(SWIZZLE_64B), NAMED(SWIZZLE_128B), NAMED(SWIZZLE_128B_ATOM_32B),
    NAMED(SWIZZLE_128B_ATOM_32B_FLIP_8B), NAMED(SWIZZLE_128B_ATOM_64B),
    SAME(CAI_TENSOR_MAP_L2_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE),
    SAME(CAI_TENSOR_MAP_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_64B),
    SAME(CAI_TENSOR_MAP_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B),
    SAME(CAI_TENSOR_MAP_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B),
    SAME(CAI_TENSOR_MAP_FILL_ZERO, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
    SAME(CAI_TENSOR_MAP_FILL_NAN, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA),
};

static void test_values(void)
{
    size_t row;
    for (row = 0; row < sizeof values / sizeof *values; ++row) {
        cai_test_note(values[row].name);
        CHECK_INT(values[row].ours, values[row].theirs);
    }
    cai_test_note("");
}

/* ------------------------------------------------------------------ arguments */
typedef CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUresult stand_in(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                         const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                         const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                         CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill)
{
    CHECK(map == NULL && type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 && rank == 3);
    CHECK_UINT((uintptr_t)address, 0x10000);
    CHECK(dims[0] == 64 && dims[1] == 100 && dims[2] == 8 && strides[0] == 256 && strides[1] == 25600);
    CHECK(box[0] == 32 && box[1] == 16 && box[2] == 2 && steps[0] == 1 && steps[1] == 3 && steps[2] == 1);
    CHECK(interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && swizzle == CU_TENSOR_MAP_SWIZZLE_128B);
    CHECK(l2_promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
    CHECK(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* The stand-in has the type of the function: sizeof does not link it. */
typedef char same_type[sizeof(1 ? &cuTensorMapEncodeTiled : (encoder)NULL) ? 1 : -1];

static void test_arguments(void)
{
    static const int64_t shape[3] = {8, 100, 64};
    const cai_tensor_tile tile = {{2, 16, 32}, {0, 3}, CAI_TENSOR_MAP_TFLOAT32, CAI_TENSOR_MAP_INTERLEAVE_NONE,
                                  CAI_TENSOR_MAP_SWIZZLE_128B, CAI_TENSOR_MAP_L2_256B, CAI_TENSOR_MAP_FILL_NAN};
    encoder encode = stand_in;
    cai_tensor_map_plan plan;
    cai_dtype dtype;
    cai_array x;
    CHECK_INT(cai_dtype_of(CAI_FLOAT32, &dtype, NULL), CAI_OK);
    CHECK_INT(cai_array_init_dtype(&x, &dtype, 3, shape, NULL, 0x10000, NULL), CAI_OK);
    CHECK_INT(cai_tensor_map_of(&x, &tile, &plan, NULL), CAI_OK);
    CHECK_INT(encode(NULL, CAI_TENSOR_MAP_ARGUMENTS(plan)), CUDA_ERROR_NOT_SUPPORTED);
}

/* --------------------------------------------------------------------- im2col */
typedef CUresult (*column_encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                   const cuuint64_t *, const int *, const int *, cuuint32_t, cuuint32_t,
                                   const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                   CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUresult column_stand_in(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
                                const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill)
{
    CHECK(map == NULL && type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && rank == 4);
    CHECK_UINT((uintptr_t)address, 0x10000);
    CHECK(dims[0] == 64 && dims[1] == 9 && dims[2] == 14 && dims[3] == 8);
    CHECK(strides[0] == 128 && strides[1] == 1152 && strides[2] == 16128);
    CHECK(lower[0] == -2 && lower[1] == -1 && upper[0] == -4 && upper[1] == -3 && channels == 32 && pixels == 100);
    CHECK(steps[0] == 1 && steps[1] == 3 && steps[2] == 2 && steps[3] == 1);
    CHECK(interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && swizzle == CU_TENSOR_MAP_SWIZZLE_64B);
    CHECK(l2_promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
    CHECK(fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    return CUDA_ERROR_NOT_SUPPORTED;
}

typedef char same_column_type[sizeof(1 ? &cuTensorMapEncodeIm2col : (column_encoder)NULL) ? 1 : -1];

static void test_column_arguments(void)
{
    static const int64_t shape[4] = {8, 14, 9, 64};
    const cai_im2col_tile tile = {{-1, -2}, {-3, -4}, {2, 3}, 32, 100, CAI_TENSOR_MAP_BY_DTYPE,
                                  CAI_TENSOR_MAP_INTERLEAVE_NONE, CAI_TENSOR_MAP_SWIZZLE_64B, CAI_TENSOR_MAP_L2_128B,
                                  CAI_TENSOR_MAP_FILL_NAN};
    column_encoder encode = column_stand_in;
    cai_im2col_map_plan plan;
    cai_array x;
    CHECK_INT(cai_array_init(&x, CAI_FLOAT16, 4, shape, NULL, (void *)(uintptr_t)0x10000, NULL), CAI_OK);
    CHECK_INT(cai_im2col_map_of(&x, &tile, &plan, NULL), CAI_OK);
    CHECK_INT(encode(NULL, CAI_IM2COL_MAP_ARGUMENTS(plan)), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void)
{
    test_values();
    test_arguments();
    test_column_arguments();
    return cai_test_end();
}
