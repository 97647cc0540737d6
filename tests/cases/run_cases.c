/* run_cases.c - the conformance cases of cai_stream.h: streams.txt and pointers.txt.
 * SPDX-License-Identifier: MIT
 *
 *     run_cases [--verbose] [--self-test] [--only ID] file...
 *
 * The files are described in README.md. Exit status 1 if a case failed, 2 if a file cannot be understood.
 * --self-test alters what the files expect, one line at a time, and fails where an alteration goes
 * unnoticed. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"

#include "caller_per_thread.h"
#include "runner.h"

static const call_entry no_calls[] = {{NULL, NULL}};
static const plain_entry no_plains[] = {{NULL, NULL}};

static void nothing_with_words(script_words *in)
{
    (void)in;
}

static void nothing_with_text(char *text, size_t capacity)
{
    (void)text;
    (void)capacity;
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    static const runner r = {"run_cases",        no_calls,           no_plains,         nothing_with_words,
                             nothing_with_words, nothing_with_words, nothing_with_text, nothing};
    return run_main(argc, argv, &r);
}
