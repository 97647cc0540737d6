/* calls_of_cai.h - checks of a call of cai: it succeeds, or it is refused in these words.
 * SPDX-License-Identifier: MIT
 *
 * Include after cai.h and cai_test.h, where the test has declared `static cai_error err`, which its calls get. */
#ifndef CALLS_OF_CAI_H
#define CALLS_OF_CAI_H

#define GOOD(call) good(__FILE__, __LINE__, #call, (call))
#define REFUSED(call, status, words) refused(__FILE__, __LINE__, #call, (call), (status), (words))

static void good(const char *file, int line, const char *what, cai_status status)
{
    if (!cai_test_int(file, line, what, status, CAI_OK)) printf("    %s\n", err.message);
}

static void refused(const char *file, int line, const char *what, cai_status status, cai_status expected,
                    const char *words)
{
    cai_test_int(file, line, what, status, expected);
    cai_test_int(file, line, what, err.code, expected);
    if (!cai_test_true(file, line, what, strstr(err.message, words) != NULL)) printf("    %s\n", err.message);
    memset(&err, 0, sizeof err);
}

#endif
