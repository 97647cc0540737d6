#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_dlpack.h, one at a time; test_dlpack.c must see each of them.

    tests/dlpack/planted.py [--dlpack FOLDER] [--cc CC] [--root FOLDER] [--only TEXT]

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
sys.path.insert(0, str(HERE.parent))
from planting import compile_with, execute, judge_all, parser, substitute  # noqa: E402

# What it is, where it is, what stands there instead
DEFECTS = [
    # types
    ("lanes are not looked at", r"in\.lanes == 1 && ", r""),
    ("two formats are exchanged", r"\{\"float8_e4m3fn\", 'f', 5", "{\"float8_e4m3fn\", 'f', 6"),
    ("sizes that are no power of two", r" && !\(bits & \(bits - 1\)\)", r""),
    ("bool is uint8", r"\{\"bool\", 'b'", "{\"bool\", 'u'"),
    ("long double is taken", r"'f', 0, 16, 64", r"'f', 0, 16, 128"),
    ("the item size is not compared with the code", r"in->itemsize \* \(int64_t\)8 == bits && ", r""),
    ("a format is not looked at", r"type->format == format && ", r""),
    # imports
    ("the device of host memory is told", r"if \(type != CAI_PRIV_DLPACK_CUDA\) return CAI_OK;", r""),
    ("managed memory is device memory", r"\*memory = CAI_MEMORY_MANAGED", r"*memory = CAI_MEMORY_DEVICE"),
    ("ROCm is CUDA", r"else if \(type == CAI_PRIV_DLPACK_CUDA\) \*memory", r"else if (type == 2 || type == 10) *memory"),
    ("byte_offset is left out", r"data \? data \+ offset : 0", r"data"),
    ("NULL and an offset are a pointer", r"data \? data \+ offset : 0", r"data + offset"),
    ("an address wraps", r"!data \|\| offset <= \(uint64_t\)UINTPTR_MAX - data \|\| ", r"1 || "),
    ("strides stay elements", r"fits \? stride \* itemsize : 0", r"fits ? stride : 0"),
    ("a stride wraps", r"if \(!fits && !empty && tensor->shape\[i\] > 1\)", r"if (0)"),
    ("a stride that nothing moves along is judged", r"!fits && !empty && tensor->shape\[i\] > 1", r"!fits"),
    ("the largest stride is refused", r"stride <= most && ", r"stride < most && "),
    ("65 dimensions", r"tensor->ndim > CAI_MAX_NDIM \|\| \(tensor", r"tensor->ndim > CAI_MAX_NDIM + 1 || (tensor"),
    ("the deleter is called twice", r"(    managed->deleter\(managed\);\n)", r"\1\1"),
    ("the deleter is not called", r"    managed->deleter\(managed\);\n", r"    (void)managed;\n"),
    ("an import without deleter has a release", r"if \(managed->deleter\) cai_array_own", r"cai_array_own"),
    ("read-only is not looked at", r"if \(managed->flags & CAI_PRIV_DLPACK_BIT_READ_ONLY\).*", r""),
    ("another major version is read", r"managed->version\.major != 1", r"managed->version.major > 7"),
    ("another major version is not deleted", r"if \(managed->deleter\) managed->deleter\(managed\);", r""),
    ("strides may be missing from 1.2 on", r"managed->version\.minor < 2", r"1"),
    ("unknown flags are fine", r"    if \(more\)\n", r"    if (0)\n"),
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
    ("the array is not released", r"    cai_array_release\(&storage->array\);\n", r""),
    ("done comes before the release", r"    (cai_array_release\(&storage->array\);)\n    (if \(storage->done\).*)",
     r"    { cai_array kept = storage->array; \2 cai_array_release(&kept); }"),
    ("the array keeps its owner", r"cai_array_move\(&storage->array, array\);", r"storage->array = *array;"),
    ("an empty array has a pointer", r"array->size \? \(void \*\)\(uintptr_t\)array->data : NULL",
     r"(void *)(uintptr_t)array->data"),
]  # fmt: skip


def judge(options, folder, work, defect):
    """(good, what to print) of one defect: the test over the header with it."""
    find, replace = defect[1:] or ("", "")
    (folder / "ext").mkdir()
    (folder / "tests").mkdir()
    shutil.copy(options.root / "cai.h", folder)
    for name in ("test_dlpack.c", "cai_test.h", "cai_test_help.h"):
        shutil.copy(HERE.parent / name, folder / "tests")
    if not substitute(options.root / "ext" / "cai_dlpack.h", folder / "ext" / "cai_dlpack.h", find, replace):
        return False, f"DOES NOT APPLY any more: {find}"
    found = [f"-I{options.dlpack}"] if options.dlpack else []
    binary = folder / "test"
    error = compile_with(options, "-O0", f"-I{folder}", *found, folder / "tests" / "test_dlpack.c", "-o", binary)
    if error:
        return False, f"FAILED: {error[:400]}"
    status, output = execute([binary], 60)
    if not find:
        return status == 0, output.strip().splitlines()[-1] if status == 0 else f"A FAILURE: {output}"
    first = re.search(r"test_dlpack\.c:\d+: .*", output)
    if status == 0 or not (first or (status or 0) < 0):
        return False, f"NOT FOUND: {output}"
    return True, first.group(0) if first else f"signal {-status}"


def has_dlpack(options):
    """Whether there is a dlpack.h with the versioned struct."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "probe.c"
        source.write_text("#include <dlpack/dlpack.h>\nstruct DLManagedTensorVersioned probe;\n")
        found = [f"-I{options.dlpack}"] if options.dlpack else []
        return not compile_with(options, *found, "-c", source, "-o", source.with_suffix(".o"))


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--dlpack", default="", help="a folder with dlpack/dlpack.h")
    options = arguments.parse_args()
    if shutil.which(options.cc) and not has_dlpack(options):
        print("planted.py: skipped, no dlpack/dlpack.h of 1.0 or later")
        return 77
    return judge_all(options, DEFECTS, judge)


if __name__ == "__main__":
    sys.exit(main())
