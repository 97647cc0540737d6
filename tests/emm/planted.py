#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_emm.h, one at a time; model.c must see each of them within 10,000 operations.

    tests/emm/planted.py [--cc CC] [--operations N] [--seed N] [--root FOLDER] [--only TEXT]

Each copy of the header with one defect is compiled with model.c. Prints one line per defect: at which operation
it was found, and as what. A defect that is not found, or that does not apply to the header any more, is a failure,
and so is a difference without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from planting import TESTS, compile_with, copy_headers, execute, judge_all, parser  # noqa: E402

# What it is, where it is, what stands there instead
DEFECTS = [
    # handles
    ("a generation is not raised", r"look->slot->generation\+\+;", r""),
    ("generations are not compared", r"slot->generation == \(uint32_t\)\(memory >> 32\) && ", r""),
    ("a second free of an object is taken",
     r"slot->generation == \(uint32_t\)\(memory >> 32\) && slot->references && ", r"slot->source && "),
    ("an object is freed twice by its hook",
     r"(error = cai_priv_emm_call_free\(block->source.*\n)", r"(void)cai_priv_emm_call_free(block->source, "
     r"block->pair, block->ptr, block->size, block->stream);\n    \1"),
    ("a view does not keep its object", r"look->root->keeps\+\+;", r""),
    ("a view starts at its object's first byte", r"(view->address = look->slot->address) \+ offset;", r"\1;"),
    ("retain counts nothing", r"slot->references\+\+;", r""),
    ("slots come back in another order", r"slot->next = slot->emm->idle;\n    slot->emm->idle = slot;",
     r"slot->next = NULL;\n    if (slot->emm->idle) { struct cai_emm_slot *at = slot->emm->idle; "
     r"while (at->next) at = at->next; at->next = slot; } else slot->emm->idle = slot;"),
    ("a callback is left to the next object", r"slot->call = NULL;", r""),
    ("on_free of an object is not called", r"if \(root->call\) cai_priv_emm_call_back\(root\);", r""),
    # collected frees
    ("defer is lost: a free in a scope goes to the hook at once", r"\(emm->defer_depth \|\| slot->source->collects",
     r"(slot->source->collects"),
    ("CAI_EMM_COLLECT is not looked at", r"emm->defer_depth \|\| slot->source->collects\[slot->pair\]",
     r"emm->defer_depth"),
    ("a flush drops one", r"(    if \(slot\) emm->pending_first = slot->next;\n)",
     r"    if (slot && slot->next) slot = slot->next;\n\1"),
    ("the last comes first", r"if \(emm->pending_last\) emm->pending_last->next = slot;\n    else emm->pending_first"
     r" = slot;\n    emm->pending_last = slot;", r"slot->next = emm->pending_first;\n    if (!slot->next) "
     r"emm->pending_last = slot;\n    emm->pending_first = slot;"),
    ("a limit of frees is reached, not passed", r"emm->count\.pending > \(uint64_t\)",
     r"emm->count.pending >= (uint64_t)"),
    ("the limit of bytes is not looked at", r"emm->count\.pending_bytes > source->limit", r"0"),
    ("a scope does not flush at its end", r"if \(over\) cai_priv_emm_keep_first\(&call, &first, "
     r"cai_priv_emm_flush", r"if (0) cai_priv_emm_keep_first(&call, &first, cai_priv_emm_flush"),
    ("an inner scope ends them all", r"if \(depth\) emm->defer_depth--;", r"emm->defer_depth = 0;"),
    ("a flush in a scope", r"emm->defer_depth \|\| !emm->pending_first", r"!emm->pending_first"),
    ("pinned memory is collected", r"\(!pin && \(emm->defer_depth", r"((emm->defer_depth"),
    ("the host does not wait before it unpins", r"if \(pin\) cai_priv_emm_keep_first.*", r""),
    ("a free that fails is not counted", r"if \(!emm->count\.failed\+\+\) emm->count\.first_failure = error;", r""),
    ("pending is not reduced", r"emm->count\.pending--;", r""),
    ("bytes that live are not reduced", r"call->emm->count\.live_bytes -= root->block_size;", r""),
    ("while the process ends a free fails", r"if \(error == 4\) return CAI_OK; /\* R105 \*/", r""),
    # streams and contexts
    ("no order of streams", r"return look->last \? cai_priv_emm_order\(call, look->home, stream\)",
     r"return call ? CAI_OK"),
    ("the order of streams is the wrong way round", r"look->last \? cai_priv_emm_order", r"!look->last ? cai_priv_emm_order"),
    ("the hook gets the memory's stream", r"\{slot->source, slot->block, slot->block_size, stream, ",
     r"{slot->source, slot->block, slot->block_size, slot->stream ? slot->stream : stream, "),
    ("set_stream orders the other way round", r"look\.last = 1; /\* the new one waits \*/", r"look.last = 0;"),
    ("stream 2 of any thread", r"look->home == CAI_STREAM_PER_THREAD && look->thread != call->thread", r"0"),
    ("a collected free on stream 2 of any thread",
     r"if \(call->thread != thread\)(\s+return cai_priv_emm_say)", r"if (0)\1"),
    ("a free on a stream that captures", r"CAI_TRY\(cai_priv_emm_no_capture\(call, stream\)\);", r""),
    ("an allocation on a stream that captures", r"if \(wish->stream\) CAI_TRY\(cai_priv_emm_no_capture.*", r""),
    ("the context is not made current", r"return current == call->emm->context \? CAI_OK : cai_priv_emm_push.*",
     r"return CAI_OK;"),
    ("the context stays pushed", r"return call->entered \? cai_priv_emm_pop\(call, status\) : status;", r"return status;"),
    ("the first stream is not remembered", r"if \(!root->stream[^)]*\) \{", r"if (0) {"),
    # allocations
    ("no second try", r"if \(error == 2\) \{(\n        cai_priv_emm_make_room)", r"if (0) {\1"),
    ("a second try without flushing", r"cai_priv_emm_ignore\(cai_priv_emm_carry_out\(&quiet[^;]*;", r""),
    ("a second try without draining", r"if \(emm->pool\) .*cai_keepalive_drain\(emm->pool.*", r""),
    ("the size is not that of the block", r"slot->block_size = size;", r"slot->block_size = wish->size;"),
    ("an address is rounded down", r"\(\(uint64_t\)\(uintptr_t\)block \+ mask\) & ~mask", r"(uint64_t)(uintptr_t)block & ~mask"),
    ("a crooked address is taken", r"promised = wish->alignment < 256 \? wish->alignment : 256;", r"promised = 1;"),
    ("memory that cannot be given stays", r"if \(status\) cai_priv_emm_undo_outside.*", r""),
    ("a context that cannot be popped is no failure", r"return status \? status : cai_priv_emm_did\(call, error, \"context_pop\"\);",
     r"(void)error;\n    return status;"),
    ("memory is freed outside of its context", r"cai_priv_emm_enter\(&again\)", r"CAI_OK"),
    ("host memory has no flags", r"(hooks->host_alloc\([^;]*), wish->flags\)", r"\1, 0)"),
    # tables and resets
    ("memory is freed by the newest table", r"\{slot->source, slot->block, ", r"{slot->emm->source, slot->block, "),
    ("a reset does not count", r"emm->epoch\+\+;", r""),
    ("after a reset nothing is initialized", r"emm->ready = NULL;", r""),
    ("a reset leaves the other tables out", r"if \(source != emm->source\) cai_priv_emm_reset_table.*", r""),
    ("a reset leaves what no hook takes", r"!source->hooks\.reset \|\| source->from_cuda\[slot->pair\]", r"0"),
    ("a table is initialized each time", r"source->ready = 1;", r""),
    ("memory_info is asked in vain", r"limit = total / 5;", r"(void)total;"),
    # arrays
    ("an array does not wait", r"else if \(cai_priv_emm_synchronize\(call, home\)\).*", r""),
    ("a collected free is not ordered after its array's stream", r"if \(slot->after && slot->after != CAI_PRIV_ALL && ",
     r"if (0 && "),
    ("a collected free does not wait for everything",
     r"return cai_priv_emm_wait\(call, 0, NULL, \"context_synchronize\"\);", r"return CAI_OK;"),
    ("an array's event is not waited for", r"if \(array->sync == CAI_SYNC_EVENT\) return cai_priv_emm_follow.*", r""),
    ("an array is freed on its memory's stream", r"\*stream = array->stream;", r""),
]  # fmt: skip


def judge(options, folder, work, defect):
    """(good, what to print) of one defect: the model over the headers with it."""
    find, replace = defect[1:] or ("", "")
    binary = folder / "model"
    if not copy_headers(options.root, folder, "cai_emm.h", find, replace):
        return False, f"DOES NOT APPLY any more: {find}"
    error = compile_with(options, "-O0", f"-I{folder}", f"-I{TESTS}", HERE / "model.c", "-o", binary)
    if error:
        return False, f"FAILED: {error}"
    status, output = execute([binary, options.seed, options.operations, "--quiet"], 120)
    found = re.search(r"difference at operation (\d+): (.*)", output)
    if status is None:
        return False, f"FAILED: {output}"
    if not find:
        return status == 0, "no difference" if status == 0 else f"A DIFFERENCE: {output}"
    if not status or not (found or "leaks" in output):
        return False, f"NOT FOUND: {output}"
    return True, f"operation {found.group(1)}: {found.group(2)}" if found else output.strip().splitlines()[-1]


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--operations", type=int, default=10000)
    arguments.add_argument("--seed", type=int, default=1)
    return judge_all(arguments.parse_args(), DEFECTS, judge)


if __name__ == "__main__":
    sys.exit(main())
