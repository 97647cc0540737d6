#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_manager.h and cai_emm.h, one at a time; model.c must see each of them within 20,000
operations, or else the test that an entry names.

    tests/emm/planted.py [--cc CC] [--operations N] [--seed N] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

One build of model.c has all defects, each switched on for a run of its own. Prints one line per defect: at which operation
it was found, and as what. A defect that is not found, or that does not apply to the header any more, is a failure,
and so is a difference without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_each, execute, folders_of, judge_all, parser  # noqa: E402

# What it is, where it is, what stands there instead; a test of this folder that finds it, if model.c cannot
DEFECTS = [
    # handles
    ("a generation is not raised", r"if \(!--slot->references\) slot->handle \+= .*;", r"--slot->references;"),
    ("generations are not compared", r"slot->handle == memory && ", r""),
    ("a second free of an object is taken",
     r"slot->handle == memory && slot->references\)", r"slot->ptr)"),
    ("an object is freed twice by its hook",
     r"(error = hook)(\(hooks->ctx, ptr, size, cai_stream_to_cuda\(stream\)\);)", r"(void)hook\2\n    \1\2"),
    ("retain counts nothing", r"slot->references\+\+;\n    slot->users\+\+;", r""),
    ("an array does not keep its object", r"inside\) slot->users\+\+;", r"inside) (void)slot;"),
    ("a free that failed takes its reference", r"if \(status\) cai_priv_mem_keep\(slot\);", r"if (status) slot->users--;"),
    ("a free that failed leaves the handle stale", r"if \(!slot->references\+\+\) slot->handle -= .*;", r"slot->references++;"),
    ("slots come back in another order", r"slot->next = manager->idle;\n    manager->idle = slot;",
     r"slot->next = NULL;\n    if (manager->idle) { struct cai_manager_slot *at = manager->idle; "
     r"while (at->next) at = at->next; at->next = slot; } else manager->idle = slot;"),
    # deferred frees
    ("defer is lost: a free in a scope goes to the hook at once", r"(?s) \|\| \(manager->defer_depth && !pinned\);(.*)!manager->defer_depth && ",
     r";\1"),
    ("CAI_EMM_FREES_WAIT is not looked at", r"(?s)defers = manager->waits >> slot->pair & 1 \|\| (.*!manager->defer_depth) && !\(manager->waits [^;]*;",
     r"defers = \1;"),
    ("a flush drops one", r"manager->deferred_first = slot->next;\n        cai_priv_guarded_put",
     r"if (slot->next) slot = slot->next;\n        manager->deferred_first = slot->next;\n        cai_priv_guarded_put"),
    ("the last comes first", r"if \(manager->deferred_first\) manager->deferred_last->next = slot;\n    else manager->deferred_first"
     r" = slot;\n    manager->deferred_last = slot;", r"slot->next = manager->deferred_first;\n    if (!slot->next) "
     r"manager->deferred_last = slot;\n    manager->deferred_first = slot;"),
    ("a limit of frees is reached, not passed", r"manager->count\.deferred > \(uint64_t\)",
     r"manager->count.deferred >= (uint64_t)"),
    ("the limit of bytes is not looked at", r"manager->count\.deferred_bytes > manager->limit", r"0"),
    ("a scope does not flush at its end", r"if \(over\) cai_priv_mem_keep_first\(&call, &first, "
     r"cai_priv_mem_flush", r"if (0) cai_priv_mem_keep_first(&call, &first, cai_priv_mem_flush"),
    ("an inner scope ends them all", r"if \(depth\) manager->defer_depth--;", r"manager->defer_depth = 0;"),
    ("the end of a scope that the hook refused", r"if \(told\) cai_priv_mem_keep_first", r"cai_priv_mem_keep_first",
     "test_emm_races.c"),
    ("a flush in a scope", r"nothing = manager->defer_depth \|\| !manager", r"nothing = !manager"),
    ("pinned memory is deferred", r"\(manager->defer_depth && !pinned\);", r"manager->defer_depth;"),
    ("the host does not wait before it unpins", r"call->idle \? CAI_OK : cai_priv_mem_wait_stream\(call, stream\);", r"CAI_OK;"),
    ("the host does not wait for the other references before it unpins",
     r"    if \(!status\) status = cai_priv_mem_follow\(call, slot, stream\);\n    if", r"    if", "test_emm_races.c"),
    ("unpinned though the wait failed", r"return call->array \? CAI_OK : status;", r"return CAI_OK;", "test_emm_order.c"),
    ("an array is unpinned though the wait failed", r"    else call->contexts = cai_priv_mem_context_of\(call->manager, stream\);\n", r"",
     "test_emm_races.c"),
    ("a free that fails is not counted", r"if \(!manager->count\.failed\+\+\) manager->count\.first_failure = error;", r""),
    ("deferred is not reduced", r"manager->count\.deferred--;", r""),
    ("bytes that live are not reduced", r"manager->count\.live_bytes -= bytes;", r""),
    ("while the process ends a free fails", r"if \(error == 4\) return CAI_OK; /\* R105 \*/", r""),
    # streams and contexts
    ("a reference that is not the last leaves no event", r"int ask = manager->cuda && ", r"int ask = manager->cuda && slot->users == 1 && "),
    ("an event of another reference is lost", r"while \(\(ask && slot->users > 1\) \|\| \(mine\.event && slot->last\.event\)\)",
     r"while (ask && slot->users > 1)", "test_emm_races.c"),
    ("an event does not come after the one before", r"const int apart = cai_priv_mem_has_event[^;]*;",
     r"const int apart = 0;"),
    ("an event is named whose context is destroyed", r"return at->event && cai_priv_context_lives\([^;]*;", r"return at->event != 0;",
     "test_emm_contexts.c"),
    ("an event that cannot be followed is lost", r"            return 1;\n", r"            {}\n", "test_emm_races.c"),
    ("where no event is, the host does not wait", r"if \(cai_priv_mem_wait_stream\(&quiet, stream\)\) \*contexts", r"if (0) *contexts"),
    ("the last free does not come after the others", r"if \(!defers && !pinned\) defers = cai_priv_mem_follow.*", r""),
    ("the hook gets another stream", r"(hooks->device_free\(hooks->ctx, ptr, bytes, cai_stream_to_cuda\()stream\)", r"\1CAI_STREAM_LEGACY)"),
    ("a limit waits for the context", r"if \(slot->contexts && how == CAI_PRIV_BY_LIMIT\) return CAI_ERR_PENDING;", r""),
    ("a free on a stream that captures", r"(?s)return !asked->capture_error && asked->capture\.status == CAI_CAPTURE_NONE;(.*)return status \|\| call->gone \|\| !stream \? status : .*?;", r"return 1;\1return status;"),
    ("the context is not made current", r"return current == call->manager->context \? CAI_OK : cai_priv_mem_push.*",
     r"return CAI_OK;"),
    ("the context stays pushed", r"    if \(!call->entered\) return status;\n", r"    if (call) return status;\n"),
    # allocations
    ("no second try", r"if \(error == 2\) error = cai_priv_mem_ask_again.*", r""),
    ("a second try without flushing", r"\(void\)cai_priv_mem_carry_out\(&quiet[^;]*;", r""),
    ("a third try without a poll", r"if \(step == 1\) \(void\)!cai_keepalive_poll.*", r""),
    ("a second try does not wait for frees of other threads", r"cai_priv_mem_wait_for_frees\(manager\);", r"",
     "test_emm_order.c"),
    ("a failure touches the handle", r"(CAI_TRY\(cai_priv_mem_made\(manager, \"cai_manager_alloc\", err\)\);)",
     r"*out = 0;\n    \1"),
    ("the size is not that of the block", r"slot->bytes = wish\.bytes;", r"slot->bytes = wish.size;"),
    ("an address is rounded down", r"\(\(uint64_t\)\(uintptr_t\)ptr \+ wish\.mask\)", r"((uint64_t)(uintptr_t)ptr)"),
    ("a crooked address is taken", r" \|\| \(\(uintptr_t\)ptr & wish\.mask & 255\)", r""),
    ("memory that cannot be given stays", r"    if \(status\) \{\n        cai_priv_mem_undo\(call, wish, ptr\);", r"    if (status) {"),
    ("a context that cannot be popped is no failure", r"return status \? status : cai_priv_mem_did\(call, error, \"context_pop\"\);",
     r"(void)error;\n    return status;"),
    ("memory is freed outside of its context", r"cai_priv_mem_enter\(&again\)", r"CAI_OK"),
    ("host memory has no flags", r"(hooks->host_alloc\([^;]*), wish\.flags\)", r"\1, 0)"),
    # resets
    ("a reset does not count", r"manager->epoch\+\+;", r""),
    ("after a reset nothing is initialized", r"manager->ready = 0;", r""),
    ("a reset leaves what no hook takes", r"if \(hooks->reset && !\(manager->adopted >> pair & 1\)\) continue;", r"continue;"),
    ("a table is initialized each time", r"cai_priv_guarded_put\(&manager->ready, 1\);", r""),
    ("memory_info is asked in vain", r"limit = total / 5;", r"(void)total;"),
    # arrays
    ("an array whose work is unknown does not wait", r"wait = !cai_priv_mem_wait_contexts\(call, contexts\);", r"wait = contexts != 0;"),
    ("an array of stream 2 of another thread does not look for captures", r"    else if \(wait\) wait = !cai_priv_mem_busy\(call, CAI_STREAM_LEGACY\);\n", r"",
     "test_emm_races.c"),
    ("an array without work is freed while a blocking stream captures", r"call->later = stream == CAI_STREAM_PER_THREAD;", r"call->later = 0;",
     "test_emm_races.c"),
    ("memory is lost where the context is not to be had",
     r"    return cai_priv_mem_no_order\(call, array, unordered, wait\);", r"    call->gone = 1;\n    return cai_priv_mem_no_order(call, array, unordered, wait);", "test_emm_order.c"),
    ("a deferred free does not come after its event",
     r"return cai_priv_mem_follow\(call, slot, stream\);", r"return CAI_OK;"),
    ("a deferred free leaves no event", r"    if \(manager->cuda && !call->idle && !call->contexts\)\n        \(void\)cai_priv_mem_join[^;]*;", r""),
    ("an event of a deferred free stays",
     r"if \(!call->gone\) cai_priv_mem_drop_event\(manager, &last\);", r"(void)last;", "test_emm_races.c"),
    ("an event of a deferred free is recorded in another context", r"other = context != manager->context;", r"other = 0;",
     "test_emm_races.c"),
    ("a deferred free goes to the legacy stream though a capture forbids it",
     r"if \(call->gone \|\| !cai_priv_mem_busy\(&quiet, CAI_STREAM_LEGACY\)\) return", r"if (quiet.manager) return", "test_emm_order.c"),
    ("a deferred free goes to stream 2 though it captures",
     r"if \(stream == CAI_STREAM_PER_THREAD && cai_priv_mem_busy\(call, stream\)\) return CAI_ERR_CAPTURE;", r"", "test_emm.c"),
    ("a deferred free does not wait for everything",
     r"if \(contexts >> i & 1\) CAI_TRY.*", r""),
    ("a context is pushed that may be destroyed", r"error = cai_priv_mem_reenter\(cuda, call->manager->context\);",
     r"error = cai_priv_context_enter(cuda, call->manager->context);", "test_emm_contexts.c"),
    ("a free in a context that is destroyed keeps its reference", r"        if \(call->ending\) return CAI_OK;\n    \}", r"    }",
     "test_emm_contexts.c"),
    # H5, O2: streams that are destroyed, work in other contexts
    ("a release in a capture waits for the manager's context alone", r"(contexts = )cai_priv_mem_context_of\(manager, named \? array->stream : 0\);", r"\1manager && named ? 1 : 1;",
     "test_emm_order.c"),
    ("the next release in a capture takes the place of the first", r"slot->contexts \|= contexts;", r"slot->contexts = contexts;",
     "test_emm_order.c"),
    ("a wait for a context ends the capture of a blocking stream", r" && cai_priv_mem_busy\(call, CAI_STREAM_LEGACY\)\)\n        return", r" && 0)\n        return",
     "test_emm_contexts.c"),
    ("a context is waited for that may be destroyed", r"error = cai_priv_mem_reenter\(cuda, context\);", r"error = cai_priv_context_enter(cuda, context);",
     "test_emm_contexts.c"),
    ("a wait for another context leaves it current", r"    \(void\)cai_priv_context_leave\(cuda, context\);\n    return status;", r"    return status;",
     "test_emm_contexts.c"),
    ("more contexts than places", r"if \(contexts >> CAI_MANAGER_CONTEXTS\)", r"if (0)", "test_emm_contexts.c"),
    ("an allocation waits for contexts unasked", r"step == 2 \? CAI_PRIV_ASKED", r"step ? CAI_PRIV_ASKED"),
    # a broken device
    ("a free on a broken device keeps its reference", r"    if \(call->ending && error != 4 && cai_priv_is_dead\(error\)\) \{.*", r"    if (0) {"),
    ("a free on a broken device does not wait", r"        return cai_priv_mem_wait_stream\(call, stream\);\n    \}", r"        return CAI_OK;\n    }"),
    ("a wait on a broken device is none", r"if \(error != 4 && cai_priv_is_dead\(error\)\) error = 0;", r"",
     "test_emm_races.c"),
    # resets and handles
    ("the base that a hook tells is believed", r"if \(!base \|\| \(uintptr_t\)base > .*\)", r"if (0)",
     "test_emm_order.c"),
    ("managers at one address have the same handles", r"return \(uint32_t\)\(\(\(hash .*",
     r"return (uint32_t)(uintptr_t)manager;", "test_emm_order.c"),
    # contexts of plugins, managers by device
    ("a plugin's own context is not taken", r"made\.hooks\.ctx = own;", r"(void)own;", "test_emm_contexts.c"),
    ("a plugin's own context is not given back",
     r"status = cai_priv_mem_hook_did\(call, hooks->close\(hooks->ctx\), \"close\"\);", r"status = CAI_OK;",
     "test_emm_contexts.c"),
]  # fmt: skip

