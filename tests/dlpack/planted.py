#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_dlpack.h and in the list of cai_stream.h, one at a time; one of the tests beside it must
see each of them.

    tests/dlpack/planted.py [--dlpack FOLDER] [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

FOLDER has dlpack/dlpack.h; without it the compiler must find that. Prints one line per defect: the first check that
fails. A defect that is not found, or that does not apply to the header any more, is a failure, and so is a failing
check without a defect. Exit status 0: all found; 1: not; 77: no C compiler, or no dlpack.h of 1.0 or later.
"""

import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_each, compile_with, execute_until, folders_of, judge_all, parser  # noqa: E402

TESTS = ("test_dlpack.c", "test_dlpack_packed.c", "test_dlpack_order.c", "test_dlpack_table.c")

# What it is, where it is, what stands there instead
DEFECTS = [
    # types
    ("lanes are not looked at", r" \|\| in\.lanes != 1", r""),
    ("two formats are exchanged", r"(\"float8_e4m3fn\", CAI_PRIV_ONE\()CAI_FLOAT8_E4M3FN", r"\1CAI_FLOAT8_E4M3FNUZ"),
    ("sizes of 0 bits", r" \|\| !in\.bits\)", r")"),
    ("a size that is not there is the last one", r"return dtype->itemsize \* 8 == in\.bits \? dtype : NULL;", r"return dtype;"),
    ("a dtype has another alignment", r"CAI_PRIV_SIZE\(CAI_COMPLEX64, 4\)", r"CAI_PRIV_SIZE(CAI_COMPLEX64, 8)"),
    ("bool is uint8", r"(\"bool\", CAI_PRIV_ONE\()CAI_BOOL", r"\1CAI_UINT8"),
    ("long double is taken", r"(CAI_PRIV_SIZE\(CAI_FLOAT64, 8\))\}", r"\1, CAI_PRIV_SIZE(CAI_FLOAT128, 16)}"),
    ("the item size is not compared with the code", r" \|\| same->itemsize != in->itemsize\)", r")"),
    ("another code is the same", r"same->code != in->code \|\| ", r""),
    ("no dtype is one", r"code = 0; in->itemsize && ", r"code = 0; "),
    # below 8 bits
    ("any lanes below 8 bits", r"return row >= 0 && \(in\.lanes == 1 \|\| in\.lanes == cai_priv_dlpack_narrow\[row\]\.values\) \? row : -1;",
     r"return row;"),
    ("a narrow dtype of another code", r"if \(in\.code == cai_priv_dlpack_narrow\[row\]\.code && in\.bits", r"if (in.bits"),
    ("float6 formats are exchanged", r"\{15, 6, 4, CAI_FLOAT6_E2M3FN_X4\}", r"{15, 6, 4, CAI_FLOAT6_E3M2FN_X4}"),
    ("the single dtype beside a packed one is another", r"\(\(packed\) & 0xff0000\) - 0x100000", r"((packed) & 0xff0000) - 0x110000"),
    ("bits say what is padded", r"return format >= 10 && format <= 15;", r"return dtype->bits && dtype->itemsize && cai_dtype_values(dtype) == 1;"),
    ("float8 is padded", r"return format >= 10 && format <= 15;", r"return format >= 9 && format <= 15;"),
    ("int1 is not padded", r"return format >= 10 && format <= 15;", r"return format > 10 && format <= 15;"),
    ("float4 is not padded", r"return format >= 10 && format <= 15;", r"return format >= 10 && format < 15;"),
    ("packed values are padded", r"return format >= 10 && format <= 15;", r"return format >= 10;"),
    ("the item size of a narrow dtype is not compared", r"        if \(in->itemsize != \(in->code & 0xff\)\) break;\n", r""),
    ("an export has one lane", r"in->code == packed \? cai_priv_dlpack_narrow\[code\]\.values : 1;", r"1;"),
    ("the packed axis is the last", r"if \(tensor->shape\[axis\] > 1 && \(!tensor->strides \|\| tensor->strides\[axis\] == 1\)\) return axis;", r"return axis;"),
    ("an axis of extent 1 holds no values", r"        if \(tensor->shape\[axis\] <= 1 && alone < 0\) alone = axis;\n", r""),
    ("a row may begin within an element", r"if \(axis != packed && extent > 1 && stride % values\)", r"if (0)"),
    ("a row that nothing moves along is judged", r"axis != packed && extent > 1 && stride % values", r"axis != packed && stride % values"),
    ("a packed stride stays values", r"stride / values \* itemsize;", r"stride * itemsize;"),
    ("the padded mark is not looked at", r"padded = in->flags & CAI_DL_IS_PADDED \? 1 : 0;", r"padded = 0;"),
    ("padded lanes are taken", r"        if \(padded && tensor->dtype\.lanes > 1\) return [^;]*;\n", r""),
    ("the padded mark is not written", r"\(cai_dlpack_is_padded\(&array->dtype\) \? \(uint32_t\)CAI_DL_IS_PADDED : 0u\)", r"0u"),
    ("a struct without the mark gets padded values", r"if \(cai_dlpack_is_padded\(&array->dtype\) && !\(flags & \(uint32_t\)CAI_DLPACK_PADDED\)\)", r"if (0)"),
    ("an unversioned export may be padded", r"CAI_PRIV_DLPACK_LEND & ~CAI_DLPACK_PADDED", r"CAI_PRIV_DLPACK_LEND"),
    ("one lane leaves the shape", r"packed \? array->packed_extent : array->shape\[i\];", r"array->shape[i];"),
    ("one lane leaves the strides", r"array->dtype\.itemsize \* values;", r"array->dtype.itemsize;"),
    ("one lane has gaps", r"if \(array->shape\[packed\] > 1 && array->strides\[packed\] != array->dtype\.itemsize\)", r"if (0)"),
    ("one lane wraps a stride", r"if \(stride > INT64_MAX / values \|\| ", r"if ("),
    ("one lane wraps a negative stride", r" \|\| stride < INT64_MIN / values\)", r")"),
    ("one lane without an axis", r"    if \(packed < 0\)\n", r"    if (packed < -1)\n"),
    ("lanes with unused bits", r"if \(array->packed_extent % dtype->lanes\)", r"if (0)"),
    # imports
    ("the device of host memory is told", r"= \*memory == CAI_MEMORY_DEVICE \? id : CAI_DEVICE_UNKNOWN;", r"= id;"),
    ("managed memory is device memory", r"0, CAI_MEMORY_MANAGED\}", r"0, CAI_MEMORY_DEVICE}"),
    ("ROCm is CUDA", r"type < sizeof memories \? memories\[type\]", r"type < sizeof memories ? memories[type == 10 ? 2 : type]"),
    ("a device may be negative", r" \|\| \(\*memory == CAI_MEMORY_DEVICE && id < 0\)\)", r")"),
    ("byte_offset is left out", r"data \? data \+ offset : 0", r"data"),
    ("NULL and an offset are a pointer", r"data \? data \+ offset : 0", r"data + offset"),
    ("an address wraps", r"!data \|\| offset <= \(uint64_t\)UINTPTR_MAX - data \|\| ", r"1 || "),
    ("all strides are those of C order", r"\(uint64_t\)tensor->strides\[axis\] != run \|\| ", r""),
    ("C order: an extent of 0 is one of 1", r" \|\| tensor->shape\[axis\] < 1\) return 0;", r") return 0;"),
    ("C order: no strides were given", r"if \(tensor->strides\) flags \|= CAI_HAD_STRIDES;", r""),
    ("strides stay elements", r"fits \? stride \* itemsize : 0", r"fits ? stride : 0"),
    ("a stride wraps", r"if \(!fits && !empty && tensor->shape\[i\] > 1\)", r"if (0)"),
    ("a stride that nothing moves along is judged", r"!fits && !empty && tensor->shape\[i\] > 1", r"!fits"),
    ("the largest stride is refused", r"stride <= most && ", r"stride < most && "),
    ("65 dimensions", r"tensor->ndim > CAI_MAX_NDIM", r"tensor->ndim > CAI_MAX_NDIM + 1"),
    ("the deleter is called twice", r"(    \(\(cai_dl_managed\w* \*\)managed\)->deleter\(managed\);\n)", r"\1\1"),
    ("the deleter is not called", r"    \(\(cai_dl_managed\w* \*\)managed\)->deleter\(managed\);\n", r"    (void)managed;\n"),
    ("an import without deleter has a release", r"if \(in->deleter\) cai_array_own", r"cai_array_own"),
    ("read-only is not looked at", r"if \(in->flags & CAI_DL_READ_ONLY\).*", r""),
    ("another major version is read", r"in->version\.major != 1", r"in->version.major > 7"),
    ("another major version is not deleted", r"if \(in->deleter\) in->deleter\(managed\);", r""),
    ("strides may be missing from 1.2 on", r"managed->version\.minor < 2", r"1"),
    ("unknown flags are fine", r"!\(managed->flags & ~\(uint64_t\)CAI_PRIV_DLPACK_BITS\) &&", r"1 &&"),
    ("the stream is not stored", r"out->stream = options->stream;", r""),
    ("stream -1 is one", r" && options->stream != UINT64_MAX", r""),
    # exports
    ("read-only is not said", r"0u : \(uint32_t\)CAI_DL_READ_ONLY", r"0u : 0u"),
    ("read-only is dropped unasked", r" && !\(flags & \(uint32_t\)CAI_DLPACK_DROP_READ_ONLY\)", r" && 0"),
    ("pending work is not looked at", r"array->sync != CAI_SYNC_NONE", r"0"),
    ("the mask is dropped", r"if \(array->mask\)", r"if (0)"),
    ("strides are rounded", r"array->shape\[i\] == 1 \|\| !\(array->strides\[i\] % array->dtype\.itemsize\)", r"1"),
    ("strides stay bytes", r"1 : array->strides\[i\] / array->dtype\.itemsize", r"1 : array->strides[i]"),
    ("strides are where the shape is", r"shape_and_strides \+ array->ndim : NULL", r"shape_and_strides : NULL"),
    ("pinned memory is told by its device", r"type == CAI_DL_CUDA \? array->device : 0", r"array->device"),
    ("the array is not released", r"(it does the rest later \*/\n)    cai_array_release\(&storage->array\);\n", r"\1"),
    ("done comes before the release",
     r"    cai_array_release\(&storage->array\);\n    (if \(storage->done\).*)",
     r"    { cai_array kept = storage->array; \1 cai_array_release(&kept); }"),
    ("the array keeps its owner", r"cai_array_move\(&storage->array, array\);", r"storage->array = *array;"),
    ("an empty array has a pointer", r"array->size \? \(void \*\)\(uintptr_t\)array->data : NULL",
     r"(void *)(uintptr_t)array->data"),
    # both ends
    ("an import does not say that there is no back edge", r"    out->flags \|= CAI_NO_BACK_EDGE;\n", r""),
    ("a versioned import does not say that there is no back edge", r"padded, CAI_NO_BACK_EDGE, out", r"padded, 0, out"),
    ("the deleter makes no order", r"if \(storage->release && !storage->release\(storage\)\) return; /\* .*", r""),
    ("an export keeps the release of another one", r"    storage->release = NULL;\n", r""),
    ("a parked array is done at once", r"if \(storage->release && !storage->release\(storage\)\) return; /\* .*",
     r"if (storage->release && !storage->release(storage)) { if (storage->done) storage->done(storage); return; }"),
    ("the export has a way back", r"    one_way\.flags \|= \(uint32_t\)CAI_PRIV_ONE_WAY;\n", r""),
    ("each consumer's stream is the array's own", r"array->sync == CAI_SYNC_STREAM && array->stream == at->stream;",
     r"array->sync == CAI_SYNC_STREAM;"),
    ("an owner that frees at once has its own stream's order",
     r"return !cai_priv_dlpack_frees_in_order\(&at->storage\.array\);", r"return 0;"),
    ("any owner frees in order", r"if \(!\(array->flags & CAI_ORDERED_FREE\) \|\| array->flags", r"if (array->flags"),
    ("an imported array gets a back edge", r" \|\| array->flags & CAI_NO_BACK_EDGE\) return 0;", r") return 0;"),
    ("a non-blocking stream is a blocking one", r"if \(!non_blocking && !plain\) return CAI_OK;", r"return CAI_OK;"),
    ("a platform without default streams has stream 1", r"if \(!non_blocking && !plain\)", r"if (!non_blocking)"),
    ("each stream lives", r"if \(handle && at->flags & \(uint32_t\)CAI_DLPACK_STREAMS_LIVE\) return CAI_OK;", r"if (handle) return CAI_OK;"),
    ("each export has promised that nothing captures", r"if \(at->flags & \(uint32_t\)CAI_DLPACK_NO_CAPTURES && ",
     r"if ("),
    ("a capture of the consumer is not seen", r"    at->graph = at->stream != [^;]*;\n", r"    at->graph = 0;\n"),
    ("a capture of stream 2 is not seen", r"    at->graph = at->stream != \(uint64_t\)CAI_STREAM_LEGACY && ", r"    at->graph = handle && "),
    ("a graph of the array's own stream is not seen", r"if \(own && !cai_priv_dlpack_may_park\(at\)\) return CAI_OK;", r"if (own) return CAI_OK;"),
    ("a graph's array goes at once on its own stream", r"if \(cai_priv_dlpack_in_graph\(at\) \|\| at->way != CAI_PRIV_DLPACK_BY_OWN\) return 1;", r"if (at->way != CAI_PRIV_DLPACK_BY_OWN) return 1;"),
    ("a graph that tells its end does not keep the array", r"    if \(at->graph == 2 && cai_priv_dlpack_in_graph\(at\)\) return 0;\n", r""),
    ("a graph does not tell its end", r"    cai_priv_dlpack_ask_graph\(at\);\n", r""),
    ("a graph that failed to take it tells its end", r"cai_priv_dlpack_graph_ends, at\)\) at->graph = 1;", r"cai_priv_dlpack_graph_ends, at)) at->graph = 2;"),
    ("a graph has an array that stays the caller's", r"    if \(cai_priv_dlpack_may_park\(at\)\) CAI_TRY\(cai_priv_dlpack_check_limit\(at->pool, err\)\);\n    cai_priv_dlpack_ask_graph\(at\);\n",
     r"    cai_priv_dlpack_ask_graph(at);\n    if (cai_priv_dlpack_may_park(at)) CAI_TRY(cai_priv_dlpack_check_limit(at->pool, err));\n"),
    ("the end of a graph is not noted", r"    at->gone = 1;\n", r""),
    ("the flags of a capturing stream are queried", r"if \(!at->graph && cuda->stream_flags && ", r"if (cuda->stream_flags && "),
    ("the id of a capturing stream is queried at the export", r"if \(at->graph \|\| \(cuda->stream_id && cuda->stream_id\(cuda->self, at->stream, &at->stream_id\)\)\)",
     r"if (cuda->stream_id && cuda->stream_id(cuda->self, at->stream, &at->stream_id))"),
    ("a stream that lives is not used", r"    if \(handle && at->flags & \(uint32_t\)CAI_DLPACK_STREAMS_LIVE\) return CAI_OK;\n", r""),
    ("a mode that was relaxed stays so", r"    if \(!kept\) \(void\)cai_priv_mode_restore\(cuda, mode, 0\);\n", r"    (void)kept;\n"),
    ("the deleter releases in the mode of the thread", r"cai_priv_dlpack_let_go\(cuda, array\);", r"cai_array_release(array);"),
    ("an array that no stream works on is released in the mode of the thread", r"cai_priv_dlpack_let_go\(pool->cuda, &storage->array\)",
     r"cai_array_release(&storage->array)"),
    ("a graph's array goes by a wait", r"    if \(at->graph == 1\) \{\n", r"    if (at->graph == 1 && !wait) {\n"),
    ("a context without an id is entered for a graph", r"        if \(at->graph == 1 && !cuda->context_id\) return 0; .*\n", r""),
    ("the deleter waits", r"if \(cai_priv_dlpack_settle\(at, 0\)\) return 1;", r"if (cai_priv_dlpack_settle(at, 1)) return 1;"),
    ("a poll waits", r"if \(!cai_priv_dlpack_settle\(at, wait\)\) return 0;", r"if (!cai_priv_dlpack_settle(at, 1)) return 0;"),
    ("a drain does not wait", r"return wait \? cai_priv_dlpack_wait\(at\) : 600;", r"return 600;"),
    ("a drain ends captures", r"        error = cai_priv_captures\(cuda, CAI_STREAM_LEGACY\);\n", r"        error = 0;\n"),
    ("a record does not ask for captures", r"int32_t error = cai_priv_captures\(cuda, stream\);", r"int32_t error = 0;"),
    ("the array's stream waits though it captures",
     r"if \(!cai_priv_dlpack_frees_in_order\(array\) \|\| cai_priv_captures\(cuda, array->stream\)\) return 0;",
     r"if (!cai_priv_dlpack_frees_in_order(array)) return 0;"),
    ("the array's stream waits for nothing", r"return !cuda->stream_wait_event\(cuda->self, array->stream, at->event\);", r"return 1;"),
    ("an event that is not done passes", r": cuda->event_query\(cuda->self, at->event\);", r": 0;"),
    ("the event stays", r"    if \(at->event && error != 709\) [^;]*;\n", r""),
    ("a failed record leaves an event", r"    \(void\)cuda->event_destroy\(cuda->self, at->event\);\n    at->event = 0;\n    return error;",
     r"    return error;"),
    ("a context that has ended keeps its arrays", r"if \(error && cai_priv_context_lives\(cuda, at->context, at->context_id\)\) \{", r"if (error) {"),
    ("a context that is gone keeps its arrays", r"if \(error && !cai_priv_is_dead\(error\)\) return 0;", r"if (error) return 0;"),
    ("an array is released twice", r"    if \(cai_priv_dlpack_settle\(at, 0\)\) return 1;\n", r"    cai_priv_dlpack_settle(at, 0);\n"),
    ("what is parked is lost", r"    cai_priv_park\(at->pool, &at->parked\);\n", r""),
    ("a parked array has no end", r"    if \(at->storage\.done\) at->storage\.done\(&at->storage\);\n", r""),
    ("a later export settles nothing", r"    cai_priv_dlpack_settle_others\(at\);\n", r""),
    ("a later export settles all streams", r"BY_WAIT &&\n\s+cai_priv_dlpack_of\(\*link\)->stream_id == stream_id\)", r"BY_WAIT)"),
    ("what a later export could not settle is found again", r"        if \(!recorded\) return; .*", r""),
    ("what a later export could not settle is lost", r"        cai_priv_park\(now->pool, node\); .*", r""),
    ("the id of a capturing stream is queried", r"    if \(cai_priv_captures\(cuda, now->stream\)\) return; .*", r""),
    ("the list counts what was taken", r"        cai_priv_guarded_put\(&pool->waiting, pool->waiting - 1\);\n    \}\n    cai_priv_guard_give", r"    }\n    cai_priv_guard_give"),
    ("the consumer's context is not entered", r"    error = cai_priv_context_enter\(cuda, at->context\);\n    if \(error\) return error;\n    error = cai_priv_dlpack_look\(at, wait\);\n    \(void\)cai_priv_context_leave\(cuda, at->context\);\n    return error;",
     r"    return cai_priv_dlpack_look(at, wait);"),
    ("the capture mode is not relaxed", r"        error = cai_priv_mode_relax\(cuda, &mode\);", r"        error = mode = 0;"),
    ("the capture mode stays relaxed", r"error = cai_priv_mode_restore\(cuda, mode, cai_priv_dlpack_look_there\(at, wait\)\);", r"error = cai_priv_dlpack_look_there(at, wait);"),
    ("a context stays pushed", r"\n    \(void\)cai_priv_context_leave\(cuda, at->context\);", r""),
    ("streams 1 and 2 are those of the current context", r"if \(!error && device == array->device\) return CAI_OK;", r"return CAI_OK;"),
    ("a context stays pushed after an export", r"    if \(context\) \(void\)cai_priv_context_leave\(cuda, context\);\n",
     r""),
    ("host memory waits for a stream", r"if \(!array->size \|\| array->memory == CAI_MEMORY_HOST\)", r"if (!array->size)"),
    ("an empty array waits for a stream", r"if \(!array->size \|\| array->memory", r"if (array->memory"),
    ("what is parked is not counted", r"    cai_priv_dlpack_count\(at->pool, storage->array\.nbytes, 1\);.*", r""),
    ("what went is counted", r"    cai_priv_dlpack_count\(at->pool, nbytes, -1\);\n", r""),
    ("no peak of arrays", r"    if \(parked->peak_arrays < .*", r""),
    ("no peak of bytes", r"    if \(parked->peak_bytes < .*", r""),
    ("no limit of arrays", r"\(parked->limit_arrays && ", r"(0 && "),
    ("no limit of bytes", r"\(parked->limit_bytes && ", r"(0 && "),
    ("a limit of bytes refuses what is at it", r"parked->bytes > parked->limit_bytes", r"parked->bytes >= parked->limit_bytes"),
    ("at the limit nothing is polled", r"    \(void\)!cai_keepalive_poll\(pool, NULL, NULL\);\n", r""),
    ("at the limit nobody exports", r"    if \(cai_priv_dlpack_may_park\(at\)\) CAI_TRY\(cai_priv_dlpack_check_limit", r"    CAI_TRY(cai_priv_dlpack_check_limit"),
    ("an export that fails keeps the array", r"    if \(status\) cai_array_move\(array, &storage->storage\.array\);\n    else ", r"    "),
]  # fmt: skip


# In cai_stream.h, which has the list of what is parked
DEFECTS_OF_LIST = [
    ("a full list waits for what is parked", r"cai_priv_retry_parked\(pool, run->wait && !run->only_oldest\)", r"cai_priv_retry_parked(pool, run->wait)"),
]  # fmt: skip


def dlpack_of(options):
    return [f"-I{options.dlpack}"] if options.dlpack else []


class Dlpack(Subject):
    """The tests; a defect that one of them sees is not shown to the next."""

    def build(self, options, tree, folder):
        return compile_each(options, folder, [HERE / test for test in TESTS], "-O1", *folders_of(tree), *dlpack_of(options))

    def run(self, options, tree, folder, environment, defect):
        printed = []
        for test in TESTS:
            status, output = execute_until([folder / test[:-2]], 60, rf"{test}:\d+: ", environment)
            first = re.search(rf"{test}:\d+: .*", output)
            if status != 0 and (first or (status or 0) < 0):
                return defect is not NONE, first.group(0) if first else f"{test}: signal {-status}"
            if status != 0 and defect is NONE:
                return False, f"A FAILURE: {output}"
            printed.append(output.strip())
        if defect is NONE:
            return True, "; ".join(text.splitlines()[-1] for text in printed)
        return False, f"NOT FOUND: {printed}"


def has_dlpack(options):
    """Whether there is a dlpack.h with the versioned struct."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "probe.c"
        source.write_text("#include <dlpack/dlpack.h>\nstruct DLManagedTensorVersioned probe;\n")
        return not compile_with(options, *dlpack_of(options), "-c", source, "-o", source.with_suffix(".o"))


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--dlpack", default="", help="a folder with dlpack/dlpack.h")
    options = arguments.parse_args()
    if shutil.which(options.cc) and not has_dlpack(options):
        print("planted.py: skipped, no dlpack/dlpack.h of 1.0 or later")
        return 77
    defects = [Defect(name, "ext/cai_dlpack.h", *change) for name, *change in DEFECTS]
    defects += [Defect(name, "cai_stream.h", *change) for name, *change in DEFECTS_OF_LIST]
    return judge_all(options, defects, Dlpack())


if __name__ == "__main__":
    sys.exit(main())
