/* test_dlpack_layout.c - the structs and numbers that cai_dlpack.h declares where there is no dlpack.h, against dlpack.h
 * SPDX-License-Identifier: MIT
 *
 * dlpack.h comes last here, so that both declare their own. One before 1.3 has no exchange in C. */
#define CAI_NO_CUDART
#include <Python.h>

#include "cai_python_dlpack.h"
#include "cai_test.h"

#include <dlpack/dlpack.h>

#define SAME_SIZE(ours, theirs) CHECK_INT((int)sizeof(ours), (int)sizeof(theirs))
#define SAME_FIELD(ours, theirs, field)                                                                      \
    do {                                                                                                     \
        CHECK_INT((int)offsetof(ours, field), (int)offsetof(theirs, field));                                 \
        CHECK_INT((int)sizeof((ours *)0)->field, (int)sizeof((theirs *)0)->field);                           \
    } while (0)

static void check_tensor(void)
{
    SAME_SIZE(cai_dl_device, DLDevice);
    SAME_FIELD(cai_dl_device, DLDevice, device_type);
    SAME_FIELD(cai_dl_device, DLDevice, device_id);
    SAME_SIZE(cai_dl_dtype, DLDataType);
    SAME_FIELD(cai_dl_dtype, DLDataType, code);
    SAME_FIELD(cai_dl_dtype, DLDataType, bits);
    SAME_FIELD(cai_dl_dtype, DLDataType, lanes);
    SAME_SIZE(cai_dl_tensor, DLTensor);
    SAME_FIELD(cai_dl_tensor, DLTensor, data);
    SAME_FIELD(cai_dl_tensor, DLTensor, device);
    SAME_FIELD(cai_dl_tensor, DLTensor, ndim);
    SAME_FIELD(cai_dl_tensor, DLTensor, dtype);
    SAME_FIELD(cai_dl_tensor, DLTensor, shape);
    SAME_FIELD(cai_dl_tensor, DLTensor, strides);
    SAME_FIELD(cai_dl_tensor, DLTensor, byte_offset);
}

static void check_managed(void)
{
    SAME_SIZE(cai_dl_managed, DLManagedTensor);
    SAME_FIELD(cai_dl_managed, DLManagedTensor, dl_tensor);
    SAME_FIELD(cai_dl_managed, DLManagedTensor, manager_ctx);
    SAME_FIELD(cai_dl_managed, DLManagedTensor, deleter);
    SAME_SIZE(cai_dl_managed_versioned, DLManagedTensorVersioned);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, version.major);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, version.minor);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, manager_ctx);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, deleter);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, flags);
    SAME_FIELD(cai_dl_managed_versioned, DLManagedTensorVersioned, dl_tensor);
}

static void check_exchange(void)
{
#if DLPACK_MINOR_VERSION >= 3
    CHECK_INT(CAI_DL_IS_PADDED, (int)DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
    SAME_SIZE(cai_dl_exchange, DLPackExchangeAPI);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, header.version.major);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, header.version.minor);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, header.prev_api);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, managed_tensor_allocator);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, managed_tensor_from_py_object_no_sync);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, managed_tensor_to_py_object_no_sync);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, dltensor_from_py_object_no_sync);
    SAME_FIELD(cai_dl_exchange, DLPackExchangeAPI, current_work_stream);
#endif
}

static void check_numbers(void)
{
    CHECK_INT(CAI_DL_MAJOR, DLPACK_MAJOR_VERSION);
    CHECK_INT(CAI_DL_READ_ONLY, (int)DLPACK_FLAG_BITMASK_READ_ONLY);
    CHECK_INT(CAI_DL_IS_COPIED, (int)DLPACK_FLAG_BITMASK_IS_COPIED);
    CHECK_INT(CAI_DL_CPU, kDLCPU);
    CHECK_INT(CAI_DL_CUDA, kDLCUDA);
    CHECK_INT(CAI_DL_CUDA_HOST, kDLCUDAHost);
    CHECK_INT(CAI_DL_CUDA_MANAGED, kDLCUDAManaged);
}

int main(void)
{
    check_tensor();
    check_managed();
    check_exchange();
    check_numbers();
    return cai_test_end();
}
