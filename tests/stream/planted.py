#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_stream.h, one at a time. Most name a stream, an event or a context after it may be gone. The
random programs of test_order.c must end on each of these, and threads.c too where an entry says so. The others end a
capture of another thread, and test_handles.c must find them.

    tests/stream/planted.py [--cc CC] [--programs N] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

One build of both has all defects, each switched on for a run of its own. Prints one line per defect: what was named. A
defect that is not found, or that does not apply to the header any more, is a failure, and so is anything wrong without
a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute, folders_of, judge_all, parser  # noqa: E402

# A word of the pool that nothing uses while the table is a whole one: the stream of some call before
KEPT = "call->pool->whole.self"
ASK = "{{ uint64_t now = 0; if ({0}) (void)cai_priv_ask_context(call, (uint64_t)(uintptr_t){0}, 0, &now); }}"
LOOK, LOOK_PLACE = ASK.format(KEPT), ASK.format("place->stream")

# What it is, where it is, what stands there instead, and the programs that must find it
DEFECTS = [
    ("kept alive: a look names the stream of the array", r"    if \(!call->gone\)\n        error = run->wait",
     rf"    {LOOK_PLACE}\n"
     r"    if (!call->gone)\n        error = run->wait", ("order", "sim", "thin")),
    ("kept alive: a look names the consumer's stream",
     r"    if \(!call->gone\)\n        error = run->wait \? (cuda->event_synchronize[\s\S]*?    head->event = point->event;\n)",
     rf"    {LOOK_PLACE}\n"
     r"    if (!call->gone)\n        error = run->wait ? \1    head->stream = point->stream;\n", ("order", "sim", "thin")),
    ("kept alive: the event is recorded as the list is looked at",
     r"    if \(!call->gone\)\n        error = run->wait \? (cuda->event_synchronize[\s\S]*?    head->event = point->event;\n)",
     r"    if (place->stream) (void)cuda->event_record(cuda->self, place->event, place->stream);\n"
     r"    place->stream = 0;\n    if (!call->gone)\n        error = run->wait ? \1    head->stream = point->stream;\n", ("order", "sim", "thin")),
    ("kept alive: an array names the consumer of the array before",
     r"    CAI_TRY\(cai_priv_record_point\(call, point\)\);\n    i = ",
     rf"    {LOOK}\n    {KEPT} = (void *)(uintptr_t)point->stream;\n"
     r"    CAI_TRY(cai_priv_record_point(call, point));\n    i = ", ("order", "sim")),
    ("end names the consumer of the exchange before", r"(    call->dead = 0;\n    first = cai_priv_record\(call, point\);)",
     rf"    {LOOK}\n    {KEPT} = (void *)(uintptr_t)ex->stream;\n\1", ("order", "sim")),
    ("end waits again for a producer of the exchange before",
     r"(        if \(!status\) edge->flags \|= CAI_PRIV_RETURNED;\n)",
     rf"\1        if ({KEPT} && !i) (void)cai_priv_stream_wait(call, (uint64_t)(uintptr_t){KEPT}, 0, point->event);\n"
     rf"        {KEPT} = (void *)(uintptr_t)(cai_priv_is_handle(edge->stream) ? edge->stream : 0);\n", ("order", "sim")),
    ("finish names a producer's stream after the release", r"    if \(group\.count && cai_priv_guarded_look",
     r"    if (ex->edge_count) (void)cai_priv_ask_context(&call, ex->edges[0].stream, 0, &ex->edges[0].context);\n"
     r"    if (group.count && cai_priv_guarded_look", ("order",)),
    ("begin names a stream of the begin before",
     r"    CAI_TRY\(cai_priv_find_ids\(call, ex\)\);\n    return cai_priv_stream_carry_out\(plan\);",
     rf"    {LOOK}\n    {KEPT} = (void *)(uintptr_t)ex->edges[0].stream;\n"
     r"    CAI_TRY(cai_priv_find_ids(call, ex));\n    return cai_priv_stream_carry_out(plan);", ("order", "sim")),
    ("forget leaves the idle events", r"    removed = cai_priv_events_remove\(&call, context, 0\);", r"    removed = CAI_OK;",
     ("order",)),
    ("forget leaves the arrays",
     r"    if \(cai_priv_guarded_look\(&pool->waiting\)\)\n(        \(void\)cai_priv_keepalive_run\(pool, &of)",
     r"    if (0)\n\1", ("order",)),
    ("forget does not wait", r"of_context = \{0, 1, 0\};", r"of_context = {0, 0, 0};", ("order",)),
    ("finish releases in the mode of the thread", r"call->relaxed \? 0 : cai_priv_mode_relax\(call->cuda, &call->mode\)", r"1 ? 0 : call->mode",
     ("captures",)),
    ("a thread that needs a place releases in its own mode", r" && cai_priv_let_one_go\(pool\)\) continue;",
     r" && cai_priv_let_go(pool)) continue;", ("captures",)),
]  # fmt: skip


class Streams(Subject):
    """The random programs of test_order.c, threads.c on the simulation and on its own table, and test_handles.c."""

    def build(self, options, tree, folder):
        threads = HERE.parent / "threads" / "threads.c"
        return (compile_with(options, "-O1", *folders_of(tree), HERE / "test_order.c", "-o", folder / "order", "-ldl")
                or compile_with(options, "-O1", *folders_of(tree), threads, "-o", folder / "threads")
                or compile_with(options, "-O1", *folders_of(tree), HERE / "test_handles.c", "-o", folder / "handles", "-ldl"))  # fmt: skip

    def run(self, options, tree, folder, environment, defect):
        commands = {"order": [folder / "order", options.programs], "sim": [folder / "threads", "sim", 8, 500],
                    "thin": [folder / "threads", "thin", 8, 4000], "captures": [folder / "handles"]}  # fmt: skip
        seen = []
        for name in commands if defect is NONE else defect.more:
            status, output = execute(commands[name], 300, environment)
            gone = re.search(r"\w+ \(call \d+\) is given .*?destroyed|[1-9]\d* named after that|freed_with: is [^\n]*", output)
            if defect is NONE and status:
                return False, f"WRONG: {name}: {output}"
            if defect is not NONE and (status in (0, None) or not gone):
                return False, f"NOT FOUND by {name} ({status}): {output[-800:]}"
            seen.append(f"{name}: {gone.group(0)}" if gone else name)
        return True, "; ".join(seen) if defect is not NONE else f"nothing is wrong: {', '.join(seen)}"


def main():
    made = parser(__doc__)
    made.add_argument("--programs", type=int, default=100, metavar="N", help="random programs of test_order.c")
    defects = [Defect(name, "cai_stream.h", find, replace, more) for name, find, replace, more in DEFECTS]
    return judge_all(made.parse_args(), defects, Streams())


if __name__ == "__main__":
    sys.exit(main())
