/* versions.h - what the two shared objects of test_versions.c have: a producer and consumers of one version.
 * SPDX-License-Identifier: MIT */
#ifndef VERSIONS_H
#define VERSIONS_H

#include <stdint.h>

#if defined(_WIN32)
#define VERSIONS_API __declspec(dllexport)
#else
#define VERSIONS_API __attribute__((visibility("default")))
#endif

/* BORROWED, OWNED: an array of 2 x 3 floats. LATER: owned, with a bit of must_understand that nobody knows yet. HOSTILE:
 * owned, and all behind `owner` is 0xaa: who reads it goes astray. */
enum { BORROWED, OWNED, LATER, HOSTILE };
enum { ACCEPTED, REFUSED, OVERRUN /* the producer wrote beyond the consumer's struct */ };

/** Fills a struct of the consumer, as the exchange between types of Python does. */
typedef int (*versions_describe)(int kind, void *out);

typedef struct versions_side {
    uint32_t abi;
    uint32_t size; /* of the array */
    versions_describe describe;
    int (*take)(int consumer, versions_describe describe, int kind, char why[256]);
    const char *(*consumer)(int consumer); /* its name; NULL: there are no more */
    int (*live)(void);                     /* arrays of this producer that are not released */
    int (*released)(void);                 /* calls of release */
} versions_side;

#ifdef __cplusplus
extern "C" {
#endif
VERSIONS_API const versions_side *versions_old(void);
VERSIONS_API const versions_side *versions_new(void);
#ifdef __cplusplus
}
#endif

#endif
