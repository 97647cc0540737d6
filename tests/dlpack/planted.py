#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_dlpack.h, one at a time; test_dlpack.c or test_dlpack_order.c must see each of them.

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
from planting import NONE, Defect, Subject, compile_with, execute_until, folders_of, judge_all, parser  # noqa: E402

TESTS = ("test_dlpack.c", "test_dlpack_order.c")

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
    ("the deleter is called twice", r"(    managed->deleter\(managed\);\n)", r"\1\1"),
    ("the deleter is not called", r"    managed->deleter\(managed\);\n", r"    (void)managed;\n"),
    ("an import without deleter has a release", r"if \(managed->deleter\) cai_array_own", r"cai_array_own"),
    ("read-only is not looked at", r"if \(managed->flags & CAI_PRIV_DLPACK_BIT_READ_ONLY\).*", r""),
    ("another major version is read", r"managed->version\.major != 1", r"managed->version.major > 7"),
    ("another major version is not deleted", r"if \(managed->deleter\) managed->deleter\(managed\);", r""),
    ("strides may be missing from 1.2 on", r"managed->version\.minor < 2", r"1"),
    ("unknown flags are fine", r"!\(managed->flags & ~\(uint64_t\)CAI_PRIV_DLPACK_BITS\) &&", r"1 &&"),
    ("the stream is not stored", r"out->stream = options->stream;", r""),
    ("stream -1 is one", r" && options->stream != UINT64_MAX", r""),
    # exports
    ("read-only is not said", r"0u : \(uint32_t\)CAI_PRIV_DLPACK_BIT_READ_ONLY", r"0u : 0u"),
    ("read-only is dropped unasked", r" && !\(flags & \(uint32_t\)CAI_DLPACK_DROP_READ_ONLY\)", r" && 0"),
    ("pending work is not looked at", r"array->sync != CAI_SYNC_NONE", r"0"),
    ("the mask is dropped", r"if \(array->mask\)", r"if (0)"),
    ("strides are rounded", r"array->shape\[i\] == 1 \|\| !\(array->strides\[i\] % array->dtype\.itemsize\)", r"1"),
    ("strides stay bytes", r"= array->strides\[i\] / array->dtype\.itemsize", r"= array->strides[i]"),
    ("strides are where the shape is", r"shape_and_strides \+ array->ndim : NULL", r"shape_and_strides : NULL"),
    ("pinned memory is told by its device", r"type == CAI_PRIV_DLPACK_CUDA \? array->device : 0", r"array->device"),
    ("the array is not released", r"    else cai_array_release\(&storage->array\);\n", r""),
    ("done comes before the release",
     r"    if \(storage->release\) storage->release\(storage\);\n    else (cai_array_release\(&storage->array\);)\n    (if \(storage->done\).*)",
     r"    { cai_array kept = storage->array; \2 cai_array_release(&kept); }"),
    ("the array keeps its owner", r"cai_array_move\(&storage->array, array\);", r"storage->array = *array;"),
    ("an empty array has a pointer", r"array->size \? \(void \*\)\(uintptr_t\)array->data : NULL",
     r"(void *)(uintptr_t)array->data"),
    # both ends
    ("an import does not say that there is no back edge", r"    out->flags \|= CAI_NO_BACK_EDGE;\n", r""),
    ("a versioned import does not say that there is no back edge", r"&how, CAI_NO_BACK_EDGE, out", r"&how, 0, out"),
    ("the deleter makes no order", r"if \(storage->release\) storage->release\(storage\);\n    else cai", r"cai"),
    ("an export keeps the release of another one", r"    storage->release = NULL;\n", r""),
    ("the deleter releases at once", r"cai_exchange_finish\(ex, CAI_OK, array, 1, NULL\);",
     r"cai_exchange_end(ex, CAI_OK, NULL); if (!status) cai_array_release(array[0]);"),
    ("the deleter ends no exchange", r"cai_exchange_finish\(ex, CAI_OK, array, 1, NULL\);",
     r"CAI_OK; if (!ordered->waits) cai_array_release(array[0]);"),
    ("the exchange of another thread stays open", r"        ex->thread = 0;\n", r""),
    ("the exchange of a deleter that waits stays open",
     r"CAI_TRY\(cai_exchange_end\(ex, stream \? cai_priv_dlpack_remember_context\(ex, err\) : CAI_OK, err\)\);",
     r"if (stream) CAI_TRY(cai_priv_dlpack_remember_context(ex, err));"),
    ("the host does not wait", r"    if \(cai_priv_dlpack_wait\(ex, &storage->array\)\) return;\n", r""),
    ("the host waits in a capture", r"if \(!storage->array.release \|\| status == CAI_ERR_CAPTURE\) return;",
     r"if (!storage->array.release) return;"),
    ("the host waits for an array that was given back", r"if \(!storage->array.release \|\| status == CAI_ERR_CAPTURE\) return;",
     r"if (status == CAI_ERR_CAPTURE) return;"),
    ("where the host cannot wait the array is released", r"if \(cai_priv_dlpack_wait\(ex, &storage->array\)\) return;",
     r"if (cai_priv_dlpack_wait(ex, &storage->array)) {}"),
    ("a context that is gone keeps its arrays", r"return error && !cai_priv_is_dead\(error\) \?", r"return error ?"),
    ("the memory's context is waited for, always", r"if \(!ex->context \|\| ", r"if (1 || "),
    ("the context is not remembered", r"stream \? cai_priv_dlpack_remember_context\(ex, err\) : CAI_OK, err", r"CAI_OK, err"),
    ("the capture mode is not relaxed", r"error = cai_priv_mode_relax\(cuda, &mode\);", r"error = mode = 0;"),
    ("the capture mode stays relaxed", r"\(void\)cai_priv_mode_restore\(cuda, mode, 0\);", r""),
    ("a context stays pushed", r"\n    \(void\)cai_priv_context_leave\(cuda, context\);", r""),
    ("a context stays pushed after an error", r"\n    \(void\)cai_priv_context_leave\(cuda, context\);",
     r"\n    (void)cuda->context_pop(cuda->self);"),
    ("a known stream is given up", r"ordered->waits = !stream \|\|", r"ordered->waits = 1 ||"),
    ("a stream that may be destroyed is used", r"ordered->waits = !stream \|\| flags & \(uint32_t\)CAI_DLPACK_SYNCHRONIZE",
     r"ordered->waits = !stream"),
    ("streams 1 and 2 are those of the current context", r"if \(!error && device == array->device\) return CAI_OK;", r"return CAI_OK;"),
    ("a context stays pushed after an export", r"    if \(context\) \(void\)cai_priv_context_leave\(cuda, context\);\n",
     r""),
    ("host memory waits for a stream", r"if \(!array->size \|\| array->memory == CAI_MEMORY_HOST\)", r"if (!array->size)"),
    ("an empty array waits for a stream", r"if \(!array->size \|\| array->memory", r"if (array->memory"),
    ("an export that fails keeps the array", r"    if \(status\) cai_array_move\(array, &storage->storage\.array\);\n    else ", r"    "),
]  # fmt: skip


def dlpack_of(options):
    return [f"-I{options.dlpack}"] if options.dlpack else []


class Dlpack(Subject):
    """Both tests; a defect that the first one sees is not shown to the second."""

    def build(self, options, tree, folder):
        for test in TESTS:
            source, target = HERE / test, folder / test[:-2]
            error = compile_with(options, "-O1", *folders_of(tree), *dlpack_of(options), source, "-o", target)
            if error:
                return error
        return None

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
    return judge_all(options, [Defect(name, "ext/cai_dlpack.h", *change) for name, *change in DEFECTS], Dlpack())


if __name__ == "__main__":
    sys.exit(main())
