#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects that show as arrays go from thread to thread, one at a time; turns.c must see each of them.

    tests/threads/planted.py [--rounds N] [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

turns.c runs on its own table (thin), on the simulation, or on both, as an entry says. Prints one line per defect: what
is wrong then. A defect that is not found, or that does not apply to the header any more, is a failure, and so is
anything wrong without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute, folders_of, judge_all, parser  # noqa: E402

STREAM, DLPACK, PLACE = "cai_stream.h", "ext/cai_dlpack.h", "ext/cai_place.h"

# What it is, in which file, what stands there, what stands there instead, and where it shows
DEFECTS = [
    ("what is parked is taken without the guard", STREAM,
     r"    cai_priv_guard_take\(&pool->guard\);\n    list = pool->parked;\n    pool->parked = NULL;\n    cai_priv_guard_give\(&pool->guard\);\n",
     r"    list = pool->parked;\n    cai_priv_back_off(100);\n    pool->parked = NULL;\n", "thin"),
    ("an event of the pool is taken without the guard", STREAM,
     r"    cai_priv_guard_take\(&pool->guard\);\n(    for \(i = pool->idle_count - 1;[^\n]*\n)(    if \(i >= 0\) \{\n)", r"\1    cai_priv_back_off(100);\n\2", "thin"),
    ("the consumer does not wait", STREAM, r"    status = cai_priv_stream_wait\(call, ex->stream, ex->context, point\.event\);\n    return cai_priv_event_give\(call, &point, edge->capture",
     r"    status = CAI_OK;\n    return cai_priv_event_give(call, &point, edge->capture", "sim"),
    ("the producer does not wait", STREAM, r"        status = cai_priv_stream_wait\(call, edge->stream, edge->context, point->event\);\n", r"        status = CAI_OK;\n", "sim"),
    ("an event of another thread is not waited for", PLACE, r": cai_priv_work_wait\(&work, stream, one->event\);", r": CAI_OK;", "sim"),
    ("an event is handed out before its record", PLACE, r"work\.cuda->event_record\(work\.cuda->self, made, stream\)", r"0", "sim"),
    ("a migration waits for nothing", PLACE, r"    CAI_TRY\(cai_exchange_begin_with\(&ex, pool, &array, 1, stream, &options, err\)\);\n    CAI_TRY\(cai_exchange_end\(&ex, CAI_OK, err\)\);\n",
     r"    (void)ex, (void)options;\n", "sim"),
    ("a deleter releases at once", DLPACK, r"    if \(at->storage\.array[^\n]*\n|    if \(cai_priv_dlpack_may_park\(at\)\) error = 709;\n", r"", "sim"),
    ("the consumer's stream is used in the deleter", DLPACK, r"    at->way = CAI_PRIV_DLPACK_BY_WAIT;\n    if \(at->graph \|\|", r"    at->way = CAI_PRIV_DLPACK_BY_STREAM;\n    if (at->graph ||", "thin"),
    ("what is parked is lost", DLPACK, r"    cai_priv_park\(at->pool, &at->parked\);\n", r"", "thin"),
    ("what is parked is counted after it is parked", DLPACK,
     r"    cai_priv_dlpack_count\(at->pool, storage->array\.nbytes, 1\);[^\n]*\n    cai_priv_park\(at->pool, &at->parked\);\n",
     r"    cai_priv_park(at->pool, &at->parked);\n    cai_priv_back_off(200);\n    cai_priv_dlpack_count(at->pool, storage->array.nbytes, 1);\n", "thin"),
    ("what a later export settles is parked twice", DLPACK, r"        \*link = found->next;\n", r"", "thin"),
]  # fmt: skip


class Threads(Subject):
    """turns.c, on both tables."""

    def build(self, options, tree, folder):
        return compile_with(options, "-O1", *folders_of(tree), HERE / "turns.c", "-o", folder / "turns")

    def run(self, options, tree, folder, environment, defect):
        seen = []
        for table in ("thin", "sim") if defect is NONE else (defect.more,):
            status, output = execute([folder / "turns", table, 4, options.rounds], 120, environment)
            last = (output.strip().splitlines() or [""])[-1]
            wrong = re.search(r"[1-9]\d* (stale|captures lost|left over|streams named|event errors|context errors|failures)", last)
            if defect is NONE and status:
                return False, f"WRONG: {table}: {output}"
            if defect is not NONE and status == 0:
                return False, f"NOT FOUND: {output[-300:]}"
            seen.append(f"{table}: {wrong.group(0) if wrong else f'status {status}, {last[:100]}'}")
        return True, "; ".join(seen) if defect is not NONE else "nothing is wrong"


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=4000, metavar="N", help="of each thread")
    return judge_all(arguments.parse_args(), [Defect(*defect) for defect in DEFECTS], Threads())


if __name__ == "__main__":
    sys.exit(main())
