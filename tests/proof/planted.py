#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects of order in cai_stream.h and cai_emm.h, one at a time; the programs of the proof must show each.

    tests/proof/planted.py [--cc CC] [--root FOLDER] [--only TEXT] [--jobs N]

Each copy of the headers with one defect is compiled with the proof, which is run without mutants: cai_check must
find a race in some program. Prints one line per defect: how many programs of the first family with a race have
one, and the first of them. A defect that no program shows, or that does not apply to the headers any more, is a
failure, and so is a wrong result without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from planting import TESTS, compile_with, copy_headers, execute, judge_all, parser  # noqa: E402

STREAM, EMM = "cai_stream.h", "cai_emm.h"

# What it is, in which header, where it is, what stands there instead
DEFECTS = [
    # the beginning of an exchange
    ("begin waits for the first producer only", STREAM, r"(if \(!\(edge->flags & CAI_PRIV_FORWARD\))\) continue;",
     r"\1 || i) continue;"),
    ("begin records on the consumer's stream", STREAM,
     r"cai_priv_record\(call, edge->stream, edge->context, retire, &event\)",
     r"cai_priv_record(call, ex->stream, ex->context, retire, &event)"),
    ("begin does not wait for events", STREAM, r"for \(i = 0; i < plan->event_count; \+\+i\) \{", r"for (; 0;) {"),
    ("begin waits for the first event only", STREAM, r"for \(i = 0; i < plan->event_count; \+\+i\) \{",
     r"for (i = 0; i < (plan->event_count > 0); ++i) {"),
    ("a mask is ignored", STREAM, r"k & 1 \? arrays\[k >> 1\]->mask : ", r"k & 1 ? NULL : "),
    ("a mask stands for its array", STREAM, r"arrays\[k >> 1\]->mask : arrays\[k >> 1\];",
     r"arrays[k >> 1]->mask : arrays[k >> 1]->mask ? arrays[k >> 1]->mask : arrays[k >> 1];"),
    ("an array with a mask is in order if its own stream is the consumer's", STREAM,
     r"sizeof \*array \|\| array->mask\) return 0;", r"sizeof *array) return 0;"),
    ("streams 1 of two contexts are one", STREAM,
     r"\(cai_priv_is_handle\(stream\) \|\| edge->context == context\)", r"1"),
    ("streams 1 and 2 are those of the current context", STREAM,
     r"    \*context = call->current;\n    if \(cuda->pointer_info\)",
     r"    *context = call->current;\n    if (cuda) return CAI_OK;\n    if (cuda->pointer_info)"),
    ("streams 1 and 2 are those of the primary context", STREAM,
     r"    if \(info\.context\) \*context = info\.context;\n    else if", r"    if"),
    ("the consumer's stream 1 is that of any context", STREAM,
     r"stream == ex->stream && context == ex->context && ", r"stream == ex->stream && "),
    ("the legacy stream is in order with every stream", STREAM,
     r"if \(stream == ex->stream && context == ex->context && ex->options\.mode != CAI_MODE_HOST\)",
     r"if (stream == CAI_STREAM_LEGACY && ex->options.mode != CAI_MODE_HOST)"),
    ("stream 2 of another thread is taken for this one's", STREAM,
     r"    if \(thread == here\) return CAI_OK;", r"    return CAI_OK;"),
    ("pending work that is not known is trusted", STREAM, r"if \(options->unknown == CAI_UNKNOWN_TRUST\)",
     r"if (options->unknown != CAI_UNKNOWN_STREAM)"),
    ("the context is not synchronized", STREAM, r"for \(i = 0; i < plan->context_count; \+\+i\)", r"for (; 0;)"),
    ("host mode: begin does not wait", STREAM, r"(CAI_TRY\(cai_priv_blame\(call, edge->array, cai_priv_follow"
     r"\(call, ex, edge\)\)\);\n        )else", r"\1else if (0)"),
    ("host mode: begin does not wait for events", STREAM,
     r"(plan->events\[i\]\)\);\n        )else CAI_TRY", r"\1else if (0) CAI_TRY"),
    # its end
    ("end does not record", STREAM,
     r"CAI_TRY\(cai_priv_record\(call, ex->stream, ex->context, ex->capture != 0, &event\)\);",
     r"CAI_TRY(cai_priv_event_take(call, ex->context, &event));"),
    ("end leaves the second producer out", STREAM,
     r"if \(edge->flags & CAI_PRIV_LOST\) continue;(\n        status = cai_priv_blame\(call, edge->array, "
     r"cai_priv_wait)", r"if (edge->flags & CAI_PRIV_LOST || i == 1) continue;\1"),
    ("end makes the consumer wait", STREAM, r"cai_priv_wait\(call, edge->stream, edge->context, event\)",
     r"cai_priv_wait(call, ex->stream, ex->context, event)"),
    ("end leaves out producers of events", STREAM, r"sync == CAI_SYNC_STREAM \? CAI_PRIV_FORWARD : 0\);",
     r"sync == CAI_SYNC_STREAM ? CAI_PRIV_FORWARD : CAI_PRIV_LOST);"),
    ("end does nothing where the work failed", STREAM,
     r"else if \(ex->edge_count\) ended = cai_priv_end_on_device", r"else if (ex->edge_count && !status) ended = "
     r"cai_priv_end_on_device"),
    ("host mode: end does not wait", STREAM, r"if \(ex->options\.mode == CAI_MODE_HOST\) ended = "
     r"cai_priv_end_on_host\(&call, ex\);\n    else if", r"if (ex->options.mode == CAI_MODE_HOST) ex->flags |= "
     r"CAI_PRIV_SETTLED;\n    else if"),
    # events of the pool
    ("an event goes back to the pool before it is waited for", STREAM,
     r"    status = cai_priv_wait\(call, ex->stream, ex->context, event\);\n"
     r"    return cai_priv_event_give\(call, edge->context, event, retire, status\);",
     r"    status = cai_priv_event_give(call, edge->context, event, retire, CAI_OK);\n"
     r"    return status ? status : cai_priv_wait(call, ex->stream, ex->context, event);"),
    ("an event of the pool is given out twice", STREAM, r"pool->idle\[i\] = pool->idle\[--pool->idle_count\];", r""),
    ("an event is recorded only if it is new", STREAM,
     r"(status = cai_priv_event_take\(call, context, event\);\n    )if \(!status\)",
     r"int known; *event = 0; known = call->pool->idle_count;\n    \1if (!status && !known)"),
    # releases
    ("an array without a back edge is released at once", STREAM,
     r"if \(sync != CAI_SYNC_STREAM && sync != CAI_SYNC_EVENT\) return 0;",
     r"if (sync != CAI_SYNC_STREAM && sync != CAI_SYNC_EVENT) return 1;"),
    ("an array with an event alone is released at once", STREAM,
     r"return !missing && \(found", r"return !missing && (!stream || found"),
    ("an array of the legacy stream, for want of another, is released at once", STREAM,
     r"    if \(member->sync == CAI_SYNC_UNKNOWN && ex->options\.unknown == CAI_UNKNOWN_LEGACY\) return 0;\n", r""),
    ("kept alive: released by the next poll or drain", STREAM,
     r"    if \(!node->event\) return 1;.*", r"    return 1;"),
    ("kept alive: an event that is not done passes", STREAM,
     r"if \(!error \|\| error == 600\) return !error;", r"if (!error || error == 600) return 1;"),
    ("kept alive: drain does not wait", STREAM, r"wait \? cuda->event_synchronize\(cuda->self, node->event\) :",
     r"wait ? 0 :"),
    ("kept alive: the event is not recorded", STREAM,
     r"return cai_priv_record\(call, stream, context, 0, &node->event\);",
     r"return cai_priv_event_take(call, context, &node->event);"),
    # exports and events
    ("export leaves the second stream out", STREAM, r"if \(stream != ex->stream\) CAI_TRY\(cai_priv_add_edge",
     r"if (stream != ex->stream && plan->item != 1) CAI_TRY(cai_priv_add_edge"),
    ("export makes no order", STREAM, r"CAI_TRY\(cai_priv_join\(&plan, pending, count\)\);", r"(void)pending;"),
    ("cai_stream_order is the wrong way round", STREAM,
     r"cai_priv_prepare\(&plan, &ex, pool, after, NULL, err\)\);\n    return cai_priv_join\(&plan, &before, 1\);",
     r"cai_priv_prepare(&plan, &ex, pool, before, NULL, err));\n    return cai_priv_join(&plan, &after, 1);"),
    ("detach does not record", STREAM, r"CAI_TRY\(cai_priv_record\(call, array->stream, context, 0, &event\)\);",
     r"CAI_TRY(cai_priv_event_take(call, context, &event));"),
    # memory
    ("emm: no order between streams", EMM, r"return look->last \? cai_priv_emm_order\(call, look->home, stream\)",
     r"return call ? CAI_OK : look->last ? cai_priv_emm_order(call, look->home, stream)"),
    ("emm: the order of streams is the wrong way round", EMM, r"return look->last \? cai_priv_emm_order",
     r"return !look->last ? cai_priv_emm_order"),
    ("emm: a reference that is not the last makes no order", EMM,
     r": cai_priv_emm_order\(call, stream, look->home\);", r": CAI_OK;"),
    ("emm: set_stream orders the wrong way round", EMM, r"look\.last = 1; /\* the new one waits \*/",
     r"look.last = 0;"),
    ("emm: another thread's free is not noticed", EMM,
     r"if \(call->settled \|\| call->gone \|\| look->lost\) return 0;", r"if (look) return 0;"),
    ("emm: memory of stream 2 of another thread is freed in this one's", EMM,
     r"look->home == CAI_STREAM_PER_THREAD && look->thread != call->thread\)\n", r"0)\n"),
    ("emm: an array's own stream is not looked at", EMM, r"    \*stream = array->stream;\n", r""),
    ("emm: an array's event is not waited for", EMM,
     r"if \(array->sync == CAI_SYNC_EVENT\) return cai_priv_emm_follow_event\(call, array->event, home\);",
     r"if (array->sync == CAI_SYNC_EVENT) return CAI_OK;"),
    ("emm: an array whose work is not known is freed at once", EMM,
     r"if \(array->sync == CAI_SYNC_UNKNOWN\) return CAI_ERR_STREAM;",
     r"if (array->sync == CAI_SYNC_UNKNOWN) return CAI_OK;"),
    ("emm: pinned memory does not wait", EMM,
     r"if \(pin\) cai_priv_emm_keep_first\(call, &status, cai_priv_emm_wait_stream.*", r""),
    ("emm: memory is freed in the legacy stream", EMM, r"block = cai_priv_emm_detach\(slot, stream\);\n    "
     r"cai_priv_emm_unlock\(emm\);\n    if \(pin\)", r"block = cai_priv_emm_detach(slot, CAI_STREAM_LEGACY);\n    "
     r"cai_priv_emm_unlock(emm);\n    if (pin)"),
]  # fmt: skip