# The same in cai_emm.h: its tables over CUDA's functions
TABLES = [
    ("a free of CUDA's does not wait", r"if \(pair != CAI_PRIV_BY_PIN\) waited = .*", r""),
    ("a free of CUDA's ends a capture", r"    error = cai_priv_captures\(cuda, number\);\n    return error \? error : ", r"    (void)error;\n    return ",
     "test_emm_order.c"),
    ("a free of CUDA's frees though the wait failed",
     r"if \(!waited \|\| cai_priv_is_dead\(waited\)\)\n        error = cai", r"error = cai",
     "test_emm_order.c"),
]  # fmt: skip

# And its memory and arrays by a table; all found by test_emm_table.c
BY_TABLE = [
    # memory
    ("a table's hook is called for 0 bytes", r"if \(size\) \{\n        error = hooks->device_alloc", r"{\n        error = hooks->device_alloc"),
    ("a table's hook is told of no stream", r"hooks->device_alloc\(hooks->ctx, &call\.ptr, size, cai_stream_to_cuda\(stream\)\)",
     r"hooks->device_alloc(hooks->ctx, &call.ptr, size, NULL)"),
    ("a table's memory is freed in the order of the legacy stream",
     r"error = hooks->device_free\(hooks->ctx, ptr, size, cai_stream_to_cuda\(stream\)\);",
     r"error = hooks->device_free(hooks->ctx, ptr, size, cai_stream_to_cuda(1));"),
    ("a table's crooked address is taken", r" \|\| \(uintptr_t\)call\.ptr % 256\)", r")"),
    ("a table's crooked memory is lost", r"\(void\)hooks->device_free\(hooks->ctx, call->ptr, .*", r""),
    ("a table's NULL is taken", r"if \(error \|\| !call\.ptr \|\| ", r"if (error || "),
    ("a table that is out of memory has no error of its hook", r"    if \(call->err\) call->err->native = error;\n", r""),
    ("a table that is out of memory is an error of CUDA", r"if \(error && error != 2\) return cai_priv_emm_hook_status",
     r"if (error) return cai_priv_emm_hook_status"),
    ("a table's failure touches the address", r"(\"cai_emm_alloc\", out, stream, err\);\n)", r"\1    *out = NULL;\n"),
    ("a table's free takes NULL to the hook", r"    if \(!ptr\) return CAI_OK;\n    error = hooks->device_free", r"    error = hooks->device_free"),
    ("a table takes stream 0", r"return hooks && stream - 1 < UINT64_MAX - 1;", r"return hooks && stream != UINT64_MAX;"),
    ("a table takes stream -1", r"return hooks && stream - 1 < UINT64_MAX - 1;", r"return hooks && stream;"),
    # the release of an array
    ("an array of a table is freed in the legacy stream", r"    if \(named\) return cai_priv_emm_free_in\(owner, named\);\n", r""),
    ("an array of a table is not ordered after its event", r"if \(!error && by_event\) error = cuda->stream_wait_event[^;]*;", r""),
    ("an array of a table is freed though the order failed", r"if \(by_event\) error = cai_priv_emm_wait\(cuda, array->event\);", r"error = 0;"),
    ("an array of a table is freed though the wait failed", r"if \(error && !cai_priv_is_dead\(error\)\) return 0;\n    return cai_priv_emm_free_in",
     r"return cai_priv_emm_free_in"),
    ("an array of a table stays though its context is dead", r"if \(error && !cai_priv_is_dead\(error\)\) return 0;\n    return cai_priv_emm_free_in",
     r"if (error) return 0;\n    return cai_priv_emm_free_in"),
    ("an array of a table is freed while the stream that it names captures", r"error = cai_priv_captures\(cuda, stream\);\n        if",
     r"if"),
    ("an array of a table is freed while a blocking stream captures", r"if \(!plain\) error = cai_priv_captures[^;]*;", r""),
    ("a wait for an array of a table ends its capture", r"\*wait = error < 900 \|\| error > 908;", r""),
    ("a poll waits for an array of a table", r"wait \? cai_priv_emm_wait\(cuda, 0\) : 600", r"cai_priv_emm_wait(cuda, 0)"),
    ("an array of a table that was not looked at has an order", r"owner->unordered = 1; /\* until it is known \*/", r""),
    ("what a table could not free is lost", r"if \(!(cai_priv_emm_let_go\(owner, array, 1\))\) cai_priv_park[^;]*;", r"(void)\1;"),
    ("an array of a table names stream 2 of any thread",
     r"return !cuda->host_thread\(cuda->self, &now\) && now == array->thread;", r"return 1;"),
    ("an array of a table is freed in another context", r"if \(!error && current != owner->context\) error = cai_priv_context_enter.*", r""),
    ("an array of a table leaves its context current",
     r"if \(!error && current != owner->context\) \(void\)cai_priv_context_leave.*", r""),
    ("an array of a table is freed outside of its context", r"\(\(!error \|\| cai_priv_is_dead\(error\)\) && (cai_priv_emm_settle\(owner, array, wait\))\)", r"\1"),
    ("an array of a table is freed after a reset", r": now == owner->context_id;", r": 1;"),
    ("an array of a table can be released twice", r"    array->release = NULL;\n    owner->unordered", r"    owner->unordered"),
    # a memory pool of one's own
    ("a pool of one's own follows events", r"OPPORTUNISTIC \| INTERNAL_DEPENDENCIES, &pool", r"7, &pool"),
    ("a pool of one's own is not used", r"    if \(!error && pool\) error = cuda->memory_alloc_from_pool[^;]*;\n    else if", r"    if"),
    ("cudaMallocAsync ends a capture on the legacy stream", r"\? 0 : cai_priv_captures\(cuda, CAI_STREAM_LEGACY\);", r"? 0 : 0;"),
    # the array itself
    ("a table makes an array on a stream that captures", r"if \(error != 900 && error != 906\) return cai_cuda_status\(error, \"stream_capture\", err\);",
     r"return CAI_OK;"),
    ("a table's array has no thread", r"error = cuda->host_thread\(cuda->self, &array->thread\);", r""),
    ("a table's host memory is that of a device", r"made\.memory = owner\.cuda \? CAI_MEMORY_DEVICE : CAI_MEMORY_HOST;",
     r"made.memory = CAI_MEMORY_DEVICE;"),
    ("a table's array without a context", r"    if \(\*context\) return CAI_OK;",
     r"return CAI_OK;"),
    # its owner
    ("a table's failure loses the owner of an array", r"    if \(status\) \{\n        free\(owner\);", r"    if (status) {"),
    ("a table's array loses its owner", r"    if \(done\) free\(owner\);\n", r""),
]  # fmt: skip


