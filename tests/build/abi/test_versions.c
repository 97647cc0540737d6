/* test_versions.c - arrays between version 0.1 and this one, as shared objects of one program: who takes what.
 * SPDX-License-Identifier: MIT
 *
 * It prints the table of docs/results/candidate.md. */
#include "cai_test.h"
#include "versions.h"

static const char *const kinds[] = {"borrowed", "owned", "with a bit of a later version", "unreadable behind `owner`"};

/* Prints what the consumers of a version did with one kind of array. */
static void row(const versions_side *from, const versions_side *to, int consumers, int kind, int expected)
{
    const char *does = expected == ACCEPTED     ? "accept"
                       : from->abi != to->abi ? "refuse: `abi`"
                                              : "refuse: `must_understand`";
    printf("| CAI%c | CAI%c | %s | %d %s | %s |\n", (int)(from->abi & 0xff), (int)(to->abi & 0xff), kinds[kind],
           consumers, does, kind == BORROWED ? "nothing" : "once each");
}

/* One array from a producer to a consumer. It is released exactly once, whatever the consumer says. */
static void pass(const versions_side *from, const versions_side *to, int consumer, int kind, int expected)
{
    char note[200], why[256] = "";
    const int released = from->released();
    snprintf(note, sizeof note, "%s, from \"CAI%c\" to %s of \"CAI%c\"", kinds[kind], (int)(from->abi & 0xff),
             to->consumer(consumer), (int)(to->abi & 0xff));
    cai_test_note(note);
    CHECK_INT(to->take(consumer, from->describe, kind, why), expected);
    CHECK_INT(from->released() - released, kind != BORROWED);
    CHECK_INT(from->live(), 0);
    CHECK(expected != REFUSED || why[0]);
    if (from->abi != to->abi) CHECK(strstr(why, "abi") != NULL);
    else if (expected == REFUSED) CHECK(strstr(why, "must_understand") != NULL);
}

/* All kinds of arrays to all consumers. A hostile array only goes to those that must not look at it. */
static void matrix(const versions_side *from, const versions_side *to)
{
    int consumer, kind;
    for (kind = BORROWED; kind <= HOSTILE; ++kind) {
        const int later = kind == LATER && from == versions_new();
        const int expected = from != to || later ? REFUSED : ACCEPTED;
        if (from == to && kind == HOSTILE) continue;
        if (from == versions_old() && kind == LATER) continue; /* it has no such bits */
        for (consumer = 0; to->consumer(consumer); ++consumer) pass(from, to, consumer, kind, expected);
        row(from, to, consumer, kind, expected);
    }
}

static void run(void)
{
    const versions_side *old = versions_old(), *now = versions_new();
    CHECK_UINT(old->abi, 0x43414930u);
    CHECK(now->abi != old->abi);
    CHECK_UINT(now->size, old->size); /* a producer never writes beyond the struct of a consumer */
    matrix(old, old);
    matrix(old, now);
    matrix(now, old);
    matrix(now, now);
    cai_test_note("");
}

CAI_TEST_MAIN(run)
