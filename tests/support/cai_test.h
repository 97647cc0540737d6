/* cai_test.h - the harness of the tests: count, compare, report. C99 and C++11.
 * SPDX-License-Identifier: MIT
 *
 * CHECK(condition), CHECK_INT, _UINT, _STR(actual, expected), CHECK_BYTES(actual, expected, size).
 * A failure prints file, line, both values and the note set by cai_test_note; CAI_TEST_MAIN(run)
 * prints "N checks" and returns 1 if one failed. */
#ifndef CAI_TEST_H
#define CAI_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAI_TEST_LIMIT = 200 /* failures, then the test stops */ };
static int64_t cai_test_checks, cai_test_failures;
static char cai_test_noted[400];

/* Says what the following checks are about; "" ends it. */
static inline void cai_test_note(const char *text)
{
    size_t length = strlen(text);
    if (length >= sizeof cai_test_noted) length = sizeof cai_test_noted - 1;
    memcpy(cai_test_noted, text, length);
    cai_test_noted[length] = 0;
}

static inline int cai_test_good(const char *file, int line, const char *what, int good)
{
    cai_test_checks++;
    if (!good) printf("%s:%d: %s: ", file, line, what);
    return good;
}

static inline int cai_test_close(void)
{
    printf("%s%s\n", cai_test_noted[0] ? "\n    in: " : "", cai_test_noted);
    fflush(stdout);
    if (++cai_test_failures < CAI_TEST_LIMIT) return 0;
    printf("too many failures\n");
    exit(1);
}

static inline int cai_test_true(const char *file, int line, const char *what, int good)
{
    if (cai_test_good(file, line, what, good)) return 1;
    printf("does not hold");
    return cai_test_close();
}

static inline int cai_test_int(const char *file, int line, const char *what, int64_t a, int64_t b)
{
    if (cai_test_good(file, line, what, a == b)) return 1;
    printf("is %lld, not %lld", (long long)a, (long long)b);
    return cai_test_close();
}

static inline int cai_test_uint(const char *file, int line, const char *what, uint64_t a,
                                uint64_t b)
{
    if (cai_test_good(file, line, what, a == b)) return 1;
    printf("is 0x%llx, not 0x%llx", (unsigned long long)a, (unsigned long long)b);
    return cai_test_close();
}

static inline int cai_test_str(const char *file, int line, const char *what, const char *a,
                               const char *b)
{
    const int same = a != NULL && b != NULL && strcmp(a, b) == 0;
    if (cai_test_good(file, line, what, same)) return 1;
    printf("\n    is  \"%s\"\n    not \"%s\"", a == NULL ? "NULL" : a, b == NULL ? "NULL" : b);
    return cai_test_close();
}

static inline int cai_test_bytes(const char *file, int line, const char *what, const void *a,
                                 const void *b, size_t size)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    size_t i;
    if (cai_test_good(file, line, what, memcmp(a, b, size) == 0)) return 1;
    for (i = 0; x[i] == y[i];) i++;
    printf("byte %lu is 0x%02x, not 0x%02x", (unsigned long)i, (unsigned)x[i], (unsigned)y[i]);
    return cai_test_close();
}

static inline int cai_test_end(void)
{
    printf("%lld checks\n", (long long)cai_test_checks);
    if (cai_test_failures) printf("%lld failed\n", (long long)cai_test_failures);
    return cai_test_failures != 0;
}

#define CHECK(c) cai_test_true(__FILE__, __LINE__, #c, (c) ? 1 : 0)
#define CHECK_INT(a, b) cai_test_int(__FILE__, __LINE__, #a, (int64_t)(a), (int64_t)(b))
#define CHECK_UINT(a, b) cai_test_uint(__FILE__, __LINE__, #a, (uint64_t)(a), (uint64_t)(b))
#define CHECK_STR(a, b) cai_test_str(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_BYTES(a, b, size) cai_test_bytes(__FILE__, __LINE__, #a, (a), (b), (size))
#define CAI_TEST_MAIN(run) \
    int main(void) { run(); return cai_test_end(); }
#endif
