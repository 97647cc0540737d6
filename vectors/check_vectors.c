/* check_vectors.c - gives the vectors of vectors.tsv to cai
 * SPDX-License-Identifier: MIT
 *
 *     cc -std=c99 -I.. -I../ext check_vectors.c -o check_vectors && ./check_vectors
 *
 * For another reader, change the functions from read_dictionary on. */

#define CAI_IMPLEMENTATION
#include "cai.h"
#include "cai_dlpack.h"
#include "vectors.h"

/* The vectors name a dtype as DLPack does: int4, int4x2. */
static const char *name_of(const cai_array *a, int lanes)
{
    static char text[40];
    char *suffix;
    (void)snprintf(text, sizeof text, "%s", cai_dtype_name(a->dtype.code));
    suffix = cai_dtype_values(&a->dtype) > 1 ? strstr(text, "_x") : NULL;
    if (suffix && lanes > 1) memmove(suffix, suffix + 1, strlen(suffix));
    else if (suffix) *suffix = 0;
    return text;
}

static void check_facts(const cai_array *a, int lanes)
{
    static const char *const orders[] = {"unknown", "none", "stream"};
    const int64_t extent[2] = {a->lo, a->hi};
    is(DTYPE, "dtype", "%s", name_of(a, lanes));
    is(SHAPE, "shape", "%s", list_of(a->shape, a->ndim));
    is(ITEMSIZE, "itemsize", "%ld", (long)a->dtype.itemsize);
    is(SIZE, "size", "%" PRId64, a->size);
    is(NBYTES, "nbytes", "%" PRId64, a->nbytes);
    is(STRIDES, "strides", "%s", list_of(a->strides, a->ndim));
    is(EXTENT, "extent", "%s", list_of(extent, 2));
    is(C_CONTIGUOUS, "c_contiguous", "%d", (a->flags & CAI_C_CONTIGUOUS) != 0);
    is(F_CONTIGUOUS, "f_contiguous", "%d", (a->flags & CAI_F_CONTIGUOUS) != 0);
    is(READ_ONLY, "read_only", "%d", (a->flags & CAI_WRITABLE) == 0);
    is(BYTE_SWAPPED, "byte_swapped", "%d", (a->flags & CAI_BYTE_SWAPPED) != 0);
    is(ADDRESS, "address", "%" PRIu64, a->data);
    is(ORDER, "order", "%s", orders[a->sync == CAI_SYNC_STREAM ? 2 : a->sync == CAI_SYNC_NONE]);
    is(STREAM, "stream", "%" PRIu64, a->stream);
    is(MASK_SHAPE, "the shape of the mask", "%s", a->mask ? list_of(a->mask->shape, a->mask->ndim) : "lost");
}

static cai_interface interface_of(const cai_token *table, cai_interface *mask)
{
    const cai_token *object = find(table, "mask");
    cai_interface in = {find(table, "shape"), find(table, "typestr"), find(table, "data"), find(table, "version"),
                        find(table, "strides"), find(table, "stream"), find(table, "descr"), object, NULL};
    if (mask && object && object->kind == CAI_TOKEN_OBJECT) {
        *mask = interface_of(object, NULL);
        in.mask_interface = mask;
    }
    return in;
}

/* Reads the dictionary, writes one of the array, and reads that. */
static cai_status read_dictionary(cai_error *err)
{
    static cai_field fields[2][CAI_MAX_FIELDS];
    static cai_token tokens[4096];
    static char text[4096];
    cai_interface mask_in, mask_out, in = interface_of(values, &mask_in), out;
    cai_array array, again, masks[2];
    const cai_import_options first = {0, &masks[0], fields[0], CAI_MAX_FIELDS};
    const cai_import_options second = {0, &masks[1], fields[1], CAI_MAX_FIELDS};
    const cai_export_storage storage = {tokens, 4096, text, 4096, &mask_out};
    CAI_TRY(cai_import(&in, &first, &array, err));
    check_facts(&array, 1);
    CAI_TRY(cai_export(&array, array.sync == CAI_SYNC_UNKNOWN ? 2 : 3, &storage, &out, err));
    CAI_TRY(cai_import(&out, &second, &again, err));
    if (array.flags & CAI_C_CONTIGUOUS) cells[STRIDES] = "-"; /* None is written */
    if (!array.size) cells[ORDER] = cells[STREAM] = "-"; /* it has no work to wait for */
    check_facts(&again, 1);
    return CAI_OK;
}

