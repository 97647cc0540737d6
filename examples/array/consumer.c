#define CAI_IMPLEMENTATION
#include "cai.h"
#include <stdio.h>

static cai_status scale(float a, const cai_array *y, cai_error *err)
{
    cai_kernel_view v; /* pointer, extents, strides: passes by value to a kernel */
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, 2, CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_kernel_view_of(y, &v, err));
    for (int64_t n = 0; n < y->size; n++) *(float *)cai_kernel_element(&v, n) *= a;
    return CAI_OK;
}

int main(void)
{
    float buffer[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {2, 3};
    cai_array x, odd, row;
    cai_error err;
    if (cai_array_init(&x, CAI_FLOAT32, 2, shape, NULL, buffer, &err) ||
        cai_view_slice(&x, 1, 2, 2, -2, &odd, &err) || /* x[:, ::-2] without a copy */
        scale(10, &odd, &err) ||                       /* buffer: 10 2 30 40 5 60 */
        cai_view_index(&x, 0, 1, &row, &err) || scale(10, &row, &err))
        printf("%s\n", err.message); /* y: expected float32, 2-D, ...; got float32, 1-D */
}