def judge(options, folder, work, defect):
    """(good, what to print) of one defect: the proof over the headers with it."""
    header, find, replace = defect[1:] or (STREAM, "", "")
    binary = folder / "proof"
    if not copy_headers(options.root, folder, header, find, replace):
        return False, f"DOES NOT APPLY any more: {find}"
    sources = sorted(HERE.glob("*.c")) + [TESTS / "sim" / "cai_check.c", TESTS / "sim" / "cai_sim.c"]
    folders = [f"-I{at}" for at in (folder, TESTS, TESTS / "sim")]
    error = compile_with(options, "-O1", *folders, *sources, "-o", binary)
    if error:
        return False, f"FAILED: {error}"
    status, output = execute([binary, "--no-mutants", "--stop"], 300)
    shown = re.findall(r"^(.*): \d+ interleavings, .*\n    WRONG: (.*)$", output, re.M)
    races = [one for one in shown if one[1].startswith("race")]
    if status not in (0, 1):
        return False, f"FAILED ({status}): {output}"
    if not find:
        return status == 0, "nothing is wrong" if status == 0 else f"WRONG: {output}"
    return bool(races), f"{len(races)} programs: {races[0][0]}: {races[0][1]}" if races else f"NO RACE FOUND: {shown}"


if __name__ == "__main__":
    sys.exit(judge_all(parser(__doc__).parse_args(), DEFECTS, judge))
