/* scaled_driver - says where cai_scaled.h finds the scale of each value
 * SPDX-License-Identifier: MIT
 *
 * One request a line, decimal integers, one answer a line:
 *
 *     format code scales block rows layout axis ndim extents...
 *         -> status extents... offsets...
 *
 * code and scales: dtypes as cai.h numbers them. extents of the answer: of the scales. offsets: bytes, of each
 * value in C order. No memory is read. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "ext/cai_scaled.h"
#include "driver.h"

/* `axis`: of the blocks, and of the values of an element */
static void describe(cai_array *out, int32_t code, int32_t ndim, const int64_t *shape, int32_t axis, uint64_t address)
{
    cai_dtype dtype;
    void *data = (void *)(uintptr_t)address;
    cai_status status = cai_dtype_of(code, &dtype, NULL);
    if (!status && cai_dtype_values(&dtype) > 1)
        status = cai_array_init_packed(out, code, ndim, shape, axis, NULL, data, NULL);
    else if (!status) status = cai_array_init(out, code, ndim, shape, NULL, data, NULL);
    if (status) fail("no such array");
}

static void print_offsets(const cai_scale_map *map, int32_t axis, int32_t ndim, const int64_t *shape)
{
    const int64_t *matrix = shape + ndim - 2;
    int64_t n, i, j;
    for (n = 0; n < (ndim == 3 ? shape[0] : 1); n++)
        for (i = 0; i < matrix[0]; i++)
            for (j = 0; j < matrix[1]; j++) {
                const int along = axis == ndim - 1;
                printf(" %" PRId64, n * map->batch_stride + cai_scale_offset(map, along ? i : j, along ? j : i));
            }
}

int main(void)
{
    while (fgets(line, (int)sizeof line, stdin)) {
        char *at = line;
        int64_t shape[3], extents[3];
        int32_t format, code, scales, ndim, i;
        cai_array data, held;
        cai_scaled x = {&data, &held, 0, 0, 0, 0};
        cai_scale_map map;
        cai_status status;
        format = (int32_t)next_number(&at);
        code = (int32_t)next_number(&at);
        scales = (int32_t)next_number(&at);
        x.block = (int32_t)next_number(&at);
        x.rows = (int32_t)next_number(&at);
        x.layout = (int32_t)next_number(&at);
        x.axis = (int32_t)next_number(&at);
        ndim = (int32_t)next_number(&at);
        if (ndim < 2 || ndim > 3) fail("2 or 3 axes");
        for (i = 0; i < ndim; i++) shape[i] = (int64_t)next_number(&at);
        describe(&data, code, ndim, shape, x.axis, 0x10000);
        if (cai_scales_shape(&x, extents, NULL)) fail("no shape of the scales");
        describe(&held, scales, ndim, extents, 0, 0x10000);
        status = cai_expect_scaled(&x, "x", format, x.layout, CAI_ANY_AXIS, CAI_ON_DEVICE, NULL);
        printf("%d", (int)status);
        for (i = 0; i < ndim; i++) printf(" %" PRId64, extents[i]);
        if (cai_scale_map_of(&x, &map, NULL)) fail("no map");
        print_offsets(&map, x.axis, ndim, shape);
        printf("\n");
    }
    return 0;
}
