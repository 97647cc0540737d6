#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_check.c and cai_sim.c, one at a time; a test of the three must fail on each of them.

    sim/tests/unit/planted.py [--cc CC] [--traces N] [--programs N] [--seed N]
        [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

One build of each test has all defects, each switched on for a run of its own. Prints one line per defect: the first
thing that was wrong. A defect that is not found, or that does not apply to the file any more, is a failure, and so
is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tests" / "support"))
from planting import NONE, Defect, Subject, compile_each, execute_until, folders_of, judge_all, parser  # noqa: E402

FILES = ("sim/cai_check.c", "sim/cai_sim.c")
TESTS = ("test_graphs", "test_memory", "test_check")

# What it is, where it is, what stands there instead
SIM = [
    ("a pointer that was left ends a context", r"return x->write >= CAI_SIM_MAY_WRITE; /\*", r"return 0; /*"),
    ("the legacy stream does not wait for blocking ones",
     r"&& !other->nonblocking && other->last > stream->last", r"&& 0"),
    ("blocking streams do not wait for the legacy one",
     r"if \(legacy->last > stream->last\) sim_wait_for\(op, legacy->last\);", r""),
    ("non-blocking streams wait for the legacy one", r"    if \(stream->nonblocking\) return;\n", r""),
    ("a wait for an event waits for nothing",
     r"sim_wait_for\((sim_queue\(sim, CAI_SIM_OP_WAIT, stream, event_handle\)), event->record\)", r"(void)\1"),
    ("a stream does not order its work", r"(QUEUED;\n    )sim_wait_for\(op, stream->last\);", r"\1"),
    ("to synchronize a stream is to wait for nothing",
     r"sim_wait_for\(sync, stream->last\);", r""),
    ("to synchronize the legacy stream covers all streams",
     r"== stream->o\.context && !other->nonblocking\) sim_wait_for\(sync", r"== stream->o.context) sim_wait_for(sync"),
    ("an event keeps its first record", r"event->record = (sim_queue[^;]*);",
     r"{ const uint64_t made = \1; if (!event->record) event->record = made; }"),
    ("a query that finds an event done orders nothing",
     r"sim_wait_for\((sim_trace\(sim, CAI_SIM_OP_SYNCHRONIZE, \"event_query\", NULL, 0\)), event->record\)",
     r"(void)\1"),
    ("an observation waits for nothing",
     r"sim_wait_for\((sim_trace\(sim, CAI_SIM_OP_OBSERVE, \"observe\", NULL, 0\)), published\)", r"(void)\1"),
    ("work leaves the same, whatever was there",
     r"digest = op->digest = sim_digest_of\([^;]*;", r"op->digest = digest;"),
    ("a host access leaves no trace in the fingerprint",
     r"else op->digest = sim_digest_of[^;]*;", r""),
    ("the host writes nothing", r"if \(touches\) sim_touch\(sim, op\);\n    else", r""),
    ("two kernels of one name are one", r"digest = sim_mix\(op->info\.stream, [^;]*;", r"digest = 0;"),
    ("errors are not in the fingerprint", r"sum \+= sim_mix\(\(uint64_t\)i[^;]*;", r"(void)0;"),
    ("memory is not in the fingerprint", r"sum \+= there \? [^;]*;", r"(void)whole; (void)there;"),
    ("what was read is not in the fingerprint", r"sum \+= sim_operation_of\(sim, id\)->digest;", r"(void)0;"),
    ("a free in a stream only reads",
     r"whole = cai_sim_writes\(address, a->bytes\);", r"whole = cai_sim_reads(address, a->bytes);"),
    ("memory in the order of a stream is good at once", r" \|\| sim_is_queued\(sim, a->maker\)", r""),
    ("nothing runs before a host access", r"(sim_operation \*op;\n    )sim_offer\(sim\);", r"\1"),
    ("memory that is not there yet is freed", r"if \(a->maker\) \{", r"if (0) {"),
    ("nothing runs before an immediate free",
     r"sim_offer\(sim\);\n(    sim_memory_end\(sim, a\);)", r"\1"),
    ("nothing runs before a query", r"(SIM_PATIENCE\)) sim_offer\(sim\);", r"\1 ;"),
    ("the first that is ready runs, whatever was chosen", r"offers\[chosen\]", r"offers[0]"),
    ("memory has another name by the address of devices",
     r"if \(address - other->device_offset - other->address < other->bytes\) a = other;", r"(void)other;"),
    ("an access is to what has its address in the end",
     r"access\.memory = sim_is_plain\(a\)[^;]*;", r"access.memory = 0;"),
    ("a free always waits", r" \|\| sim_is_on\(sim, CAI_SIM_FREE_RETURNS\)", r""),
    ("a free never waits",
     r"sim_wait_for_context\(sim, a->context, name\);\n        return;", r"return;"),
    ("no address is used again", r"if \(old == NULL\) return NULL;", r"if (old != NULL || 1) return NULL;"),
    ("the hook is not told of the table's calls", r"    sim_before\(call\.sim, [^;]*;\n", r""),
    ("a copy to pinned memory is not waited for", r"    return !async;\n\}", r"    return 0;\n}"),
    ("a copy between host memory is not waited for", r"if \(devices == 0\) return 1;", r"if (devices == 0) return 0;"),
    ("an asynchronous copy of pageable memory always returns at once",
     r"return !sim_is_on\(sim, CAI_SIM_COPY_RETURNS\);", r"return 0;"),
    ("pageable memory is not staged", r"if \(sim_is_on\(sim, CAI_SIM_COPY_RETURNS\)\) sim_stage\(sim, &copy\);", r";"),
    ("a view is all from its first byte to its last",
     r"    if \(sim_is_plain\(a\) \|\| a->physical != NULL \|\| span <= [^;]*;\n    view->run = span;", "    view->run = span;"),
    ("a view that leaves its memory is not found", r"    view->run = span;\n    view->ndim = 0;\n", r"    (void)span;\n"),
    ("all views are written", r"&views\[i\], i < writes\)", r"&views[i], 1)"),
    ("a view with negative strides begins at its data", r"if \(backward\) view->first -= [^;]*;", r""),
    ("an empty view has an element", r"if \(from->shape\[axis\] == 0\) return count;", r""),
    ("runs of a view are not joined", r"view->step\[view->ndim - 1\] <= view->run", r"0"),
    ("a copy reads nothing", r"count = sim_rows_accesses\(&accesses, count, &copy->from, &copy->extent, 0\);", r";"),
    ("a copy accesses what is between its rows", r"row = cai_sim_reads\(sim_row\(rows, y, z\), e->width\)",
     r"row = cai_sim_reads(sim_row(rows, y, z), e->height > 1 ? rows->pitch : e->width)"),
    # graphs
    ("a launch of a graph does not wait for the one before",
     r"    sim_wait_for\(begin, executable->last\);\n", r""),
    ("the edges of a graph are lost",
     r"for \(i = 0; i < node->edge_count; i\+\+\) sim_wait_for\(op, ids\[node->edges\[i\]\]\);", r""),
    ("only the first edge of a node counts", r"i < node->edge_count; i\+\+\) sim_wait", r"i < 1 && i < node->edge_count; i++) sim_wait"),
    ("the first nodes do not wait for the stream",
     r"if \(node->edge_count == 0\) sim_wait_for\(op, begin->info\.id\);", r""),
    ("the end of a launch waits for no node", r"if \(!followed\[i\]\) sim_wait_for\(end, ids\[i\]\);", r""),
    ("a graph has one branch", r"op->info\.branch = node->branch;", r""),
    ("all streams of a capture are one branch", r"if \(graph->branches\[i\] == captured->info\.stream\) return i;",
     r"return i;"),
    ("branches of one name are one", r"if \(op->info\.branch\) digest = [^;]*;", r""),
    ("a node does not touch what it captured", r"op->touches = from->touches;", r""),
    ("a node does not copy", r"if \(from->copy != NULL\) \{", r"if (0) {"),
    ("a graph is launched into a capture", r"error = sim_may_not_capture\(sim, stream\);\n    if \(!error\) sim_queue_graph",
     r"error = sim_may_queue(sim, stream);\n    if (!error) sim_queue_graph"),
    ("a graph is launched in a context that is gone", r"(o\.state != SIM_LIVE)\) return CAI_SIM_ERROR_CONTEXT_IS_DESTROYED;\n    return 0;\n}\n\n/\* The begin",
     r"\1) continue;\n    return 0;\n}\n\n/* The begin"),
    ("a capture that failed gives a graph", r"if \(graph != NULL\) \*graph = 0;", r""),
    ("graphs are no leaks", r"    count \+= sim_leak_kind\(text, &sim->graphs, 0, \"graphs:\"\);\n", r""),
    ("executables are no leaks", r"    count \+= sim_leak_kind\(text, &sim->executables, [^;]*;\n", r""),
]  # fmt: skip

MEMORY = [
    # pools
    ("the default pool can be destroyed", r" \|\| pool == sim_pool_at\(sim, pool->device\)", r""),
    ("a destroyed pool stays current", r"if \(sim->current_pool\[pool->device\] == pool\)\n", r"if (0)\n"),
    ("a pool of another device becomes current", r" \|\| pool->device != device", r""),
    ("the current pool is not used", r"pool = sim->current_pool\[stream->o\.context->device\];",
     r"pool = sim_pool_at(sim, stream->o.context->device);"),
    ("memory of a pool is of the device of the stream", r"a->device = pool->device;", r""),
    ("all devices have access to a pool", r"pool->no_access = ~[^;]*;", r""),
    ("no synchronization releases memory", r"if \(pool->values\[CAI_SIM_POOL_RESERVED\] > keep\)", r"if (0)"),
    ("stream_synchronize releases nothing", r"(\"stream_synchronize\"\);\n)    sim_settle_pools\(sim\);\n", r"\1"),
    ("context_synchronize releases nothing", r"(\"context_synchronize\"\);\n)    sim_settle_pools\(sim\);\n", r"\1"),
    ("event_synchronize releases nothing", r"(sim_run_for\(sim, sync\);\n)    sim_settle_pools\(sim\);\n", r"\1"),
    ("a trim keeps nothing", r" \|\| pool->values\[CAI_SIM_POOL_RESERVED\] - a->space < keep", r""),
    ("released memory still counts", r"sim->memory_used\[a->device\] -= a->space;", r""),
    ("used bytes do not become fewer", r"a->pool->values\[CAI_SIM_POOL_USED\] -= a->bytes;", r""),
    ("the most bytes are not kept", r"if \(value\[1\] < value\[0\]\) value\[1\] = value\[0\];", r""),
    ("a watermark is set to 0", r"value = pool->values\[attribute - 1\];", r""),
    ("a pool that is destroyed keeps blocks", r"if \(a->held && a->pool->o\.state == SIM_DEAD\)", r"if (0)"),
    ("memory is used again without the option", r"if \(sim_is_on\(sim, CAI_SIM_POOL_REUSE\)\) \{", r"{"),
    ("memory is never used again", r"if \(sim_is_on\(sim, CAI_SIM_POOL_REUSE\)\) \{", r"if (0) {"),
    ("memory that is used again is not emptied",
     r"if \(op->makes != NULL && op->makes->before != NULL\)\n", r"if (0)\n"),
    ("an address is at once that of the next allocation",
     r"(\*offset < a->before->bytes\)\n        )a = a->before;", r"\1break;"),
    ("events bring back memory in any case", r"events = pool->values\[CAI_SIM_POOL_FOLLOW_EVENTS\] != 0",
     r"events = 1"),
    ("events never bring back memory", r"events = pool->values\[CAI_SIM_POOL_FOLLOW_EVENTS\] != 0", r"events = 0"),
    ("what the host waited for is forgotten",
     r"if \(op->info\.kind == CAI_SIM_OP_SYNCHRONIZE\) reached\[id\] = 1;", r""),
    ("the legacy stream orders no memory", r"sim_wait_implicitly\(sim, &would, stream\);", r""),
    ("frees that have run always count", r" && allowed\[CAI_SIM_POOL_OPPORTUNISTIC\]", r""),
    ("frees that are pending count", r"!a->live && allowed", r"allowed"),
    ("an allocation never waits for a free", r"return stream != NULL && allowed[^;]*;", r"return 0;"),
    ("an allocation always waits for a free", r" && allowed\[CAI_SIM_POOL_INTERNAL_WAITS\]", r""),
    ("the wait for a free is left out", r"if \(stream != NULL\) sim_wait_for_free[^;]*;", r""),
    ("adopted memory does not wait for a free", r"\n            sim_wait_for_free\(sim, a->maker, old\);", r" { }"),
    ("an adopted address is for all that follow", r"sim->self->adopted = 0;", r""),
    ("accesses to adopted memory are judged", r"if \(x->bytes == 0 \|\| sim->adopts\)", r"if (x->bytes == 0)"),
    ("pools hold on to memory", r"(if \(error\) \{\n)        sim_empty_pools[^;]*;", r"\1"),
    ("pools know of no wait too early", r"if \(stream->capture == NULL\) sim_book_wait[^;]*;", r""),
    ("records of any stream are believed", r" \|\| op->info\.stream != stream->id\) continue;", r") continue;"),
    ("a record before the last call is believed", r"uint64_t id = sim->self->seen;", r"uint64_t id = 0;"),
    ("two owners at once have an order", r"if \(believed\) a->shares = [^;]*;\n    else if", r"if"),
    ("a pool without events believes", r"events && how == SIM_AGAIN_BELIEVED", r"how == SIM_AGAIN_BELIEVED"),
    ("large blocks are given for small ones", r" \|\| a->space / 2 >= bytes", r""),
    # large blocks
    ("the simulation writes where the host reads", r"a->address \+ offset \+ a->apart\);\n}\n\nstatic uint64_t sim_digest_of",
     r"a->address + offset);\n}\n\nstatic uint64_t sim_digest_of"),
    ("a copy reads where the host writes", r"(a == NULL \? address : a->address \+ offset) \+ a->apart", r"\1"),
    ("memory of a device gets a block that the host uses", r" \|\| watched != \(a->apart != 0\)", r""),
    ("pages stay", r"sim_memory_clear\([^;]*;\n    a->emptied = 1;", r"a->emptied = 1;"),
    ("a search forgets what was freed", r" && sim->hooks\.choose == NULL;", r";"),
    # virtual memory
    ("a mapping has access at first", r"a->physical = physical;\n", r"a->physical = physical; a->can_read = 1;\n"),
    ("who reads may write", r"x->write != 1 \|\| ", r"1 || "),
    ("all devices get access", r"a->can_read \|= bit;", r"a->can_read = ~(uint64_t)0;"),
    ("copies need no access", r"if \(op->copy != NULL\) return \([^;]*;", r"if (op->copy != NULL) return 1;"),
    ("addresses without memory are accessed",
     r"return sim_range_of\(sim, x->address\) == NULL;", r"return 1;"),
    ("an access ends with its mapping",
     r"access\.address \+= access\.bytes;\n        left -= access\.bytes;", r"left = 0;"),
    ("a copy ends with its mapping", r"if \(a->live && a->physical != NULL\) return sim_mapped[^;]*;", r""),
    ("an unmap never waits", r"(for \(i = 0; i < sim->contexts\.count) && !sim_is_on\(sim, CAI_SIM_FREE_RETURNS\)",
     r"\1 && 0"),
    ("an unmap always waits", r"(for \(i = 0; i < sim->contexts\.count) && !sim_is_on\(sim, CAI_SIM_FREE_RETURNS\)",
     r"\1"),
    ("a part is unmapped", r"return last->address \+ last->bytes == address \+ bytes;", r"return 1;"),
    ("mapped addresses are mapped again",
     r"if \(sim_has_mapping\(sim, address, bytes\)\) return (CAI_SIM_ERROR_INVALID_VALUE;\n    if \(!sim->adopts)",
     r"if (0) return \1"),
    ("a mapping goes with its handle", r"if \(physical->handles \|\| physical->mappings\) return;",
     r"if (physical->handles) return;"),
    ("physical memory stays", r"if \(physical->handles \|\| physical->mappings\) return;", r"return;"),
    ("all physical memory is one", r"sim->file, \(off_t\)at\)", r"sim->file, (off_t)(at * 0))"),
    ("ranges are those of one mapping", r"if \(!sim_is_on\(sim, CAI_SIM_SEGMENTS\)\) sim_mapping_around[^;]*;", r""),
    # pointers
    ("memory of devices has an address for the host", r"host \? a->address \+ offset : 0", r"a->address + offset"),
    ("registered memory has an address for devices",
     r"a->unmapped \? 0 : a->address \+ offset", r"a->address + offset"),
    ("all memory can be shared", r"a->kind == CAI_SIM_MEM_DEVICE && a->origin == NULL", r"1"),
    ("reserved addresses are not known", r"if \(range == NULL \|\| !range->live\) return", r"return"),
]  # fmt: skip

CHECK = [
    # happens before
    ("nothing is learned from what an operation waits for",
     r"for \(i = 0; i < op->wait_count; i\+\+\) check_join", r"for (i = 0; i < 0; i++) check_join"),
    ("only the first wait counts",
     r"i < op->wait_count; i\+\+\) check_join", r"i < op->wait_count && i < 1; i++) check_join"),
    ("waits of streams are left out", r"i < op->wait_count; i\+\+\) check_join",
     r"i < op->wait_count && op->kind != CAI_SIM_OP_WAIT; i++) check_join"),
    ("synchronizations are left out", r"i < op->wait_count; i\+\+\) check_join",
     r"i < op->wait_count && op->kind != CAI_SIM_OP_SYNCHRONIZE; i++) check_join"),
    ("observations are left out", r"i < op->wait_count; i\+\+\) check_join",
     r"i < op->wait_count && op->kind != CAI_SIM_OP_OBSERVE; i++) check_join"),
    ("what is queued does not come after what the host did",
     r"if \(!op->capture\) check_join\(clock, host, lanes\);", r""),
    ("the host does not remember what it learned", r"if \(!op->stream\) memcpy\(host[^;]*;", r""),
    ("to queue work is to wait for it", r"if \(!op->stream\) (memcpy\(host)", r"\1"),
    ("all host threads are one", r"op->stream \|\| order->one_host \? 0 : op->thread", r"0"),
    ("all callers are one", r"order->one_host \? 0 : op->thread;\n    return lane;\n}\n\n/\* The number",
     r"0;\n    return lane;\n}\n\n/* The number"),
    ("what is captured comes after what its stream has queued", r"lane\.capture = op->capture;", r"lane.capture = 0;"),
    ("branches of a graph are in the order of their launch", r"lane\.branch = op->branch;", r"lane.branch = 0;"),
    ("a clock that is less by one will do",
     r"check_clock\(order, second\)\[lane\] >= check", r"check_clock(order, second)[lane] + 1 >= check"),
    ("a clock that is equal will not do",
     r"check_clock\(order, second\)\[lane\] >= check", r"check_clock(order, second)[lane] > check"),
    # races
    ("two that read are a race", r" && \(check_can_write\(a\) \|\| check_can_write\(b\)\)", r""),
    ("only two that write are a race", r"(check_can_write\(a\)) \|\| (check_can_write\(b\))", r"\1 && \2"),
    ("what may read writes", r" && a->write != CAI_SIM_MAY_READ", r""),
    ("neighbours meet", r"a->begin < b->end &&", r"a->begin <= b->end &&"),
    ("one byte is no overlap", r"b->begin < a->end", r"b->begin + 1 < a->end"),
    ("only the first access counts",
     r"i < op->access_count && check_counts", r"i < op->access_count && i < 1 && check_counts"),
    ("a free is no access", r"return (op->kind != CAI_SIM_OP_ALLOC \|\| op->stream != 0);",
     r"return (\1) && op->kind != CAI_SIM_OP_FREE;"),
    ("an allocation in a stream is no access",
     r"op->kind != CAI_SIM_OP_ALLOC \|\| op->stream != 0", r"op->kind != CAI_SIM_OP_ALLOC"),
    ("an allocation by the host is an access", r"op->kind != CAI_SIM_OP_ALLOC \|\| op->stream != 0", r"1"),
    ("what was captured races with what runs", r" && a->capture == b->capture", r""),
    ("memory is not the same at another address",
     r"to->memory = cai_sim_access_memory\([^;]*;", r"to->memory = 0;"),
    ("a race is told twice", r"if \(!check_counts_for_pair\([^;]*;", r""),
    ("a possible race comes before a certain one", r"(if \(check_is_certain\(&in->all\[i\], &in->all\[k\]\) > certain\)) return 0;",
     r"\1 continue;"),
    ("what may write counts as a write", r"a->write == 1 \|\| b->write == 1;", r"a->write || b->write;"),
    ("what may do nothing is certain", r"return writes && a->write <= CAI_SIM_MAY_WRITE && b->write <= CAI_SIM_MAY_WRITE;",
     r"return writes;"),
    ("cai_check counts possible races", r"(out->races = check_first_races\(run->sim, order,) CHECK_CERTAIN", r"\1 CHECK_ALL"),
    ("no byte is an access", r"if \(from->bytes\) out->count\+\+;", r"to->end += !from->bytes; out->count++;"),
    ("the place of a race is that of the first access",
     r"a->begin > b->begin \? a->begin : b->begin, end", r"a->begin, end"),
    ("who must wait for whom is told the wrong way round",
     r"check_missing\(sim, &a, &b,", r"check_missing(sim, &b, &a,"),
    # the search
    ("the first work that is ready is always chosen",
     r"chosen = chosen < of \? worth\[chosen\] : -1;", r"chosen = worth[0];"),
    ("work that is in the way of other work commutes with it",
     r"if \(from < other \+ y->bytes && other < from \+ x->bytes\) return 0;", r""),
    ("functions commute", r"if \(!a\.declared \|\| !b\.declared\) return 0;", r""),
    ("the host never comes first", r"of \+ !needed", r"of"),
    ("the same host thread always goes on", r"able\[check_choose_turn\(run, count\)\]", r"able[0]"),
    ("the last alternative is left out",
     r"c->chosen\[c->count - 1\] \+ 1 >= c->of", r"c->chosen[c->count - 1] + 2 >= c->of"),
    ("memory is not compared", r"if \(out\.fingerprint != as_it_came->fingerprint\) \*changed = 1;", r""),
    ("a disagreement is not told", r"result->disagreements \+= changed != [^;]*;", r";"),
    ("host threads change places at queries only",
     r"!check_is_private\(call\)\) check_yield", r"check_is_private(call)) check_yield"),
    ("host threads change places at questions, too", r" && !check_is_private\(call\)\) check_yield", r") check_yield"),
    ("a thread does not come after its caller", r"\(void\)cai_sim_observe\(run->sim, run->started\);", r""),
    ("the caller does not come after its threads",
     r"\(void\)cai_sim_observe\(sim, run->threads\[i\]\.published\);", r";"),
    ("a baton orders nothing",
     r"\(void\)cai_sim_observe\(sim, baton->passed\[baton->takes\+\+\]\);", r"baton->takes++;"),
    ("a baton holds nobody up", r"run->thread_count && baton->takes == baton->passes", r"0"),
    ("a failure is forgotten", r"result->failed \|\| ", r""),
    ("leaks are not looked for", r"    check_leaks\(run\);", r""),
    ("a search that was cut off is good", r" \|\| result->truncated", r""),
    ("the limit is one more", r"if \(search->runs < limit\)", r"if (search->runs <= limit)"),
    ("the call after the one to be omitted is",
     r"\+\+run->omit_calls != o->omit_call", r"run->omit_calls++ != o->omit_call"),
    ("calls of all threads are omitted",
     r"if \(o->omit_thread > 0 && self != o->omit_thread - 1\) return;", r""),
    ("calls of threads are omitted as the program's own",
     r"if \(o->omit_thread < 0 && self != CHECK_NOBODY\) return;", r""),
    ("dice fall on one side", r"chosen = \(int32_t\)\(check_throw\(dice\)[^;]*;", r""),
    ("all seeds are one", r"check_dice\(search\.options\.seed\)", r"1"),
    ("samples go by something else", r"check_dice\(search\.options\.seed\)",
     r"check_dice((uint64_t)(uintptr_t)malloc(1000))"),
    ("a program may do something else each time", r"c->changed \|= c->of\[c->at\] != of;", r""),
    ("turns after a query are not part of the search", r"run->strays = 1;", r""),
]  # fmt: skip


def first_failure(status, output):
    """The first thing that the test says is wrong."""
    found = re.search(r"test_\w+\.c:\d+: (.*)", output)
    return found.group(1).strip() if found else "did not end" if status is None else f"exit status {status}"


class Checked(Subject):
    """test_check.c, test_graphs.c and test_memory.c with the simulation and the checker."""

    def build(self, options, tree, folder):
        below = [tree / file for file in FILES]
        return compile_each(options, folder, [HERE / f"{test}.c" for test in TESTS], "-O0", "-DCAI_SIM_LINKED", *folders_of(tree), *below)

    def run(self, options, tree, folder, environment, defect):
        for test in TESTS:
            numbers = [options.traces, options.programs, options.seed] if test == "test_check" else []
            command = [folder / test, *numbers]
            status, output = execute_until(command, 60, rf"{test}\.c:\d+: ", environment)
            if status != 0:
                return defect is not NONE, first_failure(status, output) if defect is not NONE else f"WRONG: {output}"
        return defect is NONE, "nothing is wrong" if defect is NONE else "NOT FOUND"


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--traces", type=int, default=300)
    arguments.add_argument("--programs", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    defects = [Defect(name, file, *change) for file, table in zip(FILES, (CHECK, SIM)) for name, *change in table]
    defects += [Defect(name, FILES[1], *change, "memory") for name, *change in MEMORY]
    return judge_all(arguments.parse_args(), defects, Checked())


if __name__ == "__main__":
    sys.exit(main())
