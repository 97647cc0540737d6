/* array_struct_driver - imports and exports the structs that array_struct.py found
 * SPDX-License-Identifier: MIT
 *
 * One struct a line, decimal integers, one answer a line:
 *
 *     two nd typekind itemsize flags shape... strides... data
 *         -> status                                  if the import refuses it, or
 *         -> 0 ARRAY status STRUCT                   STRUCT: as in the request, if that status is 0
 *
 * ARRAY is: kind itemsize unit flags memory sync version size nbytes lo hi. The
 * pointers are never followed. A line that cannot be read ends the program with exit status 2. */

#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#include "ext/cai_array_struct.h"
#include "driver.h"

#include <string.h>

static void next_struct(char **at, cai_array_struct *s, intptr_t *numbers)
{
    int i;
    memset(s, 0, sizeof *s);
    s->two = (int)next_number(at);
    s->nd = (int)next_number(at);
    s->typekind = (char)next_number(at);
    s->itemsize = (int)next_number(at);
    s->flags = (int)next_number(at);
    if (s->nd < 0 || s->nd > CAI_MAX_NDIM) fail("more axes than an array has");
    for (i = 0; i < 2 * s->nd; i++) numbers[i] = (intptr_t)next_number(at);
    if (s->nd) s->shape = numbers;
    if (s->nd) s->strides = numbers + s->nd;
    s->data = (void *)(uintptr_t)next_number(at);
}

static void print_array(const cai_array *a)
{
    printf("0 %d %d %d %u %d %d %d", (int)(a->dtype.code >> 8 & 0xff), (int)a->dtype.itemsize,
           (int)a->dtype.unit, (unsigned)a->flags, (int)a->memory, (int)a->sync, (int)a->version);
    printf(" %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, a->size, a->nbytes, a->lo, a->hi);
}

static void print_struct(const cai_array_struct *s)
{
    int i;
    printf(" %d %d %d %d %d", s->two, s->nd, s->typekind, s->itemsize, s->flags);
    for (i = 0; i < s->nd; i++) printf(" %" PRIdPTR, s->shape[i]);
    for (i = 0; i < s->nd; i++) printf(" %" PRIdPTR, s->strides[i]);
    printf(" %" PRIuPTR, (uintptr_t)s->data);
}

int main(void)
{
    while (fgets(line, (int)sizeof line, stdin)) {
        intptr_t numbers[2 * CAI_MAX_NDIM], back[2 * CAI_MAX_NDIM];
        cai_array_struct in, out;
        cai_array array;
        cai_status status;
        char *at = line;
        next_struct(&at, &in, numbers);
        while (*at == ' ') at++;
        if (*at != '\n' && *at != '\0') fail("a number too many");
        status = cai_array_struct_import(&in, NULL, NULL, 0, &array, NULL);
        if (status == CAI_OK) {
            print_array(&array);
            status = cai_array_struct_export(&array, NULL, back, &out, NULL);
            printf(" %d", (int)status);
            if (status == CAI_OK) print_struct(&out);
        } else {
            printf("%d", (int)status);
        }
        printf("\n");
    }
    return fflush(stdout) ? 2 : 0;
}
