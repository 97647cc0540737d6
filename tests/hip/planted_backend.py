#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in what says or checks the backend of an array, one at a time; a test must see each.

    tests/hip/planted_backend.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

The programs are test_paths.c, ../stream/test_backend.c and ../ext/test_ipc.c. Prints one line per defect: the first
check that fails. A defect that is not found, or that does not apply to its header any more, is a failure, and so is a
failing check without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute_until, folders_of, judge_all, parser  # noqa: E402

PROGRAMS = {"paths": HERE / "test_paths.c", "backend": HERE.parent / "stream" / "test_backend.c",
            "ipc": HERE.parent / "ext" / "test_ipc.c"}  # fmt: skip

# What it is, the header, where it is, what stands there instead, the program that sees it
DEFECTS = [Defect(name, header, find, replace, program) for name, header, find, replace, program in [
    ("a table of HIP refuses dictionaries", "cai_stream.h", r"return backend != CAI_BACKEND_CUDA && backend != cai_priv_backend\(cuda\);", r"return backend != cai_priv_backend(cuda);", "backend"),
    ("a table takes all backends", "cai_stream.h", r"return backend != CAI_BACKEND_CUDA && backend != cai_priv_backend\(cuda\);", r"return (void)cuda, (void)backend, 0;", "paths"),
    ("an exchange checks what has a stream", "cai_stream.h", r"    CAI_TRY\(cai_priv_check_backend\(call, member\)\);", r"    if (sync != CAI_SYNC_NONE) CAI_TRY(cai_priv_check_backend(call, member));", "backend"),
    ("an exchange in order checks nothing", "cai_stream.h", r"    if \(\(uint32_t\)array->backend > [^\n]*\n", r"", "backend"),
    ("a negative backend is in order", "cai_stream.h", r"\(uint32_t\)array->backend > \(uint32_t\)pool->backend", r"array->backend > pool->backend", "backend"),
    ("a pool is of CUDA", "cai_stream.h", r"    pool->backend = cai_priv_backend\(table\);\n", r"    pool->backend = 0;\n", "backend"),
    ("an export takes all", "cai_stream.h", r"    CAI_TRY\(cai_priv_check_backend\(&plan\.call, array\)\);\n", r"", "backend"),
    ("an export without a stream does not say HIP", "cai_stream.h", r"    array->backend = cai_priv_backend\(pool->cuda\);\n", r"    if (mode == CAI_MODE_EVENT) array->backend = cai_priv_backend(pool->cuda);\n", "backend"),
    ("an export does not say HIP", "cai_stream.h", r"    array->backend = cai_priv_backend\(pool->cuda\);\n", r"", "paths"),
    ("the keep-alive list takes all", "cai_stream.h", r"    CAI_TRY\(cai_priv_check_backend\(&call, array\)\);\n    if \(!array->release\)", r"    if (!array->release)", "backend"),
    ("cai_locate takes all", "cai_stream.h", r"    CAI_TRY\(cai_priv_check_backend\(call, array\)\);\n    if \(!array->size\)", r"    if (!array->size)", "backend"),
    ("cai_locate does not say HIP", "cai_stream.h", r"    if \(where->memory > CAI_MEMORY_HOST\) array->backend = [^\n]*\n", r"", "paths"),
    ("cai_emm_array does not say HIP", "cai_emm.h", r"    if \(owner\.cuda\) made\.backend = [^\n]*\n", r"", "paths"),
    ("a manager does not say HIP", "ext/cai_manager.h", r"    if \(slot->manager->cuda\) array->backend = [^\n]*\n", r"", "paths"),
    ("a storage does not say HIP", "ext/cai_storage.h", r"        if \(s->options\.pool\) s->array\[i\]\.backend = [^\n]*\n", r"", "paths"),
    ("a moved array says what it said", "ext/cai_move.h", r"out->backend = memory\.backend;", r"out->backend = array->backend;", "paths"),
    ("a migrated array says what it said", "ext/cai_place.h", r"    array->backend = cai_priv_backend\(pool->cuda\);\n", r"", "paths"),
    ("cai_migrate asks CUDA about memory of HIP", "ext/cai_place.h", r"    CAI_TRY\(cai_priv_work_backend\(&work, array\)\);\n    CAI_TRY\(cai_priv_migrate_ask", r"    CAI_TRY(cai_priv_migrate_ask", "paths"),
    ("cai_place_on asks CUDA about a stream of HIP", "ext/cai_place.h", r"    if \(array\) CAI_TRY\(cai_priv_work_backend\(&work, array\)\);\n", r"", "paths"),
    ("a plan forgets the backend of from", "ext/cai_transfer.h", r"    if \(from->backend != CAI_BACKEND_CUDA\) plan\.backend = [^\n]*\n", r"", "paths"),
    ("a plan forgets the backend", "ext/cai_transfer.h", r"    plan->backend = array->backend;\n", r"    plan->backend = 0;\n", "paths"),
    ("a pool of HIP exports to DLPack", "ext/cai_dlpack.h", r"if \(cuda && cai_priv_backend\(cuda\) != CAI_BACKEND_CUDA\)", r"if (0)", "paths"),
    ("a descriptor says CUDA", "ext/cai_ipc.h", r"    made\.backend = cai_priv_backend\(ipc->cuda\);", r"    made.backend = 0;", "ipc"),
    ("an array of HIP is exported as one of CUDA", "ext/cai_ipc.h", r"if \(cai_priv_is_foreign\(ipc->cuda, array->backend\)\)", r"if (0)", "ipc"),
    ("a descriptor of HIP is imported by CUDA", "ext/cai_ipc.h", r"if \(copy\.backend != cai_priv_backend\(cuda\)\)", r"if (0)", "ipc"),
    ("an import says CUDA", "ext/cai_ipc.h", r"    out->backend = in->backend;\n", r"", "ipc"),
    ("a copy of an import says CUDA", "ext/cai_ipc.h", r"    made\.backend = memory->backend;\n", r"", "ipc"),
]]  # fmt: skip


class Backend(Subject):
    """The programs."""

    def build(self, options, tree, folder):
        flags = [*folders_of(tree), "-pthread"]
        for name, source in PROGRAMS.items():
            failed = compile_with(options, *flags, f"-I{source.parent}", source, "-o", folder / name)
            if failed:
                return failed
        return None

    def run(self, options, tree, folder, environment, defect):
        seen = []
        for name in PROGRAMS if defect is NONE else [defect.more]:
            mark = rf"{PROGRAMS[name].name}:\d+: "
            status, output = execute_until([folder / name], 120, mark, environment)
            first = re.search(rf"{mark}[^\n]*", output)
            last = output.strip().splitlines()[-1] if output.strip() else "nothing"
            if defect is NONE and status:
                return False, f"A FAILURE: {output}"
            if defect is not NONE and not (status and (first or status < 0)):
                return False, f"NOT FOUND: {last}"
            seen.append(first.group(0) if first else f"{name}: {last}")
        return True, "; ".join(seen)


def main():
    return judge_all(parser(__doc__).parse_args(), DEFECTS, Backend())


if __name__ == "__main__":
    sys.exit(main())
