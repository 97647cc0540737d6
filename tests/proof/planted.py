#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects of order in cai_stream.h, cai_emm.h, cai_manager.h, cai_dlpack.h and cai_storage.h, one at a time.
The programs of the proof must show each.

    tests/proof/planted.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

One build of the proof has all defects, each switched on for a run of its own, without mutants: cai_check must find a
race in some program, or the simulation a call with a stream or an event that is gone. Prints one line per defect: how
many programs of the first family that shows it do so, and the first of them. A defect that no program shows, or that does not apply to the headers any more, is a
failure, and so is a wrong result without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute, folders_of, judge_all, parser  # noqa: E402

STREAM, EMM, MANAGER, DLPACK, STORAGE = "cai_stream.h", "cai_emm.h", "ext/cai_manager.h", "ext/cai_dlpack.h", "ext/cai_storage.h"

# What it is, in which header, where it is, what stands there instead
DEFECTS = [
    # the beginning of an exchange
    ("begin waits for the first producer only", STREAM, r"(if \(!\(edge->flags & CAI_PRIV_FORWARD\))\) continue;",
     r"\1 || i) continue;"),
    ("begin records on the consumer's stream", STREAM,
     r"point = \{edge->stream, edge->context, edge->context_id, 0\};",
     r"point = {ex->stream, ex->context, ex->context_id, 0};"),
    ("begin does not wait for events", STREAM,
     r"for \(i = 0; i < plan->event_count; \+\+i\) \{\n        const", r"for (; 0;) {\n        const"),
    ("begin waits for the first event only", STREAM,
     r"for \(i = 0; i < plan->event_count; \+\+i\) \{\n        const",
     r"for (i = 0; i < (plan->event_count > 0); ++i) {\n        const"),
    ("a mask is ignored", STREAM, r"k & 1 \? arrays\[k >> 1\]->mask : ", r"k & 1 ? NULL : "),
    ("a mask stands for its array", STREAM, r"arrays\[k >> 1\]->mask : arrays\[k >> 1\];",
     r"arrays[k >> 1]->mask : arrays[k >> 1]->mask ? arrays[k >> 1]->mask : arrays[k >> 1];"),
    ("an array with a mask is in order if its own stream is the consumer's", STREAM,
     r"array->must_understand \| \(uintptr_t\)array->mask\) return 0;", r"array->must_understand) return 0;"),
    ("streams 1 of two contexts are one", STREAM,
     r"\(cai_priv_is_handle\(stream\) \|\| edge->context == context\)", r"1"),
    ("streams 1 and 2 are those of the current context", STREAM,
     r"    \*context = info\.context;\n    if \(\*context\) return CAI_OK;",
     r"    *context = call->current;\n    if (*context) return CAI_OK;"),
    ("streams 1 and 2 are those of the primary context", STREAM,
     r"    \*context = info\.context;\n([\s\S]*?)    here = here == info\.device;",
     r"    *context = 0;\n\1    here = 0;"),
    ("memory without a context is of the primary one", STREAM,
     r"    here = here == info\.device;", r"    here = 0;"),
    ("unknown work is not in the current context", STREAM,
     r"    if \(call->current\) CAI_TRY\(cai_priv_add_context\(plan, call->current\)\);\n", r""),
    ("unknown work is not in primary contexts", STREAM, r"        if \(context\) CAI_TRY\(cai_priv_add_context"
     r"\(plan, context\)\);\n", r""),
    ("unknown work is not in primary contexts of other devices", STREAM,
     r"        if \(context\) CAI_TRY\(cai_priv_add_context",
     r"        if (context && device == 1) CAI_TRY(cai_priv_add_context"),
    ("unknown work, legacy: not in the primary context", STREAM,
     r"    if \(here && other && primary != \*context\) \*other = primary;\n", r""),
    ("the consumer's stream 1 is that of any context", STREAM,
     r"stream == ex->stream && context == ex->context && ", r"stream == ex->stream && "),
    ("the legacy stream is in order with every stream", STREAM,
     r"if \(stream == ex->stream && context == ex->context && ex->options\.mode != CAI_MODE_HOST\)",
     r"if (stream == CAI_STREAM_LEGACY && ex->options.mode != CAI_MODE_HOST)"),
    ("stream 2 of another thread is taken for this one's", STREAM,
     r"    if \(thread == here\) return CAI_OK;", r"    return CAI_OK;"),
    ("pending work that is not known is trusted", STREAM, r"if \(options->unknown == CAI_UNKNOWN_ASSUME_IDLE\)",
     r"if (options->unknown != CAI_UNKNOWN_STREAM)"),
    ("the context is not synchronized", STREAM,
     r"for \(i = 0; i < plan->context_count; \+\+i\)\n        CAI_TRY\(cai_priv_stream_block",
     r"for (; 0;)\n        CAI_TRY(cai_priv_stream_block"),
    ("host mode: begin does not wait", STREAM, r"(CAI_TRY\(cai_priv_blame\(call, edge->array, cai_priv_follow"
     r"\(call, ex, edge\)\)\);\n        )else", r"\1else if (0)"),
    ("host mode: begin does not wait for events", STREAM,
     r"(ex->context, event\)\);\n        )else CAI_TRY", r"\1else if (0) CAI_TRY"),
    ("begin waits for nothing in a capture", STREAM, r"(if \(!\(edge->flags & CAI_PRIV_FORWARD\))\) continue;",
     r"\1 || edge->capture) continue;"),
    ("begin in a capture waits for the first producer only", STREAM,
     r"(if \(!\(edge->flags & CAI_PRIV_FORWARD\))\) continue;", r"\1 || (i && edge->capture)) continue;"),
    # its end
    ("end gives no edge back in a capture", STREAM, r"        if \(edge->flags & CAI_PRIV_LOST\) continue;\n",
     r"        if (edge->flags & CAI_PRIV_LOST || ex->capture) continue;\n"),
    ("end does not record", STREAM,
     r"    first = cai_priv_record\(call, point\);",
     r"    point->event = cai_priv_event_take(call->pool, ex->context_id);\n"
     r"    if (!point->event) first = cai_priv_event_create(call, ex->context, &point->event);"),
    ("end leaves the second producer out", STREAM,
     r"if \(edge->flags & CAI_PRIV_LOST\) continue;(\n        status = cai_priv_stream_wait)", r"if (edge->flags & CAI_PRIV_LOST || i == 1) continue;\1"),
    ("end makes the consumer wait", STREAM, r"cai_priv_stream_wait\(call, edge->stream, edge->context, "
     r"point->event\)", r"cai_priv_stream_wait(call, ex->stream, ex->context, point->event)"),
    ("end leaves out producers of events", STREAM, r"sync == CAI_SYNC_STREAM \? CAI_PRIV_FORWARD : 0;",
     r"sync == CAI_SYNC_STREAM ? CAI_PRIV_FORWARD : CAI_PRIV_LOST;"),
    ("end does nothing where the work failed", STREAM,
     r"else if \(ex->edge_count\) ended = cai_priv_end_on_device", r"else if (ex->edge_count && !status) ended = "
     r"cai_priv_end_on_device"),
    ("host mode: end does not wait", STREAM, r"if \(ex->options\.mode == CAI_MODE_HOST\) ended = "
     r"cai_priv_end_on_host\(&call, ex\);\n    else if", r"if (ex->options.mode == CAI_MODE_HOST) ex->flags |= "
     r"CAI_PRIV_SETTLED;\n    else if"),
    # events of the pool
    ("an event goes back to the pool before it is waited for", STREAM,
     r"    status = cai_priv_stream_wait\(call, ex->stream, ex->context, point\.event\);\n"
     r"    return cai_priv_event_give\(call, &point, edge->capture != 0, status\);",
     r"    status = cai_priv_event_give(call, &point, edge->capture != 0, CAI_OK);\n"
     r"    return status ? status : cai_priv_stream_wait(call, ex->stream, ex->context, point.event);"),
    ("an event of the pool is given out twice", STREAM,
     r"(event = pool->idle\[i\]\.event;\n) *pool->idle\[i\] = pool->idle\[--pool->idle_count\];", r"\1"),
    ("an event is recorded only if it is new", STREAM,
     r"(    if \(!point->event\) CAI_TRY\(cai_priv_event_create)", r"    if (point->event) return CAI_OK;\n\1"),
    # releases
    ("an array that is freed at once is released at once", STREAM,
     r"    if \(!\(array->flags & CAI_ORDERED_FREE\) && array->size && !in_capture\) return 0;\n", r""),
    ("an array without a back edge is released at once", STREAM,
     r"if \(member->sync != CAI_SYNC_STREAM && member->sync != CAI_SYNC_EVENT\) return 0;",
     r"if (member->sync != CAI_SYNC_STREAM && member->sync != CAI_SYNC_EVENT) return 1;"),
    ("an array with an event alone is released at once", STREAM,
     r"return !missing && \(found", r"return !missing && (!member->stream || found"),
    ("an array without a way back is released at once", STREAM,
     r"    if \(member->flags & CAI_NO_BACK_EDGE\) return 0;\n", r""),
    ("an array after no order is released at once", STREAM,
     r"    if \(ex->options\.mode == CAI_MODE_IGNORE\) return 0;\n",
     r"    if (ex->options.mode == CAI_MODE_IGNORE) return 1;\n"),
    ("kept alive: released by the next poll or drain", STREAM,
     r"    if \(!call->gone && !cai_priv_context_lives\(cuda, place->context, place->context_id\)\) \{\n",
     r"    if (cuda) {\n"),
    ("kept alive: an event that is not done passes", STREAM,
     r"    if \(error == 600\) return 0;\n", r"    if (error == 600) return 1;\n"),
    ("kept alive: drain does not wait", STREAM, r"wait \? cuda->event_synchronize\(cuda->self, place->event\)\n",
     r"wait ? 0\n"),
    ("kept alive: the event is not recorded", STREAM,
     r"    return cai_priv_record\(call, point\);\n",
     r"    point->event = cai_priv_event_take(call->pool, point->context_id);\n"
     r"    return point->event ? CAI_OK : cai_priv_event_create(call, point->context, &point->event);\n"),
    ("kept alive: the arrays behind the first have no event", STREAM,
     r"        if \(!place->joined\) has =", r"        has = 1;\n        if (!place->joined) has ="),
    ("kept alive: a full list does not wait", STREAM,
     r"    if \(!call->gone && !cai_priv_context_lives",
     r"    if (run->wait && run->only_oldest) return 1;\n    if (!call->gone && !cai_priv_context_lives"),
    # streams that are gone
    ("finish names a producer's stream after the release", STREAM,
     r"    if \(group\.count && cai_priv_guarded_look", r"    if (ex->edge_count) (void)cai_priv_ask_context(&call, "
     r"ex->edges[0].stream, 0, &ex->edges[0].context);\n    if (group.count && cai_priv_guarded_look"),
    # exports and events
    ("export leaves the second stream out", STREAM, r"if \(!status && stream != ex->stream\)",
     r"if (!status && stream != ex->stream && plan->item != 1)"),
    ("export makes no order", STREAM, r"CAI_TRY\(cai_priv_join\(&plan, pending, count\)\);", r"(void)pending;"),
    ("cai_stream_order is the wrong way round", STREAM,
     r"\"cai_stream_order\", after, NULL, err\)\);\n    return cai_priv_join\(&plan, &before, 1\);",
     r'"cai_stream_order", before, NULL, err));\n    return cai_priv_join(&plan, &after, 1);'),
    ("detach does not record", STREAM, r"CAI_TRY\(cai_priv_record_point\(&call, &point\)\);",
     r"if (!point.context) CAI_TRY(cai_priv_ask_context(&call, point.stream, 0, &point.context));\n"
     r"    CAI_TRY(cai_priv_ask_context_id(&call, point.context, &point.context_id));\n"
     r"    point.event = cai_priv_event_take(pool, point.context_id);\n"
     r"    if (!point.event) CAI_TRY(cai_priv_event_create(&call, point.context, &point.event));"),
    # memory
    ("manager: a reference that is not the last makes no order", MANAGER, r"int ask = manager->cuda && ", r"int ask = 0 && "),
    ("manager: the last free does not come after the others", MANAGER, r"if \(!defers && !pinned\) defers = cai_priv_mem_follow.*", r""),
    ("manager: an event does not come after the one before", MANAGER,
     r"const int apart = cai_priv_mem_has_event[^;]*;", r"const int apart = 0;"),
    ("manager: pinned memory does not wait", MANAGER, r"call->idle \? CAI_OK : cai_priv_mem_wait_stream\(call, stream\);", r"CAI_OK;"),
    ("manager: memory is freed in the legacy stream", MANAGER, r"(hooks->device_free\(hooks->ctx, ptr, bytes, cai_stream_to_cuda\()stream\)",
     r"\1CAI_STREAM_LEGACY)"),
    ("an array's event is not waited for", EMM, r"if \(!error && by_event\) error = cuda->stream_wait_event[^;]*;", r""),
    ("an array whose work is not known is freed at once", MANAGER, r"wait = !cai_priv_mem_wait_contexts\(call, contexts\);",
     r"wait = contexts != 0;"),
    # both in one call
    ("finish releases at once", STREAM, r"if \(cai_priv_at_once\(ex, array, ex->capture != 0\)\) return", r"if (1) return"),
    # DLPack, both ends
    ("dlpack: an import says that the deleter frees in the order of its stream", DLPACK,
     r"&how, padded, CAI_NO_BACK_EDGE, out", r"&how, padded, CAI_ORDERED_FREE, out"),
    ("dlpack: the deleter makes no order", DLPACK, r"if \(storage->release && !storage->release\(storage\)\) return; /\* .*", r""),
    ("dlpack: the deleter releases at once", DLPACK, r"    if \(error && !cai_priv_is_dead\(error\)\) return 0;\n", r""),
    ("dlpack: the host does not wait", DLPACK, r"return wait \? cai_priv_dlpack_wait\(at\) : 600;", r"return wait ? 0 : 600;"),
    ("dlpack: the array's stream does not wait", DLPACK,
     r"return !cuda->stream_wait_event\(cuda->self, array->stream, at->event\);", r"return 1;"),
    ("dlpack: the export makes no order", DLPACK, r"at->stream \? 1 : 0, stream", r"0, stream"),
    # storages
    ("storage: copies are in the legacy stream", STORAGE, r"\(uint64_t\)to->hi, s->options\.home\);",
     r"(uint64_t)to->hi, CAI_STREAM_LEGACY);"),
    ("storage: copies by rows are in the legacy stream", STORAGE, r"cai_transfer_copy\(&plan, cuda, s->options\.home, err\);",
     r"cai_transfer_copy(&plan, cuda, CAI_STREAM_LEGACY, err);"),
    ("storage: the host does not wait", STORAGE, r"if \(!access->stream\) return cai_priv_home_wait\(s, err\);",
     r"if (!access->stream) return CAI_OK;"),
    ("storage: the host does not wait for a copy", STORAGE, r"    \(void\)cai_priv_storage_pending\(s, cuda != NULL\); /.*", r""),
    ("storage: home does not wait for an access", STORAGE, r"access->ordered = !stream;", r"access->ordered = 1;"),
    ("storage: the release of an export makes no order", STORAGE,
     r"error = cai_priv_export_order\(s, work\);", r"error = 0;"),
    ("storage: the release of an export on a default stream makes no order", STORAGE,
     r"work->stream == s->options\.home\)\)", r"!cai_priv_is_handle(work->stream)))"),
    ("storage: the source of an assignment does not wait for the copy", STORAGE,
     r"    cai_array_release\(&reading\);\n", r"    reading.sync = CAI_SYNC_NONE;\n    cai_array_release(&reading);\n"),
    ("storage: the copy of an assignment does not wait for the source", STORAGE,
     r"from->options\.pool \? stream : 0, &reading, err\)\);",
     r"from->options.pool ? from->options.home : 0, &reading, err));"),
    ("storage: an export is ordered after nothing", STORAGE,
     r"(CAI_TRY\(cai_exchange_begin_with\(&access->exchange, s->options\.pool, list)",
     r"list[0]->sync = CAI_SYNC_NONE;\n    \1"),
    ("storage: a given array's work is not waited for", STORAGE,
     r"    if \(on_host\) list\[count\+\+\] = on_host;\n    if \(on_device\) list",
     r"    if (on_host) list[count++] = on_host;\n    if (on_device) on_device->sync = CAI_SYNC_NONE;\n    if (on_device) list"),
]  # fmt: skip


class Proof(Subject):
    """The programs of the proof."""

    def build(self, options, tree, folder):
        sources = sorted(HERE.glob("*.c")) + [tree / "sim" / name for name in ("cai_check.c", "cai_sim.c")]
        return compile_with(options, "-O1", *folders_of(tree), *sources, "-o", folder / "proof")

    def run(self, options, tree, folder, environment, defect):
        status, output = execute([folder / "proof", "--no-mutants", "--stop"], 300, environment)
        shown = re.findall(r"^(.*): \d+ interleavings, .*\n    WRONG: (.*)$", output, re.M)
        races = [one for one in shown if one[1].startswith("race") or "leaves undefined" in one[1]]
        if status not in (0, 1):
            return False, f"FAILED ({status}): {output}"
        if defect is NONE:
            return status == 0, "nothing is wrong" if status == 0 else f"WRONG: {output}"
        return bool(races), f"{len(races)} programs: {races[0][0]}: {races[0][1]}" if races else f"NOT FOUND: {shown}"


def main():
    defects = [Defect(name, header, *change) for name, header, *change in DEFECTS]
    return judge_all(parser(__doc__).parse_args(), defects, Proof())


if __name__ == "__main__":
    sys.exit(main())
