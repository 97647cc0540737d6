/* test_writing.c - the writer of sentences, against printf, in a unit that has nothing else of cai.h.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#define CAI_PRIV_WANT_ERRORS
#include "cai.h"
#include "cai_test.h"

static cai_error err;
static char expected[1024];

/* The message of cai_priv_error, and what printf writes of the same. */
#define CHECK_AS_PRINTF(...)                                                      \
    do {                                                                          \
        (void)snprintf(expected, sizeof expected, __VA_ARGS__);                   \
        CHECK_INT(cai_priv_error(&err, CAI_ERR_CUDA, __VA_ARGS__), CAI_ERR_CUDA); \
        CHECK_STR(err.message, expected);                                         \
    } while (0)

static void check_conversions(void)
{
    CHECK_AS_PRINTF("%s", "");
    CHECK_AS_PRINTF("a sentence");
    CHECK_AS_PRINTF("%s and %s, 100%%", "one", "two");
    CHECK_AS_PRINTF("[%.*s] [%.*s] [%.*s]", 2, "abcdef", 0, "abcdef", 9, "abcdef");
    CHECK_AS_PRINTF("%c%c", 'x', '%');
    CHECK_AS_PRINTF("%d %d %d %d", 0, -1, INT32_MAX, INT32_MIN);
    CHECK_AS_PRINTF("%ld %ld", 1234567890L, -1L);
    CHECK_AS_PRINTF("%lld %lld %lld", 0LL, (long long)INT64_MAX, (long long)INT64_MIN);
    CHECK_AS_PRINTF("%u %lu %llu", UINT32_MAX, 7UL, (unsigned long long)UINT64_MAX);
    CHECK_AS_PRINTF("%x %lx %llx %llx", 0xabcdefu, 16UL, (unsigned long long)UINT64_MAX, 0ULL);
    CHECK_AS_PRINTF("0x%llx %d %s %lu", 1ULL << 40, 3, "x", 5UL);
    (void)cai_priv_error(&err, CAI_ERR_CUDA, "%p %p", (void *)NULL, (void *)(uintptr_t)0xbeef);
    CHECK_STR(err.message, "0x0 0xbeef");
}

/* Every length around the end of a message. A cut one is full, and ends in "...". */
static void check_cuts(void)
{
    char text[300];
    size_t length;
    for (length = 230; length < 260; length++) {
        memset(text, 'm', length);
        text[length] = 0;
        memset(&err, 'x', sizeof err);
        (void)cai_priv_error(&err, CAI_ERR_CUDA, "%s", text);
        if (length > 239) {
            text[239] = 0;
            memcpy(text + 236, "...", 3);
        }
        CHECK_STR(err.message, text);
    }
}

static void check_fields(void)
{
    memset(&err, 'x', sizeof err);
    CHECK_INT(cai_priv_error(&err, CAI_PRIV_RULE(CAI_ERR_STREAM, 84), "no"), CAI_ERR_STREAM);
    CHECK_INT(err.code, CAI_ERR_STREAM);
    CHECK_INT(err.rule, 84);
    CHECK_INT(err.entry, CAI_ENTRY_STREAM);
    CHECK_INT(err.index, -1);
    CHECK_INT(err.native, 0);
    CHECK_INT(cai_priv_error(&err, CAI_ERR_MPI, "no"), CAI_ERR_MPI);
    CHECK_INT(err.rule, 0);
    CHECK_INT(err.entry, CAI_ENTRY_NONE);
    CHECK_INT(cai_priv_error(NULL, CAI_PRIV_RULE(CAI_ERR_MPI, 3), "no %d", 1), CAI_ERR_MPI);
}

/* The name comes before the message. All else of the error stays. */
static void check_before(void)
{
    cai_error all;
    char text[240];
    (void)cai_priv_error(&err, CAI_PRIV_RULE(CAI_ERR_STREAM, 71), "stream = 0");
    err.native = 7;
    err.index = 3;
    all = err;
    CHECK_INT(cai_priv_error_before(&err, CAI_ERR_STREAM, "mask", -1), CAI_ERR_STREAM);
    CHECK_STR(err.message, "mask: stream = 0");
    CHECK_INT(cai_priv_error_before(&err, CAI_ERR_STREAM, "arrays", 12), CAI_ERR_STREAM);
    CHECK_STR(err.message, "arrays[12]: mask: stream = 0");
    memcpy(err.message, all.message, sizeof all.message);
    CHECK(err.code == all.code && err.native == 7 && err.entry == all.entry && err.index == 3);
    CHECK_INT(err.rule, 71);
    memset(text, 'm', 235);
    text[235] = 0;
    (void)cai_priv_error(&err, CAI_ERR_CUDA, "%s", text);
    (void)cai_priv_error_before(&err, CAI_ERR_CUDA, "long", 0);
    CHECK_INT((int64_t)strlen(err.message), 239);
    CHECK(!strncmp(err.message, "long[0]: mmm", 12) && !strcmp(err.message + 235, "m..."));
    CHECK_INT(cai_priv_error_before(NULL, CAI_ERR_CUDA, "x", 0), CAI_ERR_CUDA);
}

static void run(void)
{
    check_conversions();
    check_cuts();
    check_fields();
    check_before();
}

CAI_TEST_MAIN(run)