static cai_status read_stream(cai_error *err)
{
    const cai_token *version = find(values, "version"), *number = find(values, "stream");
    int32_t sync = 0;
    uint64_t stream = 0;
    if (version) CAI_TRY(cai_decode_stream_interface(number, (int32_t)version->number, &sync, &stream, err));
    else CAI_TRY(cai_decode_stream_dlpack(number, &sync, &stream, err));
    if (sync == CAI_SYNC_UNKNOWN) is(ORDER, "order", "unknown");
    else if (sync == CAI_SYNC_NONE) is(ORDER, "order", version ? "none" : "unordered");
    else is(ORDER, "order", stream == 1 ? "legacy" : stream == 2 ? "per_thread" : "handle");
    is(STREAM, "stream", "%" PRIu64, stream);
    return CAI_OK;
}

static int64_t *numbers_of(const char *key, int64_t *to)
{
    const cai_token *list = find(values, key);
    uint32_t i;
    for (i = 0; i < list->length; i++) to[i] = (int64_t)list[1 + i].number;
    return list->kind == CAI_TOKEN_NONE ? NULL : to;
}

static cai_status read_dlpack(cai_error *err)
{
    int64_t shape[65], strides[65], device[2], dtype[3], version[2];
    cai_dl_managed managed;
    cai_dl_managed_versioned versioned;
    cai_dl_tensor *t = &managed.dl_tensor;
    cai_array array;
    memset(&managed, 0, sizeof managed);
    memset(&versioned, 0, sizeof versioned);
    t->device.device_type = (cai_dl_device_type)*numbers_of("device", device);
    t->device.device_id = (int32_t)device[1];
    t->data = (void *)(uintptr_t)find(values, "data")->number;
    t->byte_offset = find(values, "byte_offset")->number;
    t->ndim = (int32_t)find(values, "ndim")->number;
    t->shape = numbers_of("shape", shape);
    t->strides = numbers_of("strides", strides);
    t->dtype.code = (uint8_t)*numbers_of("dtype", dtype);
    t->dtype.bits = (uint8_t)dtype[1];
    t->dtype.lanes = (uint16_t)dtype[2];
    if (find(values, "version")) {
        versioned.version.major = (uint32_t)*numbers_of("version", version);
        versioned.version.minor = (uint32_t)version[1];
        versioned.flags = find(values, "flags")->number;
        versioned.dl_tensor = *t;
        CAI_TRY(cai_dlpack_import_versioned((struct DLManagedTensorVersioned *)&versioned, NULL, &array, err));
    } else {
        CAI_TRY(cai_dlpack_import((struct DLManagedTensor *)&managed, NULL, &array, err));
    }
    if (array.packed_axis >= 0 && t->dtype.lanes == 1) { /* the vectors count values */
        array.size = array.size / array.shape[array.packed_axis] * array.packed_extent;
        array.shape[array.packed_axis] = array.packed_extent;
    }
    check_facts(&array, t->dtype.lanes);
    return CAI_OK;
}

int main(int argc, char **argv)
{
    FILE *file = fopen(argc > 1 ? argv[1] : "vectors.tsv", "r");
    cai_error err;
    if (!file) return 2;
    while (next_vector(file)) {
        const cai_token *platform = find(values, "platform"); /* cai has the streams of CUDA alone */
        memset(&err, 0, sizeof err);
        if (strcmp(cells[KIND], "dictionary") == 0) verdict(read_dictionary(&err) == CAI_OK, err.message);
        else if (platform && strcmp(platform->text, "cuda") == 0) verdict(read_stream(&err) == CAI_OK, err.message);
        else if (!platform) verdict(read_dlpack(&err) == CAI_OK, err.message);
    }
    (void)fclose(file);
    printf("%d vectors judged, %d refused, %d wrong\n", judged, refused, wrong);
    return wrong != 0;
}