class Model(Subject):
    """model.c, and the tests that find what it cannot see."""

    def __init__(self, tests):
        self.tests = tests

    def build(self, options, tree, folder):
        return compile_each(options, folder, [HERE / name for name in ("model.c", *self.tests)], "-O0", *folders_of(tree))

    def run(self, options, tree, folder, environment, defect):
        if defect.more:
            return self.run_test(folder, environment, defect.more)
        status, output = execute([folder / "model", options.seed, options.operations, "--quiet"], 120, environment)
        found = re.search(r"difference at operation (\d+): (.*)", output)
        if status is None:
            return False, f"FAILED: {output}"
        if defect is NONE:
            return status == 0, "no difference" if status == 0 else f"A DIFFERENCE: {output}"
        if not status or not (found or "leaks" in output):
            return False, f"NOT FOUND: {output}"
        return True, f"operation {found.group(1)}: {found.group(2)}" if found else output.strip().splitlines()[-1]

    def run_test(self, folder, environment, test):
        status, output = execute([folder / pathlib.Path(test).stem], 120, environment)
        found = re.findall(r"(?:\.[ch]:|cai_sim: )(\d+: .*|.* leaves undefined.*)", output)
        if not status or not found:
            return False, f"NOT FOUND: {output}"
        return True, f"{test}: {found[0]}"


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--operations", type=int, default=20000)
    arguments.add_argument("--seed", type=int, default=1)
    defects = [Defect(name, header, find, replace, *test) for header, entries in
               (("ext/cai_manager.h", DEFECTS), ("cai_emm.h", TABLES)) for name, find, replace, *test in entries]
    defects += [Defect(name, "cai_emm.h", find, replace, "test_emm_table.c") for name, find, replace in BY_TABLE]
    tests = sorted({defect.more for defect in defects if defect.more})
    return judge_all(arguments.parse_args(), defects, Model(tests))


if __name__ == "__main__":
    sys.exit(main())
