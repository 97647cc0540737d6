/* driver.h - how the drivers of the oracles read a request: decimal integers on a line
 * SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static char line[16384];

/* A request that cannot be answered ends the program. */
static void fail(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    exit(2);
}

/* The next integer, -2^63 to 2^64 - 1, modulo 2^64. */
static uint64_t next_number(char **at)
{
    char *end = *at;
    int negative = 0;
    uint64_t value;
    while (*end == ' ') end++;
    if (*end == '-') {
        negative = 1;
        end++;
    }
    if (*end < '0' || *end > '9') fail("a number is missing");
    value = (uint64_t)strtoull(end, at, 10);
    return negative ? 0 - value : value;
}
