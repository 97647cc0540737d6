/* cai_kernel.h - reads the images of kernels: their names, parameters and global variables
 * SPDX-License-Identifier: MIT
 * C99 that is also C++11.
 *
 * An image is a cubin (ELF), PTX text, a fat binary of such, or the wrapper of a fat binary. Entries that
 * are compressed with Zstandard are read where libzstd.so.1 is installed. Device code does not run. What a kernel
 * accesses is told by the pointers in its arguments, and by its PTX where the image has some. */
#ifndef CAI_KERNEL_H_INCLUDED
#define CAI_KERNEL_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "cai_sim.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One parameter of a kernel, in the block of all of them. */
typedef struct cai_kernel_parameter {
    uint32_t offset;
    uint32_t bytes;
} cai_kernel_parameter;

/** What a kernel does through a pointer in its arguments. */
enum {
    CAI_KERNEL_READS = 1,
    CAI_KERNEL_WRITES = 2,
    CAI_KERNEL_UNKNOWN = 4 /* nothing tells: it may read or write */
};

/** What a kernel accesses that its arguments do not tell. */
enum {
    CAI_KERNEL_FOLLOWS = 1, /* pointers that it loads from memory */
    CAI_KERNEL_GLOBALS = 2, /* global variables */
    CAI_KERNEL_UNREAD = 4,  /* not known: there is no PTX, or a part of its code is not in it */
    CAI_KERNEL_EARLY = 8,   /* of a launch: it may begin before the work in front of it has ended */
    CAI_KERNEL_ELSEWHERE = 16 /* of a launch: an address among its arguments is of no memory of CUDA */
};

/** One kernel. */
typedef struct cai_kernel {
    const char *name;
    const cai_kernel_parameter *parameters;
    const uint8_t *words; /* of each eight bytes of the block: 0 or CAI_KERNEL_..., NULL: all unknown */
    int32_t parameter_count;
    uint32_t parameter_bytes; /* of the block */
    int32_t opaque;           /* 1: the parameters are not known */
    int32_t architecture;     /* 90 for sm_90; 0: not known */
    int32_t follows;          /* CAI_KERNEL_FOLLOWS and the others */
} cai_kernel;

/** One global variable. */
typedef struct cai_kernel_global {
    const char *name;
    const void *data; /* `bytes` of them at first; NULL: zeros */
    uint64_t bytes;
    int32_t constant; /* 1: __constant__ */
    int32_t managed;  /* 1: __managed__ */
} cai_kernel_global;

typedef struct cai_kernel_image cai_kernel_image;

/** Reads an image, and copies what it needs. `bytes` 0: the image says how long it is, or its text ends with
 *  '\0'. The pointer in a wrapper is followed in that case alone. What cannot be read makes an opaque image.
 *  NULL: `image` is NULL, or there is no memory. */
cai_kernel_image *cai_kernel_image_read(const void *image, size_t bytes);

/** How many bytes an image has by what it says itself, to tell it from others. `bytes` is what is known of it; 0: no
 *  limit. 0: it is no cubin, or longer than `bytes`. */
size_t cai_kernel_image_bytes(const void *image, size_t bytes);

/** Tells of the kernels of an image what a second image tells, which is made from the same source: its PTX. Kernels
 *  of the second one alone are left out, and those whose parameters differ. */
void cai_kernel_image_explain(cai_kernel_image *image, const void *source, size_t bytes);

/** Frees an image and all that was got from it. NULL does nothing. */
void cai_kernel_image_free(cai_kernel_image *image);

/** Returns 1 if the image is compressed or unknown, at least a part that other parts do not stand for. Its
 *  names cannot all be told then. 0: all names are known. */
int32_t cai_kernel_image_is_opaque(const cai_kernel_image *image);

/** The kernels, sorted by name. `_at` returns NULL for a bad index, and `_find` if there is no such name. */
int32_t cai_kernel_count(const cai_kernel_image *image);
const cai_kernel *cai_kernel_at(const cai_kernel_image *image, int32_t index);
const cai_kernel *cai_kernel_find(const cai_kernel_image *image, const char *name);

/** The global variables, in the same way. */
int32_t cai_kernel_global_count(const cai_kernel_image *image);
const cai_kernel_global *cai_kernel_global_at(const cai_kernel_image *image, int32_t index);
const cai_kernel_global *cai_kernel_global_find(const cai_kernel_image *image, const char *name);

/** Joins images to one, as a linker does: its kernels are those of all of them. `bytes` of each is not 0. The
 *  result is an image that this reader reads and that no GPU runs. `*size` is set. free() it. NULL: a bad
 *  argument or no memory. */
void *cai_kernel_link(const void *const *images, const size_t *bytes, int32_t count, size_t *size);

/** Finds the memory around an address. Returns 1 and sets both, or 0. */
typedef int (*cai_kernel_range)(void *context, uint64_t address, uint64_t *first, uint64_t *bytes);

/** Finds the accesses of one launch. The arguments are `arguments`, one pointer for each parameter, or the
 *  block `buffer`. NULL for the other. Pointers are the aligned words of eight bytes in the parameters,
 *  structs by value included, whose memory `range` knows. Each is two accesses: the byte that it points to, which
 *  is used, and the whole memory around it, which may be (CAI_SIM_MAY_READ, CAI_SIM_MAY_ACCESS). An array
 *  argument of Numba or numba-cuda-mlir is the bytes of its elements, by its shape and strides: one access; one for
 *  each part between gaps; or with more than 64 such parts the whole range, which may be used. Stores at most
 *  `capacity` of them, and returns how many there are. */
int32_t cai_kernel_accesses(const cai_kernel *kernel, const void *const *arguments, const void *buffer,
                            size_t buffer_bytes, cai_kernel_range range, void *context, cai_sim_access *out,
                            int32_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_KERNEL_H_INCLUDED */
