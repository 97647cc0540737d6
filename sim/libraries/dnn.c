/* dnn.c - cuDNN: its handles, and its graphs of operations (the backend API), and batch normalization. Other
 * functions are not served.
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <stdlib.h>

enum {
    DNN_OK = 0,
    DNN_NOT_INITIALIZED = 1001,
    DNN_INVALID = 2002,
    DNN_NOT_SUPPORTED = 3000,
    DNN_INTERNAL = 4000,
    DNN_FAILED = 5000
};
/* Kinds of descriptors, types of attributes, and attributes, by their numbers in cudnn_graph.h. */
enum {
    DNN_ENGINE = 2,
    DNN_FORWARD = 10,
    DNN_BACKWARD_FILTER = 11,
    DNN_BACKWARD_DATA = 12,
    DNN_POINTWISE = 13,
    DNN_TENSOR = 17,
    DNN_MATMUL = 19
};
enum { DNN_TYPE_DESCRIPTOR = 15 };
enum {
    DNN_HEUR_GRAPH = 201,
    DNN_HEUR_RESULTS = 202,
    DNN_CONFIG_ENGINE = 300,
    DNN_CONFIG_WORKSPACE = 303,
    DNN_CONFIG_SHARED = 304,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_GRAPH_OPS = 801,
    DNN_GRAPH_ENGINES = 802,
    DNN_DATA_TYPE = 901,
    DNN_DIMENSIONS = 902,
    DNN_STRIDES = 903,
    DNN_ID = 906,
    DNN_VIRTUAL = 907,
    DNN_BY_VALUE = 908,
    DNN_PACK_IDS = 1000,
    DNN_PACK_POINTERS = 1001,
    DNN_PACK_WORKSPACE = 1003,
    DNN_ENGINE_GRAPH = 1300,
    DNN_ENGINE_INDEX = 1301
};

typedef struct dnn_attribute {
    int name, type;
    int64_t count;
    void *values;
    struct dnn_attribute *next;
} dnn_attribute;

/* A descriptor lives until its owner and all others that have it as an attribute are gone. */
typedef struct dnn_descriptor {
    int kind, references;
    dnn_attribute *first;
} dnn_descriptor;

/* ------------------------------------------------------------------------- >>handles */
LIB_EXPORT int cai_lib_cudnnCreate(lib_handle **handle)
{
    if (!handle) return DNN_INVALID;
    *handle = lib_handle_make();
    return *handle ? DNN_OK : DNN_NOT_INITIALIZED;
}

LIB_EXPORT int cai_lib_cudnnDestroy(lib_handle *handle)
{
    if (!lib_handle_is(handle)) return DNN_INVALID;
    lib_handle_free(handle);
    return cuCtxSynchronize() == CUDA_SUCCESS ? DNN_OK
                                              : DNN_FAILED; /* documented, as of cudaDeviceSynchronize */
}

