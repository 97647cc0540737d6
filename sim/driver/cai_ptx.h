/* cai_ptx.h - reads PTX: the parameters of kernels, and what a kernel does with the memory behind each
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11. Used by cai_kernel.c. */
#ifndef CAI_PTX_H_INCLUDED
#define CAI_PTX_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "cai_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is called for each kernel and each global variable of a text, in its order. Names do not end with a
 *  zero. All pointers are valid during the call alone. They return 0 to end the reading, else 1. */
typedef struct cai_ptx_visitor {
    void *context;
    /** `bytes` is the size of the block of parameters. `words`: CAI_KERNEL_ bits of each eight of them. `follows`:
     *  as of a cai_kernel. */
    int (*kernel)(void *context, const char *name, size_t name_bytes, const cai_kernel_parameter *parameters,
                  int32_t count, uint32_t bytes, const uint8_t *words, int32_t follows);
    int (*global)(void *context, const char *name, size_t name_bytes, uint64_t bytes, int32_t constant);
} cai_ptx_visitor;

/** Reads PTX. Its end is `bytes` or a zero. Returns 1, or 0 if a part could not be read: it is no PTX, or the
 *  visitor ended it, or there is no memory. What came before was visited.
 *
 *  A kernel's words are what its instructions say. An address that gets out of sight is CAI_KERNEL_UNKNOWN:
 *  it is stored, given to a function, or used in an instruction that is not known here. Pointers that are in
 *  memory are not followed: `follows` says that there are some. A value of 8 bytes that was loaded is one if it gets
 *  into an address without being multiplied, as an index is. */
int cai_ptx_read(const char *text, size_t bytes, const cai_ptx_visitor *visitor);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_PTX_H_INCLUDED */
