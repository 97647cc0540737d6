/* numpy_driver - answers requests of numpy_arrays.py through the public functions of cai.h
 * SPDX-License-Identifier: MIT
 *
 * One request a line, decimal integers, one answer a line:
 *
 *     0 ARRAY ARRAY            do they overlap              -> 0 no, 1 yes, 2 undecided
 *     1 ARRAY                  does it overlap itself       -> 0 no, 1 yes, 2 undecided
 *     2 ARRAY ndim shape...    reshape without a copy       -> status [VIEW]
 *     3 ARRAY ndim shape...    broadcast                    -> status [VIEW]
 *     4 n (ndim shape...) ...  the shape of n arrays        -> 0 shape..., or the status
 *
 * ARRAY is: itemsize ndim shape... strides... data. VIEW is: writable data ndim shape...
 * strides... A request that cannot be read or an ARRAY that cai_array_init_dtype refuses ends the
 * program with exit status 2. */

#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "cai.h"
#include "driver.h"

static int32_t next_shape(char **at, int64_t *numbers)
{
    int32_t i;
    int32_t ndim = (int32_t)next_number(at);
    if (ndim < 0 || ndim > CAI_MAX_NDIM) fail("more axes than an array has");
    for (i = 0; i < ndim; i++) numbers[i] = (int64_t)next_number(at);
    return ndim;
}

static void next_array(char **at, cai_array *out)
{
    cai_error err;
    cai_dtype dtype;
    int64_t shape[CAI_MAX_NDIM], strides[CAI_MAX_NDIM];
    char typestr[CAI_TYPESTR_SIZE];
    uint64_t data;
    int32_t i, ndim;
    int length = sprintf(typestr, "|V%" PRIu64, next_number(at));
    ndim = next_shape(at, shape);
    for (i = 0; i < ndim; i++) strides[i] = (int64_t)next_number(at);
    data = next_number(at);
    if (cai_dtype_parse(typestr, length, 0, &dtype, &err)) fail(err.message);
    if (cai_array_init_dtype(out, &dtype, ndim, shape, strides, data, &err)) fail(err.message);
}

static void print_view(const cai_array *view)
{
    int32_t i;
    printf(" %d %" PRIu64 " %" PRId32, (view->flags & CAI_WRITABLE) != 0, view->data, view->ndim);
    for (i = 0; i < view->ndim; i++) printf(" %" PRId64, view->shape[i]);
    for (i = 0; i < view->ndim; i++) printf(" %" PRId64, view->strides[i]);
}

static void answer_view(char **at, int reshape)
{
    cai_array array, view;
    cai_status status;
    int64_t shape[CAI_MAX_NDIM];
    int32_t ndim;
    next_array(at, &array);
    ndim = next_shape(at, shape);
    status = reshape ? cai_view_reshape(&array, ndim, shape, &view, NULL)
                     : cai_view_broadcast(&array, ndim, shape, &view, NULL);
    printf("%" PRId32, status);
    if (status == CAI_OK) print_view(&view);
    printf("\n");
}

static void answer_joint_shape(char **at)
{
    static char memory[1];
    cai_array array;
    cai_status status = CAI_OK;
    int64_t shape[CAI_MAX_NDIM], joint[CAI_MAX_NDIM];
    int32_t i, ndim, found = 0, count = (int32_t)next_number(at);
    while (count-- > 0) {
        ndim = next_shape(at, shape);
        if (cai_array_init(&array, CAI_INT8, ndim, shape, NULL, memory, NULL)) fail("no array");
        if (!status) status = cai_broadcast_shape(&array, "x", &found, joint, NULL);
    }
    printf("%" PRId32, status);
    for (i = 0; i < found && !status; i++) printf(" %" PRId64, joint[i]);
    printf("\n");
}

static void answer_overlap(char **at)
{
    cai_array a, b;
    next_array(at, &a);
    next_array(at, &b);
    printf("%" PRId32 "\n", cai_overlap(&a, &b));
}

static void answer_self_overlap(char **at)
{
    cai_array array;
    int no, yes;
    next_array(at, &array);
    no = (array.flags & CAI_NO_SELF_OVERLAP) != 0;
    yes = (array.flags & CAI_SELF_OVERLAP) != 0;
    if (no && yes) fail("both with and without self-overlap");
    printf("%d\n", yes ? 1 : no ? 0 : 2);
}

int main(void)
{
    while (fgets(line, (int)sizeof line, stdin)) {
        char *at = line;
        switch (next_number(&at)) {
        case 0: answer_overlap(&at); break;
        case 1: answer_self_overlap(&at); break;
        case 2: answer_view(&at, 1); break;
        case 3: answer_view(&at, 0); break;
        case 4: answer_joint_shape(&at); break;
        default: fail("no such request");
        }
        while (*at == ' ') at++;
        if (*at != '\n' && *at != '\0') fail("a number too many");
    }
    return fflush(stdout) ? 2 : 0;
}
