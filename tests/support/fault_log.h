/* fault_log.h - lines of the log of a simulated CUDA. Its includer has operations[OPERATIONS], the names of all calls.
 * SPDX-License-Identifier: MIT */
#if !defined(FAULT_LOG_H_INCLUDED)
#define FAULT_LOG_H_INCLUDED

static int32_t operation_of(const char *line)
{
    int32_t i;
    for (i = 0; i < OPERATIONS; i++) {
        const size_t n = strlen(operations[i]);
        if (strncmp(line, operations[i], n) == 0 && (line[n] == ' ' || line[n] == '\n')) return i;
    }
    CHECK_STR(line, "a call");
    return 0;
}

static int is(const char *line, const char *operation)
{
    return strcmp(operations[operation_of(line)], operation) == 0;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* The query of a device that is not there tells that there are no more, and is no failure. */
static int failed(const char *line)
{
    const char *bang = strchr(line, '!');
    if (!bang || bang >= next_line(line)) return 0;
    return strncmp(line, "device_context", 14) != 0 || strncmp(bang, "! 101", 5) != 0;
}

/* Lines of one operation; `bad`: those that failed alone. */
static int32_t lines_of(const char *log, const char *operation, int bad)
{
    int32_t n = 0;
    for (; *log; log = next_line(log)) n += is(log, operation) && (!bad || failed(log));
    return n;
}

#endif /* FAULT_LOG_H_INCLUDED */
