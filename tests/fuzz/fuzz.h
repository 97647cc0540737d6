/* fuzz.h - what the fuzz targets share: MUST, storage that must stay untouched, errors. */

#ifndef CAI_FUZZ_H_INCLUDED
#define CAI_FUZZ_H_INCLUDED

#include "cai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What holds whatever the input is. A fuzzer takes the trap for a crash. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) broken(__FILE__, __LINE__, #condition);                                  \
    } while (0)

/** Before functions that judge. Their branches are not what is tested, so no coverage is measured there. */
#if defined(__clang__)
#define JUDGE __attribute__((noinline, no_sanitize("coverage")))
#else
#define JUDGE
#endif

enum { FILL = 0xA5 }; /* in storage that must stay untouched */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    __builtin_trap();
}

JUDGE static int is_untouched(const void *memory, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)memory;
    return size == 0 || (bytes[0] == FILL && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/** An error is complete and agrees with the status; without one `err` is untouched. */
JUDGE static void check_error(cai_status status, const cai_error *err)
{
    if (status == CAI_OK) {
        MUST(is_untouched(err, sizeof *err));
        return;
    }
    MUST(status > 0 && status < CAI_STATUS_COUNT && err->code == status && err->native == 0);
    MUST(err->entry >= 0 && err->entry < CAI_ENTRY_COUNT && err->index >= -1);
    MUST(memchr(err->message, 0, sizeof err->message) && err->message[0]);
    MUST(cai_status_name(status)[0]);
    MUST((err->entry == CAI_ENTRY_NONE) == !cai_entry_name(err->entry)[0]);
}

#endif /* CAI_FUZZ_H_INCLUDED */
