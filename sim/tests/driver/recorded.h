/* recorded.h - a program of the tests on the recorder, in front of the simulated driver
 * SPDX-License-Identifier: MIT
 *
 * CMakeLists.txt starts it with the recorder as its libcuda.so.1, and with CAI_TEST_RECORD=FILE: the library that
 * plays the real driver. What the program checks of CUDA is said by that one, and what it checks of the simulation by
 * that of the recorder. So both must agree. */
#ifndef CAI_RECORDED_H_INCLUDED
#define CAI_RECORDED_H_INCLUDED

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cai_driver.h"
#include "cai_test.h"

static int recorded_is_on(void)
{
    return getenv("CAI_TEST_RECORD") != NULL;
}

static void recorded_begin(void)
{
    int32_t (*open)(const char *, char *, size_t);
    void *found = dlsym(RTLD_DEFAULT, "cai_driver_record");
    char text[200] = "";
    if (!recorded_is_on())
        return;
    CHECK(found != NULL);
    memcpy(&open, &found, sizeof open);
    if (!found || !open(getenv("CAI_TEST_RECORD"), text, sizeof text)) {
        CHECK_STR(text, "");
        exit(cai_test_end());
    }
}

/* The simulation followed every call. */
static void recorded_end(void)
{
    cai_driver_function function;
    int32_t i;
    for (i = 0; recorded_is_on() && cai_driver_function_get(i, &function); ++i)
        if (function.failed)
            CHECK_STR(function.name, "is not followed");
}

#endif /* CAI_RECORDED_H_INCLUDED */