LIB_EXPORT int cai_lib_cudnnSetStream(lib_handle *handle, const void *stream)
{
    if (!lib_handle_is(handle)) return DNN_INVALID;
    handle->stream = stream;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnGetStream(const lib_handle *handle, const void **stream)
{
    if (!lib_handle_is(handle)) return DNN_INVALID;
    *stream = handle->stream;
    return DNN_OK;
}

static int dnn_part(int part)
{
    const int version = lib_version(LIB_CUDNN, 9010000);
    return part == 0 ? version / 1000000 : part == 1 ? version / 1000 % 1000 : version % 1000;
}

LIB_EXPORT size_t cai_lib_cudnnGetVersion(void)
{
    return (size_t)(dnn_part(0) * 10000 + dnn_part(1) * 100 + dnn_part(2));
}

LIB_EXPORT int cai_lib_cudnnGetProperty(int part, int *value)
{
    if (part < 0 || part > 2 || !value) return DNN_INVALID;
    *value = dnn_part(part);
    return DNN_OK;
}

LIB_EXPORT size_t cai_lib_cudnnGetCudartVersion(void)
{
    return CUDA_VERSION;
}

LIB_EXPORT const char *cai_lib_cudnnGetErrorString(int status)
{
    return status == DNN_OK              ? "CUDNN_STATUS_SUCCESS"
           : status == DNN_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                         : "CUDNN_STATUS";
}

LIB_EXPORT void cai_lib_cudnnGetLastErrorString(char *text, size_t capacity)
{
    static const char said[] = "not served by cai_sim";
    if (text && capacity) {
        strncpy(text, said, capacity);
        text[capacity - 1] = 0;
    }
}

/* --------------------------------------------------------------------- >>descriptors */
static size_t dnn_bytes(int type)
{
    switch (type) {
    case 0:
    case 3:
    case 5:
    case 6:
    case DNN_TYPE_DESCRIPTOR: return 8; /* handles, int64, double, pointers */
    case 2:
    case 24: return 1;  /* bool, char */
    case 26: return 16; /* fractions */
    default: return 4;
    }
}

static const dnn_attribute *dnn_find(const dnn_descriptor *of, int name)
{
    const dnn_attribute *one = of ? of->first : NULL;
    while (one && one->name != name) one = one->next;
    return one;
}

static dnn_descriptor *dnn_get(const dnn_descriptor *of, int name, int64_t index)
{
    const dnn_attribute *one = dnn_find(of, name);
    return one && one->type == DNN_TYPE_DESCRIPTOR && index < one->count
               ? ((dnn_descriptor **)one->values)[index]
               : NULL;
}

static int64_t dnn_number(const dnn_descriptor *of, int name, int64_t index, int64_t otherwise)
{
    const dnn_attribute *one = dnn_find(of, name);
    if (!one || index >= one->count) return otherwise;
    switch (dnn_bytes(one->type)) {
    case 8: return ((const int64_t *)one->values)[index];
    case 1: return ((const uint8_t *)one->values)[index];
    default: return ((const int32_t *)one->values)[index];
    }
}

static void dnn_release(dnn_descriptor *one);

static void dnn_drop(dnn_attribute *one)
{
    int64_t i;
    for (i = 0; one->type == DNN_TYPE_DESCRIPTOR && i < one->count; ++i)
        dnn_release(((dnn_descriptor **)one->values)[i]);
    free(one->values);
    free(one);
}

static void dnn_release(dnn_descriptor *one)
{
    if (!one || __atomic_sub_fetch(&one->references, 1, __ATOMIC_ACQ_REL)) return;
    while (one->first) {
        dnn_attribute *gone = one->first;
        one->first = gone->next;
        dnn_drop(gone);
    }
    free(one);
}

static int dnn_set(dnn_descriptor *of, int name, int type, int64_t count, const void *values)
{
    const size_t bytes = dnn_bytes(type) * (size_t)(count > 0 ? count : 0);
    dnn_attribute **at = &of->first, *made = (dnn_attribute *)calloc(1, sizeof *made);
    int64_t i;
    if (made) made->values = malloc(bytes + 1);
    if (!made || !made->values) {
        free(made);
        return DNN_INTERNAL;
    }
    made->name = name;
    made->type = type;
    made->count = values ? count : 0;
    if (values && bytes) memcpy(made->values, values, bytes);
    for (i = 0; type == DNN_TYPE_DESCRIPTOR && i < made->count; ++i)
        if (((dnn_descriptor **)made->values)[i])
            __atomic_add_fetch(&((dnn_descriptor **)made->values)[i]->references, 1, __ATOMIC_ACQ_REL);
    while (*at && (*at)->name != name) at = &(*at)->next;
    if (*at) {
        dnn_attribute *gone = *at;
        *at = gone->next;
        dnn_drop(gone);
    }
    made->next = of->first;
    of->first = made;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnBackendCreateDescriptor(int kind, dnn_descriptor **made)
{
    *made = (dnn_descriptor *)calloc(1, sizeof **made);
    if (!*made) return DNN_INTERNAL;
    (*made)->kind = kind;
    (*made)->references = 1;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnBackendDestroyDescriptor(dnn_descriptor *one)
{
    dnn_release(one);
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnBackendInitialize(dnn_descriptor *one)
{
    (void)one;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnBackendFinalize(dnn_descriptor *one)
{
    return one ? DNN_OK : DNN_INVALID;
}

LIB_EXPORT int cai_lib_cudnnBackendSetAttribute(dnn_descriptor *of, int name, int type, int64_t count,
                                                const void *values)
{
    return of && count >= 0 ? dnn_set(of, name, type, count, values) : DNN_INVALID;
}

/* One way to run a graph, into a descriptor that the caller made. */
static int dnn_choose(const dnn_descriptor *heuristics, dnn_descriptor *config)
{
    dnn_descriptor *graph = dnn_get(heuristics, DNN_HEUR_GRAPH, 0), *engine = NULL;
    const int64_t first = 0;
    int status = cai_lib_cudnnBackendCreateDescriptor(DNN_ENGINE, &engine);
    if (status == DNN_OK) status = dnn_set(engine, DNN_ENGINE_GRAPH, DNN_TYPE_DESCRIPTOR, 1, &graph);
    if (status == DNN_OK) status = dnn_set(engine, DNN_ENGINE_INDEX, 3, 1, &first);
    if (status == DNN_OK) status = dnn_set(config, DNN_CONFIG_ENGINE, DNN_TYPE_DESCRIPTOR, 1, &engine);
    dnn_release(engine);
    return status;
}

/* Copies a descriptor into one that the caller made. */
static int dnn_copy(const dnn_descriptor *from, dnn_descriptor *to)
{
    const dnn_attribute *one;
    int status = DNN_OK;
    for (one = from->first; one && status == DNN_OK; one = one->next)
        status = dnn_set(to, one->name, one->type, one->count, one->values);
    return status;
}

static int dnn_answer(int64_t value, int type, int64_t room, int64_t *count, void *values)
{
    if (count) *count = 1;
    if (values && room > 0)
        memcpy(values, &value, dnn_bytes(type) < sizeof value ? dnn_bytes(type) : sizeof value);
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnBackendGetAttribute(const dnn_descriptor *of, int name, int type, int64_t room,
                                                int64_t *count, void *values)
{
    const dnn_attribute *one = dnn_find(of, name);
    int64_t some;
    if (name == DNN_HEUR_RESULTS) {
        if (count) *count = 1;
        return values && room > 0 ? dnn_choose(of, ((dnn_descriptor **)values)[0]) : DNN_OK;
    }
    if (!one && (name == DNN_CONFIG_WORKSPACE || name == DNN_CONFIG_SHARED || name == DNN_PLAN_WORKSPACE ||
                 name == DNN_GRAPH_ENGINES))
        return dnn_answer(name == DNN_GRAPH_ENGINES, type, room, count, values);
    some = one ? one->count : 0;
    if (count) *count = some;
    if (!values || !one) return DNN_OK;
    some = some < room ? some : room;
    if (type == DNN_TYPE_DESCRIPTOR && some > 0 && ((dnn_descriptor **)values)[0])
        return dnn_copy(((dnn_descriptor **)one->values)[0], ((dnn_descriptor **)values)[0]);
    memcpy(values, one->values, (size_t)some * dnn_bytes(type));
    return DNN_OK;
}

/* ------------------------------------------------------------------------- >>running */
/* What an operation does to the tensor of an attribute. */
static int dnn_does(int kind, int name)
{
    if (name == 705 || name == 710 || name == 715 || name == 753 || name == 756 || name == 1522)
        return LIB_WRITE; /* the results of convolutions, pointwise operations and products */
    if ((kind >= DNN_FORWARD && kind <= DNN_POINTWISE) || kind == DNN_MATMUL) return LIB_READ;
    return LIB_MAY_WRITE;
}

static int dnn_element_bits(int64_t type) /* of a cudnnDataType_t */
{
    static const uint8_t bits[] = {32, 64, 16, 8, 32, 0, 8, 0, 0, 16, 64, 8, 8, 8};
    return type >= 0 && type < (int64_t)sizeof bits ? bits[type] : 0;
}

static void dnn_tensor(lib_work *work, const dnn_descriptor *tensor, const void *data, int write)
{
    const dnn_attribute *dimensions = dnn_find(tensor, DNN_DIMENSIONS);
    const int bits = dnn_element_bits(dnn_number(tensor, DNN_DATA_TYPE, 0, -1));
    int64_t i, last = 0, all = 1;
    for (i = 0; dimensions && i < dimensions->count; ++i) {
        const int64_t size = dnn_number(tensor, DNN_DIMENSIONS, i, 1);
        last += (size - 1) * dnn_number(tensor, DNN_STRIDES, i, 0);
        all *= size;
    }
    if (!dimensions || !bits || last + 1 != all) work->opaque = 1; /* with gaps, or of another form */
    else lib_range(work, data, all * bits / 8, write);
}

static const void *dnn_pointer(const dnn_descriptor *pack, int64_t id)
{
    const dnn_attribute *ids = dnn_find(pack, DNN_PACK_IDS);
    int64_t i;
    for (i = 0; ids && i < ids->count; ++i)
        if (dnn_number(pack, DNN_PACK_IDS, i, 0) == id)
            return (const void *)(uintptr_t)dnn_number(pack, DNN_PACK_POINTERS, i, 0);
    return NULL;
}

static void dnn_operation(lib_work *work, const dnn_descriptor *operation, const dnn_descriptor *pack)
{
    const dnn_attribute *one;
    int64_t i;
    for (one = operation->first; one; one = one->next)
        for (i = 0; one->type == DNN_TYPE_DESCRIPTOR && i < one->count; ++i) {
            const dnn_descriptor *tensor = ((dnn_descriptor **)one->values)[i];
            if (!tensor || tensor->kind != DNN_TENSOR || dnn_number(tensor, DNN_VIRTUAL, 0, 0) ||
                dnn_number(tensor, DNN_BY_VALUE, 0, 0))
                continue;
            dnn_tensor(work, tensor, dnn_pointer(pack, dnn_number(tensor, DNN_ID, 0, -1)),
                       dnn_does(operation->kind, one->name));
        }
}

static const char *dnn_name(const dnn_descriptor *operation)
{
    switch (operation ? operation->kind : 0) {
    case DNN_FORWARD: return "cuDNN convolution forward";
    case DNN_BACKWARD_FILTER: return "cuDNN convolution backward filter";
    case DNN_BACKWARD_DATA: return "cuDNN convolution backward data";
    case DNN_MATMUL: return "cuDNN matmul";
    default: return "cudnnBackendExecute";
    }
}

LIB_EXPORT int cai_lib_cudnnBackendExecute(const lib_handle *handle, const dnn_descriptor *plan,
                                           const dnn_descriptor *pack)
{
    const dnn_descriptor *engine = dnn_get(dnn_get(plan, DNN_PLAN_CONFIG, 0), DNN_CONFIG_ENGINE, 0);
    const dnn_descriptor *graph = dnn_get(engine, DNN_ENGINE_GRAPH, 0), *operation;
    lib_work work;
    int64_t i;
    if (!lib_handle_is(handle) || !plan || !pack) return DNN_INVALID;
    lib_begin(&work, dnn_name(dnn_get(graph, DNN_GRAPH_OPS, 0)), LIB_CALLER, handle->stream);
    work.opaque = !graph;
    for (i = 0; (operation = dnn_get(graph, DNN_GRAPH_OPS, i)) != NULL; ++i)
        dnn_operation(&work, operation, pack);
    return lib_end(&work) == 0 ? DNN_OK : DNN_FAILED;
}

/* ------------------------------------------------------------- >>batch normalization */
/* Descriptors of the older functions: a tensor has the attributes of the newer ones, others are empty. */
#define DNN_KIND(NAME, KIND)                                                                                 \
    LIB_EXPORT int cai_lib_cudnnCreate##NAME(dnn_descriptor **made);                                         \
    LIB_EXPORT int cai_lib_cudnnCreate##NAME(dnn_descriptor **made)                                          \
    {                                                                                                        \
        return cai_lib_cudnnBackendCreateDescriptor(KIND, made);                                             \
    }                                                                                                        \
    LIB_EXPORT int cai_lib_cudnnDestroy##NAME(dnn_descriptor *one);                                          \
    LIB_EXPORT int cai_lib_cudnnDestroy##NAME(dnn_descriptor *one)                                           \
    {                                                                                                        \
        return cai_lib_cudnnBackendDestroyDescriptor(one);                                                   \
    }
DNN_KIND(TensorDescriptor, DNN_TENSOR)
DNN_KIND(ActivationDescriptor, -1)

LIB_EXPORT int cai_lib_cudnnSetActivationDescriptor(dnn_descriptor *one, int mode, int nans,
                                                    double coefficient)
{
    (void)one, (void)mode, (void)nans, (void)coefficient;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnSetTensorNdDescriptor(dnn_descriptor *one, int type, int rank, const int *sizes,
                                                  const int *strides)
{
    int64_t all[2][8];
    int i, status;
    if (!one || rank < 1 || rank > 8 || !sizes || !strides) return DNN_INVALID;
    for (i = 0; i < rank; ++i) {
        all[0][i] = sizes[i];
        all[1][i] = strides[i];
    }
    status = dnn_set(one, DNN_DATA_TYPE, 1, 1, &type);
    if (status == DNN_OK) status = dnn_set(one, DNN_DIMENSIONS, 3, rank, all[0]);
    return status == DNN_OK ? dnn_set(one, DNN_STRIDES, 3, rank, all[1]) : status;
}

LIB_EXPORT int cai_lib_cudnnSetTensor4dDescriptor(dnn_descriptor *one, int format, int type, int n, int c,
                                                  int h, int w)
{
    const int sizes[4] = {n, c, h, w}, rows[4] = {c * h * w, h * w, w, 1},
              channels[4] = {h * w * c, 1, w * c, c};
    return cai_lib_cudnnSetTensorNdDescriptor(one, type, 4, sizes, format == 1 ? channels : rows);
}

LIB_EXPORT int cai_lib_cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode,
                                                                            int operations,
                                                                            const void *activation,
                                                                            const void *x, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)activation, (void)x;
    *bytes = 0;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void *handle, int mode, int operations, const void *x, const void *z, const void *y, const void *scale,
    const void *activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)z, (void)y, (void)scale, (void)activation;
    *bytes = 0;
    return DNN_OK;
}

LIB_EXPORT int cai_lib_cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    void *handle, int mode, int operations, const void *x, const void *y, const void *dy, const void *dz,
    const void *dx, const void *scale, const void *activation, size_t *bytes)
{
    (void)handle, (void)mode, (void)operations, (void)x, (void)y, (void)dy, (void)dz, (void)dx, (void)scale,
        (void)activation;
    *bytes = 0;
    return DNN_OK;
}

/* One tensor of a call, if it is given. */
static void dnn_given(lib_work *work, const dnn_descriptor *tensor, const void *data, int write)
{
    if (tensor && data) dnn_tensor(work, tensor, data, write);
}

LIB_EXPORT int cai_lib_cudnnBatchNormalizationForwardTrainingEx(
    const lib_handle *handle, int mode, int operations, const void *alpha, const void *beta,
    const dnn_descriptor *xd, const void *x, const dnn_descriptor *zd, const void *z,
    const dnn_descriptor *yd, void *y, const dnn_descriptor *sd, const void *scale, const void *bias,
    double factor, void *mean, void *variance, double epsilon, void *saved_mean, void *saved_variance,
    const void *activation, void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    lib_work work;
    (void)mode, (void)operations, (void)alpha, (void)beta, (void)factor, (void)epsilon, (void)activation;
    if (!lib_handle_is(handle)) return DNN_INVALID;
    lib_begin(&work, "cudnnBatchNormalizationForwardTrainingEx", LIB_CALLER, handle->stream);
    dnn_given(&work, xd, x, LIB_READ);
    dnn_given(&work, zd, z, LIB_READ);
    dnn_given(&work, yd, y, LIB_WRITE);
    dnn_given(&work, sd, scale, LIB_READ);
    dnn_given(&work, sd, bias, LIB_READ);
    dnn_given(&work, sd, mean, LIB_WRITE);
    dnn_given(&work, sd, variance, LIB_WRITE);
    dnn_given(&work, sd, saved_mean, LIB_WRITE);
    dnn_given(&work, sd, saved_variance, LIB_WRITE);
    lib_range(&work, workspace, (int64_t)workspace_bytes, LIB_MAY_WRITE);
    lib_range(&work, reserve, (int64_t)reserve_bytes, LIB_WRITE);
    return lib_end(&work) == 0 ? DNN_OK : DNN_FAILED;
}

LIB_EXPORT int cai_lib_cudnnBatchNormalizationForwardInference(
    const lib_handle *handle, int mode, const void *alpha, const void *beta, const dnn_descriptor *xd,
    const void *x, const dnn_descriptor *yd, void *y, const dnn_descriptor *sd, const void *scale,
    const void *bias, const void *mean, const void *variance, double epsilon)
{
    lib_work work;
    (void)mode, (void)alpha, (void)beta, (void)epsilon;
    if (!lib_handle_is(handle)) return DNN_INVALID;
    lib_begin(&work, "cudnnBatchNormalizationForwardInference", LIB_CALLER, handle->stream);
    dnn_given(&work, xd, x, LIB_READ);
    dnn_given(&work, yd, y, LIB_WRITE);
    dnn_given(&work, sd, scale, LIB_READ);
    dnn_given(&work, sd, bias, LIB_READ);
    dnn_given(&work, sd, mean, LIB_READ);
    dnn_given(&work, sd, variance, LIB_READ);
    return lib_end(&work) == 0 ? DNN_OK : DNN_FAILED;
}

LIB_EXPORT int cai_lib_cudnnBatchNormalizationBackwardEx(
    const lib_handle *handle, int mode, int operations, const void *alpha, const void *beta,
    const void *alpha2, const void *beta2, const dnn_descriptor *xd, const void *x, const dnn_descriptor *yd,
    const void *y, const dnn_descriptor *dyd, const void *dy, const dnn_descriptor *dzd, void *dz,
    const dnn_descriptor *dxd, void *dx, const dnn_descriptor *sd, const void *scale, const void *bias,
    void *dscale, void *dbias, double epsilon, const void *saved_mean, const void *saved_variance,
    const void *activation, void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    lib_work work;
    (void)mode, (void)operations, (void)alpha, (void)beta, (void)alpha2, (void)beta2, (void)epsilon,
        (void)activation;
    if (!lib_handle_is(handle)) return DNN_INVALID;
    lib_begin(&work, "cudnnBatchNormalizationBackwardEx", LIB_CALLER, handle->stream);
    dnn_given(&work, xd, x, LIB_READ);
    dnn_given(&work, yd, y, LIB_READ);
    dnn_given(&work, dyd, dy, LIB_READ);
    dnn_given(&work, dzd, dz, LIB_WRITE);
    dnn_given(&work, dxd, dx, LIB_WRITE);
    dnn_given(&work, sd, scale, LIB_READ);
    dnn_given(&work, sd, bias, LIB_READ);
    dnn_given(&work, sd, dscale, LIB_WRITE);
    dnn_given(&work, sd, dbias, LIB_WRITE);
    dnn_given(&work, sd, saved_mean, LIB_READ);
    dnn_given(&work, sd, saved_variance, LIB_READ);
    lib_range(&work, workspace, (int64_t)workspace_bytes, LIB_MAY_WRITE);
    lib_range(&work, reserve, (int64_t)reserve_bytes, LIB_READ);
    return lib_end(&work) == 0 ? DNN_OK : DNN_FAILED;
}
